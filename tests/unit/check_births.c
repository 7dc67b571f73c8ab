/* SPDX-License-Identifier: MIT
 * births: the hooks on types, frames and coroutines made up in real memory, laid
 * out as each version does; they follow plain pointers, so fake memory is no help. */
#include "sampler/births.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "hooks/guard.h"
#include "hooks/real.h"

#define FIRST_MINOR 11
#define AFTER_LAST_MINOR 16
#define TYPE_SIZE 512
#define RING_WORDS (1u << 17)
#define WRAPPED_AT 48
#define SHORTEST 2u /* words of a birth without makers */

Suite *suite_births(void);

typedef int (*init_function)(void *, void *, void *);
typedef void (*dealloc_function)(void *);

static struct py_target target;
static uintptr_t task_type, dict_type, descriptor;
static _Thread_local uintptr_t tstate, cframe;

/* --- making things --- */

/* Zeroed, at a distance from the last that is the size. */
static uintptr_t zone(size_t size)
{
    static _Atomic size_t given;
    static _Alignas(4096) uint8_t memory[64 << 20];
    size_t whole = (size + 15) / 16 * 16, at = atomic_fetch_add(&given, whole);
    ck_assert_uint_le(at + whole, sizeof memory);
    return (uintptr_t)memory + at;
}

static void put(uintptr_t base, int32_t offset, uintptr_t value)
{
    ck_assert_int_ge(offset, 0);
    memcpy((void *)(base + (uintptr_t)offset), &value, sizeof value);
}

static uintptr_t get(uintptr_t base, int32_t offset)
{
    uintptr_t value;
    memcpy(&value, (void *)(base + (uintptr_t)offset), sizeof value);
    return value;
}

static uintptr_t make_type(uint64_t flags)
{
    uintptr_t type = zone(TYPE_SIZE);
    put(type, target.layout.type_flags, flags);
    return type;
}

static uintptr_t make_str(const char *text)
{
    const struct layout *layout = &target.layout;
    uintptr_t str = zone((size_t)layout->str_ascii_data + strlen(text) + 1);
    put(str, layout->object_type, target.unicode_type);
    put(str, layout->str_length, strlen(text));
    put(str, layout->str_state, 1u << 2 | 1u << 5 | 1u << 6);
    strcpy((char *)(str + (uintptr_t)layout->str_ascii_data), text);
    return str;
}

/* Of count keys and values; in it general entries, whose keys are of any type. */
static uintptr_t make_dict(uint32_t count, const uintptr_t *keys, const uintptr_t *values)
{
    const struct layout *layout = &target.layout;
    uintptr_t dict = zone(64), table = zone((size_t)layout->keys_indices + 64 + 24 * count);
    put(dict, layout->object_type, dict_type);
    put(dict, layout->dict_keys, table);
    *(uint8_t *)(table + (uintptr_t)layout->keys_log2_index_bytes) = 6;
    put(table, layout->keys_nentries, count);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t entry = table + (uintptr_t)layout->keys_indices + 64 + 24 * i;
        put(entry, 8, keys[i]);
        put(entry, 16, values[i]);
    }
    return dict;
}

static uintptr_t make_weakref(uintptr_t object)
{
    uintptr_t reference = zone(64);
    put(reference, target.layout.weakref_object, object);
    return reference;
}

static void set_subclasses(uintptr_t type, uint32_t count, const uintptr_t *objects)
{
    uintptr_t keys[8], values[8];
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = make_str("id");
        values[i] = make_weakref(objects[i]);
    }
    put(type, target.layout.type_subclasses, make_dict(count, keys, values));
}

static uintptr_t make_subclass(uintptr_t base, init_function init)
{
    uintptr_t type = make_type(0);
    put(type, target.layout.type_base, base);
    put(type, target.layout.type_init, (uintptr_t)init);
    return type;
}

/* --- the interpreter's functions --- */

static void *inits[3];
static int init_calls;
static _Atomic uint32_t deaths;
static void (*in_finally)(void *);

static int task_original(void *self, void *args, void *kwds)
{
    inits[0] = self, inits[1] = args, inits[2] = kwds;
    init_calls++;
    return 17;
}

