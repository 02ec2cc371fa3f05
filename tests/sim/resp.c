/* SPDX-License-Identifier: MIT */
/* resp.c - the framing of commands and replies; see keyspace.h. */
#include "tests/sim/keyspace.h"

#include <stdlib.h>
#include <string.h>

static void append(struct hfi_buffer *reply, const void *bytes, size_t size)
{
    if (!hfi_buffer_append(reply, bytes, size))
        abort();
}

size_t sim_digits(char *text, int64_t number)
{
    char reversed[24];
    size_t count = 0, size = 0;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        reversed[count++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        text[size++] = '-';
    while (count > 0)
        text[size++] = reversed[--count];
    text[size] = 0;
    return size;
}

void sim_reply_number(struct hfi_buffer *reply, char kind, int64_t number)
{
    char text[32] = {kind};
    size_t size = 1 + sim_digits(text + 1, number);
    text[size] = '\r';
    text[size + 1] = '\n';
    append(reply, text, size + 2);
}

void sim_reply_bulk(struct hfi_buffer *reply, const void *bytes, size_t size)
{
    sim_reply_number(reply, '$', (int64_t)size);
    append(reply, bytes, size);
    append(reply, "\r\n", 2);
}

void sim_reply_line(struct hfi_buffer *reply, char kind, const char *text)
{
    append(reply, &kind, 1);
    append(reply, text, strlen(text));
    append(reply, "\r\n", 2);
}

void sim_reply_error(struct hfi_buffer *reply, const char *text)
{
    sim_reply_line(reply, '-', text);
}

void sim_reply_nil(struct hfi_buffer *reply)
{
    append(reply, "$-1\r\n", 5);
}

/* Parses the number and its line's end. The input is the simulator's or hiredis's own, so it is well-formed. */
static int64_t take_number(char **at)
{
    int64_t number = 0;
    while (**at >= '0' && **at <= '9')
        number = number * 10 + *(*at)++ - '0';
    *at += 2;
    return number;
}

size_t sim_words_parse(struct sim_words *words, char *bytes, size_t size)
{
    char *at = bytes, *end = bytes + size;
    words->count = 0;
    if (size < 4 || *at != '*')
        return 0;
    at++;
    int64_t count = take_number(&at);
    if (count < 1 || count > SIM_WORDS_MOST)
        return 0;
    for (int i = 0; i < count; i++) {
        if (at >= end || *at != '$')
            return 0;
        at++;
        size_t length = (size_t)take_number(&at);
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
