/* SPDX-License-Identifier: MIT */
/* wire_track.c - what has the server tell of the next change of a key: part of wire.h. */
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct part { /* one command of a transaction */
    int count;
    const char *const *words;
    const size_t *sizes; /* NULL: they end with NUL */
};

static const char *const caching[] = {"CLIENT", "CACHING", "YES"}, *const role[] = {"ROLE"}, *const whom[] = {"CLIENT", "GETREDIR"};

static struct hfi_command *transaction(const struct part *parts, size_t count)
{
    const char *const exec[] = {"EXEC"};
    struct hfi_command *command = hfi_wire_words("MULTI", NULL);
    bool whole = command != NULL;
    for (size_t i = 0; whole && i < count; i++)
        whole = hfi_command_append(command, parts[i].count, parts[i].words, parts[i].sizes);
    if (whole && hfi_command_append(command, 1, exec, NULL))
        return command;
    if (command != NULL)
        hfi_command_unref(command);
    return NULL;
}

/* CACHING is meant for the next command alone, and a transaction lets no other one come in between; its one reply has the
 * errors of all three. TRACKING is said each time: the server forgets it with the connection, and the id may be another. With
 * NOLOOP a set that this connection itself has changed would be tracked no more, and nobody told. */
struct hfi_command *hfi_wire_tracked(int64_t client_id, int argc, const char *const *argv, const size_t *sizes)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%" PRId64, client_id);
    const char *const on[] = {"CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN"};
    return transaction((const struct part[]){{6, on, NULL}, {3, caching, NULL}, {argc, argv, sizes}}, 3);
}

struct hfi_command *hfi_wire_track(const struct hfi_keys *keys, int64_t client_id)
{
    bool is_member = keys->dialect != NULL && keys->dialect->is_member;
    const char *read = is_member ? "SISMEMBER" : "GET";
    size_t size;
    const char *key = hfi_watched_key(keys, &size);
    return hfi_wire_tracked(client_id, is_member ? 3 : 2, (const char *const[]){read, key, hfi_keys_name(keys)},
                            (const size_t[]){strlen(read), size, keys->name_size});
}

/* ROLE, because a primary that is one no more goes on to tell of changes, but not of those at the new one. CACHING only to learn
 * that it is allowed, before reads need it: there its refusal could not be told from that of a key. */
struct hfi_command *hfi_wire_near_question(int64_t tracker)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%" PRId64, tracker);
    const char *const on[] = {"CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN"};
    const struct part parts[] = {{6, on, NULL}, {3, caching, NULL}, {1, role, NULL}, {2, whom, NULL}};
    return tracker != 0 ? transaction(parts, 4) : transaction(parts + 2, 2);
}

struct hfi_command *hfi_wire_near_read(const struct hfi_name *key)
{
    const char *const get[] = {"GET", key->text}, *const pttl[] = {"PTTL", key->text};
    const struct part parts[] = {{3, caching, NULL}, {2, get, (const size_t[]){3, key->size}}, {2, pttl, (const size_t[]){4, key->size}}};
    return transaction(parts, 3);
}
