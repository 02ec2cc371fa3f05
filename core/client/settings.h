/* SPDX-License-Identifier: MIT */
/* settings.h - what a client is opened with: a URI and options become settings that are complete and checked. No I/O. */
#ifndef HFI_SETTINGS_H
#define HFI_SETTINGS_H

#include "core/protocol/options.h"
#include "pool/pool.h"

struct hfi_settings {
    hf_client_options options;     /* complete; its texts are the caller's or `texts` */
    struct hfi_endpoint endpoint;  /* with user and password as they are to be used */
    char *texts[HFI_CLIENT_OPTIONS]; /* of the URI's query */
    int   count;
};

/* uri NULL or empty: the default. HF_OK, INVALID, NOMEM. Whatever it returns, hfi_settings_done is due. */
hf_status hfi_settings_read(struct hfi_settings *settings, const char *uri, const hf_client_options *given,
                            hf_error *error);
/* For hfi_pool_open, which copies; it points into *settings and to client_name. */
struct hfi_pool_settings hfi_settings_of_pool(const struct hfi_settings *settings, const char *client_name);
void hfi_settings_done(struct hfi_settings *settings); /* wipes what is secret */

#endif
