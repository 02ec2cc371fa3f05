/* SPDX-License-Identifier: MIT */
/* resp.c - the framing of commands and replies; see keyspace.h. */
#include "tests/sim/keyspace.h"

#include <stdlib.h>
#include <string.h>

void sim_reply_bulk(struct hfi_buffer *reply, const void *bytes, size_t size)
{
    if (!hfi_buffer_print(reply, "$%zu\r\n", size) || !hfi_buffer_append(reply, bytes, size) ||
        !hfi_buffer_append(reply, "\r\n", 2))
        abort();
}

void sim_reply_error(struct hfi_buffer *reply, const char *text)
{
    if (!hfi_buffer_print(reply, "-%s\r\n", text))
        abort();
}

size_t sim_words_parse(struct sim_words *words, char *bytes, size_t size)
{
    char *at = bytes, *end = bytes + size;
    words->count = 0;
    if (size < 4 || *at != '*')
        return 0;
    long count = strtol(at + 1, &at, 10);
    at += 2;
    if (count < 1 || count > SIM_WORDS_MOST)
        return 0;
    for (int i = 0; i < count; i++) {
        if (at >= end || *at != '$')
            return 0;
        size_t length = (size_t)strtol(at + 1, &at, 10);
        at += 2;
        if (at + length + 2 > end)
            return 0;
        words->text[i] = at;
        words->size[i] = length;
        at[length] = 0; /* over the CR */
        at += length + 2;
    }
    words->count = (int)count;
    return (size_t)(at - bytes);
}
