/* SPDX-License-Identifier: MIT */
/* error.c - statuses, their names and texts, and the caller's error. Calls nothing. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT(x) #x
#define VERSION(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

const char *hf_version(void)
{
    return VERSION(HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
}

const char *hf_status_name(hf_status status)
{
    switch ((int)status) {
#define X(name, number, text)                                                                                  \
    case number:                                                                                               \
        return "HF_" #name;
        HF_STATUS_MAP(X)
#undef X
    }
    return "HF_(unknown)";
}

int hf_status_count(void)
{
#define X(name, number, text) +1
    return HF_STATUS_MAP(X);
#undef X
}

const char *hf_status_text(hf_status status)
{
    switch ((int)status) {
#define X(name, number, text)                                                                                  \
    case number:                                                                                               \
        return text;
        HF_STATUS_MAP(X)
#undef X
    }
    return "a status this library does not know";
}

hf_status hfi_fail(hf_error *error, hf_status status, const char *hint, const char *format, ...)
{
    if (error == NULL)
        return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    va_list words;
    va_start(words, format);
    (void)vsnprintf(error->message, sizeof error->message, format, words);
    va_end(words);
    (void)snprintf(error->hint, sizeof error->hint, "%s", hint != NULL ? hint : "");
    return status;
}

hf_status hfi_fail_by(hf_error *error, hf_status status, const hf_error *why)
{
    if (status != HF_OK && error != NULL)
        *error = *why;
    return status;
}

void hfi_fail_server(hf_error *error, const char *server)
{
    if (error != NULL)
        (void)snprintf(error->server, sizeof error->server, "%s", server);
}

void hfi_fail_errno(hf_error *error, int os_errno)
{
    if (error != NULL)
        error->os_errno = os_errno;
}

void hfi_fail_retry(hf_error *error, int64_t retry_ms)
{
    if (error != NULL)
        error->retry_ms = retry_ms;
}

const char *hfi_quote(char *out, size_t capacity, const void *bytes, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    size_t at = 0;
    if (capacity < 8) {
        if (capacity > 0)
            out[0] = 0;
        return out;
    }
    out[at++] = '"';
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = from[i];
        bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
        if (at + (plain ? 1u : 4u) + 5 > capacity) {
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        if (plain) {
            out[at++] = (char)byte;
        } else {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = hex[byte >> 4];
            out[at++] = hex[byte & 15];
        }
    }
    out[at++] = '"';
    out[at] = 0;
    return out;
}
