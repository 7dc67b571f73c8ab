/* SPDX-License-Identifier: MIT
 * turns: a loop's _run_once in each version's layout, found on a thread's stack, and what is none. */
#include "sampler/cpython/turns.h"

#include "tests/unit/fake_thread.h"

Suite *suite_turns(void);

#define FLOAT_TYPE_AT 0x57000000u
#define INT_TYPE_AT 0x57010000u
#define TIME_AT(i) (0x57020000u + 0x1000u * (unsigned)(i))
#define INDEX_AT 0x57030000u
#define LOOP_DICT_AT 0x58000000u
#define SUBCLASS_AT 0x57040000u
#define SUBCLASS_DICT_AT 0x59000000u
#define RUN_ONCE_AT 0x5a000000u
#define RUN_FRAME_AT 0x5b000000u

static struct fake_world world;
static struct turns turns;
static struct turns_step found;

static uintptr_t a_time(int i, double seconds)
{
    struct fake made = fake_new(TIME_AT(i), 32);
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    fake_put_word(&made, world.target.layout.object_type, FLOAT_TYPE_AT);
    fake_put_word(&made, world.target.layout.object_type + 8, bits);
    return fake_place(&made);
}

static uintptr_t an_index(uint32_t value)
{
    const struct layout *layout = &world.target.layout;
    struct fake made = fake_new(INDEX_AT, 48);
    fake_put_word(&made, layout->object_type, INT_TYPE_AT);
    fake_put_word(&made, layout->long_size, layout->long_is_tagged ? 1 << 3 : 1);
    fake_put_int(&made, layout->long_digits, value);
    return fake_place(&made);
}

static uintptr_t run_once(const char *name)
{
    static const char *const variables[] = {"self", "end_time", "i"};
    struct fake code = fake_code_with_variables(&world.target, RUN_ONCE_AT, variables, "\x20\x20\x20", 3);
    fake_put_word(&code, world.target.layout.code_qualname, fake_str(&world.target, RUN_ONCE_AT + 0x100000, name));
    return fake_place(&code);
}

static void has(uintptr_t function, uintptr_t previous, uintptr_t end_time, uintptr_t index)
{
    const struct layout *layout = &world.target.layout;
    struct fake frame = fake_new(RUN_FRAME_AT, (size_t)layout->frame_localsplus + 24);
    fake_put_word(&frame, layout->frame_executable, function);
    fake_put_word(&frame, layout->frame_previous, previous);
    fake_put_word(&frame, layout->frame_instr, function + (uintptr_t)layout->code_adaptive);
    fake_put_word(&frame, layout->frame_localsplus + 8, end_time);
    fake_put_word(&frame, layout->frame_localsplus + 16, index);
    fake_place(&frame);
}

/* A class of loops; its dict has these keys. */
static void loop_class(uintptr_t at, uintptr_t dict, uintptr_t base, const char *first, const char *second)
{
    const uintptr_t pairs[] = {fake_str(&world.target, dict + 0x100000, first), 1, fake_str(&world.target, dict + 0x200000, second), 1};
    struct fake type = fake_type_new(&world.target.layout, at, "Loop", world.target.layout.flag_heap_type, base);
    fake_put_word(&type, world.target.layout.type_dict, fake_dict(&world.target, dict, FAKE_KEYS_UNICODE, pairs, 2));
    fake_place(&type);
}

static uintptr_t code, below;

static void start(int minor)
{
    fake_asyncio_start(&world, minor, 1, 0);
    fake_named_type(&world.target.layout, FLOAT_TYPE_AT, "float", 0, OBJECT_TYPE_AT);
    fake_named_type(&world.target.layout, INT_TYPE_AT, "int", 1ul << 24, OBJECT_TYPE_AT);
    loop_class(FAKE_LOOP_TYPE_AT, LOOP_DICT_AT, OBJECT_TYPE_AT, "_run_once", "time");
    turns = (struct turns){0};
    struct fake_thread thread = fake_thread_of(&world);
    fake_call(&thread, fake_function(&world.target, 0, "run_forever", "/lib/asyncio/base_events.py"));
    code = run_once("BaseEventLoop._run_once");
    below = thread.top;
    has(code, below, a_time(0, 12.5), an_index(3));
    thread.top = RUN_FRAME_AT;
    fake_call(&thread, fake_function(&world.target, 1, "Handle._run", "/lib/asyncio/events.py"));
    fake_thread_place(&thread, 0);
}

