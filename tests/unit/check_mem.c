/* SPDX-License-Identifier: MIT */
#include "hooks/mem.h"

#include <check.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

START_TEST(before_the_start_everything_is_refused)
{
    ck_assert_ptr_eq(mem_alloc(1), NULL);
    ck_assert_uint_eq(mem_refused(), 1);
    mem_free(NULL);
    mem_postfork_child();
    ck_assert_ptr_eq(mem_alloc(1), NULL);
}
END_TEST

START_TEST(blocks_are_aligned_zeroed_and_accounted)
{
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    for (size_t n = 0; n < 5000; n += 37) {
        uint8_t *plain = mem_alloc(n), *zeroed = mem_zalloc(n);
        ck_assert(plain && zeroed && (uintptr_t)plain % 16 == 0 && (uintptr_t)zeroed % 16 == 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(zeroed[i], 0);
        memset(plain, 0xff, n);
        ck_assert_uint_ge(mem_used(), 2 * n);
        mem_free(plain);
        mem_free(zeroed);
        ck_assert_uint_eq(mem_used(), 0);
    }
}
END_TEST

START_TEST(realloc_keeps_what_was_there)
{
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    uint8_t *block = NULL;
    for (size_t n = 1; n < MIB; n *= 3) {
        block = mem_realloc(block, n);
        ck_assert_ptr_ne(block, NULL);
        block[n - 1] = 7;
        ck_assert_uint_eq(block[0], 7);
        block[0] = 7;
    }
    block = mem_realloc(block, 5);
    ck_assert_uint_eq(block[0], 7);
    mem_free(block);
    ck_assert_uint_eq(mem_used(), 0);
}
END_TEST

START_TEST(an_array_grows_by_doubling_and_keeps_what_it_had)
{
    uint32_t *array = NULL, room = 0;
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    ck_assert(mem_grow((void **)&array, &room, 1, 4, sizeof *array));
    ck_assert_uint_eq(room, 4);
    array[3] = 7;
    ck_assert(mem_grow((void **)&array, &room, 4, 4, sizeof *array));
    ck_assert_uint_eq(room, 4);
    ck_assert(mem_grow((void **)&array, &room, 17, 4, sizeof *array));
    ck_assert_uint_eq(room, 32);
    ck_assert_uint_eq(array[3], 7);
    uint32_t *before = array;
    ck_assert(!mem_grow((void **)&array, &room, 1u << 30, 4, sizeof *array));
    ck_assert(!mem_grow((void **)&array, &room, UINT32_MAX, 4, sizeof *array)); /* doubling would never get there */
    ck_assert_ptr_eq(array, before);
    ck_assert_uint_eq(room, 32);
}
END_TEST

START_TEST(the_limit_holds_and_leaves_blocks_as_they_were)
{
    static void *blocks[100000];
    size_t n = 0;
    ck_assert_int_eq(mem_init(MIB), 0);
    ck_assert_uint_eq(mem_limit(), MIB);
    while ((blocks[n] = mem_alloc(1000)) != NULL)
        n++;
    ck_assert_uint_gt(n, 900);
    ck_assert_uint_le(mem_used(), MIB);
    ck_assert_uint_eq(mem_refused(), 1);
    memset(blocks[0], 3, 1000);
    ck_assert_ptr_eq(mem_realloc(blocks[0], MIB), NULL);
    ck_assert_ptr_eq(mem_alloc((size_t)-1), NULL);
    ck_assert_ptr_eq(mem_realloc(blocks[0], (size_t)-1), NULL);
    ck_assert_uint_eq(((uint8_t *)blocks[0])[999], 3);
    while (n > 0)
        mem_free(blocks[--n]);
    ck_assert_uint_eq(mem_used(), 0);
    ck_assert_ptr_ne(mem_alloc(MIB / 2), NULL);
}
END_TEST

/* What grows without end leaves room for what must still be had. */
START_TEST(the_last_eighth_is_kept_for_those_who_do_not_ask)
{
    enum { ITEMS = MEM_SMALL / sizeof(uint32_t) };
    uint32_t *array = NULL, *small = NULL, room = 0, small_room = 0;
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    ck_assert(mem_has_room(7 * MIB));
    ck_assert_uint_eq(mem_refused(), 0);
    ck_assert(!mem_has_room(7 * MIB + 1));
    ck_assert_uint_eq(mem_refused(), 1);
    void *most = mem_alloc(6 * MIB);
    ck_assert_ptr_ne(most, NULL);
    while (mem_grow((void **)&array, &room, room + 1, 4, sizeof *array))
        ck_assert_uint_le(mem_used(), 7 * MIB);
    ck_assert_uint_ge(room, ITEMS);
    ck_assert(mem_has_room(1));
    void *rest = mem_alloc(7 * MIB - mem_used());
    ck_assert_ptr_ne(rest, NULL);
    ck_assert(!mem_has_room(1));
    ck_assert(mem_grow((void **)&small, &small_room, ITEMS, ITEMS, sizeof *small));
    ck_assert(!mem_grow((void **)&small, &small_room, ITEMS + 1, 4, sizeof *small));
    ck_assert_ptr_ne(mem_alloc(MIB / 2), NULL);
}
END_TEST

/* Where a block moves there are two for a moment. */
START_TEST(realloc_has_room_for_both)
{
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    void *block = mem_alloc(4 * MIB), *larger;
    ck_assert_ptr_eq(mem_realloc(block, 5 * MIB), NULL);
    ck_assert_uint_eq(mem_used(), 4 * MIB);
    ck_assert_ptr_ne(block = mem_realloc(block, MIB), NULL); /* to give back is possible always */
    ck_assert_uint_eq(mem_used(), MIB);
    ck_assert_ptr_ne(larger = mem_realloc(block, 5 * MIB), NULL);
    ck_assert_uint_eq(mem_used(), 5 * MIB);
    mem_free(larger);
    ck_assert_uint_eq(mem_used(), 0);
}
END_TEST

START_TEST(the_applications_heap_is_not_touched)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct mallinfo2 before = mallinfo2(), after;
    ck_assert_int_eq(mem_init(8 * MIB), 0);
    ck_assert_ptr_ne(mem_alloc(5 * MIB), NULL);
    after = mallinfo2();
    ck_assert_uint_eq(before.uordblks, after.uordblks);
    ck_assert_uint_eq(before.hblkhd, after.hblkhd);
#endif
}
END_TEST

