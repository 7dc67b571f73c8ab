/* SPDX-License-Identifier: MIT
 *
 * fuzz: what a target of libFuzzer exports, and what all of them use.
 */
#ifndef APROF_TESTS_FUZZ_H
#define APROF_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The target's own: one input. Called through tests/fuzz/entry.c. */
void fuzz_input(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* A promise of the library's that an input broke. */
#define FUZZ_HOLDS(truth) ((truth) ? (void)0 : fuzz_broken(#truth, __FILE__, __LINE__))

static inline void fuzz_broken(const char *text, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    abort();
}

/* What the library remembers between two walks, forgotten: an input's work is its own. */
void reset_coros(void), reset_awaiters(void), reset_codes(void);

#endif