static int quiet_original(void *self, void *args, void *kwds)
{
    return 0;
}

static int other_init(void *self, void *args, void *kwds)
{
    return 1;
}

static void coroutine_original(void *self)
{
    if (in_finally)
        in_finally(self);
    atomic_fetch_add(&deaths, 1);
}

static void generator_original(void *self)
{
    atomic_fetch_add(&deaths, 1000);
}

static void *thread_state(void)
{
    return (void *)tstate;
}

/* --- a thread, its frames and coroutines --- */

static void begin_thread(void)
{
    tstate = zone(1024);
    if (target.layout.thread_cframe != LAYOUT_NONE) {
        cframe = zone(64);
        put(tstate, target.layout.thread_cframe, cframe);
    }
}

static uintptr_t current(void)
{
    const struct layout *layout = &target.layout;
    return cframe ? get(cframe, layout->cframe_current) : get(tstate, layout->thread_current_frame);
}

static void set_current(uintptr_t frame)
{
    const struct layout *layout = &target.layout;
    cframe ? put(cframe, layout->cframe_current, frame) : put(tstate, layout->thread_current_frame, frame);
}

static size_t coroutine_size(void)
{
    return ((size_t)(target.layout.gen_frame + target.layout.frame_size) + 15) / 16 * 16;
}

static void set_state(uintptr_t object, int state)
{
    *(int8_t *)(object + (uintptr_t)target.layout.gen_state) = (int8_t)state;
}

static void push_frame(uintptr_t frame, uint8_t owner)
{
    put(frame, target.layout.frame_previous, current());
    *(uint8_t *)(frame + (uintptr_t)target.layout.frame_owner) = owner;
    set_current(frame);
}

static void push_function(uint8_t owner)
{
    push_frame(zone((size_t)target.layout.frame_size), owner);
}

/* Makes a generator of that type of the memory and lets it execute. */
static void push_at(uintptr_t object, uintptr_t type)
{
    put(object, target.layout.object_type, type);
    set_state(object, target.layout.gen_executing);
    push_frame(object + (uintptr_t)target.layout.gen_frame, target.layout.owner_generator);
}

static uintptr_t push(uintptr_t type)
{
    uintptr_t object = zone(coroutine_size());
    push_at(object, type);
    return object;
}

static void pop(void)
{
    set_current(get(current(), target.layout.frame_previous));
}

/* Ends and destroys what executed. */
static void destroy(uintptr_t object)
{
    set_state(object, target.layout.gen_finished);
    ((dealloc_function)get(get(object, target.layout.object_type), target.layout.type_dealloc))((void *)object);
}

static int make_task(uintptr_t task)
{
    return ((init_function)get(task_type, target.layout.type_init))((void *)task, NULL, NULL);
}

static void make_world(int minor, init_function init)
{
    target = (struct py_target){.layout = *layout_find(minor, false)};
    dict_type = make_type(1ul << 29);
    target.unicode_type = make_type(1ul << 28);
    target.coro_type = make_type(0);
    target.async_gen_type = make_type(0);
    target.gen_type = make_type(0);
    put(target.coro_type, target.layout.type_dealloc, (uintptr_t)coroutine_original);
    put(target.async_gen_type, target.layout.type_dealloc, (uintptr_t)generator_original);
    task_type = make_type(0);
    descriptor = zone(64);
    put(descriptor, 16, task_type);
    put(descriptor, WRAPPED_AT, (uintptr_t)init);
    put(task_type, target.layout.type_init, (uintptr_t)init);
    put(task_type, target.layout.type_dict,
        make_dict(2, (uintptr_t[]){make_str("__new__"), make_str("__init__")}, (uintptr_t[]){descriptor + 8, descriptor}));
    begin_thread();
}

static void start(int minor)
{
    real_resolve();
    guard_start(GUARD_SYSCALL);
    make_world(minor, task_original);
    ck_assert_int_eq(births_start(&target, thread_state), 0);
    deaths = 0;
}

static void start_hooked(int minor)
{
    start(minor);
    ck_assert(births_hook(task_type));
}

