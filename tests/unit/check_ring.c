/* SPDX-License-Identifier: MIT
 * ring: records come out whole, in order, and once; or not at all. */
#include "sampler/ring.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 64u
#define BYTES (sizeof(struct ring) + WORDS * sizeof(uint64_t))

Suite *suite_ring(void);

static _Alignas(64) uint8_t space[BYTES];
static struct ring *ring;

static void setup(void)
{
    memset(space, 0xaa, sizeof space);
    ring = ring_init(space, sizeof space);
}

/* A record as the handler makes one: its words carry the number. */
static bool put(struct ring *into, uint32_t words, uint64_t number)
{
    uint32_t opened = ring_open(into);
    if (ring_room(into, opened) < words)
        return false;
    for (uint32_t i = 0; i < words; i++)
        ring_put(into, number + i);
    ring_patch(into, opened, 0, ring_header(0, words, (uint32_t)number));
    ring_commit(into, opened);
    return true;
}

/* Takes one; its number, or -1. */
static int64_t take(struct ring *from)
{
    uint32_t ready = ring_ready(from);
    if (!ready)
        return -1;
    uint64_t header = ring_peek(from, 0);
    uint32_t words = ring_words(header);
    ck_assert_uint_eq(header & 255, RING_RECORD);
    ck_assert_uint_ge(words, 1);
    ck_assert_uint_le(words, ready);
    for (uint32_t i = 1; i < words; i++)
        ck_assert_uint_eq(ring_peek(from, i), ring_entries(header) + i);
    ring_drop(from, words);
    return ring_entries(header);
}

START_TEST(capacity_is_the_power_of_two_that_fits)
{
    ck_assert_uint_eq(ring->words, WORDS);
    ck_assert_uint_eq(ring_init(space, BYTES - 1)->words, WORDS / 2);
    ck_assert_uint_eq(ring_init(space, sizeof(struct ring) + 8)->words, 1);
}
END_TEST

START_TEST(a_new_ring_is_empty)
{
    ck_assert_uint_eq(ring_ready(ring), 0);
    ck_assert_int_eq(take(ring), -1);
    ck_assert_uint_eq(ring_room(ring, ring_open(ring)), WORDS);
}
END_TEST

/* A space that was never written (or dropped in a forked child) is all zeros. */
START_TEST(a_space_that_is_no_ring_yet_takes_nothing)
{
    memset(space, 0, sizeof space);
    ring = (struct ring *)space;
    ck_assert_uint_eq(ring_room(ring, ring_open(ring)), 0);
    ck_assert_uint_eq(ring_ready(ring), 0);
}
END_TEST

START_TEST(records_come_in_order)
{
    for (uint32_t i = 0; i < 5; i++)
        ck_assert(put(ring, 3 + i, 100 + i));
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_int_eq(take(ring), 100 + i);
    ck_assert_int_eq(take(ring), -1);
}
END_TEST

START_TEST(what_was_not_committed_never_was_there)
{
    ck_assert(put(ring, 4, 1));
    uint32_t opened = ring_open(ring);
    ring_put(ring, 0xdead);
    ring_put(ring, 0xdead);
    ck_assert_uint_eq(ring_room(ring, opened), WORDS - 6);
    ck_assert_int_eq(take(ring), 1);
    ck_assert_int_eq(take(ring), -1);
    ck_assert(put(ring, 4, 2));
    ck_assert_int_eq(take(ring), 2);
    ck_assert_int_eq(take(ring), -1);
}
END_TEST

START_TEST(a_full_ring_refuses_and_keeps)
{
    uint32_t number = 0, taken = 0;
    while (put(ring, 7, number))
        number++;
    ck_assert_uint_eq(number, WORDS / 7);
    ck_assert(put(ring, WORDS % 7, number++)); /* to the last word */
    ck_assert(!put(ring, 1, 99));
    ck_assert_uint_eq(ring_ready(ring), WORDS);
    while (taken < number)
        ck_assert_int_eq(take(ring), taken++);
    ck_assert_int_eq(take(ring), -1);
}
END_TEST

START_TEST(a_record_as_large_as_the_ring)
{
    ck_assert(put(ring, 5, 1));
    ck_assert(!put(ring, WORDS, 2));
    ck_assert_int_eq(take(ring), 1);
    for (int i = 3; i < 20; i++) {
        ck_assert(put(ring, WORDS, (uint64_t)i));
        ck_assert(!put(ring, 1, 99));
        ck_assert_int_eq(take(ring), i);
    }
}
END_TEST

START_TEST(an_empty_ring_begins_at_its_first_word)
{
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t opened = ring_open(ring);
        ck_assert_uint_eq(opened % WORDS, 0);
        ck_assert(put(ring, 1 + i % 20, i));
        ck_assert_int_eq(take(ring), i);
    }
    for (uint32_t i = 20; i < WORDS; i++)
        ck_assert_uint_eq(ring->word[i], 0xaaaaaaaaaaaaaaaau); /* never touched */
}
END_TEST

