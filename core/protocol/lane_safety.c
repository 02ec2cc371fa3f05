/* SPDX-License-Identifier: MIT */
/* lane_safety.c - the table of commands that block, bind or change a connection. */
#include "core/protocol/lane_safety.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const char blocks[] = "would make everybody on the shared connection wait";
static const char transacts[] = "is part of a transaction, and others' commands would come in between";
static const char streams[] = "turns the shared connection into a stream of messages";
static const char changes[] = "would change the shared connection for everybody";
static const char ends[] = "is what browsers say, and the server hangs up on them";

static const struct refused {
    const char *name, *second; /* second: the first argument, NULL for any */
    const char *why;
} table[] = {
    {"BLPOP", NULL, blocks},         {"BRPOP", NULL, blocks},         {"BRPOPLPUSH", NULL, blocks},
    {"BLMOVE", NULL, blocks},        {"BLMPOP", NULL, blocks},        {"BZPOPMIN", NULL, blocks},
    {"BZPOPMAX", NULL, blocks},      {"BZMPOP", NULL, blocks},        {"WAIT", NULL, blocks},
    {"WAITAOF", NULL, blocks},       {"MULTI", NULL, transacts},      {"EXEC", NULL, transacts},
    {"DISCARD", NULL, transacts},    {"WATCH", NULL, transacts},      {"UNWATCH", NULL, transacts},
    {"SUBSCRIBE", NULL, streams},    {"PSUBSCRIBE", NULL, streams},   {"SSUBSCRIBE", NULL, streams},
    {"UNSUBSCRIBE", NULL, streams},  {"PUNSUBSCRIBE", NULL, streams}, {"SUNSUBSCRIBE", NULL, streams},
    {"MONITOR", NULL, streams},      {"SYNC", NULL, streams},         {"PSYNC", NULL, streams},
    {"REPLCONF", NULL, streams},     {"SELECT", NULL, changes},       {"AUTH", NULL, changes},
    {"HELLO", NULL, changes},        {"RESET", NULL, changes},        {"QUIT", NULL, changes},
    {"READONLY", NULL, changes},     {"READWRITE", NULL, changes},    {"ASKING", NULL, changes},
    {"CLIENT", "REPLY", changes},    {"CLIENT", "TRACKING", changes}, {"CLIENT", "CACHING", changes},
    {"CLIENT", "NO-EVICT", changes}, {"CLIENT", "NO-TOUCH", changes}, {"CLIENT", "SETNAME", changes},
    {"CLIENT", "SETINFO", changes},  {"CLIENT", "CAPA", changes},     {"SCRIPT", "DEBUG", changes},
    {"CLIENT", "IMPORT-SOURCE", changes}, {"POST", NULL, ends},       {"HOST:", NULL, ends},
};

static bool is(const char *argument, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(argument, word, size) == 0;
}

/* XREAD and XREADGROUP take options before STREAMS only. The arguments after it are keys, and a key may be "BLOCK". */
static bool blocks_on_streams(int argc, const char *const *argv, const size_t *sizes)
{
    if (!is(argv[0], sizes[0], "XREAD") && !is(argv[0], sizes[0], "XREADGROUP"))
        return false;
    for (int i = 1; i < argc && !is(argv[i], sizes[i], "STREAMS"); i++) {
        if (is(argv[i], sizes[i], "BLOCK"))
            return true;
        if (is(argv[i], sizes[i], "COUNT"))
            i += 1;
        else if (is(argv[i], sizes[i], "GROUP"))
            i += 2;
    }
    return false;
}

const char *hfi_lane_unsafe(int argc, const char *const *argv, const size_t *sizes)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct refused *row = &table[i];
        if (is(argv[0], sizes[0], row->name) &&
            (row->second == NULL || (argc > 1 && is(argv[1], sizes[1], row->second))))
            return row->why;
    }
    return blocks_on_streams(argc, argv, sizes) ? blocks : NULL;
}
