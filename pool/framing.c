/* SPDX-License-Identifier: MIT */
/* framing.c - see framing.h. A reply is one element; an array owes as many more as it announces. */
#include "pool/framing.h"

#include <string.h>

#define NUMBER_MOST (UINT64_C(1) << 48) /* a larger number is an error of the protocol */
#define PLAIN_MOST  16                  /* bytes of the longest line that eat_plain_line reads */
#define LEAST       4                   /* bytes of the shortest element: ":1\r\n" */

static bool is_too_deep(const struct hfi_frame *frame)
{
    return frame->depth > HFI_FRAME_DEEPEST;
}

/* An element has ended, and with it every array whose last element it was. */
static void end_element(struct hfi_frame *frame)
{
    frame->owed--;
    while (!is_too_deep(frame) && frame->depth > 0 && --frame->left[frame->depth - 1] == 0)
        frame->depth--;
}

static void begin_array(struct hfi_frame *frame, uint64_t count)
{
    if (count == 0) {
        if (frame->depth == HFI_FRAME_DEEPEST)
            frame->depth++; /* hiredis refuses an empty one there, too */
        end_element(frame);
        return;
    }
    frame->owed += count - 1;
    frame->wrong = frame->owed > 10 * NUMBER_MOST;
    if (is_too_deep(frame))
        return;
    if (frame->depth < HFI_FRAME_DEEPEST)
        frame->left[frame->depth] = count;
    frame->depth++;
}

static void end_line(struct hfi_frame *frame)
{
    char kind = frame->kind;
    frame->kind = 0;
    if (kind == '*')
        begin_array(frame, frame->negative ? 0 : frame->number);
    else if (kind == '$' && !frame->negative)
        frame->bulk = frame->number + 2;
    else
        end_element(frame);
}

static void read_digit(struct hfi_frame *frame, char digit)
{
    if (digit >= '0' && digit <= '9' && frame->number < NUMBER_MOST)
        frame->number = 10 * frame->number + (uint64_t)(digit - '0');
    else if (digit == '-' && frame->number == 0)
        frame->negative = true;
    else if (digit != '\r')
        frame->wrong = true;
}

/* Returns the last byte of the current line, or NULL if the line does not end within these bytes. */
static const char *end_of_line(const struct hfi_frame *frame, const char *bytes, size_t size)
{
    const char *at = memchr(bytes, '\n', size);
    while (at != NULL && (at == bytes ? frame->last : at[-1]) != '\r')
        at = memchr(at + 1, '\n', size - (size_t)(at + 1 - bytes));
    return at;
}

/* Consumes bytes, at most up to the end of the line. Returns how many. */
static size_t eat_line(struct hfi_frame *frame, const char *bytes, size_t size)
{
    const char *end = end_of_line(frame, bytes, size);
    size_t used = end != NULL ? (size_t)(end - bytes) + 1 : size, at = 0;
    if (frame->kind == 0) {
        frame->kind = bytes[at++];
        frame->number = 0;
        frame->negative = false;
        frame->wrong = memchr("+-:$*", frame->kind, 5) == NULL;
    }
    if (frame->kind == '$' || frame->kind == '*')
        for (; at < used - (end != NULL) && !frame->wrong; at++)
            read_digit(frame, bytes[at]);
    frame->last = bytes[used - 1];
    if (end != NULL && !frame->wrong)
        end_line(frame);
    return used;
}

/* Fast path for nearly every line ("$1000\r\n", "*2\r\n", ":7\r\n"): one that begins here and is complete. Returns
 * its size, or 0 for any other line. */
static size_t eat_plain_line(struct hfi_frame *frame, const char *bytes, size_t size)
{
    uint64_t number = 0;
    size_t at = 1;
    if (size < PLAIN_MOST || frame->kind != 0 || (bytes[0] != '$' && bytes[0] != '*' && bytes[0] != ':'))
        return 0;
    while (at < PLAIN_MOST - 2 && bytes[at] >= '0' && bytes[at] <= '9')
        number = 10 * number + (uint64_t)(bytes[at++] - '0');
    if (at == 1 || bytes[at] != '\r' || bytes[at + 1] != '\n')
        return 0;
    frame->kind = bytes[0];
    frame->number = number;
    frame->negative = false;
    end_line(frame);
    return at + 2;
}

size_t hfi_frame_eat(struct hfi_frame *frame, const char *bytes, size_t size)
{
    size_t used = 0;
    if (frame->bytes == 0)
        frame->owed = 1;
    while (used < size && frame->owed > 0 && !frame->wrong) {
        if (frame->bulk == 0) {
            size_t line = eat_plain_line(frame, bytes + used, size - used);
            used += line > 0 ? line : eat_line(frame, bytes + used, size - used);
            continue;
        }
        size_t part = frame->bulk < size - used ? (size_t)frame->bulk : size - used;
        used += part;
        frame->bulk -= part;
        if (frame->bulk == 0)
            end_element(frame);
    }
    frame->bytes += used;
    return used;
}

bool hfi_frame_is_whole(const struct hfi_frame *frame)
{
    return frame->bytes > 0 && frame->owed == 0;
}

bool hfi_frame_is_wrong(const struct hfi_frame *frame)
{
    return frame->wrong;
}

bool hfi_frame_is_too_much(const struct hfi_frame *frame, size_t most)
{
    return is_too_deep(frame) || frame->bytes > most || frame->bulk > most - frame->bytes ||
           frame->owed > (most - frame->bytes) / LEAST + 1;
}
