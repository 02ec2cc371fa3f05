/* SPDX-License-Identifier: MIT */
/* options.c - see options.h. */
#include "core/protocol/options.h"
#include "core/protocol/key.h"
#include "base/rare.h"
#include "base/thread.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define TLS_CONNECT_MS 5000 /* default of connect_ms where hands are shaken */
#define TLS_LANES      1    /* default of lanes: a record costs each side more than it costs threads to share one (bench tls) */

hf_status hfi_options_take(void *taken, size_t taken_size, const void *given, const char *what, hf_error *error)
{
    size_t size = 0;
    if (given == NULL) {
        memset(taken, 0, taken_size);
        memcpy(taken, &taken_size, sizeof taken_size);
        return HF_OK;
    }
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > 65536)
        return hfi_fail(error, HF_INVALID, "make options with the macro (C++: the _default function), which sets it",
                        "the size field of %s is %zu", what, size);
    for (size_t i = taken_size; i < size; i++)
        if (((const char *)given)[i] != 0)
            return hfi_fail(error, HF_INVALID, "run with the library version that the program was built for, or later",
                            "%s has an option that this library (%s) does not know", what, hf_version());
    if (size < taken_size)
        memset(taken, 0, taken_size);
    memcpy(taken, given, size < taken_size ? size : taken_size);
    memcpy(taken, &taken_size, sizeof taken_size);
    return HF_OK;
}

static hf_status check_reserved(const uint64_t *reserved, size_t size, const char *what, hf_error *error)
{
    uint64_t any = 0;
    for (size_t i = 0; i < size / sizeof *reserved; i++)
        any |= reserved[i];
    if (any == 0)
        return HF_OK;
    return hfi_fail(error, HF_INVALID, "zero the struct first; the macros do", "a reserved field of %s is not 0", what);
}

/* Bytes that fill up a word behind a flag. */
static hf_status check_reserved_flags(const bool *flags, size_t size, const char *what, hf_error *error)
{
    uint64_t any = 0;
    for (size_t i = 0; i < size; i++) /* as bytes: what a program left there may be no bool */
        any |= ((const unsigned char *)flags)[i];
    return check_reserved(&any, sizeof any, what, error);
}

static const char time_hint[] = "times are in milliseconds", byte_hint[] = "sizes are in bytes",
                  count_hint[] = "0 is the default";

static HFI_RARE hf_status refuse(const char *name, int64_t value, int64_t low, int64_t high, unsigned words,
                                 const char *hint, hf_error *error)
{
    return hfi_fail(error, HF_INVALID, hint, "%s is %" PRId64 "; it must be %" PRId64 " .. %" PRId64 "%s%s", name, value,
                    low, high, (words & HFI_OR_OFF) != 0 ? ", or HF_OFF" : "",
                    (words & HFI_OR_FOREVER) != 0 ? ", or HF_FOREVER" : (words & HFI_OR_ALL) != 0 ? ", or HF_ALL" : "");
}

/* Fills in the defaults and checks the bounds of the table's first `count` options; those behind them have neither. */
static hf_status check_table(const struct hfi_option *option, int count, void *options, hf_error *error)
{
    for (const struct hfi_option *end = option + count; option < end; option++) {
        const void *at = (const char *)options + option->offset;
        int64_t value = option->kind == HFI_COUNT ? *(const int *)at : *(const int64_t *)at;
        if (value == 0) {
            if (option->otherwise != 0)
                hfi_option_set(option, options, option->otherwise);
        } else if (option->high != 0 && (value < (int64_t)option->low || value > option->high) &&
                   (value != HF_OFF || (option->words & HFI_OR_OFF) == 0) &&
                   (value != HF_FOREVER || (option->words & HFI_OR_FOREVER) == 0) &&
                   (value != HF_ALL || (option->words & HFI_OR_ALL) == 0)) {
            const char *hint = option->kind == HFI_TIME ? time_hint : option->kind == HFI_BYTES ? byte_hint : count_hint;
            return refuse(option->name, value, option->low, option->high, option->words, hint, error);
        }
    }
    return HF_OK;
}

static HFI_RARE bool is_client_name(const char *name)
{
    const char *at = name;
    while (*at > ' ' && *at <= '~')
        at++;
    return *at == 0 && at > name && at - name <= 128;
}

static HFI_RARE bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

