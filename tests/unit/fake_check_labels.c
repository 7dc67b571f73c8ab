/* SPDX-License-Identifier: MIT
 * labels: variables by their names, what is shown of their values, and the tick over all
 * tasks where labels are asked for. */
#include "sampler/labels.h"

#include "tests/unit/fake_contexts.h"
#include "tests/unit/fake_tasks.h"

#define LONG_TYPE_AT 0x7f00a000u
#define VALUE_AT(i) (0x7e000000u + 0x1000u * (unsigned)(i))

Suite *suite_labels(void);

static const char *const asked[] = {"route", "tenant"};
static struct fake_variable route, tenant, other;

static void start_labelled(int minor, uint32_t count)
{
    labels_ask(asked, 2);
    start_hooked(minor, count);
    for (uint32_t i = 0; i < FAKE_DEATHS; i++)
        fake_deaths[i] = 7;
    fake_births.counted = FAKE_FUTURE_TYPE_AT; /* they may rest */
    fake_contexts_begin(&world.target);
    fake_type(&world.target.layout, LONG_TYPE_AT, 1ul << 24);
    route = fake_variable(&world.target, "route", 0x1111, 0);
    tenant = fake_variable(&world.target, "tenant", 0x2222, 0);
    other = fake_variable(&world.target, "other", 0x1131, 0);
    markers_begin_window();
    markers_end_keeping();
}

static uintptr_t text_value(int at, const char *text)
{
    return fake_str(&world.target, VALUE_AT(at), text);
}

/* Of so many digits of 30 bits. */
static uintptr_t int_value(int at, bool negative, uint32_t digits, uint32_t low, uint32_t middle, uint32_t high)
{
    const struct layout *layout = &world.target.layout;
    struct fake made = fake_new(VALUE_AT(at), 64);
    int64_t size = negative ? -(int64_t)digits : (int64_t)digits;
    fake_put_word(&made, layout->object_type, LONG_TYPE_AT);
    fake_put_word(&made, layout->long_size, layout->long_is_tagged ? (uint64_t)digits << 3 | (digits == 0 ? 1 : negative ? 2 : 0) : (uint64_t)size);
    fake_put_int(&made, layout->long_digits, low);
    fake_put_int(&made, layout->long_digits + 4, middle);
    fake_put_int(&made, layout->long_digits + 8, high);
    return fake_place(&made);
}

/* A context in which these are set; 0: one is not. */
static uintptr_t context_with(uintptr_t of_route, uintptr_t of_tenant)
{
    struct fake_variable set[3] = {other};
    uint32_t count = 1;
    set[0].value = text_value(99, "no label");
    route.value = of_route;
    tenant.value = of_tenant;
    if (of_route)
        set[count++] = route;
    if (of_tenant)
        set[count++] = tenant;
    return fake_context(&world.target, fake_trie(&world.target, set, count));
}

static void look(uintptr_t context)
{
    now += 2000 * MS;
    labels_begin_looking(&world.target, now);
    labels_look(&world.target, context);
}

static const char *shown(uintptr_t context, uint32_t label)
{
    static char text[TEXT_FOLDED_MAX + 1];
    text[labels_read(&world.target, context, contexts_trie(&world.target, context), label, text)] = '\0';
    return text;
}

START_TEST(values_are_shown)
{
    start_labelled(_i, 0);
    uintptr_t both = context_with(text_value(0, "/a;b 12"), int_value(1, false, 1, 42, 0, 0)), one = context_with(0, int_value(2, true, 1, 7, 0, 0));
    ck_assert_str_eq(shown(both, 0), ""); /* not found yet */
    look(one);
    ck_assert_str_eq(shown(both, 0), "");
    ck_assert_str_eq(shown(both, 1), "42");
    look(both);
    ck_assert_str_eq(shown(both, 0), "/a\\x3bb 12");
    ck_assert_str_eq(shown(one, 0), "");
    ck_assert_str_eq(shown(one, 1), "-7");
    ck_assert_str_eq(shown(0, 1), "");
    ck_assert_str_eq(shown(context_with(0, int_value(3, false, 0, 0, 0, 0)), 1), "0");
    ck_assert_str_eq(shown(context_with(0, int_value(3, false, 2, 5, 1, 0)), 1), "1073741829");
    ck_assert_str_eq(shown(context_with(0, int_value(3, true, 3, 0x3fffffff, 0x3fffffff, 15)), 1), "-18446744073709551615");
    ck_assert_str_eq(shown(context_with(0, int_value(3, false, 3, 0, 0, 16)), 1), "");
    ck_assert_str_eq(shown(context_with(0, int_value(3, false, 4, 1, 1, 1)), 1), "");
    ck_assert_str_eq(shown(context_with(0, other.address), 1), "");
    stop();
}
END_TEST

