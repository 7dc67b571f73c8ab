/* SPDX-License-Identifier: MIT
 *
 * merge: the subcommand `aprof merge`: windows, processes and hosts as one spool of one
 * window.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_MERGE_H
#define APROF_OUTPUT_MERGE_H

extern const char merge_help[];

/* argv[0] is "merge". Returns an exit status. */
int merge_main(int argc, char **argv);

#endif
