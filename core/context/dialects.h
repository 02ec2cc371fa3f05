/* SPDX-License-Identifier: MIT */
/* dialects.h - the dialects of a client: its own, and those that calls have asked for. */
#ifndef HFI_DIALECTS_H
#define HFI_DIALECTS_H

#include "core/context/context.h"
#include "core/protocol/dialect.h"

#define HFI_OWN_DIALECT "holdfast" /* what a lock is in without any, as a text */

/* The client's own, which its key_template is for. text NULL: none. Before any thread has the client. HF_OK, INVALID, NOMEM. */
hf_status hfi_dialects_begin(hf_client *client, const char *text, hf_error *error);
/* What an option's text stands for; it lives as long as the client. text NULL: the client's own. *dialect NULL: none. *is_new: it
 * was not known before. HF_OK, INVALID, LIMIT, NOMEM. */
hf_status hfi_dialects_find(hf_client *client, const char *text, const struct hfi_dialect **dialect, bool *is_new, hf_error *error);
/* The first of those that are known by now; each has the next one. */
const struct hfi_dialect *hfi_dialects_first(const hf_client *client);
void hfi_dialects_free(hf_client *client);

#endif
