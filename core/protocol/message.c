/* SPDX-License-Identifier: MIT */
/* message.c - see message.h. */
#include "core/protocol/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct scan {
    const char *at, *end;
};

/* The next word, up to a blank or the end; false if it is empty. */
static bool word(struct scan *scan, const char **start, size_t *size)
{
    if (scan->at < scan->end && *scan->at == ' ')
        scan->at++;
    *start = scan->at;
    while (scan->at < scan->end && *scan->at != ' ')
        scan->at++;
    *size = (size_t)(scan->at - *start);
    return *size > 0;
}

static bool number(struct scan *scan, int64_t *value)
{
    const char *start;
    size_t size;
    if (!word(scan, &start, &size) || size > 19)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        if (start[i] < '0' || start[i] > '9')
            return false;
        sum = sum * 10 + (uint64_t)(start[i] - '0');
    }
    *value = (int64_t)sum;
    return sum <= INT64_MAX;
}

/* The rest of the message, blanks included; may be empty. */
static void tail(const struct scan *scan, const char **start, size_t *size)
{
    *start = scan->at < scan->end ? scan->at + 1 : scan->end;
    *size = (size_t)(scan->end - *start);
}

bool hfi_message_parse(const char *text, size_t size, struct hfi_message *message)
{
    struct scan scan = {text, text + size};
    const char *letter;
    size_t letter_size;
    memset(message, 0, sizeof *message);
    if (!word(&scan, &letter, &letter_size) || letter_size != 1 ||
        !word(&scan, &message->token, &message->token_size))
        return false;
    message->letter = letter[0];
    switch (message->letter) {
    case 'G':
        if (!number(&scan, &message->echo) || !number(&scan, &message->fence))
            return false;
        tail(&scan, &message->key, &message->key_size);
        return true;
    case 'R':
        tail(&scan, &message->key, &message->key_size);
        return true;
    case 'F':
        return true;
    case 'B':
        if (!word(&scan, &message->rest, &message->rest_size))
            return false;
        tail(&scan, &message->key, &message->key_size);
        return true;
    case 'I':
        return word(&scan, &message->rest, &message->rest_size);
    case 'D':
    case 'E':
        tail(&scan, &message->rest, &message->rest_size);
        return true;
    case 'A':
        if (!number(&scan, &message->fence) || !number(&scan, &message->held_ms))
            return false;
        tail(&scan, &message->rest, &message->rest_size);
        return true;
    default:
        return false;
    }
}

void hfi_message_print_inquiry(const char *token, size_t token_size, const char *channel, char out[HFI_MESSAGE_CAPACITY])
{
    (void)snprintf(out, HFI_MESSAGE_CAPACITY, "I %.*s %s", (int)token_size, token, channel);
}

void hfi_message_print_answer(const struct hfi_message *inquiry, int64_t fence, int64_t held_ms, const char *label,
                              char out[HFI_MESSAGE_CAPACITY])
{
    (void)snprintf(out, HFI_MESSAGE_CAPACITY, "A %.*s %" PRId64 " %" PRId64 " %s", (int)inquiry->token_size, inquiry->token,
                   fence, held_ms, label);
}

void hfi_message_print_notice(const char *token, char out[HFI_MESSAGE_CAPACITY])
{
    (void)snprintf(out, HFI_MESSAGE_CAPACITY, "L %s", token);
}

bool hfi_message_is_notice(const char *text, size_t size)
{
    return size > 2 && text[0] == 'L' && text[1] == ' ';
}
