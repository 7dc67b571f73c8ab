/* SPDX-License-Identifier: MIT
 *
 * A whole walk over a thread's frames: frames, code objects, location tables, strs in
 * every representation, the names in the CPU tick and at the drain, and the text that
 * comes of it.
 *
 * Input: version, depth, memory, start directory; then edits (tests/fuzz/image.h).
 */
#include "hooks/mem.h"
#include "sampler/codes.h"
#include "sampler/cpython/start.h"
#include "sampler/stacks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image.h"
#include "tests/unit/fake_births.h"
#include "tests/unit/fake_thread.h"

enum { HEAD = 4, VERSIONS = AFTER_LAST_MINOR - FIRST_MINOR, DEPTH_MOST = 32, START_AT = 0x57000000, BOOT_AT = 0x57001000, FUNCTION_AT = 0x57002000 };
enum { /* what may be read, at most */
    FRAME_READS = 32,         /* of a frame and its code */
    NAMES_READS = 2 * 16384 * 4 / 64 + (1 << 17) / 64 + 64, /* of a code's names and table in the CPU tick */
    LEARN_READS = NAMES_READS + (1 << 22) / 64,             /* ... and at the drain */
    TABLE_READS = (1 << 28) / 128 * 3 /* of a table that is read in place, as the self-test does it once */
};

static struct scene {
    struct image *image;
    struct py_target target;
} scenes[VERSIONS];

/* --- the thread --- */

/* A str of that kind; kind 0: not compact (an instance of a subclass). */
static uintptr_t str_of(const struct py_target *target, uintptr_t address, int kind, const void *characters, size_t length)
{
    const struct layout *layout = &target->layout;
    int width = kind ? kind : 1;
    struct fake str = fake_new(address, (size_t)layout->str_legacy_data + 8 + length * (size_t)width);
    fake_put_word(&str, layout->object_type, kind ? target->unicode_type : STR_SUBTYPE_AT);
    fake_put_word(&str, layout->str_length, length);
    fake_put_word(&str, layout->str_hash, address * 0x9e3779b97f4a7c15u + 1);
    fake_put_int(&str, layout->str_state, (uint32_t)width << 2 | (kind != 0) << 5);
    if (kind) {
        fake_put(&str, layout->str_compact_data, characters, length * (size_t)width);
    } else {
        fake_put_word(&str, layout->str_legacy_data, address + 0x8000);
        fake_map(address + 0x8000, characters, length);
    }
    return fake_place(&str);
}

/* Every kind of entry of a location table (Objects/locations.md). */
static const uint8_t all_entries[] = {
    0x80 | 3 << 3, 0x11, 0x80 | 9 << 3 | 1, 0x75, 0x80 | 10 << 3, 0x01, 0x02, 0x80 | 11 << 3, 0x03, 0x04, 0x80 | 12 << 3, 0x05, 0x06,
    0x80 | 13 << 3, 0x43, 0x01, 0x80 | 14 << 3, 0x0a, 0x01, 0x02, 0x7f, 0x01, 0x80 | 15 << 3, 0x80 | 13 << 3 | 7, 0x4e, 0x00,
};

static uint8_t long_name[520];
static const uint8_t latin1[] = "caf\xe9;\\\x1b\x85 (x) 12";
static const uint16_t ucs2[] = {'f', 0x4e2d, 0x6587, ';', 0xd800, 0x2028, ' ', '('};
static const uint32_t ucs4[] = {'g', 0x1f600, 0x110000, 0xffffffff, 0xdfff, '\\', '\n'};

static void make_functions(const struct py_target *target, uintptr_t *function)
{
    static const struct {
        const char *name, *path;
    } plain[] = {
        {"<module>", "/srv/app/main.py"}, {"BaseEventLoop._run_once", "/usr/lib/python3.13/asyncio/base_events.py"},
        {"EpollSelector.select", "/usr/lib/python3.13/selectors.py"}, {"get", "/venv/lib/python3.12/site-packages/aiohttp/client (old).py"},
    };
    enum { PLAIN = sizeof plain / sizeof *plain };
    const struct layout *layout = &target->layout;
    for (int i = 0; i < PLAIN; i++)
        function[i] = fake_function(target, i, plain[i].name, plain[i].path);
    memset(long_name, 0xe9, sizeof long_name);
    for (int i = PLAIN; i < 8; i++) {
        uintptr_t at = FAKE_FUNCTION_AT(i);
        struct fake code = fake_code_new(target, at);
        static const struct {
            int kind;
            const void *characters;
            size_t length;
        } names[] = {{1, latin1, sizeof latin1 - 1}, {2, ucs2, sizeof ucs2 / 2}, {4, ucs4, sizeof ucs4 / 4}, {0, long_name, sizeof long_name}};
        uintptr_t name = str_of(target, at + 0x50000, names[i - PLAIN].kind, names[i - PLAIN].characters, names[i - PLAIN].length);
        fake_put_word(&code, layout->code_qualname, name);
        fake_put_word(&code, layout->code_filename, name);
        fake_put_word(&code, layout->code_linetable, fake_bytes(target, at + 0x60000, all_entries, sizeof all_entries));
        if (layout->code_version != LAYOUT_NONE)
            fake_put_int(&code, layout->code_version, 500 + (unsigned)i);
        if (i == 7 && layout->code_shim_flag)
            fake_put_int(&code, layout->code_flags, layout->code_shim_flag);
        function[i] = fake_place(&code);
    }
}

