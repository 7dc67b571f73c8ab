/* SPDX-License-Identifier: MIT
 * coros: what each state gives, what each wrapper leads to, and each way in
 * which a chain can be broken. */
#include "sampler/cpython/coros.h"

#include "tests/unit/fake_python.h"

#define CORO_TYPE_AT 0x20010000u
#define GEN_TYPE_AT 0x20011000u
#define ASYNC_GEN_TYPE_AT 0x20012000u
#define WRAPPER_TYPE_AT(i) (0x20020000u + 0x1000u * (unsigned)(i))
#define HEAP_TYPE_AT 0x20030000u
#define NAME_OF(type) ((type) + 0x800u)

#define CODE 0x52000000u
#define CORO(i) (0x60000000u + 0x1000u * (unsigned)(i))
#define WRAPPER(i) (0x61000000u + 0x1000u * (unsigned)(i))
#define FRAME(i) (0x62000000u + 0x1000u * (unsigned)(i))
#define FUTURE_AT 0x63000000u
#define SOMETHING 0x64000000u /* an object of no kind that matters */
#define TEMPORARY 0x65000000u /* lies on stacks below what is awaited */
#define NOWHERE 0x7fff0000u

#define LOCALS 3
#define STACK 4
#define AT_AWAIT 4 /* byte offsets of instructions: before a RESUME of await, of yield */
#define AT_YIELD 10
#define LIMIT 100

enum { COROUTINE_WRAPPER, ASEND, ATHROW, ANEXT, FUTURE_ITERATOR, WRAPPERS };
static const char *const names[WRAPPERS] = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable",
                                            "_asyncio.FutureIter"};

Suite *suite_coros(void);

static void named_type(const struct layout *layout, uintptr_t address, const char *name, uint32_t flags)
{
    struct fake type = fake_new(address, 256), text = fake_new(NAME_OF(address), strlen(name) + 1);
    fake_put(&text, 0, name, strlen(name));
    fake_put_word(&type, layout->type_flags, flags);
    fake_put_word(&type, layout->type_name, fake_place(&text));
    fake_place(&type);
}

static uintptr_t object_of(const struct layout *layout, uintptr_t address, uintptr_t type, uintptr_t inner)
{
    struct fake object = fake_new(address, 64);
    fake_put_word(&object, layout->object_type, type);
    fake_put_word(&object, layout->wrapper_inner, inner);
    return fake_place(&object);
}

/* The instructions that 3.11/3.12 look at. */
static void put_resumes(const struct layout *layout, struct fake *code)
{
    uint8_t after_await[] = {layout->resume_opcodes[0], 3}, after_yield[] = {layout->resume_opcodes[0], 1};
    fake_put(code, layout->code_adaptive + AT_AWAIT + 2, after_await, 2);
    fake_put(code, layout->code_adaptive + AT_YIELD + 2, after_yield, 2);
}

static struct fake code_with_stack(const struct py_target *target, uintptr_t address)
{
    struct fake code = fake_code_new(target, address);
    fake_put_int(&code, target->layout.code_nlocalsplus, LOCALS);
    fake_put_int(&code, target->layout.code_stacksize, STACK);
    put_resumes(&target->layout, &code);
    return code;
}

static struct py_target new_target(int minor)
{
    struct py_target target = fake_target(minor);
    target.coro_type = fake_type(&target.layout, CORO_TYPE_AT, 0);
    target.gen_type = fake_type(&target.layout, GEN_TYPE_AT, 0);
    target.async_gen_type = fake_type(&target.layout, ASYNC_GEN_TYPE_AT, 0);
    for (int i = 0; i < WRAPPERS; i++)
        named_type(&target.layout, WRAPPER_TYPE_AT(i), names[i], i == FUTURE_ITERATOR && minor > 11 ? target.layout.flag_heap_type : 0);
    named_type(&target.layout, OTHER_TYPE_AT, "some_other_type_of_object", target.layout.flag_heap_type);
    object_of(&target.layout, SOMETHING, OTHER_TYPE_AT, TEMPORARY);
    struct fake code = code_with_stack(&target, CODE);
    fake_place(&code);
    return target;
}

/* --- coroutines --- */

/* The frame's part of a coroutine. */
static int32_t in_frame(const struct py_target *target, int32_t offset)
{
    return target->layout.gen_frame + offset;
}

static bool stack_is_pointer(const struct py_target *target)
{
    return target->layout.minor >= 14;
}

