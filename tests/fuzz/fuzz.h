/* SPDX-License-Identifier: MIT */
/* fuzz.h - the function that every fuzzer has, and how it reports a broken promise. */
#ifndef HFT_FUZZ_H
#define HFT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HFT_MUST(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

/* The input as text: a copy of the next line, without its end; "" at the end. The caller frees it. */
static inline char *hft_line(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size > 0 ? memchr(*data, '\n', *size) : NULL;
    size_t length = end != NULL ? (size_t)(end - *data) : *size;
    char *line = malloc(length + 1);
    HFT_MUST(line != NULL);
    if (length > 0)
        memcpy(line, *data, length);
    line[length] = 0;
    *data += end != NULL ? length + 1 : length;
    *size -= end != NULL ? length + 1 : length;
    return line;
}

#endif