/* The next birth is of this task, by these coroutines. */
static struct birth take(uintptr_t task, uint32_t count, const uintptr_t *coroutines)
{
    struct birth birth;
    ck_assert(births_next(&birth));
    ck_assert_uint_eq(birth.task, task);
    ck_assert_uint_eq(birth.count, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_ne(birth.maker[i], 0);
        ck_assert_uint_eq(births_coroutine(birth.maker[i]), coroutines[i]);
        ck_assert(births_is_alive(birth.maker[i]));
    }
    return birth;
}

static void take_none(void)
{
    struct birth birth;
    ck_assert(!births_next(&birth));
}

/* --- deaths of futures --- */

static void *buried;

static void future_original(void *self)
{
    buried = self;
}

/* The base of the Task type. */
static uintptr_t make_future_type(const char *name, dealloc_function original)
{
    uintptr_t type = make_type(0), text = zone(32);
    strcpy((char *)text, name);
    put(type, target.layout.type_name, text);
    put(type, target.layout.type_dealloc, (uintptr_t)original);
    put(task_type, target.layout.type_base, type);
    return type;
}

static void bury(uintptr_t type, uintptr_t future)
{
    ((dealloc_function)get(type, target.layout.type_dealloc))((void *)future);
    ck_assert_ptr_eq(buried, (void *)future);
}

START_TEST(deaths_of_futures_are_counted_where_they_were)
{
    enum { AT = 0x7f0000000100, NEIGHBOUR = 0x7f0000000190 };
    start(_i);
    uintptr_t type = make_future_type("_asyncio.Future", future_original);
    ck_assert(!births_counts_futures(type));
    for (int i = 0; i < 3; i++)
        ck_assert(births_hook(task_type));
    ck_assert(births_counts_futures(type));
    ck_assert(!births_counts_futures(task_type));
    for (uint32_t i = 1; i < 1000; i++) {
        uint32_t at = births_future_deaths(AT), neighbour = births_future_deaths(NEIGHBOUR);
        ck_assert_uint_eq(births_future_deaths(AT), at);
        bury(type, AT);
        ck_assert_uint_ne(births_future_deaths(AT), at);
        ck_assert_uint_eq(births_future_deaths(NEIGHBOUR), neighbour);
    }
    ck_assert_ptr_ne(births_future_place(AT), births_future_place(NEIGHBOUR));
}
END_TEST

START_TEST(futures_of_another_make_stay_as_they_are)
{
    start(_i);
    uintptr_t other = make_future_type("_asyncio.Other", future_original);
    ck_assert(births_hook(task_type));
    ck_assert(!births_counts_futures(other));
    ck_assert_uint_eq(get(other, target.layout.type_dealloc), (uintptr_t)future_original);
    uintptr_t first = make_future_type("_asyncio.Future", future_original);
    ck_assert(births_hook(task_type));
    ck_assert(births_counts_futures(first));
    uintptr_t second = make_future_type("_asyncio.Future", generator_original); /* another interpreter's, of another library */
    ck_assert(births_hook(task_type));
    ck_assert(!births_counts_futures(second));
    ck_assert_uint_eq(get(second, target.layout.type_dealloc), (uintptr_t)generator_original);
    put(task_type, target.layout.type_base, 0xdddddddddddddddd);
    ck_assert(births_hook(task_type));
    ck_assert(!births_counts_futures(0xdddddddddddddddd));
}
END_TEST

/* --- hooking --- */

START_TEST(nothing_before_the_start)
{
    struct birth birth;
    ck_assert(!births_next(&birth));
    ck_assert(!births_is_alive(1));
    ck_assert_uint_eq(births_coroutine(7ull << 32 | 1), 0);
    ck_assert_uint_eq(births_makers(), 0);
    ck_assert(!births_counts_futures(0x1000));
    ck_assert_uint_eq(births_future_deaths(0x1000), 0);
    births_postfork_child();
    real_resolve();
    guard_start(GUARD_SYSCALL);
    make_world(_i, task_original);
    ck_assert(!births_hook(task_type));
    ck_assert(!births_is_hooked(task_type));
    ck_assert_int_eq(births_start(&target, NULL), -ENOENT);
    target.coro_type = 0;
    ck_assert_int_eq(births_start(&target, thread_state), -ENOENT);
}
END_TEST

