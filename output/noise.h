/* SPDX-License-Identifier: MIT
 *
 * noise: how far a share of one profile may lie from the same share of another
 * for no reason at all.
 *
 * The model. A side of a comparison is cut into blocks that are as good as
 * independent (see `enum noise_blocks`; whoever reads the spool cuts). A function
 * has x_b of the T_b that block b has in all. Its share is the ratio estimator
 *
 *     p = sum x_b / sum T_b
 *
 * in which a block weighs what it lasted. The variance of p that the k blocks show is
 *
 *     s2 = k / (k - 1) * sum (x_b - p T_b)^2 / T^2,       T = sum T_b
 *
 * (linearised; Cochran, Sampling Techniques, 3rd ed., 6.4), with
 * d = T^2 / sum T_b^2 - 1 degrees of freedom: k - 1 for equal blocks, fewer where
 * some weigh more.
 *
 * Few blocks say little about a variance, one says nothing. So each variance is
 * moderated by what is known before (a scaled inverse chi-square prior; as Smyth
 * 2004, doi 10.2202/1544-6115.1027, does for genes):
 *
 *     v = (d0 v0 + d s2) / (d0 + d)     with d0 + d degrees of freedom
 *     v0 = INFLATION p (1 - p) / n + (DRIFT p (1 - p))^2 / runs
 *
 * where p is that of both sides together, n the looks that the sampler took at the
 * metric, and DRIFT what the speed of one function changes by against the others
 * from run to run, of which a single run shows nothing: its own blocks are windows
 * or processes, and the second term is then added to v, not moderated.
 *
 * How noisy a machine is shows in all functions together, so v0 is scaled by a factor
 * for all: with R = (sum of s2) / (sum of v0), it is R where that is above 1, else
 * (d R + d0) / (d + d0), d being the freedom of both sides' blocks together, as if
 * all functions were one.
 *
 * INFLATION and DRIFT are measured, on a virtual machine of two cores with several
 * times as much to do, by shares of CPU time in runs of a program of nine functions
 * (tests/oracles/mix.py), against p (1 - p) / n of one run:
 *
 *   60 runs of 100 looks      0.4 to 1.6 times, median 1.2
 *   40 runs of 1,900 looks    0.9 to 2.8 times, median 1.3
 *   16 runs of 8 seconds,
 *   1,760 looks               0.6 to 6.6 times, median 2.6: beyond 1.3 a drift of 0.03
 *                             to 0.18, median 0.1
 *
 * and d0 says how far to trust them. tests/integration/run --only gate-alarms counts
 * false alarms among real runs, tests/unit/check_noise.c among simulated ones.
 *
 * The difference of two shares has the variance of both together and, by Welch and
 * Satterthwaite, sum^2 / (va^2/da + vb^2/db) degrees of freedom. Its bound is t at
 * 1 - (1 - CONFIDENCE) / 2 / tests: with as many tests as there are shares looked
 * at (Bonferroni), all differences at once lie within their bounds around the truth
 * with that confidence, whatever depends on what.
 *
 * Shares run from 0 to 1 here. [tool] only; plain arithmetic, no memory.
 */
#ifndef APROF_OUTPUT_NOISE_H
#define APROF_OUTPUT_NOISE_H

#include <stdint.h>

#define NOISE_CONFIDENCE 0.95
#define NOISE_INFLATION 2.0
#define NOISE_DRIFT 0.1
#define NOISE_FREEDOM 6.0 /* d0 */

/* What the blocks of a side are, the best first. */
enum noise_blocks {
    NOISE_RUNS,      /* two or more */
    NOISE_WINDOWS,   /* of one run: all its processes by the time of their windows */
    NOISE_PROCESSES, /* of one run without enough of these */
    NOISE_LOOKS,     /* one of everything: looks are counted, nothing is measured */
};

/* One side: its blocks together. */
struct noise_side {
    enum noise_blocks blocks;
    double count;    /* of blocks */
    double whole;    /* sum T_b */
    double squares;  /* sum T_b^2 */
    double runs;     /* at least 1 */
    double looks;    /* n; 0: not known */
};

/* One share of a side. */
struct noise_part {
    double sum, squares; /* sum x_b, sum x_b^2 */
    double cross;        /* sum x_b T_b */
};

double noise_share(const struct noise_side *side, const struct noise_part *part);

/* s2 and v0, whose sums over all shares give the factor. 0 where the side's blocks
 * say nothing. together: the share of both sides together. */
double noise_seen(const struct noise_side *side, const struct noise_part *part);
double noise_expected(const struct noise_side *side, double together);
double noise_factor(const struct noise_side sides[2], double seen, double expected);

/* The bound of one difference among so many; infinite where a side has no looks
 * and too few blocks. factor: of noise_factor. */
double noise_bound(const struct noise_side sides[2], const struct noise_part parts[2], double together, double factor, double tests);

/* The t of that many degrees of freedom (0.1 at least; may be broken) that is not
 * passed with a probability of 1 - tail, tail from 1e-12 to 0.5. */
double noise_t(double tail, double freedom);

#endif
