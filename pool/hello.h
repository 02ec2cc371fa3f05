/* SPDX-License-Identifier: MIT */
/* hello.h - what is said on a new connection before it may be used, and what answers will do. No I/O: the
 * dial carries the bytes. */
#ifndef HFI_HELLO_H
#define HFI_HELLO_H

#include "base/buffer.h"
#include "pool/dial.h"

#include <stdint.h>

#define HFI_HELLO_MOST 64 /* questions in one pipeline */

struct hfi_hello {
    struct hfi_pool *pool;
    enum hfi_dial_purpose purpose;
    int lane;

    struct hfi_buffer out; /* to be sent */
    bool over;             /* everything is answered */

    int stage;
    unsigned char asked[HFI_HELLO_MOST]; /* of this stage, in order */
    int asked_count, answered;
    struct hfi_server server;
    uint64_t lacks; /* of the owner's scripts, those that the server has not: a bit each */
    struct hfi_command *greeting;
    int64_t greeting_sent_ns;
};

void hfi_hello_init(struct hfi_hello *hello, struct hfi_pool *pool, enum hfi_dial_purpose purpose, int lane);
void hfi_hello_done(struct hfi_hello *hello);  /* wipes and frees */
bool hfi_hello_begin(struct hfi_hello *hello); /* the first questions into `out`; false: no memory */
/* The next answer. Not HF_OK: the connection is refused, *error says why. */
hf_status hfi_hello_answer(struct hfi_hello *hello, const struct redisReply *reply, hf_error *error);

#endif
