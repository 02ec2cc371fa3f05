/* SPDX-License-Identifier: MIT */
/* message.h - parses the messages of a control channel. Pure. The bytes are untrusted: any client may publish them. */
#ifndef HFI_MESSAGE_H
#define HFI_MESSAGE_H

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
 */
struct hfi_message {
    char        letter;
    const char *token;
    size_t      token_size;
    int64_t     echo, fence, held_ms; /* G: echo, fence. A: fence, held_ms */
    const char *rest;                 /* B: revoked; I: channel; A: label, to the end */
    size_t      rest_size;
    const char *key;                  /* G, R, B: the lock's, to the end; untrusted; empty if from an older program */
    size_t      key_size;
};

/* False: malformed, or of a kind that this version does not know. The pointers point into `text`. */
bool hfi_message_parse(const char *text, size_t size, struct hfi_message *message);

#endif
