/* SPDX-License-Identifier: MIT
 *
 * top: `aprof top`: the functions of running processes, as their time grows.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_TOP_H
#define APROF_OUTPUT_TOP_H

extern const char top_help[];

/* argv[0] is "top". Returns an exit status. */
int top_main(int argc, char **argv);

#endif
