/* SPDX-License-Identifier: MIT */
/* quantile.c - see quantile.h. */
#include "tests/support/quantile.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t hft_quantile(int64_t *numbers, int count, double q)
{
    if (count == 0)
        return 0;
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    int at = (int)(q * count);
    return numbers[at < count ? at : count - 1];
}
