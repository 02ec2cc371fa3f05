/* SPDX-License-Identifier: MIT */
/* value.h - the bytes of a fetched value, reference-counted, and hf_value, a caller's view of them. */
#ifndef HFI_VALUE_H
#define HFI_VALUE_H

#include <holdfast/fetch.h>

#include <stdatomic.h>

struct redisReply;

struct hfi_body {
    _Atomic(int) references;
    bool   absent;
    size_t size;
    const char *data;         /* data[size] is NUL */
    struct redisReply *reply; /* owns the bytes; NULL: they are in `own` */
    char   own[];
};

struct hfi_body *hfi_body_copy(const void *data, size_t size); /* NULL: no memory. One reference */
/* Takes over a string reply and sets *reply to NULL: its bytes are not copied. NULL: no memory, *reply unchanged. */
struct hfi_body *hfi_body_take(struct redisReply **reply);
struct hfi_body *hfi_body_absent(void);
void hfi_body_ref(struct hfi_body *body);
void hfi_body_unref(struct hfi_body *body); /* NULL is a no-op */

struct hfi_body *hfi_value_body(const hf_value *value); /* the value's own reference */
/* Makes a caller's view, with a reference of its own. HF_OK or NOMEM. */
hf_status hfi_value_new(struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms, hf_value **value,
                        hf_error *error);

#endif
