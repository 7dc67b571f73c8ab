/* SPDX-License-Identifier: MIT */
#include "sampler/account.h"

#include <string.h>

static void add(const struct account_book *book, profile_stack stack, enum metric metric, uint64_t ns)
{
    if (ns && book->metrics >> metric & 1)
        profile_add(book->profile, stack, metric, ns);
}

static void add_gil(struct account_book *book, struct seen seen, uint64_t ns)
{
    book->gil_wall_ns += ns;
    if (seen.gil == SEEN_GIL_HELD)
        add(book, seen.stack, METRIC_GIL, ns);
    else if (seen.gil == SEEN_GIL_WANTED)
        book->gil_wait_ns += ns;
    else if (seen.gil == SEEN_GIL_UNKNOWN)
        book->gil_unknown_ns += ns;
}

static void add_wall(struct account_book *book, struct seen seen, uint64_t ns)
{
    profile_stack twin = profile_twin(book->profile, seen.stack);
    add(book, seen.stack, METRIC_WALL, ns);
    if (twin != PROFILE_ROOT)
        add(book, twin, METRIC_TASK, ns);
    if (book->metrics >> METRIC_GIL & 1)
        add_gil(book, seen, ns);
    if (seen.exception != PROFILE_ROOT)
        add(book, seen.exception, METRIC_EXC, ns);
    if (seen.blocks)
        add(book, seen.stack, METRIC_BLOCK, ns);
}

static void add_cpu(struct account_book *book, struct seen seen, uint64_t ns)
{
    add(book, seen.stack, METRIC_CPU, ns);
    seen.blocks = false; /* it ran */
    add_wall(book, seen, ns);
}

/* Remembers who used CPU; when there is no room, the lightest gives way. */
static void tally_add(struct account *account, struct seen seen, uint64_t ns)
{
    uint32_t lightest = 0;
    for (uint32_t i = 0; i < account->tallies; i++) {
        if (seen_is_same(account->tally[i].seen, seen)) {
            account->tally[i].ns += ns;
            account->tally[i].times++;
            return;
        }
        if (account->tally[i].ns < account->tally[lightest].ns)
            lightest = i;
    }
    uint32_t place = account->tallies < ACCOUNT_TALLIES ? account->tallies++ : lightest;
    account->tally[place].seen = seen;
    account->tally[place].ns = ns;
    account->tally[place].times = 1;
}

void account_open(struct account *account, uint64_t now, uint64_t cpu)
{
    memset(account, 0, sizeof *account);
    account->looked_ns = now;
    account->looked_cpu = account->booked_cpu = cpu;
}

void account_look(struct account *account, uint64_t now, uint64_t cpu)
{
    int64_t passed = (int64_t)(now - account->looked_ns), used = (int64_t)(cpu - account->looked_cpu);
    if (passed < 0 || used < 0)
        return; /* an older reading than the last: nothing new in it */
    account->waiting_ns += passed - used;
    account->looked_ns = now;
    account->looked_cpu = cpu;
}

void account_run(struct account *account, struct account_book *book, uint64_t cpu, struct seen seen)
{
    if (cpu <= account->booked_cpu)
        return;
    uint64_t ns = cpu - account->booked_cpu;
    account->booked_cpu = cpu;
    add_cpu(book, seen, ns);
    tally_add(account, seen, ns);
}

void account_wait(struct account *account, struct account_book *book, struct seen seen)
{
    if (account->waiting_ns <= 0)
        return;
    add_wall(book, seen, (uint64_t)account->waiting_ns);
    account->waiting_ns = 0;
}

void account_wait_part(struct account *account, struct account_book *book, uint64_t ns, struct seen seen)
{
    uint64_t left = account->waiting_ns > 0 ? (uint64_t)account->waiting_ns : 0, part = ns < left ? ns : left;
    add_wall(book, seen, part);
    account->waiting_ns -= (int64_t)part;
}