static void has_default(const struct fake_variable *variable, uintptr_t value)
{
    fake_words(variable->address + 24, &value, 1);
}

START_TEST(a_default_is_shown_where_none_is_set)
{
    start_labelled(_i, 0);
    has_default(&route, text_value(5, "nowhere"));
    uintptr_t both = context_with(text_value(0, "/a"), int_value(1, false, 1, 42, 0, 0)), one = context_with(0, int_value(2, true, 1, 7, 0, 0));
    ck_assert_str_eq(shown(one, 0), ""); /* not found yet */
    look(both);
    ck_assert_str_eq(shown(both, 0), "/a");
    ck_assert_str_eq(shown(one, 0), "nowhere");
    ck_assert_str_eq(shown(CONTEXTS_NONE, 0), "nowhere");
    ck_assert_str_eq(shown(CONTEXTS_NONE, 1), ""); /* it has none */
    ck_assert_str_eq(shown(0, 0), "");             /* unreadable */
    ck_assert_str_eq(shown(0x7777000, 0), "");
    ck_assert_str_eq(shown(context_with(other.address, 0), 0), ""); /* what is set is no label */
    has_default(&route, other.address);
    ck_assert_str_eq(shown(one, 0), "");
    has_default(&route, text_value(5, "nowhere"));
    struct fake reused = fake_new(route.address, 64);
    fake_put_word(&reused, world.target.layout.object_type, OTHER_TYPE_AT);
    fake_place(&reused);
    ck_assert_str_eq(shown(one, 0), ""); /* another object by now */
    stop();
}
END_TEST

START_TEST(one_that_is_gone_is_forgotten)
{
    start_labelled(_i, 0);
    uintptr_t context = context_with(text_value(0, "a"), 0);
    look(context);
    ck_assert_str_eq(shown(context, 0), "a");
    struct fake reused = fake_new(route.address, 64);
    fake_put_word(&reused, world.target.layout.object_type, OTHER_TYPE_AT);
    fake_place(&reused);
    ck_assert_str_eq(shown(context, 0), ""); /* at once */
    route = fake_variable(&world.target, "route", 0x9999, 0); /* and another one is found */
    context = context_with(text_value(0, "b"), 0);
    look(context);
    ck_assert_str_eq(shown(context, 0), "b");
    stop();
}
END_TEST

START_TEST(of_one_name_the_first_that_is_set)
{
    start_labelled(_i, 0);
    struct fake_variable first = route;
    uintptr_t a = context_with(text_value(0, "a"), 0);
    route = fake_variable(&world.target, "route", 0x9999, 0);
    uintptr_t b = context_with(text_value(1, "b"), 0);
    look(a);
    look(b);
    ck_assert_str_eq(shown(a, 0), "a");
    ck_assert_str_eq(shown(b, 0), "b");
    struct fake_variable both[] = {first, route};
    both[0].value = VALUE_AT(0);
    ck_assert_str_eq(shown(fake_context(&world.target, fake_trie(&world.target, both, 2)), 0), "a");
    stop();
}
END_TEST

/* --- the tick over all tasks --- */

static void runs_in(uint32_t task, uintptr_t context)
{
    fake_world_word(&world, fake_task_at(task), world.target.layout.task_context, context);
}