START_TEST(the_original_is_called_with_what_came)
{
    start_hooked(_i);
    init_function hook = (init_function)get(task_type, target.layout.type_init);
    ck_assert_ptr_ne(hook, task_original);
    uintptr_t args = zone(64);
    ck_assert_int_eq(hook((void *)8, (void *)args, (void *)24), 17);
    ck_assert_ptr_eq(inits[0], (void *)8);
    ck_assert_ptr_eq(inits[1], (void *)args);
    ck_assert_ptr_eq(inits[2], (void *)24);
    ck_assert_int_eq(init_calls, 1);
    take(8, 0, NULL);
    take_none();
}
END_TEST

START_TEST(the_slot_and_the_descriptor)
{
    start(_i);
    ck_assert(!births_is_hooked(task_type));
    ck_assert(births_hook(task_type));
    ck_assert(births_is_hooked(task_type));
    uintptr_t hook = get(task_type, target.layout.type_init);
    ck_assert_uint_ne(hook, (uintptr_t)task_original);
    ck_assert_uint_eq(get(descriptor, WRAPPED_AT), hook);
    ck_assert_uint_ne(get(target.coro_type, target.layout.type_dealloc), (uintptr_t)coroutine_original);
    ck_assert_uint_ne(get(target.async_gen_type, target.layout.type_dealloc), (uintptr_t)generator_original);
    for (int i = 0; i < 3; i++)
        ck_assert(births_hook(task_type));
    make_task(8);
    ck_assert_int_eq(init_calls, 1);
    uintptr_t coroutine = push(target.coro_type), generator = push(target.async_gen_type);
    destroy(coroutine);
    destroy(generator);
    ck_assert_uint_eq(deaths, 1001);
}
END_TEST

START_TEST(subclasses_of_subclasses)
{
    start(_i);
    uintptr_t plain = make_subclass(task_type, task_original), own = make_subclass(task_type, other_init);
    uintptr_t below_own = make_subclass(own, task_original), none = zone(16), stranger = make_subclass(dict_type, task_original);
    set_subclasses(own, 1, (uintptr_t[]){below_own});
    set_subclasses(task_type, 5, (uintptr_t[]){none, 0xdddddddddddddddd, plain, stranger, own});
    ck_assert(births_hook(task_type));
    uintptr_t hook = get(task_type, target.layout.type_init);
    ck_assert_uint_eq(get(plain, target.layout.type_init), hook);
    ck_assert_uint_eq(get(below_own, target.layout.type_init), hook);
    ck_assert_uint_eq(get(own, target.layout.type_init), (uintptr_t)other_init);
    ck_assert_uint_eq(get(stranger, target.layout.type_init), (uintptr_t)task_original);
    ck_assert(births_is_hooked(task_type));

    put(below_own, target.layout.type_init, (uintptr_t)task_original); /* as one that came since */
    ck_assert(!births_is_hooked(task_type));
    ck_assert(births_hook(task_type));
    ck_assert_uint_eq(get(below_own, target.layout.type_init), hook);
    ck_assert(births_is_hooked(task_type));
}
END_TEST

START_TEST(a_circle_of_subclasses_ends)
{
    start(_i);
    uintptr_t one = make_subclass(task_type, task_original), two = make_subclass(one, task_original);
    set_subclasses(task_type, 1, (uintptr_t[]){one});
    set_subclasses(one, 1, (uintptr_t[]){two});
    set_subclasses(two, 1, (uintptr_t[]){one});
    ck_assert(births_hook(task_type));
    ck_assert(births_is_hooked(task_type));
}
END_TEST

static void refused(uintptr_t type)
{
    uintptr_t init = get(type, target.layout.type_init), dealloc = get(target.coro_type, target.layout.type_dealloc);
    ck_assert(!births_hook(type));
    ck_assert(!births_is_hooked(type));
    ck_assert_uint_eq(get(type, target.layout.type_init), init);
    ck_assert_uint_eq(get(target.coro_type, target.layout.type_dealloc), dealloc);
}

