/* SPDX-License-Identifier: MIT
 *
 * What other objects keep: items, entries of dicts and sets and deques, attributes
 * wherever they may be, variables of closures and frames.
 *
 * Input: version, kind of instance; then edits (tests/fuzz/image.h).
 */
#include "sampler/cpython/containers.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image.h"
#include "tests/unit/fake_python.h"

enum { HEAD = 2, VERSIONS = AFTER_LAST_MINOR - FIRST_MINOR, KINDS = 4 };
enum { IN_VALUES, IN_DICT, AT_OFFSET, NOT_HERE }; /* where an instance keeps its attributes */

enum { /* what may be read, at most */
    HEAD_READS = 64,                            /* of a container's head, and of its type's bases */
    LOOKED_THROUGH = (1 << 16) * 8 + 256,       /* of a dict or of variables for a name */
    ALL_READS = (1 << 24) * 2 + HEAD_READS      /* of all items of anything */
};

enum {
    TUPLE_AT = 0x30000000, LIST_AT = 0x30100000, GENERAL_AT = 0x30200000, UNICODE_AT = 0x30300000, SPLIT_AT = 0x30400000, SET_AT = 0x30500000,
    FROZEN_AT = 0x30600000, DEQUE_AT = 0x30700000, BLOCK_AT = 0x30800000, OBJECT_AT = 0x31000000, CODE_OBJECT_AT = 0x32000000, CLOSURE_AT = 0x33000000,
    FRAME_AT = 0x34000000, FROZEN_TYPE_AT = 0x35000000, CLASS_AT = 0x36000000, EMPTY_AT = 0x37000000, OWN_SET_TYPE_AT = 0x38000000,
    KEYS_AT = 0x39000000, NAMES_AT = 0x3a000000
};
enum { BEFORE = 64, SIZE = 48, BLOCK_BYTES = 66 * 8 };

static struct scene {
    struct image *image;
    struct py_target target;
} scenes[VERSIONS][KINDS];

static const uintptr_t three[] = {0x1008, 0x2008, 0x3008};
static const char *const names[] = {"_state", "_callbacks", "_loop", "_fut_waiter"};
static const char long_name[] = "a_name_that_is_longer_than_the_piece_of_a_text_which_is_compared_at_once_x";

/* --- objects --- */

static void put_deque(const struct py_target *target)
{
    int32_t head = target->layout.var_size + 8;
    struct fake deque = fake_new(DEQUE_AT, (size_t)head + 64);
    fake_put_word(&deque, target->layout.object_type, DEQUE_TYPE_AT);
    fake_put_word(&deque, target->layout.var_size, 100);
    fake_put_word(&deque, head, BLOCK_AT);
    fake_put_word(&deque, head + 16, 7);
    fake_place(&deque);
    for (unsigned i = 0; i < 2; i++) {
        struct fake block = fake_new(BLOCK_AT + 0x1000u * i, BLOCK_BYTES);
        fake_put_word(&block, 0, i ? BLOCK_AT : 0);
        fake_put_word(&block, 65 * 8, i ? 0 : BLOCK_AT + 0x1000);
        fake_place(&block);
    }
}

static uintptr_t name_at(const struct py_target *target, uint32_t i)
{
    return fake_str(target, NAMES_AT + 0x1000u * i, i < 4 ? names[i] : long_name);
}

static void put_dicts(const struct py_target *target)
{
    uintptr_t pairs[10], values[5] = {0x1008, 0, 0x3008, 0x4008, 0x5008};
    for (uint32_t i = 0; i < 5; i++) {
        pairs[2 * i] = name_at(target, i);
        pairs[2 * i + 1] = i == 1 ? 0 : 0x9000 + 8 * i;
    }
    fake_dict(target, GENERAL_AT, FAKE_KEYS_GENERAL, pairs, 5);
    fake_dict(target, UNICODE_AT, FAKE_KEYS_UNICODE, pairs, 5);
    struct fake keys = fake_keys_new(target, KEYS_AT, FAKE_KEYS_SPLIT, pairs, 5);
    fake_dict_of(target, SPLIT_AT, fake_place(&keys), fake_values(target, SPLIT_AT + 0x20000, values, 5));
}

