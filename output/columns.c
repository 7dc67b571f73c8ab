/* SPDX-License-Identifier: MIT */
#include "output/columns.h"

static void cell_put(FILE *stream, const struct columns_one *column, void *of, size_t row)
{
    if (column->put)
        column->put(stream, of, row);
    else
        fputs(column->same, stream);
}

static void column_put(FILE *stream, const struct columns_one *column, void *of, size_t rows)
{
    fprintf(stream, "\"%s\":[", column->name);
    for (size_t row = 0; row < rows; row++) {
        fputs(row ? "," : "", stream);
        cell_put(stream, column, of, row);
    }
    fputs(rows ? "],\n" : "],", stream);
}

void columns_put(FILE *stream, const struct columns_one *columns, void *of, size_t rows)
{
    for (; columns->name; columns++)
        column_put(stream, columns, of, rows);
    fprintf(stream, "\"length\":%zu}", rows);
}

void columns_table(FILE *stream, const char *name, const struct columns_one *columns, void *of, size_t rows)
{
    fprintf(stream, "\"%s\":{", name);
    columns_put(stream, columns, of, rows);
    fputs(",\n", stream);
}
