/* SPDX-License-Identifier: MIT
 * containers: each kind in each version's layout, and the same torn, cyclic,
 * absurd and gone. */
#include "sampler/cpython/containers.h"

#include "tests/unit/fake_python.h"

#define AT 0x30000000u
#define CLASS_AT 0x38000000u
#define CODE_AT 0x39000000u
#define UNREADABLE 0x7fff0000u
#define GET_MAX 65536

Suite *suite_containers(void);

/* --- tuples and lists --- */

static const uintptr_t three[] = {0x1008, 0x2008, 0x3008};

static void check_three(const struct py_target *target, uintptr_t object)
{
    struct items items;
    ck_assert(containers_items(target, object, &items));
    ck_assert_uint_eq(items.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(containers_item(&items, i), three[i]);
    ck_assert_uint_eq(containers_item(&items, 3), 0);
    ck_assert_uint_eq(containers_item(&items, UINT32_MAX), 0);
}

START_TEST(items_of_tuples_and_lists)
{
    struct py_target target = fake_target_with_containers(_i);
    struct items items;
    check_three(&target, fake_tuple(&target, AT, three, 3));
    check_three(&target, fake_list(&target, AT, three, 3));
    ck_assert(containers_items(&target, fake_list(&target, AT, NULL, 0), &items));
    ck_assert_uint_eq(items.count, 0);
    ck_assert_uint_eq(containers_item(&items, 0), 0);
}
END_TEST

START_TEST(what_has_no_items)
{
    struct py_target target = fake_target_with_containers(_i);
    struct items items;
    ck_assert(!containers_items(&target, fake_str(&target, AT, "abc"), &items));
    ck_assert(!containers_items(&target, 0, &items));
    ck_assert(!containers_items(&target, 8, &items));
    ck_assert(!containers_items(&target, AT + 1, &items));
    ck_assert(!containers_items(&target, UNREADABLE, &items));
    ck_assert(!containers_items(&target, 0xdddddddddddddddd, &items));
}
END_TEST

static bool list_is_believed(const struct py_target *target, uint64_t count, uintptr_t items_at)
{
    struct items items;
    struct fake list = fake_new(AT, (size_t)target->layout.list_items + 8);
    fake_put_word(&list, target->layout.object_type, LIST_TYPE_AT);
    fake_put_word(&list, target->layout.var_size, count);
    fake_put_word(&list, target->layout.list_items, items_at);
    return containers_items(target, fake_place(&list), &items);
}

START_TEST(items_that_cannot_be)
{
    struct py_target target = fake_target_with_containers(_i);
    ck_assert(list_is_believed(&target, CONTAINERS_ITEMS_MAX, AT + 0x1000));
    ck_assert(!list_is_believed(&target, CONTAINERS_ITEMS_MAX + 1, AT + 0x1000));
    ck_assert(!list_is_believed(&target, (uint64_t)-1, AT + 0x1000));
    ck_assert(!list_is_believed(&target, 1, AT + 0x1001));
    ck_assert(!list_is_believed(&target, 1, 0));
    ck_assert(list_is_believed(&target, 0, 0));
}
END_TEST

START_TEST(items_that_are_gone)
{
    struct py_target target = fake_target_with_containers(_i);
    struct items items;
    ck_assert(list_is_believed(&target, 5, UNREADABLE));
    uintptr_t list = fake_list(&target, AT, three, 3);
    ck_assert(containers_items(&target, list, &items));
    items.count = 9; /* as if it had shrunk meanwhile */
    ck_assert_uint_eq(containers_item(&items, 2), three[2]);
    ck_assert_uint_eq(containers_item(&items, 3), 0);
    items.count = 2;
    ck_assert_uint_eq(containers_item(&items, 2), 0);
}
END_TEST

/* --- dicts --- */

struct found {
    uintptr_t key[8], value[8];
    size_t count;
};

static struct found walk_dict(const struct py_target *target, uintptr_t dict)
{
    struct found found = {.count = 0};
    struct dict_walk walk;
    ck_assert(containers_dict_begin(&walk, target, dict));
    while (found.count < 8 && containers_dict_next(&walk, &found.key[found.count], &found.value[found.count]))
        found.count++;
    ck_assert_uint_lt(found.count, 8);
    ck_assert(!containers_dict_next(&walk, &found.key[7], &found.value[7]));
    return found;
}

/* Two entries, and three that were deleted or are just being made. */
static void check_two_of_five(const struct py_target *target, uint8_t kind)
{
    const uintptr_t pairs[] = {0, 0, fake_str(target, AT + 0x20000, "one"), 0x1008, fake_str(target, AT + 0x30000, "gone"), 0,
                               fake_str(target, AT + 0x40000, "two"), 0x2008, 0, 0x3008};
    uintptr_t dict = fake_dict(target, AT, kind, pairs, 5);
    struct found found = walk_dict(target, dict);

    ck_assert_uint_eq(found.count, 2);
    ck_assert(found.key[0] == pairs[2] && found.value[0] == 0x1008 && found.key[1] == pairs[6] && found.value[1] == 0x2008);
    ck_assert_uint_eq(containers_dict_get(target, dict, "two"), 0x2008);
    ck_assert_uint_eq(containers_dict_get(target, dict, "gone"), 0);
    ck_assert_uint_eq(containers_dict_get(target, dict, "tw"), 0);
}

START_TEST(entries_of_each_kind_of_dict)
{
    struct py_target target = fake_target_with_containers(_i);
    check_two_of_five(&target, FAKE_KEYS_UNICODE);
    check_two_of_five(&target, FAKE_KEYS_GENERAL);
    ck_assert_uint_eq(walk_dict(&target, fake_dict(&target, AT, FAKE_KEYS_UNICODE, NULL, 0)).count, 0);
}
END_TEST

static uintptr_t shared_keys(const struct py_target *target, uintptr_t address)
{
    const uintptr_t pairs[] = {fake_str(target, address + 0x1000, "one"), 0, fake_str(target, address + 0x2000, "two"), 0,
                               fake_str(target, address + 0x3000, "three"), 0};
    struct fake keys = fake_keys_new(target, address, FAKE_KEYS_SPLIT, pairs, 3);
    return fake_place(&keys);
}

START_TEST(a_split_dict_has_its_values_elsewhere)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t values[] = {0x1008, 0, 0x3008};
    uintptr_t dict = fake_dict_of(&target, AT, shared_keys(&target, AT + 0x20000), fake_values(&target, AT + 0x30000, values, 3));
    struct found found = walk_dict(&target, dict);

    ck_assert_uint_eq(found.count, 2);
    ck_assert(found.value[0] == 0x1008 && found.value[1] == 0x3008);
    ck_assert_uint_eq(containers_dict_get(&target, dict, "three"), 0x3008);
    ck_assert_uint_eq(containers_dict_get(&target, dict, "two"), 0);
}
END_TEST