/* What a new thread was given: {func, arg}, whose second word is {?, callable}. */
static void make_start(struct py_target *target, uintptr_t code)
{
    const uintptr_t callback[] = {0, BOOT_AT}, boot[] = {0, FUNCTION_AT};
    fake_words(START_AT, callback, 2);
    fake_words(BOOT_AT, boot, 2);
    struct fake function = fake_new(FUNCTION_AT, 128);
    fake_put_word(&function, target->layout.object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, target->layout.function_code, code);
    fake_place(&function);
}

static void walk(struct scene *scene, uint32_t depth, const struct text_paths *paths);

static struct scene *scene_of(uint8_t version)
{
    struct scene *scene = &scenes[version % VERSIONS];
    uintptr_t function[8];
    if (scene->image)
        return scene;
    struct fake_world world;
    fake_asyncio_start(&world, FIRST_MINOR + version % VERSIONS, 0, 8);
    struct fake_thread thread = fake_thread_of(&world);
    make_functions(&world.target, function);
    make_start(&world.target, function[0]);
    for (int i = 0; i < 8; i++)
        fake_call(&thread, function[i]);
    fake_enter_c(&thread);
    for (int i = 0; i < 8; i++)
        fake_call(&thread, function[7 - i]);
    fake_thread_place(&thread, 0);
    scene->target = world.target;
    scene->image = image_seal();
    mem_init((size_t)64 << 20);
    image_record_begin(scene->image);
    walk(scene, DEPTH_MOST, &(struct text_paths){.start_directory = "/srv/app"});
    image_record_end();
    return scene;
}

/* --- what must hold --- */

static int continuation_bytes(uint8_t first)
{
    return first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
}

/* A stack as it may stand in the spool: UTF-8 without control characters. */
static void check_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        uint8_t c = (uint8_t)text[i];
        int more = continuation_bytes(c);
        FUZZ_HOLDS(c >= 0x20 && c != 0x7f && more >= 0 && i + (size_t)more < length);
        FUZZ_HOLDS(!(c == 0xc2 && (uint8_t)text[i + 1] < 0xa0)); /* C1 */
        for (; more > 0; more--)
            FUZZ_HOLDS(((uint8_t)text[++i] & 0xc0) == 0x80);
    }
}

static void check_stack(struct profile *profile, profile_stack stack)
{
    static char text[DEPTH_MOST * (TEXT_FRAME_MAX + 1) + 64];
    size_t length = profile_text(profile, stack, text, sizeof text);
    FUZZ_HOLDS(length <= sizeof text);
    check_text(text, length);
}

/* --- the walk --- */

/* As the CPU tick does it. */
static void settle_frames(struct scene *scene, uint32_t depth)
{
    struct frames_walk frames;
    struct py_frame frame;
    uint32_t given = 0;
    image_allow(FRAME_READS);
    frames_begin(&frames, &scene->target, FAKE_TSTATE_AT, depth);
    for (image_allow((depth + 2) * FRAME_READS); frames_next(&frames, &frame); image_allow((depth + 2) * FRAME_READS)) {
        FUZZ_HOLDS(frames.taken <= depth && given++ <= 2 * depth);
        if (frame.kind != FRAME_PYTHON)
            continue;
        FUZZ_HOLDS(frame.code.identity && frame.lasti <= 2 * frame.code.units);
        image_allow(NAMES_READS);
        codes_settle(&scene->target, &frame.code);
        image_allow(TABLE_READS);
        FUZZ_HOLDS(code_line_in_place(&scene->target, &frame.code, frame.lasti) >= 0 || frame.lasti < 0);
    }
    FUZZ_HOLDS(frames.end != FRAMES_MORE);
}

/* As the sampler does it. */
static void intern(struct scene *scene, uint32_t depth, const struct text_paths *paths, struct profile *profile)
{
    struct stacks stacks = {.profile = profile, .paths = *paths, .target = &scene->target};
    struct stack_copy *copy = stacks_new_copy(depth);
    bool sure;
    stacks.unknown = profile_intern(profile, "[unknown]", 9, 0);
    if (!copy)
        return;
    image_allow((4 * depth + 8) * FRAME_READS);
    stacks_capture(copy, &scene->target, FAKE_TSTATE_AT, 1);
    FUZZ_HOLDS(copy->frames <= depth && copy->end != FRAMES_MORE);
    if (stacks_is_whole(copy->end)) {
        image_allow(2 * depth * (LEARN_READS + 2 * FRAME_READS));
        stacks_resolve(&stacks, copy);
        check_stack(profile, stacks_intern(&stacks, copy));
        check_stack(profile, stacks_intern_driver(&stacks, copy, &sure));
    }
    mem_free(copy);
}

static void walk(struct scene *scene, uint32_t depth, const struct text_paths *paths)
{
    static bool started;
    struct profile *profile = profile_new();
    struct py_code code;
    started = started || codes_start() == 0;
    fake_births_reset();
    if (profile) {
        settle_frames(scene, depth);
        codes_drain();
        intern(scene, depth, paths, profile);
    }
    image_allow(2 * FRAME_READS);
    start_code(&scene->target, START_AT, &code);
    profile_free(profile);
    reset_codes();
    FUZZ_HOLDS(mem_used() == 0);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const starts[] = {NULL, "/srv/app", "/", ""};
    if (size < HEAD)
        return;
    struct scene *scene = scene_of(data[0]);
    mem_init(data[2] & 0xc0 ? (size_t)64 << 20 : (size_t)data[2] << 14);
    image_begin(scene->image, data + HEAD, size - HEAD);
    walk(scene, 1 + data[1] % DEPTH_MOST, &(struct text_paths){.full = data[3] & 4, .start_directory = starts[data[3] & 3]});
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return image_mutate(data, size, most, seed, HEAD);
}
