/* SPDX-License-Identifier: MIT
 *
 * flame: `aprof flame`: spools as one HTML file with a flame graph (see page.h).
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_FLAME_H
#define APROF_OUTPUT_FLAME_H

extern const char flame_help[];

/* argv[0] is "flame". Returns an exit status. */
int flame_main(int argc, char **argv);

#endif
