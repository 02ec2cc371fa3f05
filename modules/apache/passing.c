/* SPDX-License-Identifier: MIT */
/* passing.c - hit-for-pass: pages that this process leaves alone for a while, without asking the server. */
#include "modules/apache/mod_holdfast.h"

#include <apr_general.h>

#define SLOTS 4096 /* a power of two; the pages of one slot push each other out, which costs a question to the server */

/* Upper half: of the hash of the page's key. Lower half: until when, in seconds since the epoch. */
static _Atomic(uint64_t) slots[SLOTS];
static uint64_t seed; /* random, so that nobody can make pages that share a hash */

void hfm_passing_begin(void)
{
    (void)apr_generate_random_bytes((unsigned char *)&seed, sizeof seed);
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = seed ^ 0xcbf29ce484222325;
    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

static uint32_t now_s(void)
{
    return (uint32_t)apr_time_sec(apr_time_now());
}

/* Rounded down: never longer than the server's own mark. */
void hfm_passing_note(const char *key, int64_t for_ms)
{
    uint64_t hash = hash_of(key);
    if (for_ms >= 1000)
        atomic_store(&slots[hash % SLOTS], (hash & 0xffffffff00000000) | (uint32_t)(now_s() + for_ms / 1000));
}

bool hfm_passing_is(const char *key)
{
    uint64_t hash = hash_of(key), found = atomic_load_explicit(&slots[hash % SLOTS], memory_order_relaxed);
    return found >> 32 == hash >> 32 && (uint32_t)found > now_s();
}
