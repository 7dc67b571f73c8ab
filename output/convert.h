/* SPDX-License-Identifier: MIT
 *
 * convert: the subcommand `aprof convert`: a spool in the file formats of other
 * programs. output/conversion.h has their writers.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_CONVERT_H
#define APROF_OUTPUT_CONVERT_H

extern const char convert_help[];

/* argv[0] is "convert". Returns an exit status. */
int convert_main(int argc, char **argv);

#endif