START_TEST(what_is_not_as_it_should_be)
{
    start(_i);
    put(descriptor, WRAPPED_AT, (uintptr_t)other_init); /* says another function than the slot */
    refused(task_type);
    put(descriptor, WRAPPED_AT, (uintptr_t)task_original);
    put(descriptor, 16, dict_type); /* another type's */
    refused(task_type);
    put(descriptor, 16, task_type);
    uintptr_t dict = get(task_type, target.layout.type_dict);
    put(task_type, target.layout.type_dict, make_dict(0, NULL, NULL)); /* no __init__ */
    refused(task_type);
    put(task_type, target.layout.type_dict, 0x0000800000000000);
    refused(task_type);
    put(task_type, target.layout.type_dict, dict);
    for (uintptr_t none = 0; none < 32; none += 4)
        ck_assert(!births_hook(none));
    ck_assert(!births_hook(0xdddddddddddddddd));
    ck_assert(births_hook(task_type));
    take_none();
}
END_TEST

START_TEST(another_original_is_refused)
{
    start_hooked(_i);
    uintptr_t first = task_type;
    struct py_target old = target;
    make_world(_i, other_init);
    target = old;
    refused(task_type);
    ck_assert_uint_eq(get(descriptor, WRAPPED_AT), (uintptr_t)other_init);
    ck_assert(births_is_hooked(first));
}
END_TEST

START_TEST(another_type_of_the_same_original)
{
    start_hooked(_i);
    uintptr_t first = task_type;
    struct py_target old = target;
    make_world(_i, task_original);
    target = old;
    put(get(task_type, target.layout.type_dict), target.layout.object_type, dict_type);
    ck_assert(births_hook(task_type));
    ck_assert_uint_eq(get(task_type, target.layout.type_init), get(first, target.layout.type_init));
}
END_TEST

/* --- the chain --- */

START_TEST(innermost_first_and_only_coroutines)
{
    start_hooked(_i);
    push_function(0);
    uintptr_t outer = push(target.coro_type);
    push_function(0);
    push(target.gen_type);
    uintptr_t middle = push(target.async_gen_type);
    push_function(target.layout.owner_entry == 0xff ? 2 : target.layout.owner_entry);
    uintptr_t inner = push(target.coro_type);
    push_function(0);
    push(target.coro_type); /* memory that looks like one, and a frame that is none's */
    *(uint8_t *)(current() + (uintptr_t)target.layout.frame_owner) = 0;
    make_task(8);
    take(8, 3, (uintptr_t[]){inner, middle, outer});
    ck_assert_uint_eq(births_makers(), 3);
    make_task(16);
    take(16, 3, (uintptr_t[]){inner, middle, outer});
    ck_assert_uint_eq(births_makers(), 3);
}
END_TEST

START_TEST(a_long_chain_is_cut_at_its_outer_end)
{
    uintptr_t coroutines[BIRTH_MAKERS + 5];
    start_hooked(_i);
    for (int i = BIRTH_MAKERS + 4; i >= 0; i--)
        coroutines[i] = push(target.coro_type);
    make_task(8);
    take(8, BIRTH_MAKERS, coroutines);
    ck_assert_uint_eq(births_lost(), 0);
}
END_TEST

START_TEST(a_deep_thread_is_read_to_a_limit)
{
    start_hooked(_i);
    uintptr_t outer = push(target.coro_type);
    for (int i = 0; i < 510; i++)
        push_function(0);
    uintptr_t inner = push(target.coro_type);
    make_task(8);
    take(8, 2, (uintptr_t[]){inner, outer}); /* the 512th */
    push_function(0);
    make_task(16);
    take(16, 1, &inner);
}
END_TEST

START_TEST(no_thread_no_frame)
{
    start_hooked(_i);
    make_task(8);
    take(8, 0, NULL);
    tstate = 0;
    make_task(16);
    take(16, 0, NULL);
}
END_TEST

/* --- death --- */

START_TEST(an_address_is_no_identity)
{
    start_hooked(_i);
    uintptr_t place = zone(coroutine_size());
    maker_id seen[50];
    for (int i = 0; i < 50; i++) {
        push_at(place, i % 2 ? target.coro_type : target.async_gen_type);
        make_task(8);
        seen[i] = take(8, 1, &place).maker[0];
        pop();
        destroy(place);
        ck_assert_uint_eq(births_makers(), 0);
        for (int j = 0; j <= i; j++) {
            ck_assert(!births_is_alive(seen[j]));
            ck_assert(j == i || seen[j] != seen[i]);
        }
    }
    ck_assert_uint_eq(deaths, 25025);
}
END_TEST

