/* SPDX-License-Identifier: MIT
 *
 * merged: the metadata of many windows as that of one, from which output/quality.c says
 * the same as from them all.
 *
 * Keys and their meanings are those of output/metadata.h: counts are sums, peaks the
 * highest, start_us and end_us the first and the last, rates averages over the time that
 * was sampled. Texts (run, host, program, settings, tags, ...) that differ have all
 * values, ", " between. pid and ppid are 0, window is 0, loops are with their
 * processes. What that cannot say stands in one key more:
 *
 *   merged    {windows, windows_without_metadata, windows_by_syscall,
 *              windows_coarse_clock, process_us, asked: {least}, spans, processes}
 *
 *   process_us  the time that was sampled, summed over processes
 *   asked       the lowest rate asked for (rate.asked is the highest)
 *   spans       [{start_us, end_us}]: when any process was sampled
 *   processes   [{host, pid, start_us, run, program, python, ended, windows, covered_us,
 *               process_cpu_us, children_without_sample, threads_peak, tasks_peak,
 *               loops: as in metadata, times summed, peaks, stood_us and step_least_us the most}],
 *               one at least; start_us is the process's own
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_MERGED_H
#define APROF_OUTPUT_MERGED_H

#include <jansson.h>

#include "output/quality.h"
#include "output/reader.h"

/* Without metrics{}, which whoever writes the stacks knows. The caller releases it. */
json_t *merged_metadata(const struct reader *reader, const struct quality *quality);

#endif
