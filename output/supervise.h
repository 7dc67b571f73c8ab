/* SPDX-License-Identifier: MIT
 *
 * supervise: the parent that `aprof-run --report` and `--flame` leave behind: runs the
 * command, passes signals on, reads the run's directory when it has ended.
 *
 *   aprof supervise [--preload=LIST] [--report=FILE] [--flame=FILE] DIRECTORY COMMAND [ARGUMENT]...
 *
 * LIST is the command's LD_PRELOAD: this process itself is to run without it. The
 * report goes into its FILE, an empty one being stderr; stdout is the application's
 * alone.
 *
 * [tool] only. For aprof-run, which a shell cannot replace: it cannot wait and
 * pass signals on, and starts background children with SIGINT ignored.
 */
#ifndef APROF_OUTPUT_SUPERVISE_H
#define APROF_OUTPUT_SUPERVISE_H

/* argv[0] is "supervise". Returns the command's exit status, 128+N when signal N
 * ended it, 126 or 127 when it could not be run or found. What becomes of
 * report and flame graph never changes it. */
int supervise_main(int argc, char **argv);

#endif
