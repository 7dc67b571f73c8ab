/* SPDX-License-Identifier: MIT
 *
 * containers: each walk takes its bounds when it begins and keeps them; every
 * pointer is checked before it is followed, and an entry that cannot be read ends
 * the walk. */
#include "sampler/cpython/containers.h"

#include <string.h> /* strlen, memcmp */

#include "hooks/guard.h"
#include "sampler/cpython/objects.h"

#define ADDRESS_LOWEST 4096u
#define WORD ((uintptr_t)8)

/* tp_flags, the same in every version. */
#define FLAG_LIST_SUBCLASS (1ul << 25)
#define FLAG_TUPLE_SUBCLASS (1ul << 26)
#define FLAG_DICT_SUBCLASS (1ul << 29)

/* dk_kind */
#define KEYS_GENERAL 0 /* entries are {hash, key, value}, else {key, value} */
#define KEYS_SPLIT 2
#define INDEX_LOG2_MAX 28 /* bytes of dk_indices for as many entries as are believed */
#define DICT_GET_MAX (1u << 16) /* entries that a name is looked for in */
#define ATTRIBUTES_MAX 256u     /* ... of an instance's attributes: a handler looks many up */

#define HASH_DUMMY UINT64_MAX /* in a set: the entry was removed */

/* dequeobject: {var head; block *leftblock, *rightblock; Py_ssize_t leftindex,
 * rightindex; ...}, block: {block *leftlink; PyObject *data[64]; block *rightlink}. */
#define DEQUE_LEFT_BLOCK(head) (head)
#define DEQUE_LEFT_INDEX(head) ((head) + 16)
#define BLOCK_ITEMS 64
#define BLOCK_DATA WORD
#define BLOCK_RIGHT (WORD * (1 + BLOCK_ITEMS))

/* The bytes before the inline values: {capacity, size, embedded, valid}. */
#define VALUES_CAPACITY 0
#define VALUES_VALID 3

/* co_localspluskinds */
#define KIND_CELL 0x40
#define KIND_FREE 0x80

#define VARIABLES_MAX (1 << 16)
#define PIECE 64 /* bytes of a text that are compared at once */
#define BASES_MAX 16 /* classes above one, on the line of its first bases */

static bool may_be_object(uintptr_t address)
{
    return address >= ADDRESS_LOWEST && address % 8 == 0;
}

static bool read_pointer(uintptr_t base, int32_t offset, uintptr_t *pointer)
{
    uint64_t word;
    if (!may_be_object(base) || !guard_word(base + (uintptr_t)offset, &word))
        return false;
    *pointer = (uintptr_t)word;
    return true;
}

static bool read_int(uintptr_t base, int32_t offset, int32_t *value)
{
    return may_be_object(base) && guard_copy(value, base + (uintptr_t)offset, sizeof *value);
}

/* A count that can be: negative and absurd ones are torn. */
static bool read_count(uintptr_t base, int32_t offset, uint32_t *count)
{
    uintptr_t word;
    if (!read_pointer(base, offset, &word) || word > CONTAINERS_ITEMS_MAX)
        return false;
    *count = (uint32_t)word;
    return true;
}

/* An object's type and its flags. */
static bool read_type(const struct py_target *target, uintptr_t object, uintptr_t *type, uintptr_t *flags)
{
    return read_pointer(object, target->layout.object_type, type) && read_pointer(*type, target->layout.type_flags, flags);
}

/* --- tuples and lists --- */

bool containers_items(const struct py_target *target, uintptr_t object, struct items *items)
{
    const struct layout *layout = &target->layout;
    uintptr_t type, flags;

    if (!read_type(target, object, &type, &flags) || !read_count(object, layout->var_size, &items->count))
        return false;
    if (flags & FLAG_TUPLE_SUBCLASS)
        items->first = object + (uintptr_t)layout->tuple_items;
    else if (!(flags & FLAG_LIST_SUBCLASS) || !read_pointer(object, layout->list_items, &items->first))
        return false;
    return items->count == 0 || may_be_object(items->first); /* an empty list has no memory for items */
}

