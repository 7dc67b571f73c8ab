/* SPDX-License-Identifier: MIT
 *
 * elf: what preload/python.c takes from the program's own file.
 */
#ifndef APROF_TESTS_FUZZ_ELF_H
#define APROF_TESTS_FUZZ_ELF_H

#include <stddef.h>
#include <stdint.h>

uintptr_t elf_runtime(const unsigned char *file, size_t size);

#endif