/* Says how many words are used, locals among them. */
static void put_used(const struct py_target *target, struct fake *coro, int64_t used)
{
    uint64_t top = coro->address + (uint64_t)in_frame(target, target->layout.frame_localsplus) + (uint64_t)used * 8;
    if (stack_is_pointer(target))
        fake_put_word(coro, in_frame(target, target->layout.frame_stacktop), top);
    else
        fake_put_int(coro, in_frame(target, target->layout.frame_stacktop), (uint32_t)used);
}

static void put_slot(const struct py_target *target, struct fake *coro, int slot, uint64_t value)
{
    fake_put_word(coro, in_frame(target, target->layout.frame_localsplus) + 8 * slot, value);
}

static void put_state(const struct py_target *target, struct fake *coro, int8_t state)
{
    fake_put_byte(coro, target->layout.gen_state, (uint8_t)state);
}

static void put_instr(const struct py_target *target, struct fake *coro, int lasti)
{
    fake_put_word(coro, in_frame(target, target->layout.frame_instr), CODE + (uintptr_t)(target->layout.code_adaptive + lasti));
}

static struct fake coro_new(const struct py_target *target, uintptr_t address, uintptr_t type, int8_t state, int lasti)
{
    const struct layout *layout = &target->layout;
    struct fake coro = fake_new(address, (size_t)in_frame(target, layout->frame_localsplus) + 8 * (LOCALS + STACK));
    fake_put_word(&coro, layout->object_type, type);
    fake_put_word(&coro, in_frame(target, layout->frame_executable), CODE);
    fake_put_byte(&coro, in_frame(target, layout->frame_owner), layout->owner_generator);
    put_state(target, &coro, state);
    put_instr(target, &coro, lasti);
    put_used(target, &coro, LOCALS);
    return coro;
}

static int8_t state_of_await(const struct layout *layout)
{
    return layout->resume_opcodes[0] ? layout->gen_suspended : layout->gen_awaiting;
}

/* Its stack full: temporaries, and what it awaits at the slot of this version. */
static struct fake awaiting(const struct py_target *target, uintptr_t address, uintptr_t type, uintptr_t awaited)
{
    struct fake coro = coro_new(target, address, type, state_of_await(&target->layout), AT_AWAIT);
    put_used(target, &coro, LOCALS + STACK);
    for (int slot = 0; slot < LOCALS + STACK; slot++)
        put_slot(target, &coro, slot, TEMPORARY);
    put_slot(target, &coro, LOCALS + STACK - target->layout.await_slot, awaited);
    return coro;
}

static uintptr_t place_awaiting(const struct py_target *target, uintptr_t address, uintptr_t awaited)
{
    struct fake coro = awaiting(target, address, CORO_TYPE_AT, awaited);
    return fake_place(&coro);
}

static uintptr_t place_yielding(const struct py_target *target, uintptr_t address)
{
    struct fake coro = coro_new(target, address, GEN_TYPE_AT, target->layout.gen_suspended, AT_YIELD);
    return fake_place(&coro);
}

struct result {
    int count;
    enum coros_end end;
    uintptr_t awaited;
    struct coro last;
};

static struct result walk_all(const struct py_target *target, uintptr_t object, uint32_t limit)
{
    struct coros_walk walk;
    struct result result = {0};
    struct coro coro;
    coros_begin(&walk, target, object, limit);
    while (coros_next(&walk, &coro)) {
        result.last = coro;
        ck_assert_int_le(++result.count, (int)limit);
    }
    ck_assert(!coros_next(&walk, &coro));
    ck_assert_int_ne(walk.end, COROS_MORE);
    result.end = walk.end;
    result.awaited = walk.awaited;
    return result;
}

static void must_end(const struct py_target *target, int count, enum coros_end end, uintptr_t awaited)
{
    struct result result = walk_all(target, CORO(0), LIMIT);
    ck_assert_int_eq(result.end, end);
    ck_assert_int_eq(result.count, count);
    ck_assert_uint_eq(result.awaited, awaited);
}

/* --- whole chains --- */

