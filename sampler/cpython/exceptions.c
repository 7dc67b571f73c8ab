/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/exceptions.h"

#include "hooks/guard.h"
#include "sampler/cpython/containers.h"
#include "sampler/cpython/objects.h"

enum {
    ITEMS_MOST = 1024,     /* generators that run, one within the other */
    ATTRIBUTES_MOST = 256, /* of a class: where its module is looked for */
    STATIC_NAME_MOST = 256 /* bytes of a name in C */
};
#define FLAG_EXCEPTION_SUBCLASS (1ul << 30) /* Py_TPFLAGS_BASE_EXC_SUBCLASS */

/* --- how a type is called --- */

static uint32_t static_name(const struct py_target *target, uintptr_t type, char *name)
{
    struct text_folding text;
    unsigned char c;
    uintptr_t at;
    text_fold_begin(&text, name, false);
    if (!objects_word(type, target->layout.type_name, &at))
        return 0;
    for (uint32_t i = 0; i < STATIC_NAME_MOST && guard_copy(&c, at + i, 1) && c; i++)
        text_fold_more(&text, &c, 1, 1);
    return (uint32_t)text_fold_end(&text);
}

static uintptr_t module_of(const struct py_target *target, uintptr_t type)
{
    struct dict_walk walk;
    uintptr_t dict, key, value;
    if (!objects_word(type, target->layout.type_dict, &dict) || !containers_dict_begin(&walk, target, dict))
        return 0;
    containers_dict_bound(&walk, ATTRIBUTES_MOST);
    while (containers_dict_next(&walk, &key, &value))
        if (containers_is_text(target, key, "__module__"))
            return value;
    return 0;
}

/* The module's name and a dot; 0: none is shown. */
static uint32_t module_name(const struct py_target *target, uintptr_t type, char *name)
{
    uintptr_t module = module_of(target, type);
    struct py_str str;
    if (!module || containers_is_text(target, module, "builtins") || containers_is_text(target, module, "__main__") || !objects_str(target, module, &str))
        return 0;
    uint32_t length = objects_short(&str, name, false);
    if (length)
        name[length++] = '.';
    return length;
}

static uint32_t type_name(const struct py_target *target, uintptr_t type, uint64_t flags, char name[EXCEPTION_NAME_MAX])
{
    struct py_str str;
    uintptr_t qualname;
    if (!(flags & target->layout.flag_heap_type))
        return static_name(target, type, name);
    if (!objects_word(type, target->layout.type_qualname, &qualname) || !objects_str(target, qualname, &str))
        return 0;
    uint32_t module = module_name(target, type, name), length = objects_short(&str, name + module, false);
    return length ? module + length : 0;
}

/* --- items --- */

/* None where the item holds none (3.11, 3.12). */
static enum exceptions_found type_of(const struct py_target *target, uintptr_t value, uintptr_t *type, uint64_t *flags)
{
    if (!value)
        return EXCEPTIONS_NONE;
    if (!objects_word(value, target->layout.object_type, type) || !objects_word(*type, target->layout.type_flags, flags))
        return EXCEPTIONS_TORN;
    if (*flags & FLAG_EXCEPTION_SUBCLASS)
        return EXCEPTIONS_ONE;
    return containers_type_is_named(target, *type, "NoneType") ? EXCEPTIONS_NONE : EXCEPTIONS_TORN;
}

static enum exceptions_found look_at(const struct py_target *target, uintptr_t value, char name[EXCEPTION_NAME_MAX], uint32_t *length)
{
    uintptr_t type;
    uint64_t flags;
    enum exceptions_found found = type_of(target, value, &type, &flags);
    if (found != EXCEPTIONS_ONE)
        return found;
    *length = type_name(target, type, flags, name);
    return *length ? EXCEPTIONS_ONE : EXCEPTIONS_TORN;
}

enum exceptions_found exceptions_of_thread(const struct py_target *target, uintptr_t tstate, char name[EXCEPTION_NAME_MAX], uint32_t *length)
{
    const struct layout *layout = &target->layout;
    uintptr_t item, value;
    if (!objects_word(tstate, layout->thread_exc_info, &item))
        return EXCEPTIONS_TORN;
    for (uint32_t i = 0; i < ITEMS_MOST && item; i++) {
        if (!objects_word(item, layout->exc_value, &value))
            return EXCEPTIONS_TORN;
        enum exceptions_found found = look_at(target, value, name, length);
        if (found != EXCEPTIONS_NONE)
            return found;
        if (!objects_word(item, layout->exc_previous, &item))
            return EXCEPTIONS_TORN;
    }
    return item ? EXCEPTIONS_TORN : EXCEPTIONS_NONE;
}

/* --- of tasks --- */

bool exceptions_tasks_asked;

void exceptions_ask_for_tasks(bool asked)
{
    exceptions_tasks_asked = asked;
}

bool exceptions_type_of_generator(const struct py_target *target, uintptr_t generator, uintptr_t *type)
{
    uintptr_t value;
    uint64_t flags;
    if (!objects_word(generator, target->layout.gen_exc_state + target->layout.exc_value, &value))
        return false;
    enum exceptions_found found = type_of(target, value, type, &flags);
    if (found != EXCEPTIONS_ONE)
        *type = 0;
    return found != EXCEPTIONS_TORN;
}

enum exceptions_found exceptions_of_generator(const struct py_target *target, uintptr_t generator, char name[EXCEPTION_NAME_MAX], uint32_t *length)
{
    uintptr_t value;
    if (!objects_word(generator, target->layout.gen_exc_state + target->layout.exc_value, &value))
        return EXCEPTIONS_TORN;
    return look_at(target, value, name, length);
}