static maker_id made_in_finally;

static void make_in_finally(void *self)
{
    push_frame((uintptr_t)self + (uintptr_t)target.layout.gen_frame, target.layout.owner_generator);
    make_task(24);
    made_in_finally = take(24, 1, (uintptr_t[]){(uintptr_t)self}).maker[0];
    pop();
}

START_TEST(made_while_it_dies)
{
    start_hooked(_i);
    for (int before = 0; before < 2; before++) { /* it made one before, or did not */
        uintptr_t coroutine = push(target.coro_type);
        maker_id first = 0;
        if (before) {
            make_task(8);
            first = take(8, 1, &coroutine).maker[0];
        }
        pop();
        set_state(coroutine, target.layout.gen_suspended);
        in_finally = make_in_finally;
        ((dealloc_function)get(target.coro_type, target.layout.type_dealloc))((void *)coroutine);
        in_finally = NULL;
        ck_assert(!births_is_alive(made_in_finally));
        ck_assert(!before || !births_is_alive(first));
        ck_assert_uint_ne(made_in_finally, first);
        ck_assert_uint_eq(births_makers(), 0);
    }
}
END_TEST

START_TEST(identities_that_never_were)
{
    start_hooked(_i);
    uintptr_t coroutine = push(target.coro_type);
    make_task(8);
    maker_id maker = take(8, 1, &coroutine).maker[0];
    const maker_id wrong[] = {0, 1, maker + 1, maker - 1, maker ^ 1ull << 32, maker | 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert(!births_is_alive(wrong[i]));
        ck_assert_uint_eq(births_coroutine(wrong[i]), 0);
    }
}
END_TEST

/* --- no room --- */

/* A task is gone when another one is born in its place. */
START_TEST(superseded_births_are_dropped)
{
    start_hooked(_i);
    make_task(8);
    make_task(8);
    take(8, 0, NULL);
    take_none();
    make_task(8);
    make_task(16);
    make_task(8);
    make_task(24);
    take(16, 0, NULL);
    take(8, 0, NULL);
    make_task(8); /* the one before is taken already */
    make_task(16);
    take(24, 0, NULL);
    take(8, 0, NULL);
    take(16, 0, NULL);
    take_none();
}
END_TEST

/* Those that came while tasks were read say which of two was. */
START_TEST(births_that_are_held_are_not_superseded)
{
    start_hooked(_i);
    make_task(8);
    births_hold();
    make_task(8);
    make_task(8);
    births_release();
    make_task(8);
    for (int i = 0; i < 4; i++)
        take(8, 0, NULL);
    make_task(8);
    make_task(8);
    take(8, 0, NULL);
    take_none();
}
END_TEST

/* Of thousands of addresses few have to share a place in the table, whatever lies between them. */
START_TEST(superseded_at_many_addresses)
{
    enum { ADDRESSES = 4000, LIVES = 4 };
    const size_t distance[] = {176, 192, 256, 272, 288, 304, 512};
    static uint8_t lives[ADDRESSES];
    start_hooked(_i);
    uintptr_t memory = zone(ADDRESSES * 512);
    for (size_t turn = 0; turn < sizeof distance / sizeof *distance; turn++) {
        struct birth birth;
        uint32_t taken = 0;
        memset(lives, 0, sizeof lives);
        for (uint32_t i = 0; i < LIVES * ADDRESSES; i++)
            make_task(memory + i % ADDRESSES * distance[turn]);
        for (; births_next(&birth); taken++)
            lives[(birth.task - memory) / distance[turn]]++;
        for (uint32_t i = 0; i < ADDRESSES; i++)
            ck_assert_uint_ge(lives[i], 1);
        ck_assert_uint_lt(taken - ADDRESSES, (LIVES - 1) * ADDRESSES / 5);
    }
}
END_TEST