START_TEST(what_is_no_dict)
{
    struct py_target target = fake_target_with_containers(_i);
    struct dict_walk walk;
    ck_assert(!containers_dict_begin(&walk, &target, fake_list(&target, AT, three, 3)));
    ck_assert(!containers_dict_begin(&walk, &target, 0));
    ck_assert(!containers_dict_begin(&walk, &target, AT + 4));
    ck_assert(!containers_dict_begin(&walk, &target, UNREADABLE));
    ck_assert_uint_eq(containers_dict_get(&target, AT, "one"), 0);
}
END_TEST

enum torn { KIND_3, MANY_INDICES, TOO_MANY, NEGATIVE, MORE_THAN_INDICES, ENTRIES_MISALIGNED, GENERAL_AND_SPLIT, KEYS_GONE, KEYS_MISALIGNED, VALUES_MISALIGNED, TORN };

static bool torn_dict_is_believed(const struct py_target *target, enum torn torn)
{
    const struct layout *layout = &target->layout;
    const uintptr_t pairs[] = {0x1008, 0x2008, 0x3008, 0x4008};
    struct fake keys = fake_keys_new(target, AT + 0x20000, torn == GENERAL_AND_SPLIT ? FAKE_KEYS_GENERAL : FAKE_KEYS_UNICODE, pairs, 2);
    struct dict_walk walk;
    uintptr_t keys_at, values = torn == GENERAL_AND_SPLIT ? AT + 0x30000 : torn == VALUES_MISALIGNED ? AT + 0x30004 : 0;

    if (torn == KIND_3)
        fake_put_byte(&keys, layout->keys_kind, 3);
    if (torn == MANY_INDICES)
        fake_put_byte(&keys, layout->keys_log2_index_bytes, 200);
    if (torn == TOO_MANY)
        fake_put_word(&keys, layout->keys_nentries, CONTAINERS_ITEMS_MAX + 1);
    if (torn == NEGATIVE)
        fake_put_word(&keys, layout->keys_nentries, (uint64_t)-2);
    if (torn == MORE_THAN_INDICES)
        fake_put_word(&keys, layout->keys_nentries, 9);
    if (torn == ENTRIES_MISALIGNED) {
        fake_put_byte(&keys, layout->keys_log2_index_bytes, 1);
        fake_put_word(&keys, layout->keys_nentries, 1);
    }
    keys_at = fake_place(&keys);
    if (torn == KEYS_GONE)
        keys_at = UNREADABLE;
    if (torn == KEYS_MISALIGNED)
        keys_at += 4;
    return containers_dict_begin(&walk, target, fake_dict_of(target, AT, keys_at, values));
}

START_TEST(a_torn_dict_is_refused)
{
    struct py_target target = fake_target_with_containers(_i);
    for (enum torn torn = 0; torn < TORN; torn++)
        ck_assert_msg(!torn_dict_is_believed(&target, torn), "torn dict %d", torn);
    ck_assert(torn_dict_is_believed(&target, TORN));
}
END_TEST

START_TEST(a_dict_whose_entries_are_gone_ends)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t pairs[] = {0x1008, 0x2008, 0x3008, 0x4008};
    struct fake keys = fake_keys_new(&target, AT + 0x20000, FAKE_KEYS_UNICODE, pairs, 2);
    keys.size -= 16;
    fake_place(&keys);
    ck_assert_uint_eq(walk_dict(&target, fake_dict_of(&target, AT, keys.address, 0)).count, 1);

    const uintptr_t values[] = {0x1008}; /* of three */
    uintptr_t dict = fake_dict_of(&target, AT, shared_keys(&target, AT + 0x40000), fake_values(&target, AT + 0x30000, values, 1));
    ck_assert_uint_eq(walk_dict(&target, dict).count, 1);
}
END_TEST

