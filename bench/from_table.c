/* SPDX-License-Identifier: MIT */
/* from_table.c - see from_table.h. */
#include "bench/from_table.h"

#include "bench/harness.h"

#include <string.h>

#define PATH "bench/neighbours/from_the_table.csv"

void bench_table_read(struct bench_table *table)
{
    char line[256];
    FILE *file = fopen(PATH, "re");
    *table = (struct bench_table){0};
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        struct bench_table_row *row = &table->rows[table->count];
        if (line[0] == '#' || strncmp(line, "library,", 8) == 0)
            continue;
        if (table->count == 16 ||
            sscanf(line, "%39[^,],%lf,%lf,%lf,%lf,%lf", row->library, &row->cells[0], &row->cells[1],
                   &row->cells[2], &row->cells[3], &row->cells[4]) != 1 + BENCH_CELLS)
            bench_die("%s: cannot read: %s", PATH, line);
        table->count++;
    }
    if (file == NULL || table->count == 0)
        bench_die("cannot read %s: start in the project's folder", PATH);
    (void)fclose(file);
}

const struct bench_table_row *bench_table_find(const struct bench_table *table, const char *library)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].library, library) == 0)
            return &table->rows[i];
    return NULL;
}