START_TEST(a_chain_is_followed_inward)
{
    struct py_target target = new_target(_i);
    struct fake second = awaiting(&target, CORO(1), ASYNC_GEN_TYPE_AT, place_yielding(&target, CORO(2)));
    place_awaiting(&target, CORO(0), fake_place(&second));
    struct coros_walk walk;
    struct coro coro;
    static const enum coro_kind kinds[] = {CORO_COROUTINE, CORO_ASYNC_GENERATOR, CORO_GENERATOR};
    static const enum coro_state states[] = {CORO_AWAITING, CORO_AWAITING, CORO_SUSPENDED};
    coros_begin(&walk, &target, CORO(0), LIMIT);
    for (int i = 0; i < 3; i++) {
        ck_assert(coros_next(&walk, &coro));
        ck_assert_uint_eq(coro.address, CORO(i));
        ck_assert_uint_eq(coro.frame, CORO(i) + (unsigned)target.layout.gen_frame);
        ck_assert_int_eq(coro.kind, kinds[i]);
        ck_assert_int_eq(coro.state, states[i]);
        ck_assert_uint_eq(coro.code.address, CODE);
        ck_assert_int_eq(coro.lasti, i == 2 ? AT_YIELD : AT_AWAIT);
        ck_assert_uint_eq(coro.awaited, i == 2 ? 0 : CORO(i + 1));
        ck_assert_uint_eq(coro.previous, 0);
    }
    must_end(&target, 3, COROS_OTHER, 0);
}
END_TEST

START_TEST(wrappers_are_followed)
{
    struct py_target target = new_target(_i);
    place_yielding(&target, CORO(1));
    for (int i = 0; i < FUTURE_ITERATOR; i++) {
        object_of(&target.layout, WRAPPER(i), WRAPPER_TYPE_AT(i), CORO(1));
        place_awaiting(&target, CORO(0), WRAPPER(i));
        must_end(&target, 2, COROS_OTHER, 0);
        ck_assert_int_eq(walk_all(&target, WRAPPER(i), LIMIT).count, 1);
    }
    object_of(&target.layout, WRAPPER(9), WRAPPER_TYPE_AT(ANEXT), WRAPPER(ASEND));
    place_awaiting(&target, CORO(0), WRAPPER(9));
    must_end(&target, 2, COROS_OTHER, 0);
}
END_TEST

START_TEST(a_future_is_the_end)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(0), WRAPPER_TYPE_AT(FUTURE_ITERATOR), FUTURE_AT));
    must_end(&target, 1, COROS_FUTURE, FUTURE_AT);
}
END_TEST

START_TEST(an_iterator_of_a_future_may_be_used_up)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(0), WRAPPER_TYPE_AT(FUTURE_ITERATOR), 0));
    must_end(&target, 1, COROS_TORN, 0);
}
END_TEST

START_TEST(what_is_no_coroutine_is_the_end)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), SOMETHING);
    must_end(&target, 1, COROS_OTHER, SOMETHING);
    struct result result = walk_all(&target, SOMETHING, LIMIT);
    ck_assert(result.count == 0 && result.end == COROS_OTHER && result.awaited == SOMETHING);
}
END_TEST

START_TEST(a_class_named_like_a_wrapper_is_none)
{
    struct py_target target = new_target(_i);
    place_yielding(&target, TEMPORARY);
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(0), HEAP_TYPE_AT, TEMPORARY));
    for (int i = 0; i < FUTURE_ITERATOR; i++) {
        named_type(&target.layout, HEAP_TYPE_AT, names[i], target.layout.flag_heap_type);
        must_end(&target, 1, COROS_OTHER, WRAPPER(0));
    }
}
END_TEST

START_TEST(names_are_compared_to_their_end)
{
    static const char *const wrong[] = {"coroutine_wrapper2", "coroutine_wrappe", "async_generator", "async_generator_", "a", "",
                                        "anext_awaitablE", "anext_awaitable_", "async_generator_asenD", "_asyncio.FutureIt"};
    struct py_target target = new_target(_i);
    place_yielding(&target, CORO(1));
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(0), HEAP_TYPE_AT, CORO(1)));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        named_type(&target.layout, HEAP_TYPE_AT, wrong[i], 0);
        must_end(&target, 1, COROS_OTHER, WRAPPER(0));
    }
}
END_TEST

START_TEST(a_static_type_is_read_once)
{
    struct py_target target = new_target(_i);
    object_of(&target.layout, WRAPPER(0), WRAPPER_TYPE_AT(ASEND), place_yielding(&target, CORO(1)));
    struct result first = walk_all(&target, WRAPPER(0), LIMIT);
    unsigned long reads = fake_reads();
    struct result second = walk_all(&target, WRAPPER(0), LIMIT);
    unsigned long reads_then = fake_reads() - reads;
    walk_all(&target, CORO(1), LIMIT);
    ck_assert_int_eq(first.count, 1);
    ck_assert_int_eq(second.count, 1);
    ck_assert_uint_eq(reads_then, fake_reads() - reads - reads_then + 2); /* the wrapper's type, what it holds */
}
END_TEST

