/* SPDX-License-Identifier: MIT
 * The module itself, and its reader of the program's file for a target to call. */
#include "preload/python.c"

#include "tests/fuzz/elf.h"

uintptr_t elf_runtime(const unsigned char *file, size_t size)
{
    return section_address(file, size, 0x400000);
}
