/* SPDX-License-Identifier: MIT */
#include "preload/order.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define OUR_SONAME "libaprof.so" /* Makefile */
#define LIBC_SONAME "libc.so.6"

/* The loader has relocated the addresses in a dynamic section, unless it cannot
 * be written (the vDSO's). */
static const char *soname_at(const struct dl_phdr_info *info, const ElfW(Dyn) *entry)
{
    uintptr_t strings = 0;
    const ElfW(Dyn) *name = NULL;
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SONAME)
            name = entry;
    }
    if (!strings || !name)
        return "";
    return (const char *)(strings < info->dlpi_addr ? strings + info->dlpi_addr : strings) + name->d_un.d_val;
}

static const char *soname_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return soname_at(info, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    return "";
}

static bool is_this_object(const struct dl_phdr_info *info)
{
    uintptr_t here = (uintptr_t)order_find;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && here - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return true;
    }
    return false;
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    enum order *order = context;
    if (is_this_object(info))
        return 1;
    const char *soname = soname_of(info);
    *order = strcmp(soname, OUR_SONAME) == 0 ? ORDER_SECOND : strcmp(soname, LIBC_SONAME) == 0 ? ORDER_BEHIND : ORDER_FRONT;
    return *order != ORDER_FRONT;
}

enum order order_find(void)
{
    enum order order = ORDER_FRONT;
    dl_iterate_phdr(look, &order);
    return order;
}
