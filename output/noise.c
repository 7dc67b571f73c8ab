/* SPDX-License-Identifier: MIT
 *
 * The tail of t is an incomplete beta function, found by its continued fraction
 * (Lentz's way, as in Numerical Recipes 6.4) and inverted by halving: tails of
 * 1e-6 with broken degrees of freedom are not what tables have.
 */
#include "output/noise.h"

#include <math.h>

#define HALVINGS 200
#define TERMS 500
#define T_MOST 1e12
#define FREEDOM_LEAST 0.1
#define FREEDOM_MOST 1e6 /* normal, from here on */
#define TINY 1e-300

/* ---- Student's t ---------------------------------------------------------- */

static double away_from_zero(double value)
{
    return fabs(value) < TINY ? TINY : value;
}

static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), fraction = d;
    for (int m = 1; m < TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        fraction *= d * c;
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        fraction *= d * c;
        if (fabs(d * c - 1) < 1e-13)
            break;
    }
    return fraction;
}

/* The regularised incomplete beta function; rest is 1 - x, exactly. */
static double beta_share(double a, double b, double x, double rest)
{
    if (x <= 0 || rest <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, rest) / b;
}

static double t_tail(double t, double freedom)
{
    double sum = freedom + t * t;
    return 0.5 * beta_share(freedom / 2, 0.5, freedom / sum, t * t / sum);
}

double noise_t(double tail, double freedom)
{
    double low = 0, high = 1;
    freedom = fmin(fmax(freedom, FREEDOM_LEAST), FREEDOM_MOST);
    while (high < T_MOST && t_tail(high, freedom) > tail)
        high *= 2;
    for (int at = 0; at < HALVINGS && high - low > 1e-10 * high; at++) {
        double middle = (low + high) / 2;
        if (t_tail(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- variances ------------------------------------------------------------ */

double noise_share(const struct noise_side *side, const struct noise_part *part)
{
    return side->whole > 0 ? part->sum / side->whole : 0;
}

/* Of what the blocks show. */
static double blocks_freedom(const struct noise_side *side)
{
    if (side->blocks == NOISE_LOOKS || side->count < 2 || !(side->squares > 0))
        return 0;
    return fmax(side->whole * side->whole / side->squares - 1, 0);
}

double noise_seen(const struct noise_side *side, const struct noise_part *part)
{
    if (!(blocks_freedom(side) > 0))
        return 0;
    double share = noise_share(side, part);
    double squares = part->squares - 2 * share * part->cross + share * share * side->squares;
    return side->count / (side->count - 1) * fmax(squares, 0) / (side->whole * side->whole);
}

static double drift(const struct noise_side *side, double together)
{
    double one = NOISE_DRIFT * together * (1 - together);
    return one * one / side->runs;
}

static double counted(const struct noise_side *side, double together)
{
    return side->looks > 0 ? NOISE_INFLATION * together * (1 - together) / side->looks : 0;
}

double noise_expected(const struct noise_side *side, double together)
{
    if (!(blocks_freedom(side) > 0))
        return 0;
    return counted(side, together) + (side->blocks == NOISE_RUNS ? drift(side, together) : 0);
}

double noise_factor(const struct noise_side sides[2], double seen, double expected)
{
    double freedom = blocks_freedom(&sides[0]) + blocks_freedom(&sides[1]);
    if (!(expected > 0))
        return 1;
    double ratio = seen / expected;
    return ratio > 1 ? ratio : (freedom * ratio + NOISE_FREEDOM) / (freedom + NOISE_FREEDOM);
}

struct variance {
    double value, freedom;
};

/* Of independent things (Satterthwaite). */
static struct variance variance_sum(struct variance one, struct variance other)
{
    double value = one.value + other.value;
    double spread = one.value * one.value / one.freedom + other.value * other.value / other.freedom;
    return (struct variance){ value, spread > 0 ? value * value / spread : one.freedom + other.freedom };
}

static struct variance side_variance(const struct noise_side *side, const struct noise_part *part, double together, double factor)
{
    double freedom = blocks_freedom(side), before = side->looks > 0 ? NOISE_FREEDOM : 0;
    double expected = factor * (counted(side, together) + (side->blocks == NOISE_RUNS ? drift(side, together) : 0));
    if (!(before + freedom > 0))
        return (struct variance){ INFINITY, 1 };
    struct variance within = { (before * expected + freedom * noise_seen(side, part)) / (before + freedom), before + freedom };
    if (side->blocks == NOISE_RUNS)
        return within;
    return variance_sum(within, (struct variance){ drift(side, together), NOISE_FREEDOM });
}

double noise_bound(const struct noise_side sides[2], const struct noise_part parts[2], double together, double factor, double tests)
{
    struct variance one = side_variance(&sides[0], &parts[0], together, factor);
    struct variance other = side_variance(&sides[1], &parts[1], together, factor);
    if (isinf(one.value) || isinf(other.value))
        return INFINITY;
    struct variance both = variance_sum(one, other);
    return noise_t((1 - NOISE_CONFIDENCE) / 2 / fmax(tests, 1), both.freedom) * sqrt(both.value);
}
