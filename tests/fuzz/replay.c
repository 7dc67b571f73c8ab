/* SPDX-License-Identifier: MIT
 *
 * In libFuzzer's place: runs each file given, or each of a directory, once.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static uint8_t *contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status)) {
        perror(path);
        exit(2);
    }
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    *size = fread(bytes, 1, (size_t)status.st_size, file);
    fclose(file);
    uint8_t *exact = malloc(*size); /* so that a read beyond is seen */
    memcpy(exact, bytes, *size);
    free(bytes);
    return exact;
}

static int run_file(const char *path)
{
    size_t size;
    uint8_t *bytes = contents(path, &size);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 1;
}

static int run_directory(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        count += entry->d_name[0] != '.' ? run_file(name) : 0;
    }
    if (directory)
        closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    struct stat status;
    for (int i = 1; i < argc; i++)
        if (!stat(argv[i], &status))
            count += S_ISDIR(status.st_mode) ? run_directory(argv[i]) : run_file(argv[i]);
    printf("%d inputs\n", count);
    return 0;
}