START_TEST(the_words_between_are_no_record)
{
    ck_assert(put(ring, 10, 1));
    ck_assert_int_eq(take(ring), 1);
    ck_assert(put(ring, 10, 2)); /* begins anew, 54 words further */
    ck_assert(put(ring, 10, 3));
    ck_assert_uint_eq(ring_ready(ring), 20);
    ck_assert_uint_eq(ring_ready(ring), 20);
    ck_assert_int_eq(take(ring), 2);
    ck_assert_uint_eq(ring_ready(ring), 10);
    ck_assert_int_eq(take(ring), 3);
}
END_TEST

START_TEST(a_header_keeps_its_parts_apart)
{
    const uint32_t most = 0xffffff;
    const uint64_t headers[] = {ring_header(0xff, 0, 0), ring_header(0, most, 0), ring_header(0, 0, most)};
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(headers[i] & 255, RING_RECORD);
        ck_assert_uint_eq(ring_flags(headers[i]), i == 0 ? 0xff : 0);
        ck_assert_uint_eq(ring_words(headers[i]), i == 1 ? most : 0);
        ck_assert_uint_eq(ring_entries(headers[i]), i == 2 ? most : 0);
    }
}
END_TEST

/* The room of an open record grows while the sampler reads. */
START_TEST(the_ring_is_emptied_while_a_record_is_open)
{
    ck_assert(put(ring, 30, 1));
    ck_assert(put(ring, 10, 2));
    uint32_t opened = ring_open(ring);
    ck_assert_uint_eq(ring_room(ring, opened), WORDS - 40);
    ring_put(ring, 0);
    ring_put(ring, 8);
    ck_assert_int_eq(take(ring), 1);
    ck_assert_uint_eq(ring_room(ring, opened), WORDS - 12);
    ck_assert_int_eq(take(ring), 2);
    ck_assert_uint_eq(ring_room(ring, opened), WORDS - 2);
    ring_patch(ring, opened, 0, ring_header(0, 2, 7));
    ring_commit(ring, opened);
    ck_assert_int_eq(take(ring), 7);
}
END_TEST

/* As if it had been in use for 2^32 words. */
static void age(uint32_t head)
{
    atomic_store(&ring->head, head);
    atomic_store(&ring->tail, head);
    atomic_store(&ring->from, head);
}

START_TEST(the_counters_wrap)
{
    for (uint32_t start = 0; start < 3 * WORDS; start++) {
        age(0u - start);
        uint32_t written = 0, read = 0;
        while (read < 40) {
            for (uint32_t i = 0; i < 1 + read % 4 && put(ring, 1 + (written * 7 + start) % 13, written); i++)
                written++;
            ck_assert_int_eq(take(ring), read++);
        }
        while (read < written)
            ck_assert_int_eq(take(ring), read++);
        ck_assert_int_eq(take(ring), -1);
    }
}
END_TEST

/* --- a thread against another --- */

enum { TOGETHER = 30000 };

static void *produce(void *unused)
{
    for (uint32_t number = 0; number < TOGETHER;) {
        uint32_t words = 1 + (number * 2654435761u >> 24) % 40;
        if (number % 5 == 0) { /* begun, and given up */
            uint32_t opened = ring_open(ring);
            if (ring_room(ring, opened) > 2)
                ring_put(ring, 0xdead);
        }
        if (put(ring, words, number))
            number++;
    }
    return unused;
}

START_TEST(what_somebody_wrote_over_is_no_record)
{
    ck_assert(put(ring, 6, 1));
    uint64_t header = ring_peek(ring, 0);
    ck_assert_uint_eq(ring_record(ring, ring_ready(ring)), 6);
    static const uint64_t garbage[] = {0, ~0ull, RING_RECORD, RING_RECORD | 3 << 16, RING_RECORD | 7 << 16};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        ring->word[0] = garbage[i];
        ck_assert_uint_eq(ring_record(ring, ring_ready(ring)), 0);
    }
    ring->word[0] = header;
    ck_assert_uint_eq(ring_record(ring, ring_ready(ring)), 6);
}
END_TEST

START_TEST(a_producer_against_a_consumer)
{
    pthread_t thread;
    age(0u - 1000 * WORDS);
    ck_assert_int_eq(pthread_create(&thread, NULL, produce, NULL), 0);
    for (uint32_t number = 0; number < TOGETHER;) {
        int64_t taken = take(ring);
        if (taken >= 0)
            ck_assert_int_eq(taken, number++);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(take(ring), -1);
}
END_TEST

Suite *suite_ring(void)
{
    const TTest *const tests[] = {
        capacity_is_the_power_of_two_that_fits, a_new_ring_is_empty, a_space_that_is_no_ring_yet_takes_nothing, records_come_in_order,
        what_was_not_committed_never_was_there, a_full_ring_refuses_and_keeps, a_record_as_large_as_the_ring,
        an_empty_ring_begins_at_its_first_word, the_words_between_are_no_record, a_header_keeps_its_parts_apart,
        the_ring_is_emptied_while_a_record_is_open,
        the_counters_wrap, what_somebody_wrote_over_is_no_record, a_producer_against_a_consumer,
    };
    Suite *suite = suite_create("ring");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    tcase_set_timeout(core, 120);
    suite_add_tcase(suite, core);
    return suite;
}
