/* SPDX-License-Identifier: MIT
 *
 * Finding CPython. `_PyRuntime` is in .dynsym of every build of 3.11-3.15, static
 * or shared, and `Py_Version` tells the version without a call; a build that
 * hides the symbol still has the ELF section .PyRuntime.
 */
#include "preload/python.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hooks/log.h"

static struct {
    void *handle;              /* what dlsym looks in */
    char version[24];
} found;

/* Weak references, which the loader settles while it loads us: a dlsym that finds
 * nothing formats an error in the application's heap, in each process. */
extern char _PyRuntime[] __attribute__((weak));
extern char pypy_main_startup[] __attribute__((weak));

/* glibc's; absent on other C libraries. */
extern int dladdr1(const void *, Dl_info *, void **, int) __attribute__((weak));

void *python_symbol(const char *name)
{
    return dlsym(found.handle ? found.handle : RTLD_DEFAULT, name);
}

const char *python_version_text(void)
{
    return found.version;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- A private interpreter: an object whose name says libpython, loaded with RTLD_LOCAL. --- */

struct candidate {
    unsigned skip; /* objects with such a name before it */
    char path[4096];
};

/* Only copies a name: dlopen takes the loader's locks in another order than
 * dl_iterate_phdr, which holds one of them here. */
static int find_candidate(struct dl_phdr_info *info, size_t size, void *result)
{
    struct candidate *candidate = result;
    if (!info->dlpi_name || !strstr(base_name(info->dlpi_name), "python") || strlen(info->dlpi_name) >= sizeof candidate->path)
        return 0;
    if (candidate->skip) {
        candidate->skip--;
        return 0;
    }
    memcpy(candidate->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

/* RTLD_NOLOAD only finds; the reference keeps what we shall read from being unloaded. */
static void *open_if_runtime(const char *path)
{
    void *object = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (!object || dlsym(object, "_PyRuntime"))
        return object;
    dlclose(object);
    return NULL;
}

static void *find_private_runtime(void)
{
    struct candidate candidate;
    void *handle = NULL;
    for (unsigned n = 0; !handle; n++) {
        candidate.skip = n;
        if (!dl_iterate_phdr(find_candidate, &candidate))
            break;
        handle = open_if_runtime(candidate.path);
    }
    if (!handle)
        return NULL;
    found.handle = handle;
    return dlsym(handle, "_PyRuntime");
}

/* --- A hidden symbol: the section .PyRuntime in the program's own file. --- */

static uintptr_t section_address(const unsigned char *file, size_t size, uintptr_t bias)
{
    const ElfW(Ehdr) *elf = (const void *)file;
    if (size < sizeof *elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_shentsize != sizeof(ElfW(Shdr)) ||
        elf->e_shoff % _Alignof(ElfW(Shdr)) != 0 || elf->e_shoff > size ||
        elf->e_shnum * sizeof(ElfW(Shdr)) > size - elf->e_shoff || elf->e_shstrndx >= elf->e_shnum)
        return 0;
    const ElfW(Shdr) *sections = (const void *)(file + elf->e_shoff);
    const ElfW(Shdr) *names = &sections[elf->e_shstrndx];
    if (names->sh_offset > size || names->sh_size > size - names->sh_offset)
        return 0;
    for (unsigned i = 0; i < elf->e_shnum; i++) {
        static const char wanted[] = ".PyRuntime";
        if (sections[i].sh_name + sizeof wanted <= names->sh_size &&
            memcmp(file + names->sh_offset + sections[i].sh_name, wanted, sizeof wanted) == 0)
            return bias + sections[i].sh_addr;
    }
    return 0;
}

static int program_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static uintptr_t find_hidden_runtime(void)
{
    char program[4096];
    struct stat status;
    uintptr_t bias = 0, address = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return 0;
    program[length] = '\0';
    if (!strstr(base_name(program), "python"))
        return 0;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            dl_iterate_phdr(program_bias, &bias);
            address = section_address(file, (size_t)status.st_size, bias);
            munmap(file, (size_t)status.st_size);
        }
    }
    close(fd);
    return address;
}

/* --- What kind of interpreter it is. --- */

static void note_version(uint32_t hex)
{
    log_format(found.version, sizeof found.version, "%u.%u.%u", hex >> 24, hex >> 16 & 255, hex >> 8 & 255);
}

struct range { uintptr_t inside, start, end; };

static int find_range(struct dl_phdr_info *info, size_t size, void *context)
{
    struct range *range = context;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        start = at < start ? at : start;
        end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
    }
    if (range->inside < start || range->inside >= end)
        return 0;
    range->start = start;
    range->end = end;
    return 1;
}