void account_wait_between(struct account *account, struct account_book *book, struct seen before, struct seen seen)
{
    if (account->waiting_ns > 0) {
        uint64_t half = (uint64_t)account->waiting_ns / 2;
        add_wall(book, before, half);
        account->waiting_ns -= (int64_t)half;
    }
    account_wait(account, book, seen);
}

static profile_stack unseen(struct account_book *book, profile_stack below, profile_frame frame)
{
    profile_stack leaf = below;
    return profile_leaf(book->profile, leaf) == frame ? leaf : profile_push(book->profile, below, frame);
}

static uint64_t tallied(const struct account *account)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < account->tallies; i++)
        sum += account->tally[i].ns;
    return sum;
}

/* Over the stacks of the tally, in proportion; the last takes what rounding left. */
static void spread(const struct account *account, struct account_book *book, uint64_t ns,
                   void (*give)(struct account_book *, struct seen, uint64_t))
{
    uint64_t sum = tallied(account), given = 0;
    for (uint32_t i = 0; i < account->tallies; i++) {
        bool last = i + 1 == account->tallies;
        uint64_t part = last ? ns - given : (uint64_t)((__uint128_t)ns * account->tally[i].ns / sum);
        give(book, account->tally[i].seen, part);
        given += part;
    }
}

/* What was spread is theirs, as what was seen. */
static void tallies_grow(struct account *account, uint64_t ns)
{
    uint64_t sum = tallied(account);
    for (uint32_t i = 0; i < account->tallies; i++)
        account->tally[i].ns += (uint64_t)((__uint128_t)ns * account->tally[i].ns / sum);
}

static void settle_cpu(struct account *account, struct account_book *book, profile_stack last)
{
    uint64_t rest = account_outstanding(account);
    if (rest == 0)
        return;
    account->booked_cpu = account->looked_cpu;
    if (account->tallies) {
        spread(account, book, rest, add_cpu);
        tallies_grow(account, rest);
        book->spread_ns += rest;
    } else {
        add_cpu(book, seen_at(unseen(book, last, book->unseen_cpu)), rest);
        book->unseen_ns += rest;
    }
}

static void settle_waiting(struct account *account, struct account_book *book, profile_stack last)
{
    if (account->waiting_ns <= 0)
        return;
    /* It was never found standing still: it wanted to run and did not get a CPU
     * or the GIL where it worked. */
    if (account->tallies)
        spread(account, book, (uint64_t)account->waiting_ns, add_wall);
    else
        add_wall(book, seen_at(unseen(book, last, book->unseen_wall)), (uint64_t)account->waiting_ns);
    account->waiting_ns = 0;
}

void account_settle_rest(struct account *account, struct account_book *book, profile_stack last)
{
    settle_cpu(account, book, last);
    settle_waiting(account, book, last);
}

void account_settle(struct account *account, struct account_book *book, profile_stack last)
{
    account_settle_rest(account, book, last);
    account->tallies = 0;
}

static void give(struct account_book *book, struct seen chosen, uint64_t cpu_ns)
{
    add_cpu(book, chosen, cpu_ns);
    book->spread_ns += cpu_ns;
}

void account_give(struct account *account, struct account_book *book, struct seen chosen)
{
    give(book, chosen, account_outstanding(account));
    account->booked_cpu = account->looked_cpu;
}

void account_unseen(struct account_book *book, uint64_t lifetime_ns, uint64_t cpu_ns, struct seen chosen, profile_stack below)
{
    uint64_t waiting = lifetime_ns > cpu_ns ? lifetime_ns - cpu_ns : 0;
    add_wall(book, seen_at(unseen(book, below, book->unseen_wall)), waiting);
    if (chosen.stack != PROFILE_ROOT) {
        give(book, chosen, cpu_ns);
        return;
    }
    add_cpu(book, seen_at(unseen(book, below, book->unseen_cpu)), cpu_ns);
    book->unseen_ns += cpu_ns;
}
