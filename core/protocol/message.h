/* SPDX-License-Identifier: MIT */
/* message.h - the messages of a control channel. Pure. What is parsed is untrusted: any client may publish it. */
#ifndef HFI_MESSAGE_H
#define HFI_MESSAGE_H

#include "core/protocol/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * G token echo fence key       the lease was handed to this token
 * R token key                  another process waits for what this token holds
 * F token                      the value that this token waits for has been stored
 * B token revoked key          an operator took the lease; when its holder has stopped, release `revoked` ("-": none)
 * I token channel              publish to this channel what is known of this token's lease
 * A token fence held_ms label  the answer to I
 *
 * D, E                         a probe for deadlocks, see probe.h
 *
 * On the channel of an election (key.h), and nowhere else:
 * L token                      this token has the lock ("-": it has been given back)
 */
struct hfi_message {
    char        letter;
    const char *token;
    size_t      token_size;
    int64_t     echo, fence, held_ms; /* G: echo, fence. A: fence, held_ms */
    const char *rest;                 /* B: revoked; I: channel; A: label, D, E: the probe, to the end */
    size_t      rest_size;
    const char *key;                  /* G, R, B: the lock's, to the end; untrusted; empty if from an older program */
    size_t      key_size;
};

/* False: malformed, or of a kind that this version does not know. The pointers point into `text`. */
bool hfi_message_parse(const char *text, size_t size, struct hfi_message *message);

/* Print I, and the A that answers it; the other messages come from scripts. */
#define HFI_MESSAGE_CAPACITY (HFI_TOKEN_CAPACITY + 256)
void hfi_message_print_inquiry(const char *token, size_t token_size, const char *channel, char out[HFI_MESSAGE_CAPACITY]);
void hfi_message_print_answer(const struct hfi_message *inquiry, int64_t fence, int64_t held_ms, const char *label,
                              char out[HFI_MESSAGE_CAPACITY]);

/* L, and whether a message is one. What it says is not believed: it only tells that it is time to look. */
void hfi_message_print_notice(const char *token, char out[HFI_MESSAGE_CAPACITY]);
bool hfi_message_is_notice(const char *text, size_t size);

#endif
