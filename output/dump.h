/* SPDX-License-Identifier: MIT
 *
 * dump: `aprof dump`: where all threads and tasks of a running process are now.
 *
 * With --json one object (times in microseconds):
 *
 *   aprof      version of this program
 *   format     1; changes when a key changes its meaning, not when keys come
 *   processes  [{host,pid,start_us,program,python,at_us,threads[],tasks[],stacks[],
 *              threads_left,tasks_left,tasks_recorded}]
 *   threads    {tid,name,state,known_by,age_us,stack}; name, age_us, stack: null where
 *              not known
 *   tasks      {name,state,known_by,waits_us,thread,stacks[]}; waits_us: for the
 *              same future, at least; null where not known; a task with several awaiters
 *              has a stack on each
 *   stacks     [[{name,place}]], outermost frame first; others refer to them by index
 *
 * state and known_by are the words of sampler/dump.h.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DUMP_H
#define APROF_OUTPUT_DUMP_H

extern const char dump_help[];

/* argv[0] is "dump". Returns an exit status. */
int dump_main(int argc, char **argv);

#endif