START_TEST(a_heap_type_may_become_another)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(0), HEAP_TYPE_AT, FUTURE_AT));
    named_type(&target.layout, HEAP_TYPE_AT, names[FUTURE_ITERATOR], target.layout.flag_heap_type);
    must_end(&target, 1, COROS_FUTURE, FUTURE_AT);
    named_type(&target.layout, HEAP_TYPE_AT, "another_type_of_that_place", target.layout.flag_heap_type);
    must_end(&target, 1, COROS_OTHER, WRAPPER(0));
}
END_TEST

/* --- states --- */

static void one_in_state(const struct py_target *target, int8_t value, int lasti)
{
    struct fake coro = coro_new(target, CORO(0), CORO_TYPE_AT, value, lasti);
    fake_place(&coro);
}

START_TEST(one_that_has_not_begun)
{
    struct py_target target = new_target(_i);
    one_in_state(&target, target.layout.gen_created, 0);
    must_end(&target, 1, COROS_CREATED, 0);
    ck_assert_int_eq(walk_all(&target, CORO(0), LIMIT).last.state, CORO_CREATED);
}
END_TEST

START_TEST(what_is_awaited_has_begun)
{
    struct py_target target = new_target(_i);
    struct fake inner = coro_new(&target, CORO(1), CORO_TYPE_AT, target.layout.gen_created, 0);
    place_awaiting(&target, CORO(0), fake_place(&inner));
    must_end(&target, 1, COROS_TORN, 0);
}
END_TEST

START_TEST(one_that_ended_has_no_code)
{
    struct py_target target = new_target(_i);
    struct fake coro = coro_new(&target, CORO(0), CORO_TYPE_AT, target.layout.gen_finished, 0);
    fake_put_word(&coro, in_frame(&target, target.layout.frame_executable), 0);
    fake_place(&coro);
    struct coro found;
    ck_assert(coros_read(&target, CORO(0), &found));
    ck_assert_int_eq(found.state, CORO_FINISHED);
    must_end(&target, 0, COROS_FINISHED, 0);
    struct fake outer = awaiting(&target, CORO(1), CORO_TYPE_AT, CORO(0));
    struct result result = walk_all(&target, fake_place(&outer), LIMIT);
    ck_assert(result.count == 1 && result.end == COROS_FINISHED);
}
END_TEST

START_TEST(a_locked_one_awaits)
{
    struct py_target target = new_target(_i);
    if (target.layout.gen_awaiting_locked == 127)
        return;
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    put_state(&target, &coro, target.layout.gen_awaiting_locked);
    fake_place(&coro);
    must_end(&target, 1, COROS_OTHER, SOMETHING);
}
END_TEST

/* Each value of the byte: known, or nothing is believed. */
START_TEST(other_states_do_not_exist)
{
    struct py_target target = new_target(_i);
    const struct layout *layout = &target.layout;
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    int known = 0;
    fake_place(&coro);
    for (int value = -128; value < 128; value++) {
        enum coro_state alone;
        struct coro whole;
        put_state(&target, &coro, (int8_t)value);
        bool found = coros_state(&target, CORO(0), &alone);
        ck_assert_int_eq(coros_read(&target, CORO(0), &whole), found);
        ck_assert(!found || alone == whole.state);
        known += found;
    }
    /* created, suspended, awaiting (and locked), executing, ended: 3.15 has no two ways to end */
    ck_assert_int_eq(known, layout->minor == 15 ? 6 : layout->minor >= 13 ? 4 + 5 : 3 + 5);
    put_state(&target, &coro, 127);
    must_end(&target, 0, COROS_TORN, 0);
}
END_TEST

/* --- 3.11/3.12: await and yield are one state --- */

static enum coro_state state_before(const struct py_target *target, uint8_t opcode, uint8_t argument)
{
    enum coro_state alone;
    struct coro whole;
    uint8_t unit[] = {opcode, argument};
    struct fake code = code_with_stack(target, CODE), coro = awaiting(target, CORO(0), CORO_TYPE_AT, SOMETHING);
    fake_put(&code, target->layout.code_adaptive + AT_AWAIT + 2, unit, sizeof unit);
    fake_place(&code);
    fake_place(&coro);
    ck_assert(coros_state(target, CORO(0), &alone));
    ck_assert(coros_read(target, CORO(0), &whole));
    ck_assert_int_eq(alone, whole.state);
    return alone;
}

