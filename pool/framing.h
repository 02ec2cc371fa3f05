/* SPDX-License-Identifier: MIT */
/* framing.h - where a reply ends, and that it is too much for us: known from the lengths it announces, before its bytes are
 * in memory. Pure. So what one caller has asked for can be passed over, and the replies behind it are still everybody's. */
#ifndef HFI_FRAMING_H
#define HFI_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_FRAME_DEEPEST 8 /* arrays within each other: hiredis 0.14 reads no more */

struct hfi_frame { /* all zero before the first byte of a reply */
    size_t   bytes;  /* of this reply so far */
    uint64_t owed;   /* elements that are still to come */
    uint64_t bulk;   /* bytes of the string at hand that are still to come, with the two that end it */
    uint64_t number; /* in the line at hand, */
    char     kind;   /* which began with this; 0: it has not begun */
    char     last;   /* its last byte so far */
    bool     negative, wrong;
    int      depth;
    uint64_t left[HFI_FRAME_DEEPEST]; /* of each open array, while they are not too deep */
};

/* Takes bytes up to the reply's end, at most; how many. */
size_t hfi_frame_eat(struct hfi_frame *frame, const char *bytes, size_t size);
bool hfi_frame_is_whole(const struct hfi_frame *frame);
/* No reply of RESP2: nobody knows where it ends. */
bool hfi_frame_is_wrong(const struct hfi_frame *frame);
/* It will be longer than `most`, or is nested too deeply to be read. */
bool hfi_frame_is_too_much(const struct hfi_frame *frame, size_t most);

#endif
