/* SPDX-License-Identifier: MIT
 *
 * dump_show: dumps as people read them, and as programs do (output/dump.h).
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DUMP_SHOW_H
#define APROF_OUTPUT_DUMP_SHOW_H

#include <stdbool.h>

#include "output/asking.h"

/* Those that answered. all_names: however many are alike. */
void dump_show_text(const struct asking *asking, bool all_names);
void dump_show_json(const struct asking *asking);

#endif