HFI_RARE hf_status hfi_tls_options_check(hf_client_options *o, bool tls, hf_error *error)
{
    const char *const given[] = {o->tls_ca_file,     o->tls_cert_file, o->tls_key_file,
                                 o->tls_server_name, o->tls_verify,    o->tls_min};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (given[i] != NULL && !tls)
            return hfi_fail(error, HF_INVALID, "say rediss:// (with s), or leave the tls_ options out",
                            "there are tls_ options, but the URI is not one of TLS");
        if (given[i] != NULL && *given[i] == 0)
            return hfi_fail(error, HF_INVALID, "leave it out", "a tls_ option is empty");
    }
    if (!tls)
        return HF_OK;
    if (o->tls_verify == NULL)
        o->tls_verify = "full";
    if (o->tls_min == NULL)
        o->tls_min = "1.2";
    if (o->connect_ms == 0)
        o->connect_ms = TLS_CONNECT_MS;
    if (o->lanes == 0)
        o->lanes = TLS_LANES;
    if (!is_one_of(o->tls_verify, "full", "ca", "none"))
        return hfi_fail(error, HF_INVALID, "", "tls_verify must be \"full\", \"ca\" or \"none\"");
    if (!is_one_of(o->tls_min, "1.2", "1.3", "1.3"))
        return hfi_fail(error, HF_INVALID, "", "tls_min must be \"1.2\" or \"1.3\"");
    if (HIREDIS_MAJOR < 1 && o->min_connections > 0)
        return hfi_fail(error, HF_INVALID, "leave min_connections out, and use hf_command",
                        "this hiredis cannot borrow a connection of TLS");
    if (o->tls_server_name != NULL && *o->tls_server_name == '.')
        return hfi_fail(error, HF_INVALID, "say the whole name", "tls_server_name begins with a dot");
    if (o->tls_key_file != NULL && o->tls_cert_file == NULL)
        return hfi_fail(error, HF_INVALID, "give the certificate too", "there is tls_key_file, but no tls_cert_file");
    return HF_OK;
}

HFI_RARE hf_status hfi_client_options_check(hf_client_options *o, hf_error *error)
{
    bool says_lease = o->lease_ms != 0;
    hf_status status = check_reserved(o->reserved, sizeof o->reserved, "HF_CLIENT", error);
    if (status == HF_OK)
        status = check_reserved_flags(o->reserved_flags, sizeof o->reserved_flags, "HF_CLIENT", error);
    if (status == HF_OK)
        status = check_table(hfi_client_table, HFI_CLIENT_BOUNDED, o, error);
    if (status == HF_OK && !says_lease && o->max_lease_ms != 0 && o->max_lease_ms < o->lease_ms)
        o->lease_ms = o->max_lease_ms;
    if (status == HF_OK && (o->min_connections < 0 || o->min_connections > o->max_connections))
        status = refuse("min_connections", o->min_connections, 0, o->max_connections, 0, count_hint, error);
    if (status == HF_OK && o->replicas_ms > o->command_ms / 2 && o->replicas != 0)
        status = hfi_fail(error, HF_INVALID, "raise command_ms with it: a confirmation may be asked for twice",
                          "replicas_ms is more than half of command_ms");
    if (status == HF_OK && o->max_lease_ms != 0 && o->lease_ms > o->max_lease_ms)
        status = hfi_fail(error, HF_INVALID, "lower lease_ms, or raise the other", "lease_ms is above max_lease_ms");
    if (status == HF_OK)
        status = hfi_template_check(o->key_template, error);
    if (status != HF_OK)
        return status;
    if (o->max_value_bytes > 512u << 20)
        return hfi_fail(error, HF_INVALID, "Redis itself ends there", "max_value_bytes is above 512 MiB");
    if (o->keyspace_events == NULL)
        o->keyspace_events = "auto";
    if (strcmp(o->keyspace_events, "auto") != 0 && strcmp(o->keyspace_events, "as-is") != 0 &&
        strcmp(o->keyspace_events, "off") != 0)
        return hfi_fail(error, HF_INVALID, "", "keyspace_events must be \"auto\", \"as-is\" or \"off\"");
    if (o->dispatch != HF_DISPATCH_THREAD && o->dispatch != HF_DISPATCH_CALLER)
        return hfi_fail(error, HF_INVALID, "", "dispatch must be HF_DISPATCH_THREAD or HF_DISPATCH_CALLER");
    if (o->client_name != NULL && !is_client_name(o->client_name))
        return hfi_fail(error, HF_INVALID, "Redis takes printable names without blanks",
                        "client_name is empty, longer than 128 bytes or has a blank or control character in it");
    return HF_OK;
}

static HFI_RARE hf_status check_signal(const hf_lock_options *options, hf_error *error)
{
    struct sigaction action;
    if (options->signal == 0)
        return HF_OK;
    if (options->signal < 0 || sigaction(options->signal, NULL, &action) != 0)
        return hfi_fail(error, HF_INVALID, "use a signal such as SIGUSR1", "signal is %d, which is none",
                        options->signal);
    if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL)
        return hfi_fail(error, HF_INVALID, "install a handler with sigaction first",
                        "signal %d has no handler: it would end the process", options->signal);
    return HF_OK;
}

hf_status hfi_lease_check(int64_t lease_ms, int64_t most_ms, hf_error *error)
{
    if (most_ms == 0 || lease_ms <= most_ms)
        return HF_OK;
    return hfi_fail(error, HF_INVALID, "ask for less, or open the client with a greater max_lease_ms",
                    "lease_ms is %" PRId64 ", above the client's max_lease_ms (%" PRId64 ")", lease_ms, most_ms);
}

