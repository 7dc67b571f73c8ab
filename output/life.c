/* SPDX-License-Identifier: MIT */
#include "output/life.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_this_boot(const char *boot)
{
    char here[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    bool read = file && fscanf(file, "%39s", here) == 1;
    if (file)
        fclose(file);
    return read && boot && strcmp(boot, here) == 0;
}

bool life_is_near(const json_t *metadata)
{
    json_int_t namespace = json_integer_value(json_object_get(metadata, "pid_namespace"));
    struct stat own;
    return stat("/proc/self/ns/pid", &own) == 0 && (json_int_t)own.st_ino == namespace &&
           is_this_boot(json_string_value(json_object_get(metadata, "boot")));
}

bool life_is_gone(const json_t *metadata)
{
    json_int_t pid = json_integer_value(json_object_get(metadata, "pid"));
    return pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH && life_is_near(metadata);
}