START_TEST(a_name_is_looked_for_in_so_many_entries)
{
    struct py_target target = fake_target_with_containers(_i);
    uintptr_t other = fake_str(&target, AT + 0x8000000, "other"), wanted = fake_str(&target, AT + 0x8001000, "wanted");
    uintptr_t *pairs = calloc(GET_MAX + 1, 16);

    for (size_t i = 0; i <= GET_MAX; i++)
        pairs[2 * i] = other, pairs[2 * i + 1] = 0x1008;
    pairs[2 * GET_MAX] = wanted;
    ck_assert_uint_eq(containers_dict_get(&target, fake_dict(&target, AT, FAKE_KEYS_UNICODE, pairs, GET_MAX + 1), "wanted"), 0);
    pairs[2 * GET_MAX - 2] = wanted;
    ck_assert_uint_eq(containers_dict_get(&target, fake_dict(&target, AT, FAKE_KEYS_UNICODE, pairs, GET_MAX + 1), "wanted"), 0x1008);
    free(pairs);
}
END_TEST

/* An attribute is one of a few; a handler must not go through a large dict for it. */
START_TEST(an_attribute_is_looked_for_in_fewer)
{
    struct py_target target = fake_target_with_containers(_i);
    uintptr_t other = fake_str(&target, AT + 0x8000000, "other"), wanted = fake_str(&target, AT + 0x8001000, "wanted"), pairs[600];
    struct fake type = fake_type_new(&target.layout, CLASS_AT, "Own", target.layout.flag_heap_type, OBJECT_TYPE_AT), object = fake_new(AT + 0x9000000, 48);
    fake_put_word(&type, target.layout.type_dictoffset, 40);
    fake_put_word(&object, target.layout.object_type, fake_place(&type));
    fake_put_word(&object, 40, AT);
    fake_place(&object);
    for (size_t i = 0; i < 300; i++)
        pairs[2 * i] = other, pairs[2 * i + 1] = 0x1008;
    pairs[2 * 256] = wanted;
    fake_dict(&target, AT, FAKE_KEYS_UNICODE, pairs, 300);
    ck_assert_uint_eq(containers_attribute(&target, object.address, "wanted"), 0);
    pairs[2 * 255] = wanted;
    fake_dict(&target, AT, FAKE_KEYS_UNICODE, pairs, 300);
    ck_assert_uint_eq(containers_attribute(&target, object.address, "wanted"), 0x1008);
}
END_TEST

/* --- sets --- */

static size_t count_set(const struct py_target *target, uintptr_t set, uintptr_t *keys, size_t most)
{
    struct set_walk walk;
    size_t count = 0;
    ck_assert(containers_set_begin(&walk, target, set));
    while (count < most && containers_set_next(&walk, &keys[count]))
        count++;
    return count;
}

/* One is free, one was removed. */
static const uintptr_t slots[] = {0, 0, 0x1008, 1, 0x2008, (uintptr_t)-1, 0x3008, 3};

START_TEST(keys_of_a_set)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t frozen = 0x22000000, derived = 0x22001000, twice = 0x22002000;
    uintptr_t keys[8];
    fake_named_type(&target.layout, frozen, "frozenset", 0, OBJECT_TYPE_AT);
    fake_named_type(&target.layout, derived, "Own", 0, SET_TYPE_AT);
    fake_named_type(&target.layout, twice, "Other", 0, derived);
    const uintptr_t types[] = {SET_TYPE_AT, frozen, derived, twice};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ck_assert_uint_eq(count_set(&target, fake_set(&target, AT, types[i], slots, 4), keys, 8), 2);
        ck_assert(keys[0] == 0x1008 && keys[1] == 0x3008);
    }
}
END_TEST

START_TEST(what_is_no_set)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t endless = 0x22000000, nameless = 0x22001000, headless = 0x22002000;
    struct set_walk walk;
    struct fake type = fake_new(nameless, FAKE_TYPE_BYTES);
    fake_put_word(&type, target.layout.type_name, UNREADABLE);
    fake_put_word(&type, target.layout.type_base, UNREADABLE);
    fake_place(&type);
    fake_named_type(&target.layout, endless, "endless", 0, endless);
    fake_type(&target.layout, headless, 0);

    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, DICT_TYPE_AT, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, endless, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, nameless, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, headless, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, UNREADABLE, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, fake_set(&target, AT, 3, slots, 4)));
    ck_assert(!containers_set_begin(&walk, &target, 0));
    ck_assert(!containers_set_begin(&walk, &target, AT + 2));
    ck_assert(!containers_set_next(&walk, &(uintptr_t){0}));
}
END_TEST

static bool set_is_believed(const struct py_target *target, uint64_t mask, uintptr_t table)
{
    struct set_walk walk;
    struct fake set = fake_new(AT, (size_t)target->layout.set_table + 8);
    fake_put_word(&set, target->layout.object_type, SET_TYPE_AT);
    fake_put_word(&set, target->layout.set_mask, mask);
    fake_put_word(&set, target->layout.set_table, table);
    return containers_set_begin(&walk, target, fake_place(&set));
}

