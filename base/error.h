/* SPDX-License-Identifier: MIT */
/* error.h - how a failing call fills in the caller's hf_error. */
#ifndef HFI_ERROR_H
#define HFI_ERROR_H

#include <holdfast/error.h>

/* Fills *error (NULL: the caller is not interested) and returns `status`. Clears what the setters below set. */
hf_status hfi_fail(hf_error *error, hf_status status, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Why an attempt failed becomes why the call does; HF_OK leaves *error as it is. Returns status. */
hf_status hfi_fail_by(hf_error *error, hf_status status, const hf_error *why);

/* Further facts, to be set after hfi_fail; a NULL error is fine. */
void hfi_fail_server(hf_error *error, const char *server);
void hfi_fail_errno(hf_error *error, int os_errno);
void hfi_fail_retry(hf_error *error, int64_t retry_ms);

/* Foreign bytes for a message: quoted, escaped, truncated to capacity. Returns out. */
const char *hfi_quote(char *out, size_t capacity, const void *bytes, size_t size);

#endif
