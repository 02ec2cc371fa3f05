/* SPDX-License-Identifier: MIT */
/* from_table.h - bench/neighbours/from_the_table.csv: measurements of the libraries that cannot run here, from where
 * they could. */
#ifndef BENCH_FROM_TABLE_H
#define BENCH_FROM_TABLE_H

enum bench_cell { BENCH_OWN_1, BENCH_OWN_64, BENCH_ONE_64, BENCH_ONE_4X16, BENCH_HAND_OFF, BENCH_CELLS };

struct bench_table {
    int count;
    struct bench_table_row {
        char library[40];
        double cells[BENCH_CELLS];
    } rows[16]; /* the first is the plain loop */
};

void bench_table_read(struct bench_table *table);
const struct bench_table_row *bench_table_find(const struct bench_table *table,
                                               const char *library); /* or NULL */

#endif