START_TEST(the_next_instruction_tells_await_from_yield)
{
    struct py_target target = new_target(_i);
    const uint8_t *opcodes = target.layout.resume_opcodes;
    if (!opcodes[0])
        return;
    for (int i = 0; i < 2; i++)
        for (uint8_t argument = 0; argument < 4; argument++)
            ck_assert_int_eq(state_before(&target, opcodes[i], argument), argument >= 2 ? CORO_AWAITING : CORO_SUSPENDED);
    ck_assert_int_eq(state_before(&target, 0, 3), CORO_SUSPENDED);
    ck_assert_int_eq(state_before(&target, 1, 3), CORO_SUSPENDED);
}
END_TEST

START_TEST(an_instruction_that_is_nowhere)
{
    struct py_target target = new_target(_i);
    enum coro_state state;
    struct coro coro;
    struct fake fake = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    fake_place(&fake);
    static const uintptr_t bad[] = {0, 2, 4095, NOWHERE, NOWHERE + 1, UINTPTR_MAX, UINTPTR_MAX - 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fake_put_word(&fake, in_frame(&target, target.layout.frame_instr), bad[i]);
        ck_assert(coros_state(&target, CORO(0), &state) == !target.layout.resume_opcodes[0]);
        ck_assert(!coros_read(&target, CORO(0), &coro));
        must_end(&target, 0, COROS_TORN, 0);
    }
    for (int lasti = -10; lasti < 2 * CODE_UNITS + 10; lasti++) {
        put_instr(&target, &fake, lasti);
        bool inside = lasti % 2 == 0 && lasti >= (target.layout.instr_is_previous ? -2 : 0) && lasti <= 2 * CODE_UNITS;
        ck_assert(inside || !coros_read(&target, CORO(0), &coro));
    }
}
END_TEST

/* --- the stack --- */

static void with_used(const struct py_target *target, int64_t used, enum coros_end end, int count)
{
    struct fake coro = awaiting(target, CORO(0), CORO_TYPE_AT, SOMETHING);
    for (int slot = 0; slot < LOCALS + STACK; slot++)
        put_slot(target, &coro, slot, SOMETHING);
    put_used(target, &coro, used);
    fake_place(&coro);
    must_end(target, count, end, count ? SOMETHING : 0);
}

START_TEST(the_stack_is_within_its_bounds)
{
    struct py_target target = new_target(_i);
    int lowest = LOCALS + target.layout.await_slot;
    static const int64_t absurd[] = {-1, 0, 1, LOCALS, LOCALS + STACK + 1, LOCALS + STACK + 2, 1000000, INT32_MAX, INT32_MIN};
    for (int used = lowest; used <= LOCALS + STACK; used++)
        with_used(&target, used, COROS_OTHER, 1);
    with_used(&target, lowest - 1, COROS_TORN, 0);
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        with_used(&target, absurd[i], COROS_TORN, 0);
}
END_TEST

START_TEST(a_stack_pointer_may_be_anything)
{
    struct py_target target = new_target(_i);
    if (!stack_is_pointer(&target))
        return;
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    uint64_t bottom = CORO(0) + (uint64_t)in_frame(&target, target.layout.frame_localsplus);
    uint64_t absurd[] = {0, 1, bottom + 8 * 6 + 4, bottom + 8 * 6 + 1, UINT64_MAX, UINT64_MAX - 7, (uint64_t)INT64_MAX + 1, CODE};
    fake_place(&coro);
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        fake_put_word(&coro, in_frame(&target, target.layout.frame_stacktop), absurd[i]);
        must_end(&target, 0, COROS_TORN, 0);
    }
}
END_TEST

START_TEST(a_code_object_may_say_absurd_sizes)
{
    struct py_target target = new_target(_i);
    static const uint32_t absurd[] = {0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        for (int which = 0; which < 2; which++) {
            struct fake code = code_with_stack(&target, CODE);
            fake_put_int(&code, which ? target.layout.code_nlocalsplus : target.layout.code_stacksize, absurd[i]);
            fake_place(&code);
            place_awaiting(&target, CORO(0), SOMETHING);
            ck_assert_int_eq(walk_all(&target, CORO(0), LIMIT).count, 0);
        }
    struct fake code = code_with_stack(&target, CODE);
    fake_put_int(&code, target.layout.code_nlocalsplus, (uint32_t)-5);
    fake_put_int(&code, target.layout.code_stacksize, INT32_MAX);
    fake_place(&code);
    must_end(&target, 0, COROS_FAULT, 0);
    fake_put_int(&code, target.layout.code_nlocalsplus, INT32_MAX);
    must_end(&target, 0, COROS_TORN, 0);
}
END_TEST

START_TEST(what_is_awaited_is_an_object)
{
    struct py_target target = new_target(_i);
    static const uintptr_t absurd[] = {0, 8, 4088, SOMETHING | 4, SOMETHING | 2, SOMETHING | 3};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        place_awaiting(&target, CORO(0), absurd[i]);
        must_end(&target, 0, COROS_TORN, 0);
    }
    place_awaiting(&target, CORO(0), NOWHERE);
    must_end(&target, 1, COROS_FAULT, 0);
}
END_TEST