START_TEST(a_torn_set_is_refused_and_one_that_is_gone_ends)
{
    struct py_target target = fake_target_with_containers(_i);
    uintptr_t keys[8];
    ck_assert(set_is_believed(&target, 7, AT + 0x1000));
    ck_assert(!set_is_believed(&target, 6, AT + 0x1000));
    ck_assert(!set_is_believed(&target, (uint64_t)-1, AT + 0x1000));
    ck_assert(!set_is_believed(&target, (1ul << 30) - 1, AT + 0x1000));
    ck_assert(!set_is_believed(&target, 7, 0));
    ck_assert(!set_is_believed(&target, 7, AT + 0x1001));

    ck_assert(set_is_believed(&target, 7, UNREADABLE));
    ck_assert_uint_eq(count_set(&target, AT, keys, 8), 0);
    ck_assert(set_is_believed(&target, 7, fake_words(AT + 0x1000, slots, 5))); /* half of the third slot */
    ck_assert_uint_eq(count_set(&target, AT, keys, 8), 1);
}
END_TEST

/* --- deques --- */

#define BLOCK_BYTES (66 * 8)
#define LEFT_BLOCK 0
#define LEFT_INDEX 16

static void put_block(uintptr_t address, uintptr_t left, uintptr_t right, uintptr_t first)
{
    struct fake block = fake_new(address, BLOCK_BYTES);
    fake_put_word(&block, 0, left);
    for (int32_t i = 0; i < 64; i++)
        fake_put_word(&block, 8 + 8 * i, first + 16 * (uintptr_t)i);
    fake_put_word(&block, 65 * 8, right);
    fake_place(&block);
}

static uintptr_t put_deque(const struct py_target *target, uintptr_t type, uint64_t length, uintptr_t block, uint64_t index)
{
    int32_t head = target->layout.var_size + 8;
    struct fake deque = fake_new(AT, (size_t)head + 64);
    fake_put_word(&deque, target->layout.object_type, type);
    fake_put_word(&deque, target->layout.var_size, length);
    fake_put_word(&deque, head + LEFT_BLOCK, block);
    fake_put_word(&deque, head + LEFT_INDEX, index);
    return fake_place(&deque);
}

/* How many items come, each of which must be the next one. */
static size_t count_deque(const struct py_target *target, uintptr_t deque, uintptr_t first, size_t most)
{
    struct deque_walk walk;
    uintptr_t item;
    size_t count = 0;
    ck_assert(containers_deque_begin(&walk, target, deque));
    while (count < most && containers_deque_next(&walk, &item))
        ck_assert_uint_eq(item, first + 16 * count++);
    return count;
}

START_TEST(items_of_a_deque_across_blocks)
{
    struct py_target target = fake_target_with_containers(_i);
    put_block(AT + 0x1000, UNREADABLE, AT + 0x2000, 0x100000);
    put_block(AT + 0x2000, AT + 0x1000, AT + 0x3000, 0x100000 + 16 * 64);
    put_block(AT + 0x3000, AT + 0x2000, UNREADABLE, 0x100000 + 16 * 128);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 192, AT + 0x1000, 0), 0x100000, 999), 192);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 66, AT + 0x1000, 63), 0x100000 + 16 * 63, 999), 66);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 1, AT + 0x1000, 7), 0x100000 + 16 * 7, 999), 1);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 0, AT + 0x1000, 32), 0, 999), 0);
}
END_TEST

START_TEST(a_deque_that_changes_ends)
{
    struct py_target target = fake_target_with_containers(_i);
    put_block(AT + 0x1000, 0, AT + 0x2000, 0x100000); /* the right one knows another left */
    put_block(AT + 0x2000, AT + 0x5000, 0, 0x100000 + 16 * 64);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 100, AT + 0x1000, 0), 0x100000, 999), 64);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 100, AT + 0x2000, 0), 0x100000 + 16 * 64, 999), 64);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 100, UNREADABLE, 0), 0, 999), 0);
    ck_assert_uint_eq(count_deque(&target, put_deque(&target, DEQUE_TYPE_AT, 100, AT + 0x1004, 0), 0, 999), 0);
}
END_TEST

START_TEST(a_deque_in_a_circle_ends_after_its_length)
{
    struct py_target target = fake_target_with_containers(_i);
    struct deque_walk walk;
    uintptr_t item;
    size_t count = 0;
    put_block(AT + 0x1000, AT + 0x1000, AT + 0x1000, 0x100000);
    ck_assert(containers_deque_begin(&walk, &target, put_deque(&target, DEQUE_TYPE_AT, 1000, AT + 0x1000, 0)));
    while (count <= 1000 && containers_deque_next(&walk, &item))
        count++;
    ck_assert_uint_eq(count, 1000);
}
END_TEST

