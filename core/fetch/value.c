/* SPDX-License-Identifier: MIT */
/* value.c - see value.h. */
#include "core/fetch/value.h"
#include "base/error.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct box { /* hf_value is first: its address is the handle */
    hf_value value;
    struct hfi_body *body;
};

struct hfi_body *hfi_body_copy(const void *data, size_t size)
{
    struct hfi_body *body = size < SIZE_MAX - sizeof *body - 1 ? malloc(sizeof *body + size + 1) : NULL;
    if (body == NULL)
        return NULL;
    atomic_init(&body->references, 1);
    body->absent = false;
    body->size = size;
    body->data = body->own;
    body->reply = NULL;
    if (size > 0)
        memcpy(body->own, data, size);
    body->own[size] = 0;
    return body;
}

struct hfi_body *hfi_body_take(struct redisReply **reply)
{
    struct hfi_body *body = malloc(sizeof *body);
    if (body == NULL)
        return NULL;
    atomic_init(&body->references, 1);
    body->absent = false;
    body->size = (size_t)(*reply)->len;
    body->data = (*reply)->str;
    body->reply = *reply;
    *reply = NULL;
    return body;
}

struct hfi_body *hfi_body_absent(void)
{
    struct hfi_body *body = hfi_body_copy("", 0);
    if (body != NULL)
        body->absent = true;
    return body;
}

void hfi_body_ref(struct hfi_body *body)
{
    atomic_fetch_add(&body->references, 1);
}

void hfi_body_unref(struct hfi_body *body)
{
    if (body == NULL || atomic_fetch_sub(&body->references, 1) != 1)
        return;
    if (body->reply != NULL)
        freeReplyObject(body->reply);
    free(body);
}

hf_status hfi_value_new(struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms, hf_value **value,
                        hf_error *error)
{
    struct box *box = malloc(sizeof *box);
    if (box == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a value");
    hfi_body_ref(body);
    box->body = body;
    box->value = (hf_value){.data = body->absent ? NULL : body->data,
                            .size = body->size,
                            .source = source,
                            .absent = body->absent,
                            .stored = stored,
                            .fresh_ms = fresh_ms};
    *value = &box->value;
    return HF_OK;
}

struct hfi_body *hfi_value_body(const hf_value *value)
{
    return ((const struct box *)value)->body;
}

void hf_value_free(void *value)
{
    struct box *box = value;
    if (box == NULL)
        return;
    hfi_body_unref(box->body);
    free(box);
}
