/* SPDX-License-Identifier: MIT */
/* option_table.c - every option that is a number or a text: its kind, default and bounds. tests/contract/options.sh
 * compares the rows with the comments in the public headers. */
#include "core/protocol/options.h"

#include <stddef.h>

#define DAY_MS         INT64_C(86400000)
#define LONGEST_MS     HFI_LONGEST_MS
#define SHORTEST_LEASE 100
#define MIB            (1 << 20)

#define ROW(type, field, kind, otherwise, low, high, words) \
    {#field, offsetof(type, field), kind, words, low, otherwise, high}

#define CLIENT(...) ROW(hf_client_options, __VA_ARGS__)
const struct hfi_option hfi_client_table[HFI_CLIENT_OPTIONS] = {
    /*     name             kind       default   low             high           words */
    CLIENT(lease_ms,        HFI_TIME,  10000,    SHORTEST_LEASE, DAY_MS,        0),
    CLIENT(guard_ms,        HFI_TIME,  250,      1,              DAY_MS,        HFI_OR_OFF),
    CLIENT(connect_ms,      HFI_TIME,  2000,     1,              DAY_MS,        0),
    CLIENT(command_ms,      HFI_TIME,  1000,     1,              DAY_MS,        0),
    CLIENT(close_ms,        HFI_TIME,  1000,     1,              DAY_MS,        HFI_OR_OFF),
    CLIENT(idle_ms,         HFI_TIME,  600000,   1,              LONGEST_MS,    HFI_OR_OFF),
    CLIENT(lifetime_ms,     HFI_TIME,  3600000,  1,              LONGEST_MS,    HFI_OR_OFF),
    CLIENT(deadlock_ms,     HFI_TIME,  0,        0,              DAY_MS,        0),
    CLIENT(local_bytes,     HFI_BYTES, 16 * MIB, 1,              INT64_MAX / 2, HFI_OR_OFF),
    CLIENT(lanes,           HFI_COUNT, 2,        1,              64,            0),
    CLIENT(subscribers,     HFI_COUNT, 1,        1,              64,            0),
    CLIENT(max_connections, HFI_COUNT, 16,       1,              10000,         0),
    CLIENT(replicas,        HFI_COUNT, 0,        1,              16,            HFI_OR_ALL),
    CLIENT(replicas_ms,     HFI_TIME,  100,      1,              DAY_MS,        0),
    CLIENT(loaders,         HFI_COUNT, 4,        1,              256,           HFI_OR_OFF),
    CLIENT(near_lag_ms,     HFI_TIME,  1000,     50,             DAY_MS,        0),
    CLIENT(quarantine_ms,   HFI_TIME,  0,        1,              DAY_MS,        0),
    CLIENT(max_lease_ms,    HFI_TIME,  0,        SHORTEST_LEASE, DAY_MS,        0),
    CLIENT(max_value_bytes, HFI_SIZE,  16 * MIB, 0,              0,             0), /* up to 512 MiB */
    CLIENT(max_waiters,     HFI_SIZE,  100000,   0,              0,             0),
    CLIENT(min_connections, HFI_COUNT, 0,        0,              0,             0), /* up to max_connections */
    CLIENT(lazy,            HFI_FLAG,  0,        0,              0,             0),
    CLIENT(client_name,     HFI_TEXT,  0,        0,              0,             0),
    CLIENT(key_template,    HFI_TEXT,  0,        0,              0,             0),
    CLIENT(keyspace_events, HFI_TEXT,  0,        0,              0,             0),
    CLIENT(check_order,     HFI_FLAG,  0,        0,              0,             0),
    CLIENT(tls_ca_file,     HFI_TEXT,  0,        0,              0,             0),
    CLIENT(tls_cert_file,   HFI_TEXT,  0,        0,              0,             0),
    CLIENT(tls_key_file,    HFI_TEXT,  0,        0,              0,             0),
    CLIENT(tls_server_name, HFI_TEXT,  0,        0,              0,             0),
    CLIENT(tls_verify,      HFI_TEXT,  0,        0,              0,             0),
    CLIENT(tls_min,         HFI_TEXT,  0,        0,              0,             0),
    CLIENT(sentinel_user,   HFI_TEXT,  0,        0,              0,             0),
    CLIENT(sentinel_password, HFI_TEXT, 0,       0,              0,             0),
    CLIENT(dialect,         HFI_TEXT,  0,        0,              0,             0),
};

#define LOCK(...) ROW(hf_lock_options, __VA_ARGS__)
const struct hfi_option hfi_lock_table[HFI_LOCK_OPTIONS] = {
    /*   name         kind       default  low             high        words */
    LOCK(lease_ms,    HFI_TIME,  0,       SHORTEST_LEASE, DAY_MS,     0), /* default: the client's */
    LOCK(wait_ms,     HFI_TIME,  0,       0,              LONGEST_MS, HFI_OR_FOREVER),
    LOCK(max_hold_ms, HFI_TIME,  0,       0,              LONGEST_MS, 0),
    LOCK(linger_ms,   HFI_TIME,  0,       0,              DAY_MS,     0),
    LOCK(stop_ms,     HFI_TIME,  0,       0,              0,          0), /* of lease_ms and max_hold_ms */
    LOCK(owner,       HFI_SIZE,  0,       0,              0,          0), /* below 2^63 */
    LOCK(signal,      HFI_COUNT, 0,       0,              0,          0),
    LOCK(signal_at,   HFI_COUNT, 0,       0,              0,          0),
    LOCK(event_fd,    HFI_FLAG,  0,       0,              0,          0),
    LOCK(reentrant,   HFI_FLAG,  0,       0,              0,          0),
    LOCK(shared,      HFI_FLAG,  0,       0,              0,          0),
    LOCK(owner_label, HFI_TEXT,  0,       0,              0,          0),
    LOCK(order_class, HFI_TEXT,  0,       0,              0,          0),
    LOCK(dialect,     HFI_TEXT,  0,       0,              0,          0),
};
_Static_assert(sizeof(hf_event_kind) == sizeof(int), "signal_at is a HFI_COUNT");

#define FETCH(...) ROW(hf_fetch_options, __VA_ARGS__)
const struct hfi_option hfi_fetch_table[HFI_FETCH_OPTIONS] = {
    /*    name             kind      default  low             high        words */
    FETCH(ttl_ms,          HFI_TIME, 60000,   1,              LONGEST_MS, 0),
    FETCH(stale_ms,        HFI_TIME, 0,       0,              LONGEST_MS, 0),
    FETCH(negative_ttl_ms, HFI_TIME, 0,       0,              LONGEST_MS, 0),
    FETCH(wait_ms,         HFI_TIME, 5000,    1,              LONGEST_MS, HFI_OR_OFF | HFI_OR_FOREVER),
    FETCH(lease_ms,        HFI_TIME, 0,       SHORTEST_LEASE, DAY_MS,     0), /* default: the client's */
    FETCH(max_load_ms,     HFI_TIME, 30000,   1,              DAY_MS,     HFI_OR_FOREVER),
    FETCH(near_ms,         HFI_TIME, 0,       0,              LONGEST_MS, 0),
    FETCH(soft_ms,         HFI_TIME, 0,       0,              LONGEST_MS, 0),
    FETCH(retry_ms,        HFI_TIME, 1000,    1,              DAY_MS,     HFI_OR_OFF),
};