START_TEST(what_is_no_deque)
{
    struct py_target target = fake_target_with_containers(_i);
    struct deque_walk walk;
    put_block(AT + 0x1000, 0, 0, 0x100000);
    ck_assert(!containers_deque_begin(&walk, &target, put_deque(&target, LIST_TYPE_AT, 1, AT + 0x1000, 0)));
    ck_assert(!containers_deque_begin(&walk, &target, put_deque(&target, DEQUE_TYPE_AT, 1, AT + 0x1000, 64)));
    ck_assert(!containers_deque_begin(&walk, &target, put_deque(&target, DEQUE_TYPE_AT, 1, AT + 0x1000, (uint64_t)-1)));
    ck_assert(!containers_deque_begin(&walk, &target, put_deque(&target, DEQUE_TYPE_AT, (uint64_t)-1, AT + 0x1000, 0)));
    ck_assert(!containers_deque_begin(&walk, &target, put_deque(&target, DEQUE_TYPE_AT, CONTAINERS_ITEMS_MAX + 1, AT + 0x1000, 0)));
    ck_assert(!containers_deque_begin(&walk, &target, 0));
    ck_assert(!containers_deque_begin(&walk, &target, UNREADABLE));
}
END_TEST

/* --- attributes --- */

#define SIZE 48 /* tp_basicsize of the class below */
#define BEFORE 64

static const uintptr_t own_values[] = {0x1008, 0, 0x3008};

static uintptr_t put_class(const struct py_target *target, uint64_t flags, uint64_t dictoffset)
{
    const struct layout *layout = &target->layout;
    struct fake type = fake_type_new(layout, CLASS_AT, "Own", flags, OBJECT_TYPE_AT);
    fake_put_word(&type, layout->type_basicsize, SIZE);
    fake_put_word(&type, layout->type_dictoffset, dictoffset);
    fake_put_word(&type, layout->type_cached_keys, shared_keys(target, CLASS_AT + 0x20000));
    return fake_place(&type);
}

static uint64_t managed(const struct layout *layout)
{
    return layout->flag_managed_dict | layout->flag_heap_type | layout->flag_inline_values;
}

/* The instance at AT, with the words before it. */
static struct fake instance_new(const struct py_target *target)
{
    struct fake instance = fake_new(AT - BEFORE, BEFORE + SIZE);
    fake_put_word(&instance, BEFORE + target->layout.object_type, CLASS_AT);
    return instance;
}

/* Values where this version keeps those of an instance without a dict. */
static uintptr_t put_instance_with_values(const struct py_target *target, const uintptr_t *values, size_t count)
{
    const struct layout *layout = &target->layout;
    struct fake instance = instance_new(target);
    uintptr_t at = fake_values(target, layout->instance_values_inline ? AT + SIZE : AT + 0x10000, values, count);

    if (layout->instance_values != LAYOUT_NONE)
        fake_put_word(&instance, BEFORE + layout->instance_values, at);
    else if (layout->instance_values_tagged)
        fake_put_word(&instance, BEFORE + layout->instance_dict, at - 1);
    fake_place(&instance);
    return AT;
}

static uintptr_t put_dict_of_attributes(const struct py_target *target)
{
    const uintptr_t pairs[] = {fake_str(target, AT + 0x40000, "one"), 0x7008, fake_str(target, AT + 0x41000, "four"), 0x8008};
    return fake_dict(target, AT + 0x20000, FAKE_KEYS_UNICODE, pairs, 2);
}

START_TEST(attributes_beside_the_object)
{
    struct py_target target = fake_target_with_containers(_i);
    put_class(&target, managed(&target.layout), (uint64_t)-1);
    uintptr_t object = put_instance_with_values(&target, own_values, 3);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0x1008);
    ck_assert_uint_eq(containers_attribute(&target, object, "two"), 0);
    ck_assert_uint_eq(containers_attribute(&target, object, "three"), 0x3008);
    ck_assert_uint_eq(containers_attribute(&target, object, "four"), 0);
}
END_TEST

START_TEST(attributes_in_a_managed_dict)
{
    struct py_target target = fake_target_with_containers(_i);
    struct fake instance = instance_new(&target);
    put_class(&target, managed(&target.layout), (uint64_t)-1);
    fake_put_word(&instance, BEFORE + target.layout.instance_dict, put_dict_of_attributes(&target));
    fake_place(&instance);
    fake_values(&target, AT + SIZE, own_values, 3); /* the dict comes first */
    ck_assert_uint_eq(containers_attribute(&target, AT, "one"), 0x7008);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0x8008);
    ck_assert_uint_eq(containers_attribute(&target, AT, "three"), 0);
}
END_TEST

START_TEST(attributes_in_a_dict_within_the_object)
{
    struct py_target target = fake_target_with_containers(_i);
    struct fake instance = instance_new(&target);
    uintptr_t dict = put_dict_of_attributes(&target);
    fake_put_word(&instance, BEFORE - 8, dict); /* as if the end of another object */
    fake_put_word(&instance, BEFORE + 40, dict);
    fake_place(&instance);
    put_class(&target, target.layout.flag_heap_type, 40);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0x8008);
    put_class(&target, 0, 40);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0x8008);
    put_class(&target, 0, 0);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0);
    put_class(&target, 0, (uint64_t)-8);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0);
    put_class(&target, 0, 41);
    ck_assert_uint_eq(containers_attribute(&target, AT, "four"), 0);
}
END_TEST

