/* SPDX-License-Identifier: MIT
 * contexts: variables are found in every form of trie, and others never. */
#include "tests/unit/fake_contexts.h"

#include <stdio.h>

Suite *suite_contexts(void);

enum { MANY = 60, EQUAL_MOST = 32 }; /* of equal hashes more are not believed */

static struct py_target target;
static struct fake_variable variables[MANY];

static void start(int minor)
{
    target = fake_target_with_containers(minor);
    fake_contexts_begin(&target);
}

static void start_anew(int minor)
{
    fake_reset();
    start(minor);
}

/* Hashes that are equal in so many bits of their 32. */
static void make(uint32_t count, uint32_t equal_bits)
{
    char name[16];
    uint64_t seed = 7;
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        snprintf(name, sizeof name, "v%u", i);
        uint64_t hash = equal_bits == 32 ? 0x12345678 : (seed >> 32 << equal_bits & UINT32_MAX) | (0x12345678u & ((1u << equal_bits) - 1));
        variables[i] = fake_variable(&target, name, hash, 0x9000 + 16 * i);
    }
}

static struct context_variable of(const struct fake_variable *variable)
{
    struct context_variable found;
    char name[16];
    snprintf(name, sizeof name, "v%d", (int)(variable - variables));
    ck_assert(contexts_is_variable(&target, variable->address, name, &found));
    return found;
}

START_TEST(each_is_found_and_no_other)
{
    start(_i);
    for (uint32_t count = 1; count < MANY; count += count < 4 ? 1 : 11)
        for (uint32_t bits = 0; bits <= 32; bits += 4) {
            if (bits == 32 && count > EQUAL_MOST)
                continue;
            start_anew(_i);
            make(count + 1, bits);
            uintptr_t trie = fake_trie(&target, variables, count), context = fake_context(&target, trie);
            ck_assert_uint_eq(contexts_trie(&target, context), trie);
            for (uint32_t i = 0; i <= count; i++) {
                struct context_variable variable = of(&variables[i]);
                ck_assert_uint_eq(contexts_get(&target, trie, &variable), i < count ? variables[i].value : 0);
            }
        }
}
END_TEST

START_TEST(all_are_given_out_once)
{
    bool given[MANY];
    struct contexts_walk walk;
    uintptr_t key;
    start(_i);
    for (uint32_t bits = 0; bits <= 32; bits += 4) {
        uint32_t count = 0, made = bits == 32 ? EQUAL_MOST : MANY;
        start_anew(_i);
        make(made, bits);
        memset(given, 0, sizeof given);
        contexts_begin(&walk, &target, fake_trie(&target, variables, made), 10000);
        while (contexts_next(&walk, &key))
            for (uint32_t i = 0; i < made; i++)
                if (variables[i].address == key) {
                    ck_assert(!given[i]);
                    given[i] = true;
                    count++;
                }
        ck_assert_uint_eq(count, made);
    }
    contexts_begin(&walk, &target, fake_trie(&target, variables, MANY), 5);
    for (int i = 0; contexts_next(&walk, &key); i++)
        ck_assert_int_lt(i, 5);
}
END_TEST

START_TEST(what_is_no_variable_is_not_taken_for_one)
{
    struct context_variable found;
    start(_i);
    make(1, 0);
    ck_assert(!contexts_is_variable(&target, variables[0].address, "v1", &found));
    ck_assert(!contexts_is_variable(&target, variables[0].address, "v", &found));
    ck_assert(!contexts_is_variable(&target, fake_trie(&target, variables, 1), "v0", &found));
    ck_assert(!contexts_is_variable(&target, 0, "v0", &found));
    ck_assert(!contexts_is_variable(&target, 0x1234560, "v0", &found));
    struct context_variable variable = of(&variables[0]);
    uintptr_t trie = fake_trie(&target, variables, 1);
    variable.name += 16; /* another one is at its address */
    ck_assert_uint_eq(contexts_get(&target, trie, &variable), 0);
}
END_TEST

/* Whatever is read there, it ends, and nothing is read that is not mapped without that being seen. */
START_TEST(garbage_ends)
{
    struct contexts_walk walk;
    uintptr_t key;
    start(_i);
    make(MANY, 8);
    struct context_variable variable = of(&variables[0]);
    uintptr_t trie = fake_trie(&target, variables, MANY);
    ck_assert_uint_eq(contexts_get(&target, 0, &variable), 0);
    ck_assert_uint_eq(contexts_get(&target, variables[0].address, &variable), 0);
    ck_assert_uint_eq(contexts_trie(&target, 0), 0);
    ck_assert_uint_eq(contexts_trie(&target, 0x1234567), 0);
    struct fake circle = fake_object(&target, FAKE_NODE_TYPE_AT(1), 16 + 33 * 8); /* each of its nodes is itself */
    for (int i = 0; i < 32; i++)
        fake_put_word(&circle, 16 + 8 * i, circle.address);
    struct fake root = fake_object(&target, FAKE_NODE_TYPE_AT(3), 40);
    fake_put_word(&root, 16, fake_place(&circle));
    ck_assert_uint_eq(contexts_get(&target, fake_place(&root), &variable), 0);
    contexts_begin(&walk, &target, root.address, 1000);
    ck_assert(!contexts_next(&walk, &key));
    struct fake large = fake_object(&target, FAKE_NODE_TYPE_AT(0), 64);
    fake_put_word(&large, 16, 1u << 20);
    fake_put_int(&large, 24, UINT32_MAX);
    fake_put_word(&root, 16, fake_place(&large));
    ck_assert_uint_eq(contexts_get(&target, fake_place(&root), &variable), 0);
    contexts_begin(&walk, &target, root.address, 1000);
    ck_assert(!contexts_next(&walk, &key));
    ck_assert_uint_ne(contexts_get(&target, trie, &variable), 0);
}
END_TEST

Suite *suite_contexts(void)
{
    const TTest *const tests[] = {each_is_found_and_no_other, all_are_given_out_once, what_is_no_variable_is_not_taken_for_one, garbage_ends};
    Suite *suite = suite_create("contexts");
    TCase *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(tcase, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
