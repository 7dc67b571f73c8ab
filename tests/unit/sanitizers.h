/* SPDX-License-Identifier: MIT
 *
 * sanitizers: which of them this test was built with. A runtime that catches
 * faults or defers signals itself leaves some tests without a subject.
 */
#ifndef APROF_TESTS_SANITIZERS_H
#define APROF_TESTS_SANITIZERS_H

#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

#endif