START_TEST(values_are_not_looked_for_where_there_are_none)
{
    struct py_target target = fake_target_with_containers(_i);
    put_class(&target, target.layout.flag_managed_dict, (uint64_t)-1); /* no class of Python: it has no shared keys */
    uintptr_t object = put_instance_with_values(&target, own_values, 3);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0);
    put_class(&target, 0, 0);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0);
}
END_TEST

START_TEST(inline_values_that_do_not_hold)
{
    struct py_target target = fake_target_with_containers(_i);
    const struct layout *layout = &target.layout;
    if (!layout->instance_values_inline)
        return;
    put_class(&target, managed(layout) & ~(uint64_t)layout->flag_inline_values, (uint64_t)-1);
    uintptr_t object = put_instance_with_values(&target, own_values, 3);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0);

    put_class(&target, managed(layout), (uint64_t)-1);
    fake_map(AT + SIZE, "\2\2\1\1", 4); /* room for two */
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0x1008);
    ck_assert_uint_eq(containers_attribute(&target, object, "three"), 0);
    fake_map(AT + SIZE, "\3\3\1\0", 4); /* moved into a dict */
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0);
}
END_TEST

START_TEST(attributes_of_what_is_torn)
{
    struct py_target target = fake_target_with_containers(_i);
    const struct layout *layout = &target.layout;
    struct fake type = fake_type_new(layout, CLASS_AT, "Own", managed(layout), OBJECT_TYPE_AT);
    uintptr_t object = put_instance_with_values(&target, own_values, 1); /* of three */

    fake_put_word(&type, layout->type_basicsize, SIZE);
    fake_put_word(&type, layout->type_cached_keys, UNREADABLE);
    fake_place(&type);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0);
    put_class(&target, managed(layout), (uint64_t)-1);
    ck_assert_uint_eq(containers_attribute(&target, object, "one"), 0x1008);
    ck_assert_uint_eq(containers_attribute(&target, object, "three"), 0);
    struct fake alone = fake_new(AT + 0x90000, SIZE); /* nothing before it */
    fake_put_word(&alone, layout->object_type, CLASS_AT);
    ck_assert_uint_eq(containers_attribute(&target, fake_place(&alone), "one"), 0);
    ck_assert_uint_eq(containers_attribute(&target, 0, "one"), 0);
    ck_assert_uint_eq(containers_attribute(&target, UNREADABLE, "one"), 0);
    ck_assert_uint_eq(containers_attribute(&target, AT + 3, "one"), 0);
}
END_TEST

/* --- variables --- */

#define LOCAL "\x20"
#define CELL "\x40"
#define FREE "\x80"

static const char *const names[] = {"plain", "celled", "outer", "empty"};

static uintptr_t put_code(const struct py_target *target)
{
    struct fake code = fake_code_with_variables(target, CODE_AT, names, LOCAL CELL FREE FREE, 2);
    return fake_place(&code);
}

static uintptr_t put_function(const struct py_target *target, uintptr_t type, uintptr_t code, uintptr_t closure)
{
    const struct layout *layout = &target->layout;
    struct fake function = fake_new(AT, (size_t)layout->function_closure + 8);
    fake_put_word(&function, layout->object_type, type);
    fake_put_word(&function, layout->function_code, code);
    fake_put_word(&function, layout->function_closure, closure);
    return fake_place(&function);
}

static uintptr_t put_closure(const struct py_target *target)
{
    const uintptr_t cells[] = {fake_cell(target, AT + 0x1000, 0x1008), fake_cell(target, AT + 0x2000, 0)};
    return fake_tuple(target, AT + 0x3000, cells, 2);
}

START_TEST(free_variables_of_a_function)
{
    struct py_target target = fake_target_with_containers(_i);
    for (int exported = 0; exported < 2; exported++) {
        target.function_type = exported ? FUNCTION_TYPE_AT : 0;
        uintptr_t function = put_function(&target, FUNCTION_TYPE_AT, put_code(&target), put_closure(&target));
        ck_assert_uint_eq(containers_closure(&target, function, "outer"), 0x1008);
        ck_assert_uint_eq(containers_closure(&target, function, "empty"), 0);
        ck_assert_uint_eq(containers_closure(&target, function, "plain"), 0);
        ck_assert_uint_eq(containers_closure(&target, function, "none"), 0);
    }
}
END_TEST

START_TEST(what_has_no_closure)
{
    struct py_target target = fake_target_with_containers(_i);
    uintptr_t code = put_code(&target), closure = put_closure(&target), no_code = CODE_AT + 0x100000;
    struct fake other = fake_code_with_variables(&target, no_code, names, LOCAL CELL FREE FREE, 2);
    fake_put_word(&other, target.layout.object_type, DICT_TYPE_AT);
    fake_place(&other);
    const uintptr_t no_cells[] = {fake_str(&target, AT + 0x8000, "x"), UNREADABLE};

    for (int exported = 0; exported < 2; exported++) {
        target.function_type = exported ? FUNCTION_TYPE_AT : 0;
        ck_assert_uint_eq(containers_closure(&target, put_function(&target, DICT_TYPE_AT, code, closure), "outer"), 0);
        ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, no_code, closure), "outer"), 0);
        ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, code, 0), "outer"), 0);
        ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, UNREADABLE, closure), "outer"), 0);
        ck_assert_uint_eq(containers_closure(&target, 0, "outer"), 0);
        ck_assert_uint_eq(containers_closure(&target, UNREADABLE, "outer"), 0);
    }
    uintptr_t shorter = fake_tuple(&target, AT + 0x5000, no_cells, 1);
    ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, code, shorter), "outer"), 0);
    ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, code, shorter), "empty"), 0);
    uintptr_t no = fake_tuple(&target, AT + 0x6000, no_cells, 2);
    ck_assert_uint_eq(containers_closure(&target, put_function(&target, FUNCTION_TYPE_AT, code, no), "empty"), 0);
}
END_TEST

