/* SPDX-License-Identifier: MIT */
/* message.h - what comes over a control channel, taken apart. Pure; the bytes may be anybody's. */
#ifndef HFI_MESSAGE_H
#define HFI_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * G token echo fence key      you were handed the lease
 * R token key            somebody waits for what this token holds
 * F token                the value you wait for was filled
 * B token revoked key    an operator took it; give `revoked` back when you have stopped ("-": nothing to give back)
 * I token channel        tell this channel what you know of your lease
 * A token fence held_ms label   the answer to I
 */
struct hfi_message {
    char        letter;
    const char *token;
    size_t      token_size;
    int64_t     echo, fence, held_ms; /* G: echo, fence. A: fence, held_ms */
    const char *rest;                 /* B: revoked; I: channel; A: label, to the end */
    size_t      rest_size;
    const char *key;                  /* G, R, B: the lock's, to the end; not to be trusted; empty where older programs spoke */
    size_t      key_size;
};

/* False: not a message that this version knows. */
bool hfi_message_parse(const char *text, size_t size, struct hfi_message *message);

#endif