hf_status hfi_lock_options_check(hf_lock_options *o, int64_t default_lease_ms, hf_error *error)
{
    hf_status status = check_reserved(o->reserved, sizeof o->reserved, "HF_LOCK", error);
    if (status == HF_OK)
        status = check_reserved_flags(o->reserved_flags, sizeof o->reserved_flags, "HF_LOCK", error);
    if (o->lease_ms == 0)
        o->lease_ms = default_lease_ms;
    if (status == HF_OK)
        status = check_table(hfi_lock_table, HFI_LOCK_BOUNDED, o, error);
    int64_t held_ms = o->max_hold_ms > 0 && o->max_hold_ms < o->lease_ms ? o->max_hold_ms : o->lease_ms;
    if (o->stop_ms == 0)
        o->stop_ms = held_ms / 10 > 50 ? held_ms / 10 : 50;
    if (status == HF_OK && (o->stop_ms < 1 || o->stop_ms >= o->lease_ms))
        status = refuse("stop_ms (below lease_ms)", o->stop_ms, 1, o->lease_ms - 1, 0, time_hint, error);
    if (status == HF_OK)
        status = check_signal(o, error);
    if (status != HF_OK)
        return status;
    if (o->owner >= HFI_THREADS)
        return hfi_fail(error, HF_INVALID, "choose a number below 2^63; those above are threads", "owner is %" PRIu64,
                        o->owner);
    if (o->signal_at != 0 && o->signal_at != HF_EVENT_LOST && o->signal_at != HF_EVENT_AT_RISK)
        return hfi_fail(error, HF_INVALID, "", "signal_at must be HF_EVENT_LOST or HF_EVENT_AT_RISK");
    if (o->owner_label != NULL && strlen(o->owner_label) > 128)
        return hfi_fail(error, HF_INVALID, "", "owner_label is longer than 128 bytes");
    if (o->shared && o->max_hold_ms > 0)
        return hfi_fail(error, HF_INVALID, "leave max_hold_ms out: the readers of a process have one lease together",
                        "a lock cannot be .shared and have max_hold_ms");
    if (o->order_class != NULL && (*o->order_class == 0 || strlen(o->order_class) > 128))
        return hfi_fail(error, HF_INVALID, "", "order_class is empty or longer than 128 bytes");
    return HF_OK;
}

hf_status hfi_fetch_options_check(hf_fetch_options *o, int64_t default_lease_ms, bool many, hf_error *error)
{
    const uint64_t word = o->reserved_word;
    hf_status status = check_reserved(o->reserved, sizeof o->reserved, "HF_FETCH", error);
    if (status == HF_OK)
        status = check_reserved(&word, sizeof word, "HF_FETCH", error);
    if (status == HF_OK && o->load == NULL && !(many && o->load_many != NULL))
        status = hfi_fail(error, HF_INVALID, "pass the function that makes the value", "load is NULL");
    if (o->lease_ms == 0)
        o->lease_ms = default_lease_ms;
    if (status == HF_OK)
        status = check_table(hfi_fetch_table, HFI_FETCH_OPTIONS, o, error);
    if (status == HF_OK && !(o->early >= 0 && o->early <= 1000))
        status = hfi_fail(error, HF_INVALID, "1.0 is a good value, 0 is off", "early must be 0 .. 1000");
    if (status == HF_OK && !(o->jitter >= 0 && o->jitter <= 0.9))
        status = hfi_fail(error, HF_INVALID, "0.1 is a good value, 0 is off", "jitter must be 0 .. 0.9");
    if (status == HF_OK && o->when_down != HF_LOAD_LOCALLY && o->when_down != HF_FAIL)
        status = hfi_fail(error, HF_INVALID, "", "when_down must be HF_LOAD_LOCALLY or HF_FAIL");
    return status;
}

HFI_RARE hf_status hfi_fetch_where_check(const hf_fetch_options *o, bool has_loaders, hf_error *error)
{
    bool is_aside = o->where != HF_LOAD_HERE;
    if (o->where != HF_LOAD_HERE && o->where != HF_REFRESH_ASIDE && o->where != HF_LOAD_ASIDE)
        return hfi_fail(error, HF_INVALID, "", "where must be HF_LOAD_HERE, HF_REFRESH_ASIDE or HF_LOAD_ASIDE");
    if (is_aside && !has_loaders)
        return hfi_fail(error, HF_INVALID, "open the client with loaders", "where is aside, and loaders of the client is HF_OFF");
    if (o->arg_size > 0 && o->copy_arg != NULL)
        return hfi_fail(error, HF_INVALID, "give one of them", "there are both arg_size and copy_arg");
    if (o->free_arg != NULL && o->copy_arg == NULL)
        return hfi_fail(error, HF_INVALID, "give copy_arg too: only what that returns is freed by it",
                        "there is free_arg, but no copy_arg");
    if (is_aside && o->arg != NULL && o->arg_size == 0 && o->copy_arg == NULL)
        return hfi_fail(error, HF_INVALID, "give arg_size or copy_arg: arg itself may be gone when a loader thread runs",
                        "where is aside, and nothing says how to copy arg");
    if (!is_aside && o->soft_ms > 0)
        return hfi_fail(error, HF_INVALID, "set where, or leave soft_ms out", "there is soft_ms, but nothing is loaded aside");
    return HF_OK;
}