static uintptr_t variable(const struct py_target *target, const char *name, const uintptr_t *locals)
{
    const struct layout *layout = &target->layout;
    struct fake frame = fake_new(AT, (size_t)layout->frame_localsplus + 8 * 4);
    struct py_code code;
    for (int32_t i = 0; i < 4; i++)
        fake_put_word(&frame, layout->frame_localsplus + 8 * i, locals[i]);
    ck_assert(code_read(target, put_code(target), &code));
    return containers_local(target, fake_place(&frame), &code, name);
}

START_TEST(variables_of_a_frame)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t locals[] = {0x1008, fake_cell(&target, AT + 0x1000, 0x2008), fake_cell(&target, AT + 0x2000, 0x3008),
                                fake_cell(&target, AT + 0x3000, 0)};
    ck_assert_uint_eq(variable(&target, "plain", locals), 0x1008);
    ck_assert_uint_eq(variable(&target, "celled", locals), 0x2008);
    ck_assert_uint_eq(variable(&target, "outer", locals), 0x3008);
    ck_assert_uint_eq(variable(&target, "empty", locals), 0);
    ck_assert_uint_eq(variable(&target, "none", locals), 0);
}
END_TEST

START_TEST(variables_that_are_not_bound)
{
    struct py_target target = fake_target_with_containers(_i);
    const uintptr_t nothing[4] = {0};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(variable(&target, names[i], nothing), 0);
    const uintptr_t no_cells[] = {0, fake_str(&target, AT + 0x1000, "an argument, before its cell is made"), UNREADABLE, 12};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(variable(&target, names[i], no_cells), 0);
}
END_TEST

START_TEST(references_carry_tags)
{
    struct py_target target = fake_target_with_containers(_i);
    bool tagged = target.layout.executable_tag_mask != 0;
    const uintptr_t locals[] = {0x1008 | 1, fake_cell(&target, AT + 0x1000, 0x2008) | 1, 0, 0}, integer[] = {7 << 2 | 3, 0, 0, 0}, null[] = {1, 0, 0, 0};
    if (!tagged)
        return;
    ck_assert_uint_eq(variable(&target, "plain", locals), 0x1008);
    ck_assert_uint_eq(variable(&target, "celled", locals), 0x2008);
    ck_assert_uint_eq(variable(&target, "plain", integer), 0);
    ck_assert_uint_eq(variable(&target, "plain", null), 0);
}
END_TEST

/* Code whose counts or tables do not fit each other. */
static uintptr_t of_code(const struct py_target *target, uint32_t count, uint32_t free, size_t kinds, bool names_gone)
{
    const struct layout *layout = &target->layout;
    struct fake code = fake_code_with_variables(target, CODE_AT, names, LOCAL LOCAL LOCAL LOCAL, 0);
    struct fake frame = fake_new(AT, (size_t)layout->frame_localsplus + 8 * 4);
    struct py_code read;

    fake_put_int(&code, layout->code_nlocalsplus, count);
    fake_put_int(&code, layout->code_nfreevars, free);
    fake_put_word(&code, layout->code_localspluskinds, fake_bytes(target, AT + 0x1000, LOCAL LOCAL LOCAL LOCAL, kinds));
    if (names_gone)
        fake_put_word(&code, layout->code_localsplusnames, UNREADABLE);
    for (int32_t i = 0; i < 4; i++)
        fake_put_word(&frame, layout->frame_localsplus + 8 * i, 0x1008);
    fake_place(&code);
    ck_assert(code_read(target, CODE_AT, &read));
    return containers_local(target, fake_place(&frame), &read, "outer");
}

START_TEST(code_has_so_many_variables)
{
    struct py_target target = fake_target_with_containers(_i);
    const struct layout *layout = &target.layout;
    struct fake count = fake_new(CODE_AT + 0x48000 + (uintptr_t)layout->var_size, 8); /* of its names */
    struct py_code code;

    fake_put_word(&count, 0, 65537);
    ck_assert_uint_eq(of_code(&target, 65536, 0, 4, false), 0);
    fake_place(&count);
    ck_assert(code_read(&target, CODE_AT, &code));
    ck_assert_uint_eq(containers_local(&target, AT, &code, "outer"), 0x1008);
    of_code(&target, 65537, 0, 4, false);
    fake_place(&count);
    ck_assert_uint_eq(containers_local(&target, AT, &code, "outer"), 0);
}
END_TEST

