/* SPDX-License-Identifier: MIT */
/* options.h - takes option structs from programs built against any version, checks them, fills in defaults. Pure,
 * except that it asks the kernel whether a signal has a handler. */
#ifndef HFI_OPTIONS_H
#define HFI_OPTIONS_H

#include "base/error.h"

#include <holdfast/fetch.h>
#include <holdfast/lock.h>

#define HFI_LONGEST_MS (365 * 100 * INT64_C(86400000)) /* longest time in an option: sums of a few do not overflow */

/* An option that is a number or a text: one row for the parser, for the check and for the documentation. */
enum hfi_option_kind {
    HFI_TIME,  /* int64_t, in ms */
    HFI_BYTES, /* int64_t */
    HFI_SIZE,  /* size_t or uint64_t */
    HFI_COUNT, /* int */
    HFI_FLAG,  /* bool */
    HFI_TEXT   /* const char * */
};
enum { HFI_OR_OFF = 1, HFI_OR_FOREVER = 2, HFI_OR_ALL = 4 }; /* the option may also be HF_OFF, HF_FOREVER, HF_ALL */

struct hfi_option {
    char     name[18];
    unsigned offset : 16, kind : 4; /* enum hfi_option_kind */
    unsigned words : 4;             /* HFI_OR_OFF, HFI_OR_FOREVER, HFI_OR_ALL */
    unsigned low : 8;
    int32_t  otherwise; /* what 0 stands for */
    int64_t  high;      /* 0: no bounds, or such as depend on other options (options.c) */
};

enum {
    HFI_CLIENT_OPTIONS = 35, HFI_CLIENT_BOUNDED = 20, /* the first 20 have bounds or a default */
    HFI_LOCK_OPTIONS = 14,   HFI_LOCK_BOUNDED = 4,
    HFI_FETCH_OPTIONS = 9
};
extern const struct hfi_option hfi_client_table[HFI_CLIENT_OPTIONS];
extern const struct hfi_option hfi_lock_table[HFI_LOCK_OPTIONS];
extern const struct hfi_option hfi_fetch_table[HFI_FETCH_OPTIONS];

/* Copies *given (NULL: no options) to *taken. Fields that an older program does not have become 0; fields that only a
 * newer version has must be 0. `what`: the macro's name, for the error message. HF_OK or INVALID. */
hf_status hfi_options_take(void *taken, size_t taken_size, const void *given, const char *what, hf_error *error);

/* Stores a number that the option's kind can hold; not for HFI_TEXT. */
void hfi_option_set(const struct hfi_option *option, void *options, int64_t number);
/* Sets the named option, from a URI's query, to `text`, unless its field is set already. A string field then points to
 * `text`. HF_OK or INVALID. */
hf_status hfi_client_option_parse(hf_client_options *options, const char *name, const char *text, hf_error *error);
/* tls: the URI is one of TLS. Before hfi_client_options_check. */
hf_status hfi_tls_options_check(hf_client_options *options, bool tls, hf_error *error);
/* Check the options and fill in the defaults. Strings stay the caller's. HF_OK or INVALID. */
hf_status hfi_client_options_check(hf_client_options *options, hf_error *error);
hf_status hfi_lock_options_check(hf_lock_options *options, int64_t default_lease_ms, hf_error *error);
hf_status hfi_lease_check(int64_t lease_ms, int64_t most_ms, hf_error *error); /* most_ms: max_lease_ms of the client */
/* Of `where` and what belongs to it, with checked options. has_loaders: the client has loader threads. */
hf_status hfi_fetch_where_check(const hf_fetch_options *options, bool has_loaders, hf_error *error);
/* many: of hf_fetch_many, which takes load_many in place of load. */
hf_status hfi_fetch_options_check(hf_fetch_options *options, int64_t default_lease_ms, bool many, hf_error *error);

#endif