static void put_instance(const struct py_target *target, int kind)
{
    const struct layout *layout = &target->layout;
    struct fake type = fake_type_new(layout, CLASS_AT, "Own", 0, OBJECT_TYPE_AT), instance = fake_new(OBJECT_AT - BEFORE, BEFORE + SIZE);
    uint64_t flags = layout->flag_managed_dict | layout->flag_heap_type | (kind == IN_VALUES ? layout->flag_inline_values : 0);
    fake_put_word(&type, layout->type_flags, kind == AT_OFFSET ? layout->flag_heap_type : flags);
    fake_put_word(&type, layout->type_basicsize, SIZE);
    fake_put_word(&type, layout->type_dictoffset, kind == AT_OFFSET ? 40 : 0);
    fake_put_word(&type, layout->type_cached_keys, KEYS_AT);
    fake_place(&type);
    fake_put_word(&instance, BEFORE + layout->object_type, CLASS_AT);
    if (kind == IN_VALUES) {
        uintptr_t at = fake_values(target, layout->instance_values_inline ? OBJECT_AT + SIZE : OBJECT_AT + 0x10000, three, 3);
        if (layout->instance_values != LAYOUT_NONE)
            fake_put_word(&instance, BEFORE + layout->instance_values, at);
        else if (layout->instance_values_tagged)
            fake_put_word(&instance, BEFORE + layout->instance_dict, at - 1);
    } else if (kind != NOT_HERE) {
        fake_put_word(&instance, BEFORE + (kind == AT_OFFSET ? 40 : layout->instance_dict), UNICODE_AT);
    }
    fake_place(&instance);
}

static void put_function(const struct py_target *target)
{
    const struct layout *layout = &target->layout;
    const uintptr_t cells[] = {fake_cell(target, CLOSURE_AT + 0x1000, 0x1008), fake_cell(target, CLOSURE_AT + 0x2000, 0)};
    struct fake code = fake_code_with_variables(target, CODE_OBJECT_AT, names, "\x20\x40\x80\x80", 2);
    struct fake function = fake_new(CLOSURE_AT, (size_t)layout->function_closure + 8), frame = fake_frame_new(target, FRAME_AT, CODE_OBJECT_AT, 0, 0);
    fake_place(&code);
    fake_put_word(&function, layout->object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, layout->function_code, CODE_OBJECT_AT);
    fake_put_word(&function, layout->function_closure, fake_tuple(target, CLOSURE_AT + 0x3000, cells, 2));
    fake_place(&function);
    struct fake with_locals = fake_new(FRAME_AT, (size_t)layout->frame_localsplus + 8 * 4);
    memcpy(with_locals.bytes, frame.bytes, frame.size < with_locals.size ? frame.size : with_locals.size);
    for (int32_t i = 0; i < 4; i++)
        fake_put_word(&with_locals, layout->frame_localsplus + 8 * i, i ? CLOSURE_AT + 0x1000 : GENERAL_AT);
    fake_place(&with_locals);
}

static void put_sets(const struct py_target *target)
{
    static const uintptr_t slots[] = {0, 0, 0x1008, 1, 0x2008, (uintptr_t)-1, 0x3008, 3};
    fake_named_type(&target->layout, FROZEN_TYPE_AT, "frozenset", 0, OBJECT_TYPE_AT);
    fake_named_type(&target->layout, OWN_SET_TYPE_AT, "WeakSet", 0, FROZEN_TYPE_AT);
    fake_set(target, SET_AT, SET_TYPE_AT, slots, 4);
    fake_set(target, FROZEN_AT, OWN_SET_TYPE_AT, slots, 4);
}

/* --- what is asked --- */

static void items_of(const struct py_target *target, uintptr_t object)
{
    struct items items;
    image_allow(HEAD_READS);
    if (!containers_items(target, object, &items))
        return;
    FUZZ_HOLDS(items.count <= CONTAINERS_ITEMS_MAX);
    for (uint32_t i = 0; i < 64; i++)
        FUZZ_HOLDS(i < items.count || !containers_item(&items, i));
    containers_item(&items, items.count - 1);
    FUZZ_HOLDS(!containers_item(&items, items.count) && !containers_item(&items, UINT32_MAX));
}

