/* SPDX-License-Identifier: MIT */
#include "sampler/budget.h"

#define SECOND 1000000000ll
#define MS 1000000ll
#define MILLION 1000000ll

enum {
    REVIEW_MS = 500,
    EARLY_MS = 50,       /* after so long, when ... */
    EARLY_SPENT_MS = 10, /* ... so much was spent meanwhile */
    CEILING_PPM = 50000, /* of one core */
    CREDIT_MS = 20,      /* at the start, and the most that is saved or overdrawn */
    REPAID_IN = 4,       /* reviews over which a balance is made up for */
    HYSTERESIS = 10,     /* a change of less than a tenth is none */
    SPAN_MOST_S = 3600,  /* a process may have been stopped for days: no more of that counts */
    TASKS_LEAST_PPM = 500 /* of a core; an application that does nothing may begin to at any moment */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t within(int64_t x, int64_t low, int64_t high) { return most(low, least(x, high)); }

void budget_begin(struct budget *budget, const struct budget_options *options, uint64_t now_ns, const struct budget_spent *spent)
{
    *budget = (struct budget){.options = *options, .reviewed_ns = now_ns, .spent = *spent, .balance_ns = CREDIT_MS * MS,
                              .rate_mhz = options->asked * 1000, .tasks_ppm = CEILING_PPM};
    if (options->overhead)
        budget->tasks_ppm = (uint32_t)least(CEILING_PPM, options->overhead * MILLION / 100 / 2);
}

/* What was used since the last review, and might have been. */
struct bill {
    int64_t span, share, allowed, ticks, tasks, handlers;
};

static struct bill bill_of(const struct budget *budget, uint64_t now_ns, const struct budget_spent *spent)
{
    const struct budget_spent *before = &budget->spent;
    int64_t process = (int64_t)(spent->process - before->process), sampler = (int64_t)(spent->sampler - before->sampler);
    struct bill bill = {.span = least((int64_t)(now_ns - budget->reviewed_ns), SPAN_MOST_S * SECOND),
                        .tasks = most(0, (int64_t)(spent->tasks - before->tasks)),
                        .handlers = most(0, (int64_t)(spent->handlers - before->handlers))};
    int64_t application = most(0, process - sampler - bill.handlers); /* clocks are read one after the other */
    bill.ticks = most(0, sampler - bill.tasks);
    bill.share = application * budget->options.overhead / 100;
    bill.allowed = least(bill.share, bill.span * CEILING_PPM / MILLION);
    return bill;
}

static bool is_at_least(const struct budget *budget)
{
    return budget->rate_mhz <= budget->options.least * 1000;
}

/* What may be used until the next review, should that last as long. */
static int64_t settle(struct budget *budget, const struct bill *bill)
{
    int64_t change = bill->allowed - bill->ticks - bill->tasks - bill->handlers;
    if (change < 0 && is_at_least(budget) && budget->balance_ns <= 0)
        change = 0; /* nothing that a lower rate could have saved */
    budget->balance_ns = within(budget->balance_ns + change, -CREDIT_MS * MS, CREDIT_MS * MS);
    return most(0, bill->allowed + budget->balance_ns / REPAID_IN);
}

/* Half of the way from `from` towards `from * target / used`. */
static int64_t moved(int64_t from, int64_t target, int64_t used)
{
    int64_t wanted = used <= 0 ? 3 * from : least(3 * from, from * (target * 1000 / used) / 1000);
    return (from + most(0, wanted)) / 2;
}

static bool is_worth_it(int64_t from, int64_t to)
{
    return (to > from ? to - from : from - to) * HYSTERESIS >= from;
}

static void set_rate(struct budget *budget, int64_t target, int64_t used, struct budget_counters *counters)
{
    int64_t before = budget->rate_mhz, low = budget->options.least * 1000ll, high = budget->options.asked * 1000ll;
    int64_t rate = within(moved(before, target, used), low, high);
    if (rate != high && rate != low && !is_worth_it(before, rate))
        return;
    counters->slowed += rate < before;
    counters->quickened += rate > before;
    budget->rate_mhz = (uint32_t)rate;
}

static void set_tasks_share(struct budget *budget, int64_t ppm)
{
    int64_t before = budget->tasks_ppm, share = within(ppm, before / 2, before * 2);
    budget->tasks_ppm = (uint32_t)within(share, TASKS_LEAST_PPM, CEILING_PPM);
}

static bool is_due(const struct budget *budget, uint64_t now_ns, const struct budget_spent *spent)
{
    uint64_t span = now_ns - budget->reviewed_ns, used = spent->sampler - budget->spent.sampler + spent->handlers - budget->spent.handlers;
    return span >= REVIEW_MS * (uint64_t)MS || (span >= EARLY_MS * (uint64_t)MS && used >= EARLY_SPENT_MS * (uint64_t)MS);
}

bool budget_review(struct budget *budget, uint64_t now_ns, const struct budget_spent *spent, struct budget_counters *counters)
{
    if (!is_due(budget, now_ns, spent))
        return false;
    struct bill bill = bill_of(budget, now_ns, spent);
    budget->reviewed_ns = now_ns;
    budget->spent = *spent;
    if (budget->options.overhead) {
        int64_t target = settle(budget, &bill);
        int64_t ticks = most(target / 2, target - bill.tasks) - bill.handlers;
        int64_t tasks = most(target / 2, target - bill.ticks - bill.handlers);
        set_rate(budget, ticks, bill.ticks, counters);
        set_tasks_share(budget, tasks * MILLION / bill.span);
    }
    counters->allowed_ns += (uint64_t)bill.allowed;
    counters->ceilings += bill.share > bill.allowed;
    counters->rate_mhz = budget->rate_mhz;
    if (!counters->least_mhz || counters->least_mhz > budget->rate_mhz)
        counters->least_mhz = budget->rate_mhz;
    return true;
}

uint64_t budget_interval(const struct budget *budget)
{
    return 1000ull * SECOND / budget->rate_mhz;
}

uint32_t budget_tasks_share(const struct budget *budget)
{
    return budget->tasks_ppm;
}
