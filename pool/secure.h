/* SPDX-License-Identifier: MIT */
/* secure.h - the library's side of TLS: opens the module (pool/tls), and hands connections over to it. */
#ifndef HFI_SECURE_H
#define HFI_SECURE_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "pool/tls/tls.h"

struct hfi_secure;

/* Opens the module and reads the files. *log stays the caller's. HF_OK; UNAVAILABLE: there is no module; INVALID: a file
 * that cannot be used; NOMEM. */
hf_status hfi_secure_open(const struct hfi_tls_settings *settings, const struct hfi_log *log, struct hfi_secure **secure,
                          hf_error *error);
/* Makes the connection to `host` one of TLS, with the files as they are now. False: no memory. Any thread. */
bool hfi_secure_wrap(struct hfi_secure *secure, const char *host, struct hfi_connection *connection);
bool hfi_secure_verifies(const struct hfi_secure *secure); /* who answers; NULL, in the clear: true */
void hfi_secure_free(struct hfi_secure *secure); /* after its connections are closed; NULL is a no-op */

#endif
