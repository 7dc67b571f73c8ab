/* SPDX-License-Identifier: MIT
 *
 * report: `aprof report`: how good the profile is, then where the time went.
 *
 * With --json one object (times in microseconds, sizes in bytes):
 *
 *   aprof      version of this program
 *   format     1; changes when a key changes its meaning, not when keys come
 *   quality    processes running killed runs windows windows_without_metadata
 *              start_us end_us covered_us process_us
 *              rate{asked_least,asked_most,got} ticks{due,taken,missed} samples
 *              lost dropped{REASON:n} limits{LIMIT:n} tasks_skipped
 *              children_without_sample cpu_unseen_us cpu_spread_us
 *              sampler_cpu_us handler_us process_cpu_us own_cost_percent
 *              threads_peak thread_reads{taken,left}
 *              tasks_peak task_ticks{read,repeated,tasks,postponed,cpu_us}
 *              gil{held_us,wait_us,unknown_us,wall_us}, where that metric was recorded
 *              windows_by_syscall windows_coarse_clock
 *              files lines lines_bad tails repeated unfinished folders
 *              gone unreadable
 *   processes  [{host,pid,start_us,program,python,run,ended,windows,covered_us,
 *              process_cpu_us,children_without_sample,threads_peak,tasks_peak}]
 *   loops      [{process,thread,idle_us,busy_us,idle_percent}], process being an
 *              index into processes; with stood_us, stood_in, step_least_us, step_most_us,
 *              step_in, steps_unknown, counted_us, pending_us, pending_peak, ready_us,
 *              ready_peak where known (output/metadata.h);
 *              idle_percent null where its time is not
 *   only, hide [PATTERN], when either was given: of --only and of --hide
 *   blocking   with --blocking, and metrics is empty then: {source,total,busy,idle,
 *              rows[{stack:[{name,place}],waiting,busy_percent}]} (output/blocking_show.h)
 *   metrics    {NAME:{unit,total,whole,by,by_self[],by_total[]}}, whole being what there was
 *              before --only, when it or --hide was given; rows being
 *              {name,place,self,total}; by "stack" there is only by_self[], rows
 *              being {stack:[{name,place}],self}, root first; unit is "us" or
 *              "bytes"
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_REPORT_H
#define APROF_OUTPUT_REPORT_H

extern const char report_help[];

/* argv[0] is "report". Returns an exit status. */
int report_main(int argc, char **argv);

#endif