START_TEST(a_tag_is_not_of_the_address)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), SOMETHING | 1);
    if (target.layout.executable_tag_mask)
        must_end(&target, 1, COROS_OTHER, SOMETHING);
    else
        must_end(&target, 0, COROS_TORN, 0);
    place_awaiting(&target, CORO(0), 1); /* NULL, 3.14+ */
    must_end(&target, 0, COROS_TORN, 0);
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    fake_put_word(&coro, in_frame(&target, target.layout.frame_executable), CODE | 1);
    fake_place(&coro);
    ck_assert_int_eq(walk_all(&target, CORO(0), LIMIT).count, target.layout.executable_tag_mask ? 1 : 0);
}
END_TEST

/* --- executing ones --- */

static uintptr_t frame_owned(const struct py_target *target, uintptr_t address, uint8_t owner, uintptr_t previous)
{
    struct fake frame = fake_frame_new(target, address, CODE, 0, previous);
    fake_put_byte(&frame, target->layout.frame_owner, owner);
    return fake_place(&frame);
}

static uintptr_t previous_read(const struct py_target *target, uintptr_t previous)
{
    struct fake coro = coro_new(target, CORO(0), CORO_TYPE_AT, target->layout.gen_executing, 2);
    fake_put_word(&coro, in_frame(target, target->layout.frame_previous), previous);
    fake_place(&coro);
    struct result result = walk_all(target, CORO(0), LIMIT);
    ck_assert_int_eq(result.end, COROS_EXECUTING);
    ck_assert_int_eq(result.count, 1);
    ck_assert_uint_eq(result.last.awaited, 0);
    return result.last.previous;
}

START_TEST(one_that_executes_says_who_sent_it)
{
    struct py_target target = new_target(_i);
    uintptr_t sender = place_awaiting(&target, CORO(1), SOMETHING) + (uintptr_t)target.layout.gen_frame;
    ck_assert_uint_eq(previous_read(&target, sender), sender);
    ck_assert_uint_eq(coros_of_frame(&target, previous_read(&target, sender)), CORO(1));
    ck_assert_uint_eq(previous_read(&target, 0), 0);
    ck_assert_uint_eq(previous_read(&target, NOWHERE), 0);
    ck_assert_uint_eq(previous_read(&target, sender + 4), 0);
}
END_TEST

START_TEST(markers_of_c_are_skipped)
{
    struct py_target target = new_target(_i);
    uint8_t entry = target.layout.owner_entry;
    uintptr_t plain = frame_owned(&target, FRAME(0), 0, 0);
    if (entry == 0xff)
        return;
    uintptr_t marker = frame_owned(&target, FRAME(1), entry, plain), second = frame_owned(&target, FRAME(2), entry, marker);
    ck_assert_uint_eq(previous_read(&target, marker), plain);
    ck_assert_uint_eq(previous_read(&target, second), plain);
    ck_assert_uint_eq(previous_read(&target, frame_owned(&target, FRAME(3), entry, 0)), 0);
    ck_assert_uint_eq(previous_read(&target, frame_owned(&target, FRAME(4), entry, FRAME(4))), 0);
    ck_assert_uint_eq(previous_read(&target, frame_owned(&target, FRAME(5), entry, NOWHERE)), 0);
}
END_TEST

