/* SPDX-License-Identifier: MIT */
/* memory.c - see memory.h. */
#include "bench/memory.h"

#include "bench/harness.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

double bench_resident_bytes(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Rss: %ld kB", &kib) != 1)
            kib = -1;
    if (file == NULL || kib < 0)
        bench_die("cannot read smaps_rollup");
    (void)fclose(file);
    return (double)kib * 1024;
}

double bench_touched_bytes(void *from, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = size / page, touched = 0;
    unsigned char *resident = malloc(pages);
    if (resident == NULL || mincore(from, size, resident) != 0)
        bench_die("mincore fails");
    for (size_t i = 0; i < pages; i++)
        touched += resident[i] & 1;
    free(resident);
    return (double)(touched * page);
}