static void note_file(struct py_target *target)
{
    struct range range = {.inside = target->runtime};
    /* By the code, not by the data: a copy relocation may put _PyRuntime into the program. */
    void *code = python_symbol("PyThread_start_new_thread");
    if (code)
        range.inside = (uintptr_t)code;
    dl_iterate_phdr(find_range, &range);
    target->text_start = range.start;
    target->text_end = range.end;
}

/* Size of the symbol; 0 where the C library does not tell. */
static size_t symbol_size(const void *address)
{
    Dl_info info;
    void *symbol = NULL;
    if (!dladdr1 || !dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) || !symbol || info.dli_saddr != address)
        return 0;
    return ((const ElfW(Sym) *)symbol)->st_size;
}

static enum python_verdict refuse(char *reason, size_t size, const char *text)
{
    log_format(reason, size, "%s", text);
    return PYTHON_REFUSED;
}

static enum python_verdict refuse_unversioned(char *reason, size_t size)
{
    const char *(*get_version)(void) = (const char *(*)(void))python_symbol("Py_GetVersion");
    if (!get_version)
        return refuse(reason, size, "this program exports _PyRuntime but is not CPython (no Py_Version); not profiling");
    char version[24];
    const char *text = get_version(); /* formats a static buffer, needs no initialised runtime */
    size_t n = 0;
    for (; text[n] && text[n] != ' ' && n < sizeof version - 1; n++)
        version[n] = text[n];
    version[n] = '\0';
    log_format(reason, size, "Python %s is not supported (3.11 to 3.15 are); not profiling", version);
    return PYTHON_REFUSED;
}

static enum python_verdict examine(struct py_target *target, uintptr_t runtime, char *reason, size_t size)
{
    const unsigned long *version = python_symbol("Py_Version");
    if (!version)
        return refuse_unversioned(reason, size);

    uint32_t hex = (uint32_t)*version;
    bool debug = python_symbol("_Py_NegativeRefcount") != NULL;
    const struct layout *layout = hex >> 24 == 3 ? layout_find(hex >> 16 & 255, debug) : NULL;
    note_version(hex);
    if (!layout) {
        log_format(reason, size, "Python %s is not supported (3.11 to 3.15 are); not profiling", found.version);
        return PYTHON_REFUSED;
    }
    if ((hex >> 4 & 15) != 15) {
        log_format(reason, size, "Python %s is a pre-release (0x%x), whose layout may differ; not profiling", found.version, hex);
        return PYTHON_REFUSED;
    }
    size_t bytes = symbol_size((void *)runtime);
    if (bytes && bytes < (size_t)layout->runtime_interpreters_main + sizeof(void *)) {
        log_format(reason, size, "this program exports a _PyRuntime of %zu bytes, which is not CPython's; not profiling", bytes);
        return PYTHON_REFUSED;
    }

    target->layout = *layout;
    target->runtime = runtime;
    target->version = hex;
    target->code_type = (uintptr_t)python_symbol("PyCode_Type");
    target->unicode_type = (uintptr_t)python_symbol("PyUnicode_Type");
    target->bytes_type = (uintptr_t)python_symbol("PyBytes_Type");
    target->method_type = (uintptr_t)python_symbol("PyMethod_Type");
    target->function_type = (uintptr_t)python_symbol("PyFunction_Type");
    target->cfunction_type = (uintptr_t)python_symbol("PyCFunction_Type");
    target->coro_type = (uintptr_t)python_symbol("PyCoro_Type");
    target->gen_type = (uintptr_t)python_symbol("PyGen_Type");
    target->async_gen_type = (uintptr_t)python_symbol("PyAsyncGen_Type");
    if (!target->code_type || !target->unicode_type || !target->bytes_type)
        return refuse(reason, size, "this Python does not export its basic types; not profiling");
    note_file(target);
    return PYTHON_SUPPORTED;
}

/* PyPy has no _PyRuntime, but its users deserve a line. */
static bool is_pypy(void)
{
    return pypy_main_startup != NULL;
}

enum python_verdict python_find(struct py_target *target, bool late, char *reason, size_t size)
{
    found.handle = NULL;
    void *runtime = _PyRuntime;
    if (!runtime && late)
        runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (!runtime && late)
        runtime = find_private_runtime();
    if (!runtime)
        runtime = (void *)find_hidden_runtime();
    if (runtime)
        return examine(target, (uintptr_t)runtime, reason, size);
    if (is_pypy())
        return refuse(reason, size, "PyPy is not supported (CPython 3.11 to 3.15 is); not profiling");
    return PYTHON_NONE;
}
