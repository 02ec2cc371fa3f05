/* SPDX-License-Identifier: MIT */
/* decimal.h - prints a number without printf, which is slow: every command has several. */
#ifndef HFI_DECIMAL_H
#define HFI_DECIMAL_H

#include <stdint.h>

/* Writes the digits, 20 at most, in front of `end`. Returns the first. */
static inline char *hfi_decimal(char *end, uint64_t number)
{
    do
        *--end = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return end;
}

#endif
