/* SPDX-License-Identifier: MIT */
#include "sampler/steps.h"

static bool is_same(const struct turns_step *a, const struct turns_step *b)
{
    return a->turn == b->turn && a->handle == b->handle;
}

struct steps_time steps_so_far(const struct steps *steps, uint64_t now)
{
    if (!steps->in || steps->seen_ns <= steps->latest)
        return (struct steps_time){0};
    return (struct steps_time){steps->seen_ns - steps->latest, (now > steps->seen_ns ? now : steps->seen_ns) - steps->earliest, steps->stack};
}

/* Whether the loop's clock is ours, as far as this look can tell: the turn was not there at the look before, so it began since. */
static bool has_our_clock(const struct steps *steps, const struct steps_look *look)
{
    bool known = steps->in && steps->step.turn == look->step.turn;
    return look->step.left_ns <= look->to && (known || look->step.left_ns >= steps->looked_ns);
}

/* The other step began behind it: at the latest when the loop left its selector for another turn. */
static uint64_t ended_until(const struct steps *steps, const struct steps_look *look)
{
    bool other_turn = look->found == TURNS_STEP && look->step.turn != steps->step.turn && has_our_clock(steps, look);
    return other_turn && look->step.left_ns >= steps->seen_ns ? look->step.left_ns : look->to;
}

static void begin(struct steps *steps, const struct steps_look *look)
{
    uint64_t left = look->step.left_ns;
    bool first = look->step.handle == 0;
    steps->earliest = first || left > steps->looked_ns ? left : steps->looked_ns;
    steps->latest = first ? left : look->to;
    steps->seen_ns = first ? look->from : look->to;
    if (steps->seen_ns < steps->latest)
        steps->seen_ns = steps->latest;
    steps->step = look->step;
    steps->stack = PROFILE_ROOT;
    steps->votes = 0;
    steps->in = true;
}

bool steps_take(struct steps *steps, const struct steps_look *look, struct steps_time *over)
{
    *over = (struct steps_time){0};
    if (look->found == TURNS_UNKNOWN)
        return false; /* should the next look find the same step, it was that one now */
    if (look->found == TURNS_STEP && steps->in && is_same(&steps->step, &look->step)) {
        steps->seen_ns = steps->looked_ns = look->from;
        return true;
    }
    bool ours = look->found == TURNS_STEP && has_our_clock(steps, look);
    if (steps->in)
        *over = steps_so_far(steps, ended_until(steps, look));
    if (ours)
        begin(steps, look);
    else
        steps->in = false;
    steps->looked_ns = look->from;
    return ours || look->found == TURNS_NONE;
}

void steps_saw(struct steps *steps, profile_stack stack, uint64_t ns)
{
    if (!steps->in || ns < steps->latest || ns > steps->seen_ns || ns <= steps->voted_ns)
        return;
    steps->voted_ns = ns;
    if (steps->stack == stack) {
        steps->votes++;
    } else if (steps->stack == PROFILE_ROOT || !steps->votes) { /* one that has more than half of them stays */
        steps->stack = stack;
        steps->votes = 1;
    } else {
        steps->votes--;
    }
}

void steps_stand(struct steps *steps, uint64_t now)
{
    if (now <= steps->looked_ns)
        return;
    steps->looked_ns = now;
    if (steps->in && now > steps->seen_ns)
        steps->seen_ns = now;
}