static void stop(void)
{
    fake_reset();
    free(world.bytes);
}

static enum turns_found look(void)
{
    found = (struct turns_step){0};
    return turns_look(&world.target, &turns, FAKE_TSTATE_AT, &found);
}

START_TEST(which_handle_of_which_turn)
{
    start(_i);
    ck_assert_int_eq(look(), TURNS_STEP);
    ck_assert_uint_eq(found.handle, 3);
    ck_assert_uint_eq(found.left_ns, 12500000000u);
    ck_assert_uint_eq(turns.frame, RUN_FRAME_AT);
    struct turns_step first = found;
    has(code, below, a_time(1, 12.5), an_index(3)); /* another object, the same moment */
    ck_assert_int_eq(look(), TURNS_STEP);
    ck_assert_uint_eq(found.turn, first.turn);
    has(code, below, a_time(1, 12.500001), an_index(3));
    ck_assert_int_eq(look(), TURNS_STEP);
    ck_assert_uint_ne(found.turn, first.turn);
    has(code, below, a_time(1, 12.500001), an_index(4));
    ck_assert_int_eq(look(), TURNS_STEP);
    ck_assert_uint_eq(found.handle, 4);
    stop();
}
END_TEST

/* While it is in its selector the turn has no end_time yet, before its first handle no i. */
START_TEST(in_no_step)
{
    start(_i);
    has(code, below, 0, 0);
    ck_assert_int_eq(look(), TURNS_NONE);
    has(code, below, a_time(0, 12.5), 0);
    ck_assert_int_eq(look(), TURNS_NONE);
    stop();
}
END_TEST

/* What the last turn left is in memory still, and so is its frame; but no loop runs. */
START_TEST(a_loop_that_has_ended)
{
    start(_i);
    ck_assert_int_eq(look(), TURNS_STEP);
    const struct layout *layout = &world.target.layout;
    struct fake tstate = fake_new(FAKE_TSTATE_AT, 2048);
    fake_put_word(&tstate, layout->thread_interp, FAKE_INTERP_AT);
    fake_place(&tstate);
    ck_assert_int_eq(look(), TURNS_NONE);
    stop();
}
END_TEST

/* Another function's frame lies where its was. */
START_TEST(another_frame_at_its_place)
{
    start(_i);
    ck_assert_int_eq(look(), TURNS_STEP);
    has(fake_function(&world.target, 3, "other", "/app.py"), below, a_time(0, 12.5), an_index(3));
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    ck_assert_uint_eq(turns.frame, 0);
    has(code, below, a_time(0, 12.5), an_index(3));
    ck_assert_int_eq(look(), TURNS_STEP);
    stop();
}
END_TEST

START_TEST(a_clock_of_its_own)
{
    start(_i);
    struct fake loop = fake_new(fake_loop_at(0), 64);
    fake_put_word(&loop, world.target.layout.object_type, SUBCLASS_AT);
    fake_place(&loop);
    loop_class(SUBCLASS_AT, SUBCLASS_DICT_AT, FAKE_LOOP_TYPE_AT, "__module__", "close");
    ck_assert_int_eq(look(), TURNS_STEP);
    turns = (struct turns){0};
    loop_class(SUBCLASS_AT, SUBCLASS_DICT_AT, FAKE_LOOP_TYPE_AT, "__module__", "time");
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    stop();
}
END_TEST

START_TEST(what_cannot_be_read)
{
    start(_i);
    has(code, below, an_index(3), an_index(3)); /* no float */
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    has(code, below, a_time(0, 12.5), a_time(1, 3)); /* no int */
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    has(code, below, 0x666000, an_index(3));
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    has(run_once("patched.<locals>._run_once"), below, a_time(0, 12.5), an_index(3)); /* somebody else's */
    turns = (struct turns){0};
    ck_assert_int_eq(look(), TURNS_UNKNOWN);
    stop();
}
END_TEST

Suite *suite_turns(void)
{
    const TTest *const each[] = {which_handle_of_which_turn, in_no_step, a_loop_that_has_ended, another_frame_at_its_place, a_clock_of_its_own,
                                 what_cannot_be_read};
    Suite *suite = suite_create("turns");
    TCase *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(tcase, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