/* MALLOC_CONF that would show: statistics at exit, an abort on a bad setting. */
START_TEST(the_applications_settings_do_not_reach_us)
{
    int pipes[2], status;
    char text[64];
    setenv("MALLOC_CONF", "stats_print:true,abort_conf:true,no_such_setting:1", 1);
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        close(pipes[1]);
        _exit(mem_init(MIB) == 0 && mem_alloc(100) ? 0 : 1);
    }
    close(pipes[1]);
    ck_assert_int_eq((int)read(pipes[0], text, sizeof text), 0);
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_forked_child_starts_anew)
{
    ck_assert_int_eq(mem_init(MIB), 0);
    char *block = mem_alloc(MIB / 2);
    strcpy(block, "parent");
    for (int depth = 0; depth < 3; depth++) {
        pid_t child = fork();
        if (child != 0) {
            int status;
            waitpid(child, &status, 0);
            if (depth > 0)
                _exit(status ? 1 : 0);
            ck_assert_int_eq(status, 0);
            break;
        }
        mem_postfork_child();
        char *own = mem_alloc(MIB * 3 / 4);
        if (mem_used() < MIB * 3 / 4 || own == NULL || strcmp(block, "parent") != 0)
            _exit(1);
        memset(own, 1, MIB * 3 / 4);
        if (depth == 2)
            _exit(0);
    }
    ck_assert_str_eq(block, "parent");
    ck_assert_ptr_ne(mem_alloc(MIB / 4), NULL);
}
END_TEST

static _Atomic int busy_stop;

static void *busy(void *arg)
{
    void *blocks[64] = {NULL};
    for (unsigned i = 0; !busy_stop; i++) {
        mem_free(blocks[i % 64]);
        blocks[i % 64] = mem_alloc(1 + i * 7919 % 20000);
    }
    return NULL;
}

START_TEST(forks_in_the_middle_of_allocation_do_not_hang)
{
    pthread_t thread;
    ck_assert_int_eq(mem_init(16 * MIB), 0);
    pthread_create(&thread, NULL, busy, NULL);
    int forks = getenv("APROF_TEST_VALGRIND") ? 3 : 300; /* it runs one thread at a time, for long */
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            mem_postfork_child();
            void *block = mem_zalloc(50000);
            _exit(block && mem_used() >= 50000 ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    busy_stop = 1;
    pthread_join(thread, NULL);
}
END_TEST

Suite *suite_mem(void)
{
    Suite *suite = suite_create("mem");
    TCase *tests = tcase_create("mem");
    tcase_add_test(tests, before_the_start_everything_is_refused);
    tcase_add_test(tests, blocks_are_aligned_zeroed_and_accounted);
    tcase_add_test(tests, realloc_keeps_what_was_there);
    tcase_add_test(tests, an_array_grows_by_doubling_and_keeps_what_it_had);
    tcase_add_test(tests, the_limit_holds_and_leaves_blocks_as_they_were);
    tcase_add_test(tests, the_last_eighth_is_kept_for_those_who_do_not_ask);
    tcase_add_test(tests, realloc_has_room_for_both);
    tcase_add_test(tests, the_applications_heap_is_not_touched);
    tcase_add_test(tests, the_applications_settings_do_not_reach_us);
    tcase_add_test(tests, a_forked_child_starts_anew);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, forks_in_the_middle_of_allocation_do_not_hang);
    suite_add_tcase(suite, tests);
    return suite;
}
