/* SPDX-License-Identifier: MIT */
/* wire_renew.c - builds the renewals of one script; see wire.h. */
#include "core/protocol/wire.h"
#include "core/protocol/reply_schema.h"
#include "core/protocol/scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hfi_wire_add_token(struct hfi_command *command, const struct hfi_identity *identity, struct hfi_token token)
{
    char text[HFI_TOKEN_CAPACITY];
    return hfi_command_word(command, text, hfi_token_make(identity, token, text));
}

static bool add_renewals(struct hfi_command *command, const struct hfi_identity *identity,
                         const struct hfi_renewal *renewals, int count)
{
    struct hfi_side_keys sides;
    char ttl[24], permits[16];
    bool all = true;
    for (int i = 0; i < count; i++)
        all = all && hfi_command_word(command, renewals[i].keys->lock, renewals[i].keys->lock_size);
    for (int i = 0; i < count; i++) {
        if (!all || !hfi_side_keys_print(renewals[i].keys, &sides))
            return false;
        all = hfi_wire_add_token(command, identity, renewals[i].token) &&
              hfi_command_word(command, ttl, (size_t)snprintf(ttl, sizeof ttl, "%" PRId64, renewals[i].ttl_ms)) &&
              hfi_command_word(command, sides.queue, sides.queue_size);
        if (renewals[i].keys->use == HFI_SEMAPHORE)
            all = all && hfi_command_word(command, permits,
                                          (size_t)snprintf(permits, sizeof permits, "%" PRId32, renewals[i].permits));
        hfi_side_keys_done(&sides);
    }
    return all;
}

struct hfi_command *hfi_wire_renew(const struct hfi_identity *identity, const struct hfi_renewal *renewals, int count)
{
    size_t capacity = 0;
    if (renewals[0].keys->dialect != NULL)
        return hfi_wire_renew_in_dialect(identity, renewals);
    for (int i = 0; i < count; i++)
        capacity += 2 * (size_t)renewals[i].keys->lock_size + renewals[i].keys->tag_size + HFI_TOKEN_CAPACITY + 36;
    bool counts = renewals[0].keys->use == HFI_SEMAPHORE;
    struct hfi_command *command = hfi_command_script_begin(counts ? hfi_script_renew_permits : hfi_script_renew, count,
                                                           (counts ? 5 : 4) * count, capacity);
    if (command == NULL)
        return NULL;
    if (!add_renewals(command, identity, renewals, count)) {
        hfi_command_unref(command);
        return NULL;
    }
    command->validate = hfi_schema_renew;
    command->element_count = count + 1;
    command->confirmed = true;
    return command;
}