uintptr_t containers_item(const struct items *items, uint32_t index)
{
    uint64_t item;
    return index < items->count && guard_word(items->first + WORD * index, &item) ? (uintptr_t)item : 0;
}

/* --- dicts --- */

/* Each index takes a byte at least, and there are more indices than entries. */
static bool entries_fit(uint32_t entries, uint8_t log2_index_bytes)
{
    return log2_index_bytes <= INDEX_LOG2_MAX && (entries == 0 || entries < 1u << log2_index_bytes);
}

static bool begin_keys(struct dict_walk *walk, const struct py_target *target, uintptr_t keys)
{
    const struct layout *layout = &target->layout;
    uint8_t kind, log2_index_bytes;

    *walk = (struct dict_walk){.target = target, .keys = keys};
    if (!read_count(keys, layout->keys_nentries, &walk->count) ||
        !guard_copy(&kind, keys + (uintptr_t)layout->keys_kind, sizeof kind) ||
        !guard_copy(&log2_index_bytes, keys + (uintptr_t)layout->keys_log2_index_bytes, sizeof log2_index_bytes))
        return false;
    if (kind > KEYS_SPLIT || !entries_fit(walk->count, log2_index_bytes))
        return false;
    walk->general = kind == KEYS_GENERAL;
    walk->entries = keys + (uintptr_t)layout->keys_indices + ((uintptr_t)1 << log2_index_bytes);
    return walk->entries % 8 == 0 || walk->count == 0; /* the empty dict's one byte of indices */
}

/* Entries of a split table have no values of their own. */
static bool begin_values(struct dict_walk *walk, uintptr_t values)
{
    if (walk->general || !may_be_object(values))
        return false;
    walk->values = values + (uintptr_t)walk->target->layout.values_first;
    return true;
}

bool containers_dict_begin(struct dict_walk *walk, const struct py_target *target, uintptr_t dict)
{
    const struct layout *layout = &target->layout;
    uintptr_t type, flags, keys, values;

    if (!read_type(target, dict, &type, &flags) || !(flags & FLAG_DICT_SUBCLASS) ||
        !read_pointer(dict, layout->dict_keys, &keys) || !read_pointer(dict, layout->dict_values, &values))
        return false;
    return begin_keys(walk, target, keys) && (!values || begin_values(walk, values));
}

static bool read_entry(const struct dict_walk *walk, uint32_t index, uint64_t *key, uint64_t *value)
{
    uintptr_t size = (walk->general ? 3 : 2) * WORD;
    uint64_t entry[3];

    if (!guard_copy(entry, walk->entries + size * index, size))
        return false;
    *key = entry[walk->general];
    *value = entry[walk->general + 1];
    return !walk->values || guard_word(walk->values + WORD * index, value);
}

bool containers_dict_next(struct dict_walk *walk, uintptr_t *key, uintptr_t *value)
{
    uint64_t found_key, found_value;

    while (walk->next < walk->count && read_entry(walk, walk->next, &found_key, &found_value)) {
        walk->next++;
        if (!found_key || !found_value)
            continue;
        *key = (uintptr_t)found_key;
        *value = (uintptr_t)found_value;
        return true;
    }
    walk->next = walk->count;
    return false;
}

void containers_dict_bound(struct dict_walk *walk, uint32_t most)
{
    if (walk->count > most)
        walk->count = most;
}

static uintptr_t find_key(struct dict_walk *walk, const char *name, uint32_t most)
{
    uintptr_t key, value;

    containers_dict_bound(walk, most);
    while (containers_dict_next(walk, &key, &value))
        if (containers_is_text(walk->target, key, name))
            return value;
    return 0;
}

