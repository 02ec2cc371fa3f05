/* SPDX-License-Identifier: MIT */
/* framing.h - finds where a reply ends, and whether it is too much for us, from the lengths that it announces, before
 * its bytes are in memory. So one caller's reply can be passed over, and the replies behind it reach their callers.
 * Pure. */
#ifndef HFI_FRAMING_H
#define HFI_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_FRAME_DEEPEST 8 /* nested arrays; hiredis 0.14 reads no deeper */

struct hfi_frame { /* all zero before the first byte of a reply */
    size_t   bytes;  /* of this reply so far */
    uint64_t owed;   /* elements still to come */
    uint64_t bulk;   /* bytes of the current string still to come, with the two that end it */
    uint64_t number; /* the number in the current line */
    char     kind;   /* the first byte of the current line; 0: it has not begun */
    char     last;   /* the last byte of the current line so far */
    bool     negative, wrong;
    int      depth;
    uint64_t left[HFI_FRAME_DEEPEST]; /* elements left of each open array, unless it is too deep */
};

/* Consumes bytes, at most up to the reply's end. Returns how many. */
size_t hfi_frame_eat(struct hfi_frame *frame, const char *bytes, size_t size);
bool hfi_frame_is_whole(const struct hfi_frame *frame);
/* The reply is not RESP2, so its end is unknown. */
bool hfi_frame_is_wrong(const struct hfi_frame *frame);
/* The reply will be longer than `most`, or is nested too deeply for hiredis. */
bool hfi_frame_is_too_much(const struct hfi_frame *frame, size_t most);

#endif
