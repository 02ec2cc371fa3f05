/* SPDX-License-Identifier: MIT */
/* wire_track.c - what has the server tell of the next change of a key: part of wire.h. */
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* CACHING is meant for the next command alone, and a transaction lets no other one come in between; its one reply has the
 * errors of all three. TRACKING is said each time: the server forgets it with the connection, and the id may be another. With
 * NOLOOP a set that this connection itself has changed would be tracked no more, and nobody told. */
struct hfi_command *hfi_wire_tracked(int64_t client_id, int argc, const char *const *argv, const size_t *sizes)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%" PRId64, client_id);
    const char *const on[] = {"CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN"};
    const char *const caching[] = {"CLIENT", "CACHING", "YES"}, *const exec[] = {"EXEC"};
    struct hfi_command *command = hfi_wire_words("MULTI", NULL);
    if (command != NULL && hfi_command_append(command, 6, on, NULL) && hfi_command_append(command, 3, caching, NULL) &&
        hfi_command_append(command, argc, argv, sizes) && hfi_command_append(command, 1, exec, NULL))
        return command;
    if (command != NULL)
        hfi_command_unref(command);
    return NULL;
}

struct hfi_command *hfi_wire_track(const struct hfi_keys *keys, int64_t client_id)
{
    bool is_member = keys->dialect != NULL && keys->dialect->is_member;
    const char *read = is_member ? "SISMEMBER" : "GET";
    size_t size;
    const char *key = hfi_watched_key(keys, &size);
    return hfi_wire_tracked(client_id, is_member ? 3 : 2, (const char *const[]){read, key, keys->name},
                            (const size_t[]){strlen(read), size, keys->name_size});
}
