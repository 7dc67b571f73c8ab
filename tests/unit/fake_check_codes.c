/* SPDX-License-Identifier: MIT
 * codes: names on their way from the handler to the profile, and each way in
 * which they do not get there. */
#include "sampler/codes.h"

#include <pthread.h>
#include <stdio.h>

#include "hooks/mem.h"
#include "tests/unit/fake_python.h"

#define CODE_AT 0x40000000u
#define NAME_AT 0x60000000u
#define PATH_AT 0x61000000u
#define TABLE_AT 0x62000000u

Suite *suite_codes(void);

static struct profile *profile;
static struct text_paths paths = {.full = true};
static struct py_target target;

static void start(int minor)
{
    target = fake_target(minor);
    ck_assert_int_eq(mem_init((size_t)256 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
}

/* A compact str of any kind. */
static uintptr_t str_at(uintptr_t address, const void *data, uint32_t length, uint32_t kind, bool ascii)
{
    const struct layout *layout = &target.layout;
    int32_t head = ascii ? layout->str_ascii_data : layout->str_compact_data;
    struct fake str = fake_new(address, (size_t)head + (size_t)length * kind + kind);
    fake_put_word(&str, layout->object_type, target.unicode_type);
    fake_put_word(&str, layout->str_length, length);
    fake_put_int(&str, layout->str_state, kind << 2 | 1u << 5 | (uint32_t)ascii << 6);
    fake_put(&str, head, data, (size_t)length * kind);
    return fake_place(&str);
}

/* A code object as the walk hands it over: the object itself is not read again. */
static struct py_code code_of(uint64_t identity, uintptr_t name, uintptr_t path)
{
    return (struct py_code){.address = CODE_AT, .identity = identity, .name = name, .qualname = name, .filename = path,
                            .linetable = TABLE_AT, .firstlineno = 40};
}

static struct py_code plain_code(uint64_t identity)
{
    static bool made;
    if (!made) {
        fake_str(&target, NAME_AT, "Job.run");
        fake_str(&target, PATH_AT, "/app/main.py");
        fake_bytes(&target, TABLE_AT, fake_line_table, sizeof fake_line_table);
        made = true;
    }
    return code_of(identity, NAME_AT, PATH_AT);
}

/* The text of a frame, as it will stand in the spool; "" when it is unknown. */
static const char *text_of(uint64_t identity, int32_t lasti)
{
    static char text[TEXT_FRAME_MAX + 1];
    profile_frame frame = codes_frame(profile, &paths, identity, lasti);
    size_t length = frame ? profile_text(profile, profile_push(profile, PROFILE_ROOT, frame), text, TEXT_FRAME_MAX) : 0;
    text[length] = '\0';
    return text;
}

/* --- through the ring --- */

START_TEST(a_name_goes_through_the_ring)
{
    start(_i);
    struct py_code code = plain_code(7);
    ck_assert_str_eq(text_of(7, 0), "");
    ck_assert(codes_settle(&target, &code));
    ck_assert_str_eq(text_of(7, 0), ""); /* not drained yet */
    codes_drain();
    ck_assert_str_eq(text_of(7, 0), "Job.run (/app/main.py:40)");
    ck_assert_uint_eq(codes_overflows(), 0);
}
END_TEST

START_TEST(each_place_has_its_line)
{
    start(_i);
    struct py_code code = plain_code(7);
    codes_settle(&target, &code);
    codes_drain();
    ck_assert_str_eq(text_of(7, -1), "Job.run (/app/main.py:40)");
    ck_assert_str_eq(text_of(7, 2), "Job.run (/app/main.py:40)");
    ck_assert_str_eq(text_of(7, 4), "Job.run (/app/main.py:41)");
    ck_assert_str_eq(text_of(7, 8), "Job.run (/app/main.py:48)");
    ck_assert_str_eq(text_of(7, 400), "Job.run (/app/main.py:40)"); /* beyond the table */
    ck_assert_uint_eq(codes_frame(profile, &paths, 7, 4), codes_frame(profile, &paths, 7, 4));
}
END_TEST

START_TEST(strings_of_every_kind)
{
    static const uint8_t latin[] = {'f', 0xe9, 'e'};
    static const uint16_t wide[] = {'a', 0x20ac, 0xd800};
    static const uint32_t widest[] = {0x1f600, 'z'};
    start(_i);
    fake_bytes(&target, TABLE_AT, fake_line_table, sizeof fake_line_table);
    struct py_code codes[] = {
        code_of(1, str_at(NAME_AT, latin, 3, 1, false), str_at(PATH_AT, wide, 3, 2, false)),
        code_of(2, str_at(NAME_AT + 0x1000, wide, 3, 2, false), str_at(PATH_AT + 0x1000, widest, 2, 4, false)),
        code_of(3, str_at(NAME_AT + 0x2000, widest, 2, 4, false), str_at(PATH_AT + 0x2000, "p", 1, 1, true)),
        code_of(4, str_at(NAME_AT + 0x3000, "", 0, 1, true), str_at(PATH_AT + 0x3000, latin, 3, 1, false)),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        ck_assert(codes_settle(&target, &codes[i]));
    codes_drain();
    ck_assert_str_eq(text_of(1, 0), "f\xc3\xa9" "e (a\xe2\x82\xac\\xed\\xa0\\x80:40)");
    ck_assert_str_eq(text_of(2, 0), "a\xe2\x82\xac\\xed\\xa0\\x80 (\xf0\x9f\x98\x80z:40)");
    ck_assert_str_eq(text_of(3, 0), "\xf0\x9f\x98\x80z (p:40)");
    ck_assert_ptr_nonnull(strstr(text_of(4, 0), "(f\xc3\xa9" "e:40)"));
}
END_TEST

START_TEST(without_a_qualname_the_name_serves)
{
    start(_i);
    struct py_code code = plain_code(7);
    code.qualname = 0x7fff0000;
    ck_assert(codes_settle(&target, &code));
    codes_drain();
    ck_assert_str_eq(text_of(7, 0), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(without_a_line_table_the_first_line_serves)
{
    start(_i);
    struct py_code code = plain_code(7);
    code.linetable = 0x7fff0000;
    ck_assert(codes_settle(&target, &code));
    codes_drain();
    ck_assert_str_eq(text_of(7, 8), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(unreadable_names_are_not_settled)
{
    start(_i);
    struct py_code nameless = plain_code(7), pathless = plain_code(8), torn = plain_code(9);
    nameless.qualname = nameless.name = 0x7fff0000;
    pathless.filename = 0x7fff0000;
    /* The head is there, the characters are not: found out while they are copied. */
    struct fake head = fake_new(NAME_AT + 0x5000, (size_t)target.layout.str_compact_data);
    fake_put_word(&head, target.layout.object_type, target.unicode_type);
    fake_put_word(&head, target.layout.str_length, 100);
    fake_put_int(&head, target.layout.str_state, 1u << 2 | 1u << 5);
    torn.qualname = fake_place(&head);
    ck_assert(!codes_settle(&target, &nameless));
    ck_assert(!codes_settle(&target, &pathless));
    ck_assert(!codes_settle(&target, &torn));
    struct py_code good = plain_code(10);
    ck_assert(codes_settle(&target, &good));
    codes_drain();
    ck_assert_str_eq(text_of(7, 0), "");
    ck_assert_str_eq(text_of(8, 0), "");
    ck_assert_str_eq(text_of(9, 0), "");
    ck_assert_str_eq(text_of(10, 0), "Job.run (/app/main.py:40)"); /* what was void is passed over */
    ck_assert(!codes_settle(&target, &torn));                      /* and was not claimed */
}
END_TEST

START_TEST(a_name_as_long_as_the_ring_takes)
{
    enum { LONG = 40000 };
    static char name[LONG];
    start(_i);
    memset(name, 'n', LONG);
    fake_bytes(&target, TABLE_AT, fake_line_table, sizeof fake_line_table);
    struct py_code code = code_of(7, str_at(NAME_AT, name, LONG, 1, true), str_at(PATH_AT, name, LONG, 1, true));
    ck_assert(codes_settle(&target, &code));
    codes_drain();
    ck_assert_uint_gt(strlen(text_of(7, 0)), 2000);
    ck_assert_uint_lt(strlen(text_of(7, 0)), TEXT_FRAME_MAX);
}
END_TEST

START_TEST(settling_twice_takes_room_once)
{
    start(_i);
    struct py_code code = plain_code(7);
    ck_assert(codes_settle(&target, &code));
    unsigned long reads = fake_reads();
    for (int i = 0; i < 100000; i++)
        ck_assert(codes_settle(&target, &code));
    ck_assert_uint_eq(fake_reads(), reads); /* known: nothing is read */
    ck_assert_uint_eq(codes_overflows(), 0);
}
END_TEST

/* --- bounds --- */

static uint64_t identity(uint64_t number) /* spread as code_read's hashes are */
{
    uint64_t hash = number * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u | 1;
}

static bool settle(uint64_t number)
{
    struct py_code code = plain_code(identity(number));
    return codes_settle(&target, &code);
}

START_TEST(a_full_ring_refuses_and_recovers)
{
    uint64_t number = 0;
    start(_i);
    while (settle(number))
        number++;
    ck_assert_uint_gt(number, 1000);
    ck_assert_uint_eq(codes_overflows(), 1);
    ck_assert(settle(0)); /* known ones need no room */
    codes_drain();
    ck_assert(settle(number));
    codes_drain();
    for (uint64_t i = 0; i <= number; i += 97)
        ck_assert_str_eq(text_of(identity(i), 0), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(the_ring_wraps_around)
{
    start(_i);
    for (uint64_t number = 0; number < 20000; number++) {
        ck_assert(settle(number));
        if (number % 41 == 0)
            codes_drain();
    }
    codes_drain();
    for (uint64_t number = 0; number < 20000; number++)
        ck_assert_str_eq(text_of(identity(number), 4), "Job.run (/app/main.py:41)");
    ck_assert_uint_eq(codes_overflows(), 0);
}
END_TEST

START_TEST(a_crowded_table_refuses)
{
    start(_i);
    uint32_t settled = 0;
    for (uint64_t low = 1; low < 200; low++) { /* all in one place of the table */
        struct py_code code = plain_code((uint64_t)0xffff << 40 | low);
        settled += codes_settle(&target, &code);
    }
    ck_assert_uint_lt(settled, 199);
    ck_assert_uint_ge(settled, 32);
    ck_assert_uint_eq(codes_overflows(), 199 - settled);
    struct py_code elsewhere = plain_code((uint64_t)0x1000 << 40 | 5);
    ck_assert(codes_settle(&target, &elsewhere));
}
END_TEST

START_TEST(many_are_forgotten)
{
    start(_i);
    uint64_t number = 0;
    while (!codes_are_many() && number < 65536) {
        settle(number++);
        if (number % 1000 == 0)
            codes_drain();
    }
    ck_assert(codes_are_many());
    codes_drain();
    ck_assert_str_ne(text_of(identity(3), 0), "");
    profile_clear(profile, true);
    codes_forget();
    ck_assert(!codes_are_many());
    ck_assert_str_eq(text_of(identity(3), 0), "");
    ck_assert(settle(3));
    codes_drain();
    ck_assert_str_eq(text_of(identity(3), 0), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(frames_are_forgotten_names_are_not)
{
    start(_i);
    settle(1);
    codes_drain();
    ck_assert_str_ne(text_of(identity(1), 0), "");
    profile_clear(profile, true);
    codes_forget_frames();
    ck_assert_str_eq(text_of(identity(1), 4), "Job.run (/app/main.py:41)");
}
END_TEST

START_TEST(nothing_is_leaked)
{
    start(_i);
    size_t before = mem_used();
    for (uint64_t number = 0; number < 3000; number++) {
        settle(number);
        codes_drain();
        ck_assert_uint_ne(codes_frame(profile, &paths, identity(number), 2), 0);
    }
    codes_forget();
    profile_free(profile);
    ck_assert_uint_le(mem_used(), before);
    ck_assert_uint_eq(mem_used(), 0);
}
END_TEST

START_TEST(without_memory_nothing_breaks)
{
    target = fake_target(_i);
    ck_assert_int_eq(mem_init((size_t)1 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
    for (uint64_t number = 0; number < 20000; number++) {
        settle(number);
        codes_drain();
        codes_frame(profile, &paths, identity(number), 2);
    }
    ck_assert_uint_le(mem_used(), (size_t)1 << 20);
    profile_clear(profile, true);
    codes_forget();
    ck_assert(settle(1));
    codes_drain();
    ck_assert_str_ne(text_of(identity(1), 0), "");
}
END_TEST

/* A heap that is full for a while, of other things, hides no name for ever. */
START_TEST(what_found_no_room_is_settled_again)
{
    start(_i);
    void *filled[64];
    size_t blocks = 0;
    while (mem_has_room((size_t)8 << 20))
        ck_assert_ptr_nonnull(filled[blocks++] = mem_alloc((size_t)8 << 20));
    void *rest[4096];
    size_t rests = 0;
    while (mem_has_room(4096))
        ck_assert_ptr_nonnull(rest[rests++] = mem_alloc(4096));
    ck_assert(settle(1));
    ck_assert(codes_drain());
    ck_assert_str_eq(text_of(identity(1), 0), "");
    while (rests > 0)
        mem_free(rest[--rests]);
    ck_assert(settle(1));
    ck_assert(codes_drain());
    ck_assert_str_eq(text_of(identity(1), 0), "Job.run (/app/main.py:40)");
    while (blocks > 0)
        mem_free(filled[--blocks]);
}
END_TEST

/* --- from memory --- */

START_TEST(a_living_code_object_is_read_from_memory)
{
    struct py_code code;
    start(_i);
    ck_assert(code_read(&target, fake_code(&target, CODE_AT), &code));
    ck_assert(codes_learn(&target, CODE_AT, code.identity));
    ck_assert_str_eq(text_of(code.identity, 4), "Job.run (/app/main.py:41)");
    ck_assert(codes_settle(&target, &code)); /* handlers know it, too */
    ck_assert(codes_learn(&target, CODE_AT, code.identity));
}
END_TEST

START_TEST(another_at_that_address_is_not_believed)
{
    struct py_code code;
    start(_i);
    ck_assert(code_read(&target, fake_code(&target, CODE_AT), &code));
    ck_assert(!codes_learn(&target, CODE_AT, code.identity ^ 2));
    ck_assert(!codes_learn(&target, CODE_AT + 8, code.identity));
    ck_assert(!codes_learn(&target, 0, code.identity));
    ck_assert_str_eq(text_of(code.identity ^ 2, 0), "");
    fake_reset(); /* freed */
    ck_assert(!codes_learn(&target, CODE_AT, code.identity));
}
END_TEST

/* A table's length is the interpreter's word: garbage must neither be copied nor take the heap. */
START_TEST(a_table_of_absurd_length_is_left_out)
{
    static const uint8_t table[(5 << 20)];
    struct py_code code;
    start(_i);
    struct fake fake = fake_code_new(&target, CODE_AT);
    fake_put_word(&fake, target.layout.code_linetable, fake_bytes(&target, CODE_AT + 0x10000000, table, sizeof table));
    ck_assert(code_read(&target, fake_place(&fake), &code));
    size_t before = mem_used();
    ck_assert(codes_learn(&target, CODE_AT, code.identity));
    ck_assert_uint_lt(mem_used() - before, 1 << 20);
    ck_assert_str_eq(text_of(code.identity, 4), "Job.run (/app/main.py:40)");
}
END_TEST

/* --- what asyncio's loop is known by --- */

static uint32_t flags_of(uint64_t number, const char *name, const char *path)
{
    fake_bytes(&target, TABLE_AT, fake_line_table, sizeof fake_line_table);
    struct py_code code = code_of(number, fake_str(&target, NAME_AT + number * 0x1000, name), fake_str(&target, PATH_AT + number * 0x1000, path));
    ck_assert(codes_settle(&target, &code));
    codes_drain();
    return profile_frame_flags(profile, codes_frame(profile, &paths, number, 0));
}

START_TEST(the_event_loop_is_known)
{
    start(_i);
    ck_assert_uint_eq(flags_of(1, "BaseEventLoop._run_once", "/usr/lib/python3.13/asyncio/base_events.py"), CODE_LOOP);
    ck_assert_uint_eq(flags_of(2, "EpollSelector.select", "/usr/lib/python3.13/selectors.py"), CODE_SELECTOR);
    ck_assert_uint_eq(flags_of(3, "BaseEventLoop._run_once", "/app/base_events.py"), 0);
    ck_assert_uint_eq(flags_of(4, "BaseEventLoop.run_forever", "/usr/lib/python3.13/asyncio/base_events.py"), 0);
    ck_assert_uint_eq(flags_of(5, "select", "/usr/lib/python3.13/selectors.py"), 0);
    ck_assert_uint_eq(flags_of(6, "EpollSelector.select", "/app/other.py"), 0);
    ck_assert_uint_eq(flags_of(7, "Handle._run", "/usr/lib/python3.13/asyncio/events.py"), CODE_HANDLE);
    ck_assert_uint_eq(flags_of(8, "Handle._run", "/app/events.py"), 0);
    ck_assert_uint_eq(flags_of(10, "Thread.run", "/usr/lib/python3.13/threading.py"), CODE_THREAD);
    ck_assert_uint_eq(flags_of(11, "Thread.run", "/app/my_threading.py"), 0);
    ck_assert_uint_eq(flags_of(9, "TimerHandle._run", "/usr/lib/python3.13/asyncio/events.py"), 0);
}
END_TEST

/* --- several threads, and fork --- */

enum { SHARED = 6000 };
static _Atomic int at_work;

static void *settle_all(void *arg)
{
    uint64_t from = (uint64_t)(uintptr_t)arg;
    at_work++;
    while (at_work < 2)
        ;
    for (uint64_t i = 0; i < SHARED; i++) {
        struct py_code code = code_of(identity((i + from) % SHARED), NAME_AT, PATH_AT);
        while (!codes_settle(&target, &code))
            ;
    }
    at_work++;
    return NULL;
}

START_TEST(two_threads_settle_the_same)
{
    pthread_t threads[2];
    start(_i);
    plain_code(1);
    for (uintptr_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, settle_all, (void *)(i * 7)), 0);
    while (at_work < 4)
        codes_drain();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    codes_drain();
    for (uint64_t i = 0; i < SHARED; i++)
        ck_assert_str_eq(text_of(identity(i), 0), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(a_forked_child_begins_with_nothing)
{
    start(_i);
    ck_assert(settle(1) && settle(2));
    codes_drain();
    ck_assert(settle(3)); /* not drained */
    for (uint64_t number = 100; settle(number); number++)
        ;
    ck_assert_uint_eq(codes_overflows(), 1);
    codes_postfork_child();
    ck_assert_uint_eq(codes_overflows(), 0); /* the parent's */
    codes_drain();
    ck_assert_str_eq(text_of(identity(1), 0), "");
    ck_assert_str_eq(text_of(identity(3), 0), "");
    ck_assert(settle(1));
    codes_drain();
    ck_assert_str_eq(text_of(identity(1), 0), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(before_the_start_nothing_breaks)
{
    codes_postfork_child();
    codes_forget_frames();
    ck_assert(!codes_are_many());
    ck_assert_uint_eq(codes_frame(NULL, NULL, 7, 0), 0);
}
END_TEST

Suite *suite_codes(void)
{
    const TTest *const each[] = {
        a_name_goes_through_the_ring, each_place_has_its_line, strings_of_every_kind, without_a_qualname_the_name_serves,
        without_a_line_table_the_first_line_serves, unreadable_names_are_not_settled,
        a_living_code_object_is_read_from_memory, another_at_that_address_is_not_believed, a_table_of_absurd_length_is_left_out,
    };
    const TTest *const once[] = {
        a_name_as_long_as_the_ring_takes, settling_twice_takes_room_once, a_full_ring_refuses_and_recovers, the_ring_wraps_around,
        a_crowded_table_refuses, many_are_forgotten, frames_are_forgotten_names_are_not, nothing_is_leaked, without_memory_nothing_breaks, what_found_no_room_is_settled_again,
        the_event_loop_is_known, two_threads_settle_the_same, a_forked_child_begins_with_nothing, before_the_start_nothing_breaks,
    };
    Suite *suite = suite_create("codes");
    TCase *versions = tcase_create("each version"), *core = tcase_create("core");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(versions, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_loop_test(core, once[i], 13, 14);
    tcase_set_timeout(core, 120);
    suite_add_tcase(suite, versions);
    suite_add_tcase(suite, core);
    return suite;
}
