/* SPDX-License-Identifier: MIT
 *
 * In place of Check's: the headers of tests/unit that make objects check what they
 * are asked for, and here nobody runs them as tests.
 */
#ifndef APROF_TESTS_FUZZ_CHECK_H
#define APROF_TESTS_FUZZ_CHECK_H

#include <stdlib.h>

#define ck_assert(truth) ((truth) ? (void)0 : abort())
#define ck_assert_int_ge(a, b) ck_assert((a) >= (b))
#define ck_assert_int_le(a, b) ck_assert((a) <= (b))
#define ck_assert_uint_le(a, b) ck_assert((a) <= (b))
#define ck_assert_uint_lt(a, b) ck_assert((a) < (b))

#endif