uintptr_t containers_dict_get(const struct py_target *target, uintptr_t dict, const char *key)
{
    struct dict_walk walk;
    return containers_dict_begin(&walk, target, dict) ? find_key(&walk, key, DICT_GET_MAX) : 0;
}

/* --- sets --- */

/* A type of one of two names, or one that derives from such. */
static bool derives_from(const struct py_target *target, uintptr_t type, const char *name, const char *other)
{
    for (uint32_t i = 0; i < BASES_MAX && type; i++) {
        if (containers_type_is_named(target, type, name) || (other && containers_type_is_named(target, type, other)))
            return true;
        if (!read_pointer(type, target->layout.type_base, &type))
            return false;
    }
    return false;
}

static bool is_instance(const struct py_target *target, uintptr_t object, const char *name, const char *other)
{
    uintptr_t type;
    return read_pointer(object, target->layout.object_type, &type) && derives_from(target, type, name, other);
}

bool containers_set_begin(struct set_walk *walk, const struct py_target *target, uintptr_t set)
{
    const struct layout *layout = &target->layout;
    uint32_t mask;

    *walk = (struct set_walk){0};
    if (!is_instance(target, set, "set", "frozenset") || !read_count(set, layout->set_mask, &mask) ||
        !read_pointer(set, layout->set_table, &walk->table))
        return false;
    if ((mask & (mask + 1)) || !may_be_object(walk->table))
        return false;
    walk->slots = mask + 1;
    return true;
}

bool containers_set_next(struct set_walk *walk, uintptr_t *key)
{
    uint64_t entry[2]; /* {key, hash} */

    while (walk->next < walk->slots) {
        if (!guard_copy(entry, walk->table + sizeof entry * walk->next, sizeof entry)) {
            walk->next = walk->slots + 1;
            return false;
        }
        walk->next++;
        if (!entry[0] || entry[1] == HASH_DUMMY)
            continue;
        *key = (uintptr_t)entry[0];
        return true;
    }
    return false;
}

/* --- collections.deque --- */

bool containers_deque_begin(struct deque_walk *walk, const struct py_target *target, uintptr_t deque)
{
    int32_t head = target->layout.var_size + (int32_t)WORD;
    uintptr_t index;

    *walk = (struct deque_walk){0};
    if (!is_instance(target, deque, "collections.deque", NULL) ||
        !read_pointer(deque, DEQUE_LEFT_BLOCK(head), &walk->block) ||
        !read_pointer(deque, DEQUE_LEFT_INDEX(head), &index) || index >= BLOCK_ITEMS)
        return false;
    walk->index = (int64_t)index;
    return read_count(deque, target->layout.var_size, &walk->left);
}

/* To the block on the right, which must name this one as its left. */
static bool next_block(struct deque_walk *walk)
{
    uintptr_t right, back;
    if (!read_pointer(walk->block, BLOCK_RIGHT, &right) || !read_pointer(right, 0, &back) || back != walk->block)
        return false;
    walk->block = right;
    walk->index = 0;
    return true;
}

bool containers_deque_next(struct deque_walk *walk, uintptr_t *item)
{
    if (walk->left == 0 || (walk->index == BLOCK_ITEMS && !next_block(walk)) ||
        !read_pointer(walk->block, (int32_t)(BLOCK_DATA + WORD * (uintptr_t)walk->index), item)) {
        walk->left = 0;
        return false;
    }
    walk->index++;
    walk->left--;
    return true;
}

/* --- attributes --- */

/* The values of an instance that no dict was made for, in the order of the keys
 * that its class keeps for all of them. */
static uintptr_t shared_value(const struct py_target *target, uintptr_t type, uintptr_t values, uint32_t capacity, const char *name)
{
    struct dict_walk walk;
    uintptr_t keys;

    if (!read_pointer(type, target->layout.type_cached_keys, &keys) || !begin_keys(&walk, target, keys) ||
        !begin_values(&walk, values))
        return 0;
    containers_dict_bound(&walk, capacity);
    return find_key(&walk, name, ATTRIBUTES_MAX);
}