START_TEST(a_full_ring_of_superseded_births)
{
    start_hooked(_i);
    uint64_t before = births_lost();
    for (int round = 0; round < 3; round++) {
        while (births_lost() == before)
            for (uintptr_t task = 8; task <= 80; task += 8)
                make_task(task);
        before = births_lost();
        struct birth birth;
        uint32_t seen = 0, taken = 0;
        while (births_next(&birth)) {
            seen |= 1u << birth.task / 8;
            taken++;
        }
        ck_assert_uint_eq(seen, 0x7fe); /* of the last ones that had room, ten in a row */
        ck_assert_uint_eq(taken, 10);
    }
}
END_TEST

START_TEST(a_full_bucket_is_counted)
{
    enum { MANY = 150000 };
    start_hooked(_i);
    size_t size = coroutine_size();
    uintptr_t memory = zone(size * MANY);
    uint64_t noted = 0;
    struct birth birth;
    for (uint32_t i = 0; i < MANY; i++) {
        push_at(memory + size * i, target.coro_type);
        make_task(8);
        while (births_next(&birth)) {
            ck_assert_uint_eq(births_coroutine(birth.maker[0]), memory + size * i);
            noted++;
        }
        pop();
    }
    ck_assert_uint_gt(births_lost(), 0);
    ck_assert_uint_eq(noted + births_lost(), MANY);
    ck_assert_uint_eq(births_makers(), noted);
    ck_assert_uint_gt(noted, MANY / 2); /* spread evenly enough */
    for (uint32_t i = 0; i < MANY; i++)
        destroy(memory + size * i);
    ck_assert_uint_eq(births_makers(), 0);
}
END_TEST

static int halves;

static void count_half(void)
{
    halves++;
}

START_TEST(a_full_ring_is_counted)
{
    start_hooked(_i);
    births_on_half(count_half);
    for (uintptr_t round = 0, sum = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < RING_WORDS / SHORTEST; i++) {
            make_task(8 + i);
            ck_assert_int_eq(halves, (int)round + (i >= RING_WORDS / SHORTEST / 2));
        }
        ck_assert_uint_eq(births_lost(), sum);
        for (int i = 0; i < 10; i++)
            make_task(4);
        ck_assert_uint_eq(births_lost(), sum += 10);
        for (uintptr_t i = 0; i < RING_WORDS / SHORTEST; i++)
            take(8 + i, 0, NULL);
        take_none();
    }
}
END_TEST

START_TEST(records_of_all_lengths_round_the_ring)
{
    uintptr_t coroutines[BIRTH_MAKERS];
    start_hooked(_i);
    for (uint32_t n = 0; n < 6; n++) /* 32,000 words each */
        for (uint32_t count = 0; count <= BIRTH_MAKERS; count++) {
            for (uint32_t i = 0; count && i < 60; i++)
                make_task(8 + i);
            for (uint32_t i = 0; count && i < 60; i++)
                take(8 + i, count - 1, coroutines + BIRTH_MAKERS - count + 1);
            if (count == BIRTH_MAKERS)
                set_current(0);
            else if (count)
                coroutines[BIRTH_MAKERS - count] = push(target.coro_type);
        }
    ck_assert_uint_eq(births_lost(), 0);
}
END_TEST

START_TEST(a_child_begins_with_an_empty_ring)
{
    start_hooked(_i);
    uintptr_t coroutine = push(target.coro_type);
    make_task(8);
    maker_id maker = take(8, 1, &coroutine).maker[0];
    for (uintptr_t i = 0; i < 1000; i++)
        make_task(16);
    births_postfork_child();
    take_none();
    ck_assert(births_is_alive(maker));
    for (uintptr_t i = 1; i <= RING_WORDS / 3; i++)
        make_task(8 * i);
    ck_assert_uint_eq(births_lost(), 0);
    for (uintptr_t i = 1; i <= RING_WORDS / 3; i++)
        take(8 * i, 1, &coroutine);
    take_none();
}
END_TEST

/* --- interpreters that run at once --- */

enum { THREADS = 4, EACH = 2, ROUNDS = 60000, WAYS = 8, BUCKETS = 16384, TRIED = 140000 };

static uintptr_t places[THREADS][EACH]; /* all of one bucket, which they fill */
static pthread_barrier_t together;

