/* SPDX-License-Identifier: MIT */
/* named_options.c - sets options by name from text: for a URI's query, and for bindings of other languages. */
#include "core/protocol/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Digits with an optional minus, or "off", "forever" or "all" if the option has it. False: neither, or out of range. */
static bool parse_number(const char *text, enum hfi_option_kind kind, unsigned words, int64_t *number)
{
    static const struct {
        int64_t least, most;
    } bounds[] = {[HFI_TIME] = {INT64_MIN, INT64_MAX}, [HFI_BYTES] = {INT64_MIN, INT64_MAX}, [HFI_SIZE] = {0, INT64_MAX},
                  [HFI_COUNT] = {INT_MIN, INT_MAX},  [HFI_FLAG] = {0, 1}};
    const char *digits = text + (*text == '-');
    if (strcmp(text, "off") == 0 && (kind == HFI_FLAG || (words & HFI_OR_OFF) != 0)) {
        *number = kind == HFI_FLAG ? 0 : HF_OFF;
        return true;
    }
    if (strcmp(text, "all") == 0 && (words & HFI_OR_ALL) != 0) {
        *number = HF_ALL;
        return true;
    }
    if (strcmp(text, "forever") == 0 && (words & HFI_OR_FOREVER) != 0) {
        *number = HF_FOREVER;
        return true;
    }
    errno = 0;
    *number = strtoll(text, NULL, 10);
    return *digits != 0 && digits[strspn(digits, "0123456789")] == 0 && errno == 0 && *number >= bounds[kind].least &&
           *number <= bounds[kind].most;
}

void hfi_option_set(const struct hfi_option *option, void *options, int64_t number)
{
    void *at = (char *)options + option->offset;
    switch ((enum hfi_option_kind)option->kind) {
    case HFI_TIME:
    case HFI_BYTES:
    case HFI_SIZE:
        memcpy(at, &number, sizeof number);
        break;
    case HFI_COUNT:
        *(int *)at = (int)number;
        break;
    case HFI_FLAG:
        *(bool *)at = number == 1;
        break;
    case HFI_TEXT:
        break;
    }
}

static size_t size_of(const struct hfi_option *option)
{
    return option->kind == HFI_FLAG ? sizeof(bool) : option->kind == HFI_COUNT ? sizeof(int) : sizeof(int64_t);
}
_Static_assert(sizeof(size_t) == sizeof(int64_t) && sizeof(char *) == sizeof(int64_t), "all others have one size");

static bool is_set(const struct hfi_option *option, const void *options)
{
    static const int64_t nothing;
    return memcmp((const char *)options + option->offset, &nothing, size_of(option)) != 0;
}

/* keeps: an option that is set already stays as it is. where: for the error message, such as " in the URI". */
static hf_status parse(const struct hfi_option *option, size_t count, void *options, size_t size, bool keeps,
                       const char *name, const char *text, const char *where, hf_error *error)
{
    char quoted[64];
    const struct hfi_option *end = option + count;
    while (option < end && strcmp(option->name, name) != 0)
        option++;
    if (option == end)
        return hfi_fail(error, HF_INVALID, "they are spelled as in holdfast/client.h and lock.h, such as lease_ms",
                        "unknown option%s: %s", where, hfi_quote(quoted, sizeof quoted, name, strlen(name)));
    if (option->offset + size_of(option) > size)
        return hfi_fail(error, HF_INVALID, "ask hf_lock_options_init for the size", "no room for option %s", name);
    int64_t number = 0;
    if (option->kind != HFI_TEXT && !parse_number(text, (enum hfi_option_kind)option->kind, option->words, &number))
        return hfi_fail(error, HF_INVALID, "write a whole number; off, forever or all where the option has them",
                        "option %s%s is %s, not a number that it takes", name, where,
                        hfi_quote(quoted, sizeof quoted, text, strlen(text)));
    if (keeps && is_set(option, options))
        return HF_OK;
    if (option->kind == HFI_TEXT)
        *(const char **)(void *)((char *)options + option->offset) = text;
    else
        hfi_option_set(option, options, number);
    return HF_OK;
}

hf_status hfi_client_option_parse(hf_client_options *options, const char *name, const char *text, hf_error *error)
{
    return parse(hfi_client_table, HFI_CLIENT_OPTIONS, options, sizeof *options, true, name, text, " in the URI", error);
}

hf_status hf_lock_options_parse(hf_lock_options *options, const char *name, const char *text, hf_error *error)
{
    if (options == NULL || name == NULL || text == NULL)
        return hfi_fail(error, HF_INVALID, "pass options, a name and a text", "one of them is NULL");
    return parse(hfi_lock_table, HFI_LOCK_OPTIONS, options, options->size, false, name, text, "", error);
}

static size_t init(void *options, size_t size, size_t whole)
{
    if (options != NULL && size >= sizeof size) {
        memset(options, 0, size);
        memcpy(options, &size, sizeof size);
    }
    return whole;
}

size_t hf_lock_options_init(hf_lock_options *options, size_t size)
{
    return init(options, size, sizeof *options);
}

size_t hf_client_options_init(hf_client_options *options, size_t size)
{
    return init(options, size, sizeof *options);
}

size_t hf_fetch_options_init(hf_fetch_options *options, size_t size)
{
    return init(options, size, sizeof *options);
}