static uintptr_t value_in_dict(const struct py_target *target, uintptr_t dict, const char *name)
{
    struct dict_walk walk;
    return containers_dict_begin(&walk, target, dict) ? find_key(&walk, name, ATTRIBUTES_MAX) : 0;
}

/* 3.13+. */
static uintptr_t inline_value(const struct py_target *target, uintptr_t object, uintptr_t type, const char *name)
{
    uintptr_t size;
    uint8_t head[4];

    if (!read_pointer(type, target->layout.type_basicsize, &size) || size > CONTAINERS_ITEMS_MAX ||
        !guard_copy(head, object + size, sizeof head) || !head[VALUES_VALID])
        return 0;
    return shared_value(target, type, object + size, head[VALUES_CAPACITY], name);
}

/* Of a class whose instances keep their dict where the interpreter manages it. */
static uintptr_t managed_attribute(const struct py_target *target, uintptr_t object, uintptr_t type, uintptr_t flags, const char *name)
{
    const struct layout *layout = &target->layout;
    uintptr_t dict, values;

    if (layout->instance_values != LAYOUT_NONE && read_pointer(object, layout->instance_values, &values) && values)
        return shared_value(target, type, values, UINT32_MAX, name);
    if (!read_pointer(object, layout->instance_dict, &dict))
        return 0;
    if (layout->instance_values_tagged && (dict & 1))
        return shared_value(target, type, dict + 1, UINT32_MAX, name);
    if (dict)
        return value_in_dict(target, dict, name);
    return flags & layout->flag_inline_values ? inline_value(target, object, type, name) : 0;
}

/* tp_dictoffset of 0: no dict; a negative one counts from the end of objects of
 * variable size, which are not looked into. */
static uintptr_t dict_attribute(const struct py_target *target, uintptr_t object, uintptr_t type, const char *name)
{
    uintptr_t offset, dict;
    if (!read_pointer(type, target->layout.type_dictoffset, &offset) || offset == 0 || offset > CONTAINERS_ITEMS_MAX ||
        !read_pointer(object, (int32_t)offset, &dict))
        return 0;
    return value_in_dict(target, dict, name);
}

uintptr_t containers_attribute(const struct py_target *target, uintptr_t object, const char *name)
{
    uintptr_t type, flags;
    if (!read_type(target, object, &type, &flags))
        return 0;
    if (flags & target->layout.flag_managed_dict)
        return flags & target->layout.flag_heap_type ? managed_attribute(target, object, type, flags, name) : 0;
    return dict_attribute(target, object, type, name);
}

/* --- variables --- */

static uintptr_t cell_contents(const struct py_target *target, uintptr_t cell)
{
    uintptr_t value;
    return is_instance(target, cell, "cell", NULL) && read_pointer(cell, target->layout.cell_value, &value) ? value : 0;
}

struct variables { /* of a code object: locals, cells, then the free ones */
    struct items names;
    int32_t count, free;
};

static bool read_variables(const struct py_target *target, uintptr_t code, struct variables *variables)
{
    const struct layout *layout = &target->layout;
    uintptr_t names;

    return read_int(code, layout->code_nlocalsplus, &variables->count) && read_int(code, layout->code_nfreevars, &variables->free) &&
           variables->free >= 0 && variables->free <= variables->count && variables->count <= VARIABLES_MAX &&
           read_pointer(code, layout->code_localsplusnames, &names) && containers_items(target, names, &variables->names) &&
           variables->names.count >= (uint32_t)variables->count;
}

/* -1: none of them, from the one at `from` on. */
static int32_t find_variable(const struct py_target *target, const struct variables *variables, int32_t from, const char *name)
{
    for (int32_t i = from; i < variables->count; i++)
        if (containers_is_text(target, containers_item(&variables->names, (uint32_t)i), name))
            return i;
    return -1;
}

