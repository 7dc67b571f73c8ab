/* SPDX-License-Identifier: MIT
 *
 * For LD_AUDIT: an auditor that asks to be told of every binding.
 */
#include <link.h>

unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) { return LA_FLG_BINDTO | LA_FLG_BINDFROM; }
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name)
{
    return symbol->st_value;
}
