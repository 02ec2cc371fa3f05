/* SPDX-License-Identifier: MIT */
/* named_options.c - sets options by name from text: for a URI's query, and for bindings of other languages. */
#include "core/protocol/key.h"
#include "core/protocol/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum field_kind { TEXT, MS, COUNT, SIZE, FLAG };

struct named_field {
    const char *name;
    size_t offset;
    enum field_kind kind;
};

#define FIELD(name, kind) {#name, offsetof(hf_client_options, name), kind}
static const struct named_field client_fields[] = {
    FIELD(lease_ms, MS),           FIELD(guard_ms, MS),        FIELD(connect_ms, MS),  FIELD(command_ms, MS),
    FIELD(close_ms, MS),           FIELD(idle_ms, MS),         FIELD(lifetime_ms, MS), FIELD(local_bytes, MS),
    FIELD(lanes, COUNT),           FIELD(subscribers, COUNT),  FIELD(min_connections, COUNT),
    FIELD(max_connections, COUNT), FIELD(max_value_bytes, SIZE), FIELD(max_waiters, SIZE),
    FIELD(lazy, FLAG),             FIELD(client_name, TEXT),   FIELD(key_template, TEXT), FIELD(keyspace_events, TEXT),
};
#undef FIELD
_Static_assert(sizeof client_fields / sizeof client_fields[0] == HFI_NAMED_OPTIONS, "a URI has room for every one");

#define FIELD(name, kind) {#name, offsetof(hf_lock_options, name), kind}
static const struct named_field lock_fields[] = {
    FIELD(lease_ms, MS), FIELD(wait_ms, MS), FIELD(max_hold_ms, MS), FIELD(linger_ms, MS),     FIELD(stop_ms, MS),
    FIELD(owner, SIZE),  FIELD(signal, COUNT), FIELD(signal_at, COUNT), FIELD(event_fd, FLAG), FIELD(reentrant, FLAG),
    FIELD(owner_label, TEXT),
};
#undef FIELD
_Static_assert(sizeof(hf_event_kind) == sizeof(int), "signal_at is a COUNT");

/* Digits with an optional minus, or "off" or "forever" if the kind has it. False: neither, or out of range. */
static bool parse_number(const char *text, enum field_kind kind, int64_t *number)
{
    static const struct {
        int64_t least, most;
    } bounds[] = {[MS] = {INT64_MIN, INT64_MAX}, [COUNT] = {INT_MIN, INT_MAX}, [SIZE] = {0, INT64_MAX}, [FLAG] = {0, 1}};
    const char *digits = text + (*text == '-');
    if (strcmp(text, "off") == 0 && (kind == MS || kind == FLAG)) {
        *number = kind == MS ? HF_OFF : 0;
        return true;
    }
    if (strcmp(text, "forever") == 0 && kind == MS) {
        *number = HF_FOREVER;
        return true;
    }
    errno = 0;
    *number = strtoll(text, NULL, 10);
    return *digits != 0 && digits[strspn(digits, "0123456789")] == 0 && errno == 0 && *number >= bounds[kind].least &&
           *number <= bounds[kind].most;
}

static void set_number(void *at, enum field_kind kind, int64_t number)
{
    if (kind == MS)
        *(int64_t *)at = number;
    else if (kind == COUNT)
        *(int *)at = (int)number;
    else if (kind == SIZE)
        *(size_t *)at = (size_t)number;
    else
        *(bool *)at = number == 1;
}

static bool is_set(const void *at, enum field_kind kind)
{
    return kind == TEXT    ? *(const char *const *)at != NULL
           : kind == COUNT ? *(const int *)at != 0
           : kind == FLAG  ? *(const bool *)at
                           : *(const int64_t *)at != 0;
}
_Static_assert(sizeof(size_t) == sizeof(int64_t), "a SIZE is looked at as an MS");

static size_t end_of(const struct named_field *field)
{
    return field->offset + (field->kind == FLAG ? sizeof(bool) : field->kind == COUNT ? sizeof(int) : sizeof(int64_t));
}

/* keeps: a field that is set already stays as it is. where: for the error message, such as " in the URI". */
static hf_status parse(const struct named_field *fields, size_t count, void *options, size_t size, bool keeps,
                       const char *name, const char *text, const char *where, hf_error *error)
{
    char quoted[64];
    const struct named_field *field = fields;
    while (field < fields + count && strcmp(field->name, name) != 0)
        field++;
    if (field == fields + count)
        return hfi_fail(error, HF_INVALID, "the names are those of the struct in the header", "unknown option%s: %s", where,
                        hfi_quote(quoted, sizeof quoted, name, strlen(name)));
    if (end_of(field) > size)
        return hfi_fail(error, HF_INVALID, "ask hf_lock_options_init for the size", "no room for option %s", name);
    void *at = (char *)options + field->offset;
    int64_t number = 0;
    if (field->kind != TEXT && !parse_number(text, field->kind, &number))
        return hfi_fail(error, HF_INVALID, "write a whole number; off or forever where the option has them",
                        "option %s%s is %s, not a number that it takes", name, where,
                        hfi_quote(quoted, sizeof quoted, text, strlen(text)));
    if (keeps && is_set(at, field->kind))
        return HF_OK;
    if (field->kind == TEXT)
        *(const char **)at = text;
    else
        set_number(at, field->kind, number);
    return HF_OK;
}

hf_status hfi_client_option_parse(hf_client_options *options, const char *name, const char *text, hf_error *error)
{
    return parse(client_fields, HFI_NAMED_OPTIONS, options, sizeof *options, true, name, text, " in the URI", error);
}

hf_status hf_lock_options_parse(hf_lock_options *options, const char *name, const char *text, hf_error *error)
{
    if (options == NULL || name == NULL || text == NULL)
        return hfi_fail(error, HF_INVALID, "pass options, a name and a text", "one of them is NULL");
    return parse(lock_fields, sizeof lock_fields / sizeof lock_fields[0], options, options->size, false, name, text, "",
                 error);
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
