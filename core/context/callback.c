/* SPDX-License-Identifier: MIT */
/* callback.c - see callback.h. */
#include "core/context/callback.h"
#include "base/thread.h"

void hfi_callback_begin(struct hfi_callback *callback, const hf_client *client, const hf_loading *loading)
{
    *callback = (struct hfi_callback){client, loading, *hfi_thread_own()};
    *hfi_thread_own() = callback;
}

void hfi_callback_end(const struct hfi_callback *callback)
{
    *hfi_thread_own() = callback->outer;
}

const struct hfi_callback *hfi_callback_innermost(void)
{
    return *hfi_thread_own();
}

bool hfi_callback_is_inside(const hf_client *client)
{
    for (const struct hfi_callback *at = hfi_callback_innermost(); at != NULL; at = at->outer)
        if (at->client == client)
            return true;
    return false;
}
