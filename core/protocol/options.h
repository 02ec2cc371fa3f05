/* SPDX-License-Identifier: MIT */
/* options.h - option structs as they come from programs of any age, checked and with their defaults filled in. Pure, but
 * for asking the kernel whether a signal has a handler. */
#ifndef HFI_OPTIONS_H
#define HFI_OPTIONS_H

#include "core/protocol/key.h"

#include <holdfast/fetch.h>
#include <holdfast/lock.h>

#define HFI_LONGEST_MS (365 * 100 * INT64_C(86400000)) /* no time in an option is longer: sums of some do not overflow */

/* Copies *given (NULL: nothing) to *taken: what an older program does not know is 0; what only a newer one knows must
 * be 0. `what` is the macro's name for the message. INVALID. */
hf_status hfi_options_take(void *taken, size_t taken_size, const void *given, const char *what, hf_error *error);

#define HFI_NAMED_OPTIONS 18 /* of a client, that may stand in a URI */

/* `text` as a value of the named option of a URI's query, unless the field is set already. A field that is a text points
 * to it afterwards. INVALID. */
hf_status hfi_client_option_parse(hf_client_options *options, const char *name, const char *text, hf_error *error);
/* Checks, and fills in the defaults. Strings stay the caller's. INVALID. */
hf_status hfi_client_options_check(hf_client_options *options, hf_error *error);
hf_status hfi_lock_options_check(hf_lock_options *options, int64_t default_lease_ms, hf_error *error);
hf_status hfi_fetch_options_check(hf_fetch_options *options, int64_t default_lease_ms, hf_error *error);
/* A lock's name, 1..HF_NAME_MAX bytes, or a data key, 1..HF_KEY_MAX, without NUL; fills *size. INVALID. */
hf_status hfi_name_check(enum hfi_use use, const char *name, size_t given_size, size_t *size, hf_error *error);

#endif
