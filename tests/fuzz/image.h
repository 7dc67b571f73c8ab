/* SPDX-License-Identifier: MIT
 *
 * image: hooks/guard.h over a memory that the fuzzer's bytes decide about.
 *
 * An image is made once, of well-formed objects, by the headers of tests/unit
 * (fake_python.h, fake_asyncio.h ...), which map their regions by fake_map. Each
 * input then is a sequence of edits of it, before anything is read or in the middle
 * of it. So the empty input is an interpreter in order, and every input is near to
 * one. What was read when nothing was edited is known: most edits hit such words.
 *
 * Beside the image there are two regions of the fuzzer's own: an arena of words, and
 * endless memory, which is the arena again and again, for what would walk on as long as
 * memory can be read.
 *
 * Reads are counted; more than a target allows is a crash, as a reader's work must be
 * bounded whatever it meets.
 */
#ifndef APROF_TESTS_FUZZ_IMAGE_H
#define APROF_TESTS_FUZZ_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_ARENA_AT 0x700000000ul
#define IMAGE_ARENA_BYTES 2048u
#define IMAGE_ENDLESS_AT 0x600000000000ul
#define IMAGE_ENDLESS_BYTES (1ul << 24)

/* One edit as it stands in an input, little-endian, 16 bytes. */
struct image_edit {
    uint8_t where;  /* IMAGE_WORD_READ ... */
    uint8_t what;   /* IMAGE_SET_WORD ... */
    uint16_t when;  /* 0: before the first read; else before the read of this number */
    uint16_t place; /* the number of a word that is read, or of a region */
    uint16_t more;  /* offset */
    uint64_t value;
};

struct image;

/* Everything that was mapped by fake_map since fake_reset, taken over; it is kept for good. */
struct image *image_seal(void);
/* Tells which words are read when nothing is edited: between these two. */
void image_record_begin(struct image *image);
void image_record_end(void);

/* From now on this image is memory, as it was made, but for the edits of the input. */
void image_begin(struct image *image, const uint8_t *edits, size_t size);

/* So many reads from now on, at most; a copy of many bytes counts as one for each 64 of them. */
void image_allow(unsigned long reads);
/* Reads since image_allow. */
unsigned long image_reads(void);

/* LLVMFuzzerCustomMutator's work on inputs of `head` bytes followed by edits. */
size_t image_mutate(uint8_t *data, size_t size, size_t most, unsigned seed, size_t head);

#endif