static void entries_of(const struct py_target *target, uintptr_t dict)
{
    struct dict_walk walk;
    uintptr_t key, value;
    image_allow(HEAD_READS);
    if (!containers_dict_begin(&walk, target, dict))
        return;
    FUZZ_HOLDS(walk.count <= CONTAINERS_ITEMS_MAX);
    image_allow(ALL_READS);
    while (containers_dict_next(&walk, &key, &value))
        FUZZ_HOLDS(walk.next <= walk.count && key && value);
    FUZZ_HOLDS(walk.next == walk.count);
}

static void keys_of(const struct py_target *target, uintptr_t set)
{
    struct set_walk walk;
    uintptr_t key;
    image_allow(HEAD_READS * 2);
    if (!containers_set_begin(&walk, target, set))
        return;
    FUZZ_HOLDS(walk.slots && walk.slots <= 2 * CONTAINERS_ITEMS_MAX);
    image_allow(ALL_READS);
    while (containers_set_next(&walk, &key))
        FUZZ_HOLDS(key && walk.next <= walk.slots);
    FUZZ_HOLDS(walk.next == walk.slots || walk.next == walk.slots + 1);
}

static void deque_of(const struct py_target *target, uintptr_t deque)
{
    struct deque_walk walk;
    uintptr_t item;
    image_allow(HEAD_READS * 2);
    if (!containers_deque_begin(&walk, target, deque))
        return;
    FUZZ_HOLDS(walk.left <= CONTAINERS_ITEMS_MAX && walk.index >= 0);
    image_allow(ALL_READS);
    for (uint32_t left = walk.left; containers_deque_next(&walk, &item); left--)
        FUZZ_HOLDS(left > 0 && walk.index <= 64);
    FUZZ_HOLDS(!walk.left);
}

static void named(const struct py_target *target)
{
    struct py_code code;
    for (int i = 0; i < 5; i++) {
        const char *name = i < 4 ? names[i] : long_name;
        image_allow(LOOKED_THROUGH);
        containers_attribute(target, OBJECT_AT, name);
        image_allow(LOOKED_THROUGH);
        containers_dict_get(target, SPLIT_AT, name);
        image_allow(LOOKED_THROUGH);
        containers_closure(target, CLOSURE_AT, name);
        image_allow(2 * LOOKED_THROUGH);
        if (code_read(target, CODE_OBJECT_AT, &code))
            containers_local(target, FRAME_AT, &code, name);
        image_allow(HEAD_READS);
        containers_is_text(target, NAMES_AT + 0x1000u * (unsigned)i, name);
    }
}

static void ask(const struct py_target *target)
{
    static const uintptr_t objects[] = {TUPLE_AT, LIST_AT, EMPTY_AT, GENERAL_AT, UNICODE_AT, SPLIT_AT, SET_AT, FROZEN_AT, DEQUE_AT, OBJECT_AT};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        items_of(target, objects[i]);
        entries_of(target, objects[i]);
        keys_of(target, objects[i]);
        deque_of(target, objects[i]);
    }
    named(target);
}

/* --- the target --- */

static struct scene *scene_of(uint8_t version, uint8_t kind)
{
    struct scene *scene = &scenes[version % VERSIONS][kind % KINDS];
    if (scene->image)
        return scene;
    fake_reset();
    scene->target = fake_target_with_containers(FIRST_MINOR + version % VERSIONS);
    fake_tuple(&scene->target, TUPLE_AT, three, 3);
    fake_list(&scene->target, LIST_AT, three, 3);
    fake_list(&scene->target, EMPTY_AT, three, 0);
    put_dicts(&scene->target);
    put_sets(&scene->target);
    put_deque(&scene->target);
    put_instance(&scene->target, kind % KINDS);
    put_function(&scene->target);
    scene->image = image_seal();
    image_record_begin(scene->image);
    ask(&scene->target);
    image_record_end();
    return scene;
}

void fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return;
    struct scene *scene = scene_of(data[0], data[1]);
    image_begin(scene->image, data + HEAD, size - HEAD);
    ask(&scene->target);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return image_mutate(data, size, most, seed, HEAD);
}