START_TEST(code_that_is_torn_has_no_variables)
{
    struct py_target target = fake_target_with_containers(_i);
    struct py_code gone = {.address = UNREADABLE};
    ck_assert_uint_eq(of_code(&target, 4, 0, 4, false), 0x1008);
    ck_assert_uint_eq(of_code(&target, 2, 0, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, 5, 0, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, (uint32_t)-1, 0, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, 1u << 30, 0, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, 4, 5, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, 4, (uint32_t)-1, 4, false), 0);
    ck_assert_uint_eq(of_code(&target, 4, 0, 2, false), 0);
    ck_assert_uint_eq(of_code(&target, 4, 0, 4, true), 0);
    ck_assert_uint_eq(containers_local(&target, AT, &gone, "outer"), 0);
}
END_TEST

START_TEST(a_frame_that_is_gone_has_no_variables)
{
    struct py_target target = fake_target_with_containers(_i);
    struct py_code code;
    ck_assert(code_read(&target, put_code(&target), &code));
    ck_assert_uint_eq(containers_local(&target, UNREADABLE, &code, "plain"), 0);
    ck_assert_uint_eq(containers_local(&target, 0, &code, "plain"), 0);
}
END_TEST

/* --- texts --- */

START_TEST(texts_are_compared_whole)
{
    struct py_target target = fake_target_with_containers(_i);
    char text[200];
    for (size_t length = 0; length < 199; length += length < 60 || length > 70 ? 33 : 1) {
        for (size_t i = 0; i < length; i++)
            text[i] = (char)('a' + i % 26);
        text[length] = 0;
        uintptr_t str = fake_str(&target, AT + 0x1000 * length, text);
        ck_assert(containers_is_text(&target, str, text));
        strcat(text, "x");
        ck_assert(!containers_is_text(&target, str, text));
        if (length) {
            text[length] = 0;
            text[length - 1] = '~';
            ck_assert(!containers_is_text(&target, str, text));
        }
    }
    ck_assert(!containers_is_text(&target, fake_bytes(&target, AT, "abc", 3), "abc"));
    ck_assert(!containers_is_text(&target, 0, "abc"));
}
END_TEST

START_TEST(only_ascii_is_text)
{
    struct py_target target = fake_target_with_containers(_i);
    const struct layout *layout = &target.layout;
    struct fake str = fake_new(AT, (size_t)layout->str_compact_data + 8);
    fake_put_word(&str, layout->object_type, UNICODE_TYPE_AT);
    fake_put_word(&str, layout->str_length, 3);
    fake_put_int(&str, layout->str_state, 2u << 2 | 1u << 5); /* UCS-2, compact */
    fake_put(&str, layout->str_compact_data, "abc", 3);
    ck_assert(!containers_is_text(&target, fake_place(&str), "abc"));
}
END_TEST

START_TEST(types_have_names)
{
    struct py_target target = fake_target_with_containers(_i);
    struct fake type = fake_new(CLASS_AT, FAKE_TYPE_BYTES);
    char longest[200] = {0};

    ck_assert(containers_type_is_named(&target, DEQUE_TYPE_AT, "collections.deque"));
    ck_assert(!containers_type_is_named(&target, DEQUE_TYPE_AT, "collections.deque2"));
    ck_assert(!containers_type_is_named(&target, DEQUE_TYPE_AT, "collections"));
    memset(longest, 'x', sizeof longest - 1);
    fake_named_type(&target.layout, CLASS_AT + 0x10000, longest, 0, 0);
    ck_assert(containers_type_is_named(&target, CLASS_AT + 0x10000, longest));
    ck_assert(!containers_type_is_named(&target, 0, "x"));
    ck_assert(!containers_type_is_named(&target, UNREADABLE, "x"));
    fake_put_word(&type, target.layout.type_name, 8);
    ck_assert(!containers_type_is_named(&target, fake_place(&type), "x"));
}
END_TEST

Suite *suite_containers(void)
{
    const TTest *const tests[] = {
        items_of_tuples_and_lists, what_has_no_items, items_that_cannot_be, items_that_are_gone,
        entries_of_each_kind_of_dict, a_split_dict_has_its_values_elsewhere, what_is_no_dict, a_torn_dict_is_refused,
        a_dict_whose_entries_are_gone_ends, a_name_is_looked_for_in_so_many_entries, an_attribute_is_looked_for_in_fewer,
        keys_of_a_set, what_is_no_set, a_torn_set_is_refused_and_one_that_is_gone_ends,
        items_of_a_deque_across_blocks, a_deque_that_changes_ends, a_deque_in_a_circle_ends_after_its_length, what_is_no_deque,
        attributes_beside_the_object, attributes_in_a_managed_dict, attributes_in_a_dict_within_the_object,
        values_are_not_looked_for_where_there_are_none, inline_values_that_do_not_hold, attributes_of_what_is_torn,
        free_variables_of_a_function, what_has_no_closure, variables_of_a_frame, variables_that_are_not_bound, references_carry_tags,
        code_has_so_many_variables, code_that_is_torn_has_no_variables, a_frame_that_is_gone_has_no_variables,
        texts_are_compared_whole, only_ascii_is_text, types_have_names,
    };
    Suite *suite = suite_create("containers");
    TCase *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(tcase, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