START_TEST(the_object_of_a_frame)
{
    struct py_target target = new_target(_i);
    uintptr_t frame = (uintptr_t)target.layout.gen_frame;
    static const uintptr_t types[] = {CORO_TYPE_AT, GEN_TYPE_AT, ASYNC_GEN_TYPE_AT, OTHER_TYPE_AT};
    for (int i = 0; i < 4; i++) {
        struct fake coro = awaiting(&target, CORO(i), types[i], SOMETHING);
        frame = fake_place(&coro) + (uintptr_t)target.layout.gen_frame;
        ck_assert_uint_eq(coros_of_frame(&target, frame), i < 3 ? CORO(i) : 0);
    }
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING); /* a caller's variable, before a frame of a function */
    fake_put_byte(&coro, in_frame(&target, target.layout.frame_owner), 0);
    frame = fake_place(&coro) + (uintptr_t)target.layout.gen_frame;
    ck_assert_uint_eq(coros_of_frame(&target, frame), 0);
    static const uintptr_t bad[] = {0, 8, 4095, 4096, NOWHERE, NOWHERE + 4, UINTPTR_MAX, UINTPTR_MAX - 7};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_uint_eq(coros_of_frame(&target, bad[i]), 0);
}
END_TEST

/* --- broken ones --- */

START_TEST(a_frame_of_another_owner_is_torn)
{
    struct py_target target = new_target(_i);
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    fake_put_byte(&coro, in_frame(&target, target.layout.frame_owner), (uint8_t)(target.layout.owner_generator + 1));
    fake_place(&coro);
    must_end(&target, 0, COROS_TORN, 0);
}
END_TEST

START_TEST(what_runs_must_be_code)
{
    struct py_target target = new_target(_i);
    struct fake coro = awaiting(&target, CORO(0), CORO_TYPE_AT, SOMETHING);
    fake_put_word(&coro, in_frame(&target, target.layout.frame_executable), SOMETHING);
    fake_place(&coro);
    must_end(&target, 0, COROS_FAULT, 0);
}
END_TEST

START_TEST(objects_that_are_none)
{
    struct py_target target = new_target(_i);
    enum coro_state state;
    struct coro coro;
    static const struct {
        uintptr_t object;
        enum coros_end end;
    } bad[] = {{0, COROS_TORN}, {8, COROS_TORN}, {CORO(0) + 4, COROS_TORN}, {NOWHERE, COROS_FAULT}, {UINTPTR_MAX - 7, COROS_FAULT},
               {WRAPPER(0), COROS_TORN}, {WRAPPER(1), COROS_TORN}, {WRAPPER(2), COROS_OTHER}, {WRAPPER(3), COROS_FAULT}};
    object_of(&target.layout, WRAPPER(0), 0, 0);
    object_of(&target.layout, WRAPPER(1), CORO_TYPE_AT + 4, 0);
    object_of(&target.layout, WRAPPER(2), NOWHERE, 0);
    object_of(&target.layout, WRAPPER(3), CORO_TYPE_AT, 0); /* it ends where a coroutine goes on */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct result result = walk_all(&target, bad[i].object, LIMIT);
        ck_assert_int_eq(result.end, bad[i].end);
        ck_assert_int_eq(result.count, 0);
        ck_assert(!coros_read(&target, bad[i].object, &coro));
        if (bad[i].object != WRAPPER(3)) /* its state alone is there */
            ck_assert(!coros_state(&target, bad[i].object, &state));
    }
}
END_TEST

START_TEST(types_that_are_not_exported)
{
    struct py_target target = new_target(_i);
    target.coro_type = target.gen_type = target.async_gen_type = 0;
    object_of(&target.layout, WRAPPER(0), 0, 0);
    ck_assert_int_eq(walk_all(&target, WRAPPER(0), LIMIT).end, COROS_TORN);
    place_awaiting(&target, CORO(0), SOMETHING);
    must_end(&target, 0, COROS_OTHER, CORO(0));
}
END_TEST

START_TEST(a_wrapper_that_cannot_be_followed)
{
    struct py_target target = new_target(_i);
    struct fake cut = fake_new(WRAPPER(0), (size_t)target.layout.wrapper_inner);
    fake_put_word(&cut, target.layout.object_type, WRAPPER_TYPE_AT(ASEND));
    place_awaiting(&target, CORO(0), fake_place(&cut));
    must_end(&target, 1, COROS_FAULT, 0);
    place_awaiting(&target, CORO(0), object_of(&target.layout, WRAPPER(1), WRAPPER_TYPE_AT(ASEND), 0));
    must_end(&target, 1, COROS_TORN, 0);
}
END_TEST

