/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/threadnames.h"

#include "sampler/cpython/objects.h"

enum { ENTRIES_MOST = 65536 }; /* more than there are threads: a table that is being replaced may say anything */

/* PyModuleObject's md_dict is the word behind the head (Include/internal/pycore_moduleobject.h).
 * What stands in sys.modules may be anything: then there is no dict at that place. */
static uintptr_t dict_of_module(const struct py_target *target, uintptr_t module)
{
    uintptr_t type, dict;
    if (!objects_word(module, target->layout.object_type, &type) || !containers_type_is_named(target, type, "module") ||
        !objects_word(module, target->layout.object_type + (int32_t)sizeof(uint64_t), &dict))
        return 0;
    return dict;
}

bool threadnames_begin(struct threadnames_walk *walk, const struct py_target *target, uintptr_t interp)
{
    uintptr_t modules;
    walk->target = target;
    if (!objects_word(interp, target->layout.interp_modules, &modules))
        return false;
    uintptr_t dict = dict_of_module(target, containers_dict_get(target, modules, "threading"));
    if (!dict || !containers_dict_begin(&walk->threads, target, containers_dict_get(target, dict, "_active")))
        return false;
    containers_dict_bound(&walk->threads, ENTRIES_MOST);
    return true;
}

/* A dict's entries are in the order in which they came. */
void threadnames_newest(struct threadnames_walk *walk, uint32_t entries)
{
    if (walk->threads.count > entries)
        walk->threads.next = walk->threads.count - entries;
}

/* The entry before walk->threads.next, once more. */
static bool stands_there_still(const struct threadnames_walk *walk, uintptr_t key, uintptr_t value)
{
    struct dict_walk again = walk->threads;
    uintptr_t key_now, value_now;
    again.next--;
    return containers_dict_next(&again, &key_now, &value_now) && again.next == walk->threads.next && key_now == key && value_now == value;
}

uint32_t threadnames_of(const struct py_target *target, uintptr_t thread, char *name, uint32_t size)
{
    struct py_str str;
    return objects_str(target, containers_attribute(target, thread, "_name"), &str) ? objects_text(&str, name, size) : 0;
}

bool threadnames_next(struct threadnames_walk *walk, uint64_t *thread, char *name, uint32_t size, uint32_t *length)
{
    uintptr_t key, value;
    while (containers_dict_next(&walk->threads, &key, &value)) {
        *length = objects_number(walk->target, key, thread) ? threadnames_of(walk->target, value, name, size) : 0;
        if (*length && stands_there_still(walk, key, value))
            return true;
    }
    return false;
}
