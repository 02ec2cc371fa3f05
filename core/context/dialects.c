/* SPDX-License-Identifier: MIT */
/* dialects.c - see dialects.h. They are few, and stay: a list that only grows needs no mutex to be read. */
#include "core/context/dialects.h"

#include <stdlib.h>
#include <string.h>

const struct hfi_dialect *hfi_dialects_first(const hf_client *client)
{
    return atomic_load_explicit(&client->dialects, memory_order_acquire);
}

hf_status hfi_dialects_begin(hf_client *client, const char *text, hf_error *error)
{
    struct hfi_dialect *own = NULL;
    if (text == NULL || strcmp(text, HFI_OWN_DIALECT) == 0)
        return HF_OK;
    hf_status status = hfi_dialect_make(text, client->key_template, &own, error);
    if (status != HF_OK)
        return status;
    own->next = NULL;
    client->dialect = own;
    atomic_store(&client->dialects, own);
    return HF_OK;
}

hf_status hfi_dialects_find(hf_client *client, const char *text, const struct hfi_dialect **found, bool *is_new, hf_error *error)
{
    struct hfi_dialect *first, *made = NULL;
    int count;
    *found = client->dialect;
    *is_new = false;
    if (text == NULL)
        return HF_OK;
    *found = NULL;
    if (strcmp(text, HFI_OWN_DIALECT) == 0)
        return HF_OK;
    do {
        first = atomic_load_explicit(&client->dialects, memory_order_acquire);
        count = 0;
        for (struct hfi_dialect *at = first; at != NULL; at = at->next, count++)
            if (strcmp(at->text, text) == 0) {
                free(made);
                *found = at;
                return HF_OK;
            }
        if (count == HFI_DIALECTS) {
            free(made);
            return hfi_fail(error, HF_LIMIT, "use few", "this client speaks %d dialects already", HFI_DIALECTS);
        }
        hf_status status = made != NULL ? HF_OK : hfi_dialect_make(text, NULL, &made, error);
        if (status != HF_OK)
            return status;
        made->next = first;
        made->number = count;
    } while (!atomic_compare_exchange_weak(&client->dialects, &first, made));
    *found = made;
    *is_new = true;
    return HF_OK;
}

void hfi_dialects_free(hf_client *client)
{
    for (struct hfi_dialect *at = atomic_load(&client->dialects), *next; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
}