/* Coroutines whose makers' numbers are next to each other. */
static void find_places(void)
{
    static uintptr_t found[BUCKETS][WAYS];
    static uint32_t count[BUCKETS];
    size_t size = coroutine_size();
    uintptr_t memory = zone(size * TRIED);
    struct birth birth;

    for (uint32_t i = 0; i < TRIED; i++) {
        push_at(memory + size * i, target.coro_type);
        make_task(8);
        pop();
        if (!births_next(&birth))
            continue;
        uint64_t bucket = (birth.maker[0] >> 32) / WAYS;
        found[bucket][count[bucket]++] = memory + size * i;
        if (count[bucket] == THREADS * EACH) {
            memcpy(places, found[bucket], sizeof places);
            break;
        }
    }
    ck_assert_uint_ne(places[0][0], 0);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        for (uint32_t i = 0; i < count[bucket]; i++)
            destroy(found[bucket][i]);
    ck_assert_uint_eq(births_makers(), 0);
}

static void *make_many(void *argument)
{
    uintptr_t mine = (uintptr_t)argument;
    begin_thread();
    pthread_barrier_wait(&together);
    for (uintptr_t i = 0; i < ROUNDS; i++) {
        push_at(places[mine][1], target.coro_type);
        push_at(places[mine][0], target.coro_type);
        make_task((i + 1) << 3 | mine);
        pop();
        pop();
        destroy(places[mine][0]);
        destroy(places[mine][1]);
    }
    return NULL;
}

START_TEST(threads_and_a_taker)
{
    pthread_t threads[THREADS];
    uintptr_t next[THREADS] = {0};
    uint64_t taken = 0, before;
    struct birth birth;

    real_resolve();
    guard_start(GUARD_SYSCALL);
    make_world(15, quiet_original);
    ck_assert_int_eq(births_start(&target, thread_state), 0);
    ck_assert(births_hook(task_type));
    find_places();
    before = births_lost();
    pthread_barrier_init(&together, NULL, THREADS);
    deaths = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_many, (void *)i), 0);
    while (taken + births_lost() - before < THREADS * ROUNDS) {
        while (births_next(&birth)) {
            uintptr_t of = birth.task & 7, number = birth.task >> 3;
            bool good = of < THREADS && number >= next[of] && birth.count == 2; /* in its thread's order; what was lost is missing */
            for (int i = 0; good && i < 2; i++) {
                uintptr_t lives = births_coroutine(birth.maker[i]);
                good = !lives || lives == places[of][i];
            }
            if (!good)
                ck_abort_msg("task %lx by %u", (unsigned long)birth.task, birth.count);
            next[of] = number + 1;
            taken++;
        }
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    take_none();
    ck_assert_uint_eq(births_makers(), 0);
    ck_assert_uint_eq(deaths, 2 * THREADS * ROUNDS);
}
END_TEST

Suite *suite_births(void)
{
    const TTest *const tests[] = {
        nothing_before_the_start, the_original_is_called_with_what_came, the_slot_and_the_descriptor, subclasses_of_subclasses,
        a_circle_of_subclasses_ends, what_is_not_as_it_should_be, another_original_is_refused, another_type_of_the_same_original,
        innermost_first_and_only_coroutines, a_long_chain_is_cut_at_its_outer_end, a_deep_thread_is_read_to_a_limit, no_thread_no_frame,
        an_address_is_no_identity, made_while_it_dies, identities_that_never_were, superseded_births_are_dropped, births_that_are_held_are_not_superseded, superseded_at_many_addresses,
        a_full_ring_of_superseded_births, a_full_bucket_is_counted, a_full_ring_is_counted,
        deaths_of_futures_are_counted_where_they_were, futures_of_another_make_stay_as_they_are,
        records_of_all_lengths_round_the_ring, a_child_begins_with_an_empty_ring,
    };
    Suite *suite = suite_create("births");
    TCase *each = tcase_create("each version"), *threads = tcase_create("threads");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_test(threads, threads_and_a_taker);
    tcase_set_timeout(each, 60);
    tcase_set_timeout(threads, 60);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, threads);
    return suite;
}
