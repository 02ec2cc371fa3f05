/* SPDX-License-Identifier: MIT */
/* wire_take_many.c - builds the acquire of several names at once; see wire.h. */
#include "core/protocol/wire.h"
#include "core/protocol/reply_schema.h"
#include "core/protocol/scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool add_number(struct hfi_command *command, int64_t number)
{
    char text[24];
    return hfi_command_word(command, text, (size_t)snprintf(text, sizeof text, "%" PRId64, number));
}

static bool add_takings(struct hfi_command *command, const struct hfi_identity *identity,
                        const struct hfi_taking *names, int count, int64_t not_after_us)
{
    struct hfi_side_keys sides;
    int64_t ttl_ms = 0;
    bool all = true;
    for (int i = 0; i < count; i++) {
        if (!all || !hfi_side_keys_print(names[i].keys, &sides))
            return false;
        all = hfi_command_word(command, names[i].keys->lock, names[i].keys->lock_size) &&
              hfi_command_word(command, sides.queue, sides.queue_size);
        if (i == 0)
            all = all && hfi_command_word(command, sides.waiters, sides.waiters_size) &&
                  hfi_command_word(command, HFI_FENCE_KEY, strlen(HFI_FENCE_KEY));
        hfi_side_keys_done(&sides);
        ttl_ms = names[i].ttl_ms > ttl_ms ? names[i].ttl_ms : ttl_ms;
    }
    all = all && add_number(command, not_after_us) && add_number(command, ttl_ms);
    for (int i = 0; i < count; i++)
        all = all && hfi_wire_add_token(command, identity, names[i].token);
    return all;
}

struct hfi_command *hfi_wire_take_many(const struct hfi_identity *identity, const struct hfi_taking *names, int count,
                                       int64_t not_after_us)
{
    size_t capacity = 2 * 24 + 2 * sizeof HFI_FENCE_KEY + 3 * (size_t)names[0].keys->lock_size + HFI_TOKEN_CAPACITY;
    for (int i = 0; i < count; i++)
        capacity += 2 * (size_t)names[i].keys->lock_size + names[i].keys->tag_size + HFI_TOKEN_CAPACITY + 36;
    struct hfi_command *command = hfi_command_script_begin(hfi_script_take_many, 2 * count + 2, 3 * count + 4, capacity);
    if (command == NULL)
        return NULL;
    if (!add_takings(command, identity, names, count, not_after_us)) {
        hfi_command_unref(command);
        return NULL;
    }
    command->validate = hfi_schema_take_many;
    command->confirmed = true;
    return command;
}