static bool is_function(const struct py_target *target, uintptr_t object)
{
    return target->function_type ? objects_is(target, object, target->function_type) : is_instance(target, object, "function", NULL);
}

int containers_free_variable(const struct py_target *target, uintptr_t code, const char *name)
{
    struct variables variables;
    if (!objects_is(target, code, target->code_type) || !read_variables(target, code, &variables))
        return -1;
    int32_t first_free = variables.count - variables.free;
    int32_t index = find_variable(target, &variables, first_free, name);
    return index < 0 ? -1 : index - first_free;
}

uintptr_t containers_closure_at(const struct py_target *target, uintptr_t function, int variable)
{
    struct items cells;
    uintptr_t closure;
    if (variable < 0 || !read_pointer(function, target->layout.function_closure, &closure) || !containers_items(target, closure, &cells))
        return 0;
    return cell_contents(target, containers_item(&cells, (uint32_t)variable));
}

uintptr_t containers_closure(const struct py_target *target, uintptr_t function, const char *name)
{
    uintptr_t code;
    if (!is_function(target, function) || !read_pointer(function, target->layout.function_code, &code))
        return 0;
    return containers_closure_at(target, function, containers_free_variable(target, code, name));
}

/* Where a code object says that a variable lives: in a cell? */
static bool read_kind(const struct py_target *target, uintptr_t code, int32_t index, uint8_t *kind)
{
    struct py_bytes bytes;
    uintptr_t kinds;
    return read_pointer(code, target->layout.code_localspluskinds, &kinds) && objects_bytes(target, kinds, &bytes) &&
           (uint32_t)index < bytes.length && guard_copy(kind, bytes.data + (uintptr_t)index, sizeof *kind);
}

bool containers_local_is(const struct py_target *target, uintptr_t frame, const struct py_code *code, const char *name, uintptr_t *value)
{
    const struct layout *layout = &target->layout;
    struct variables variables;
    uint8_t kind;

    if (!read_variables(target, code->address, &variables))
        return false;
    int32_t index = find_variable(target, &variables, 0, name);
    if (index < 0 || !read_kind(target, code->address, index, &kind) ||
        !read_pointer(frame, layout->frame_localsplus + index * (int32_t)WORD, value))
        return false;
    if (layout->executable_tag_mask && (*value & layout->executable_tag_mask) == layout->executable_tag_mask)
        return false; /* an integer without an object: none that a name can have */
    *value &= ~(uintptr_t)layout->executable_tag_mask;
    if (*value && kind & (KIND_CELL | KIND_FREE))
        *value = cell_contents(target, *value);
    return true;
}

uintptr_t containers_local(const struct py_target *target, uintptr_t frame, const struct py_code *code, const char *name)
{
    uintptr_t value;
    return containers_local_is(target, frame, code, name, &value) ? value : 0;
}

/* --- texts --- */

/* Whether text's length bytes are at this address. */
static bool bytes_are(uintptr_t address, const char *text, size_t length)
{
    char piece[PIECE];

    for (size_t at = 0; at < length; at += sizeof piece) {
        size_t size = length - at < sizeof piece ? length - at : sizeof piece;
        if (!guard_copy(piece, address + at, size) || memcmp(piece, text + at, size) != 0)
            return false;
    }
    return true;
}

bool containers_is_text(const struct py_target *target, uintptr_t object, const char *text)
{
    struct py_str str;
    size_t length = strlen(text);
    return objects_str(target, object, &str) && str.ascii && str.length == length && bytes_are(str.data, text, length);
}

bool containers_type_is_named(const struct py_target *target, uintptr_t type, const char *name)
{
    size_t size = strlen(name) + 1;
    uintptr_t found;
    return read_pointer(type, target->layout.type_name, &found) && found >= ADDRESS_LOWEST && bytes_are(found, name, size);
}