START_TEST(cycles_end)
{
    struct py_target target = new_target(_i);
    struct result result;
    place_awaiting(&target, CORO(0), place_awaiting(&target, CORO(1), CORO(0)));
    must_end(&target, LIMIT, COROS_LIMIT, 0);
    place_awaiting(&target, CORO(0), CORO(0));
    must_end(&target, LIMIT, COROS_LIMIT, 0);
    object_of(&target.layout, WRAPPER(0), WRAPPER_TYPE_AT(ANEXT), WRAPPER(1));
    object_of(&target.layout, WRAPPER(1), WRAPPER_TYPE_AT(ANEXT), WRAPPER(0));
    result = walk_all(&target, WRAPPER(0), LIMIT);
    ck_assert(result.count == 0 && result.end == COROS_LIMIT && result.awaited == 0);
}
END_TEST

START_TEST(the_limit_is_kept)
{
    struct py_target target = new_target(_i);
    place_awaiting(&target, CORO(0), place_awaiting(&target, CORO(1), SOMETHING));
    for (uint32_t limit = 0; limit < 4; limit++) {
        struct result result = walk_all(&target, CORO(0), limit);
        ck_assert_int_eq(result.count, limit < 2 ? (int)limit : 2);
        ck_assert_int_eq(result.end, limit < 2 ? COROS_LIMIT : COROS_OTHER);
    }
}
END_TEST

/* Any word of any object may change to anything: the walk ends, within its limit. */
START_TEST(torn_memory_is_survived)
{
    struct py_target target = new_target(_i);
    struct fake first = awaiting(&target, CORO(0), CORO_TYPE_AT, WRAPPER(0));
    struct fake second = awaiting(&target, CORO(1), ASYNC_GEN_TYPE_AT, CORO(2));
    struct fake third = coro_new(&target, CORO(2), GEN_TYPE_AT, target.layout.gen_suspended, AT_YIELD);
    struct fake code = code_with_stack(&target, CODE);
    struct fake *const objects[] = {&first, &second, &third, &code};
    const uint64_t values[] = {0, 1, 8, CORO(0), CORO(1), CORO(2) | 1, CODE, WRAPPER(0), CORO_TYPE_AT, GEN_TYPE_AT, NOWHERE, UINT64_MAX,
                               UINT64_MAX - 7, 0x8000000000000000u, 0x0101010101010101u, 0xff00ff00ff00ff00u, LOCALS + STACK};
    uint64_t random = 1;
    unsigned long ends[COROS_LIMIT + 1] = {0};

    object_of(&target.layout, WRAPPER(0), WRAPPER_TYPE_AT(ASEND), CORO(1));
    for (int i = 0; i < 4; i++)
        fake_place(objects[i]);
    must_end(&target, 3, COROS_OTHER, 0);
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct fake *object = objects[random >> 60 & 3];
        int32_t offset = (int32_t)((random >> 32) % (object->size / 8) * 8);
        uint64_t kept;
        memcpy(&kept, object->bytes + offset, sizeof kept);
        fake_put_word(object, offset, values[(random >> 40) % (sizeof values / sizeof *values)]);
        ends[walk_all(&target, CORO(0), LIMIT).end]++;
        fake_put_word(object, offset, kept);
    }
    must_end(&target, 3, COROS_OTHER, 0);
    for (int end = COROS_OTHER; end <= COROS_LIMIT; end++)
        ck_assert_msg(ends[end] || end == COROS_CREATED || end == COROS_FINISHED || end == COROS_EXECUTING, "no walk ended in %d", end);
}
END_TEST

Suite *suite_coros(void)
{
    const TTest *const tests[] = {
        a_chain_is_followed_inward, wrappers_are_followed, a_future_is_the_end, an_iterator_of_a_future_may_be_used_up,
        what_is_no_coroutine_is_the_end, a_class_named_like_a_wrapper_is_none, names_are_compared_to_their_end,
        a_static_type_is_read_once, a_heap_type_may_become_another, one_that_has_not_begun, what_is_awaited_has_begun,
        one_that_ended_has_no_code, a_locked_one_awaits, other_states_do_not_exist, the_next_instruction_tells_await_from_yield,
        an_instruction_that_is_nowhere, the_stack_is_within_its_bounds, a_stack_pointer_may_be_anything,
        a_code_object_may_say_absurd_sizes, what_is_awaited_is_an_object, a_tag_is_not_of_the_address,
        one_that_executes_says_who_sent_it, markers_of_c_are_skipped, the_object_of_a_frame, a_frame_of_another_owner_is_torn,
        what_runs_must_be_code, objects_that_are_none, types_that_are_not_exported, a_wrapper_that_cannot_be_followed, cycles_end,
        the_limit_is_kept, torn_memory_is_survived,
    };
    Suite *suite = suite_create("coros");
    TCase *each = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
