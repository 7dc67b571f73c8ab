/* SPDX-License-Identifier: MIT
 *
 * markers: frames that are no code but a text which the application chose, [task NAME],
 * [exception TYPE] of a task that waits and (sampler/labels.h) [LABEL=VALUE]: each has a
 * number, which tasks and stacks on their way carry in place of the text.
 *
 * So that such texts do not make a profile without end, a window has MARKERS_MOST
 * different ones of a kind; all others are [task ~], [exception ~], [LABEL=~], counted
 * (limits: task_names, exception_types, labels).
 * Numbers hold from one window to the next for texts that somebody keeps; the rest are
 * forgotten, and their numbers used again.
 *
 * Runs in: [loader] for what is asked for, which anybody may read from then on;
 * [sampler] for the rest. Texts are in the profiler's own heap, for want of which they
 * are like those that are too many. A forked child goes on with what its parent had.
 */
#ifndef APROF_SAMPLER_MARKERS_H
#define APROF_SAMPLER_MARKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/counters.h"
#include "sampler/profile.h"

enum { MARKERS_MOST = 1000, LABELS_MOST = 8 };

/* 0: none. */
typedef uint16_t marker_id;

/* [loader] Whether stacks have the names of tasks. */
void markers_ask_for_tasks(bool asked);
extern bool markers_tasks_asked;

/* [loader] What the value of such a label is shown with; stays where it is. */
void markers_name_label(uint32_t label, const char *name);

/* The number of a task's name (text_fold_end); of an empty one 0. */
marker_id markers_of_task(const char *name, uint32_t length);
/* ... of an exception's type (sampler/cpython/exceptions.h); of an empty one, which could not be read, that of the others. */
marker_id markers_of_exception(const char *type, uint32_t length);
/* ... of a label's value. */
marker_id markers_of_label(uint32_t label, const char *value, uint32_t length);
/* Equal for equal texts, whatever their numbers are. 0 for 0. */
uint64_t markers_hash(marker_id number);
/* The frame; 0: there is none for this number, or no memory. */
profile_frame markers_frame(struct profile *profile, marker_id number);

/* The profile was cleared: frames are void, and so is every text for which markers_keep is not called ... */
void markers_begin_window(void);
void markers_keep(marker_id number);
/* ... until now. */
void markers_end_keeping(void);

/* How often there were too many, or no memory for one more, since it was asked last. */
void markers_count(struct counters *counters);

#endif