START_TEST(tasks_stand_on_their_labels)
{
    start_labelled(_i, 4);
    threads[0].driver = stacks_push_marker(&stacks, stacks_thread_marker(&stacks, "[thread a]", 10), "loop");
    uintptr_t a = context_with(text_value(0, "/a"), int_value(1, false, 1, 3, 0, 0)), b = context_with(text_value(2, "/b"), 0);
    runs_in(0, a);
    runs_in(1, b);
    fake_task_awaits(&world, 3, 1, 1); /* who awaits it has another: that of the leaf counts */
    runs_in(3, a);
    tick(10 * MS); /* variables are found in contexts of tasks that are known */
    window = (struct window){0};
    profile_clear(stacks.profile, false);
    markers_begin_window();
    tasks_forget_stacks(tasks);
    markers_end_keeping();
    threads[0].driver = stacks_push_marker(&stacks, stacks_thread_marker(&stacks, "[thread a]", 10), "loop");
    now += 1000 * MS;
    for (int i = 0; i < 70; i++)
        tick(10 * MS); /* each is read in full once in 64 rounds */
    profile_clear(stacks.profile, false);
    markers_begin_window();
    tasks_forget_stacks(tasks);
    markers_end_keeping();
    threads[0].driver = stacks_push_marker(&stacks, stacks_thread_marker(&stacks, "[thread a]", 10), "loop");
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[thread a];[route=/a];[tenant=3];loop;t0.0"), 10 * MS);
    ck_assert_uint_eq(time_of("[thread a];[route=/b];loop;t3.0;t1.0"), 10 * MS);
    ck_assert_uint_eq(time_of("[thread a];loop;t2.0"), 10 * MS);
    stop();
}
END_TEST

static uint32_t until_set;
static uintptr_t changing, another_trie;

static void set_meanwhile(uintptr_t address, size_t size)
{
    (void)address;
    (void)size;
    if (until_set && --until_set == 0) {
        struct fake context = fake_new(changing, 48);
        fake_put_word(&context, 24, another_trie);
        fake_place(&context);
    }
}

/* What is read while it is set is one of the two, or nothing is said. */
START_TEST(a_value_that_is_set_meanwhile)
{
    marker_id numbers[LABELS_MOST], expected[2][LABELS_MOST];
    bool torn = false;
    start_labelled(_i, 0);
    uintptr_t a = context_with(text_value(0, "a"), text_value(1, "a")), b = context_with(text_value(2, "b"), text_value(3, "b"));
    look(a);
    ck_assert(labels_of_context(&world.target, a, expected[0]));
    ck_assert(labels_of_context(&world.target, b, expected[1]));
    another_trie = contexts_trie(&world.target, b);
    uintptr_t trie = contexts_trie(&world.target, a);
    fake_on_read(set_meanwhile);
    for (uint32_t at = 1; at < 200; at++) {
        until_set = 0;
        changing = fake_context(&world.target, trie);
        until_set = at;
        if (labels_of_context(&world.target, changing, numbers))
            ck_assert(memcmp(numbers, expected[0], sizeof numbers) == 0 || memcmp(numbers, expected[1], sizeof numbers) == 0);
        else
            torn = true;
    }
    ck_assert(torn);
    stop();
}
END_TEST

START_TEST(too_many_values_are_one)
{
    char value[16];
    marker_id first = 0;
    start_labelled(13, 0);
    for (int i = 0; i < MARKERS_MOST + 5; i++) {
        int length = snprintf(value, sizeof value, "%d", i);
        marker_id number = markers_of_label(1, value, (uint32_t)length);
        profile_stack stack = profile_push(stacks.profile, PROFILE_ROOT, markers_frame(stacks.profile, number));
        char text[64];
        text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
        ck_assert_str_eq(text + 8, i < MARKERS_MOST ? strcat(value, "]") : "~]");
        if (i >= MARKERS_MOST)
            first = first ? first : number;
        ck_assert(i < MARKERS_MOST || number == first);
    }
    ck_assert_uint_ne(markers_of_label(0, "other", 5), first);
    ck_assert_uint_ne(markers_of_task("other", 5), first);
    struct counters counters = {0};
    markers_count(&counters);
    ck_assert_uint_eq(counters.limits[LIMIT_labels], 5);
    ck_assert_uint_eq(counters.limits[LIMIT_task_names], 0);
    stop();
}
END_TEST

Suite *suite_labels(void)
{
    const TTest *const tests[] = {values_are_shown, a_default_is_shown_where_none_is_set, one_that_is_gone_is_forgotten, of_one_name_the_first_that_is_set, tasks_stand_on_their_labels,
                                  a_value_that_is_set_meanwhile};
    Suite *suite = suite_create("labels");
    TCase *tcase = tcase_create("each version"), *once = tcase_create("once");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(tcase, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_test(once, too_many_values_are_one);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, once);
    return suite;
}
