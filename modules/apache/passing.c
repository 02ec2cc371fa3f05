/* SPDX-License-Identifier: MIT */
/* passing.c - hit-for-pass: pages that this process leaves alone for a while, without asking the server. */
#include "modules/apache/mod_holdfast.h"

#include <apr_general.h>

#define SLOTS 4096 /* a power of two; the pages of one slot push each other out, which costs a question to the server */

/* Upper half: of the page's hash. Lower half: until when, in seconds since the epoch. */
static _Atomic(uint64_t) slots[SLOTS];
static uint64_t seed; /* random, so that nobody can make pages that share a hash */

void hfm_passing_begin(void)
{
    (void)apr_generate_random_bytes((unsigned char *)&seed, sizeof seed);
}

static uint64_t mixed(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

/* Of host, port, path and what it was mapped to, without making its key: this is all that such a page costs. */
static uint64_t hash_of(request_rec *r)
{
    uint64_t hash = mixed(seed ^ 0xcbf29ce484222325 ^ r->connection->local_addr->port, r->hostname);
    hash = mixed(hash * 0x100000001b3, hfm_rules_first(r)->unparsed_uri);
    hash = mixed(hash * 0x100000001b3, r->filename != NULL ? r->filename : r->uri);
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

static uint32_t now_s(void)
{
    return (uint32_t)apr_time_sec(apr_time_now());
}

/* Rounded down: never longer than the server's own mark. */
void hfm_passing_note(request_rec *r, int64_t for_ms)
{
    uint64_t hash = hash_of(r);
    if (for_ms >= 1000)
        atomic_store(&slots[hash % SLOTS], (hash & 0xffffffff00000000) | (uint32_t)(now_s() + for_ms / 1000));
}

bool hfm_passing_is(request_rec *r)
{
    if (r->hostname == NULL)
        return false;
    uint64_t hash = hash_of(r), found = atomic_load_explicit(&slots[hash % SLOTS], memory_order_relaxed);
    return found >> 32 == hash >> 32 && (uint32_t)found > now_s();
}
