/* SPDX-License-Identifier: MIT
 *
 * The usual reason is that the folder of all runs was named, not one run's.
 */
#include "output/nothing.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/tool.h"

void nothing_explain(const struct reader *reader, const char *verb, const char *wanted, int count, char **paths)
{
    char there[512] = "";
    size_t length = 0;
    bool has_metric = !wanted;
    const char *metric;
    for (uint32_t at = 0; (metric = reader_metric(reader, at)) && length < sizeof there; at++) {
        length += (size_t)snprintf(there + length, sizeof there - length, "%s%s", at ? ", " : "", metric);
        has_metric = has_metric || !strcmp(wanted, metric);
    }
    const char *path = count ? paths[0] : TOOL_DEFAULT_PATH, *more = count > 1 ? " and the others" : "";
    char only[256] = "";
    if (reader_filtered(reader))
        filter_describe(reader_filtered(reader), FILTER_ONLY, only, sizeof only);
    uint64_t folders = reader_counts(reader)->folders;
    if (!*there && folders)
        tool_complain("nothing to %s: %s%s: no stacks (aprof.*.collapsed) there, but %" PRIu64 " folder%s that may hold a run: name one",
                      verb, path, more, folders, tool_plural(folders));
    else if (!*there)
        tool_complain("nothing to %s: %s%s: no stacks (aprof.*.collapsed) there", verb, path, more);
    else if (has_metric && *only)
        tool_complain("nothing to %s: no stack%s%s in %s%s has a frame that matches %s (see PATTERN in --help)", verb, wanted ? " of " : "",
                      wanted ? wanted : "", path, more, only);
    else if (!has_metric)
        tool_complain("nothing to %s: no metric \"%s\" in %s%s (there is: %s)", verb, wanted, path, more, there);
    else
        tool_complain("nothing to %s: %s%s: nothing recorded yet (%s)", verb, path, more, wanted ? wanted : there);
}

uint64_t nothing_folders(const char *path)
{
    DIR *directory = opendir(path);
    uint64_t folders = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        folders += entry->d_type == DT_DIR && entry->d_name[0] != '.';
    if (directory)
        closedir(directory);
    return folders;
}
