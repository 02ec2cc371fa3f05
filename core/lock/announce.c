/* SPDX-License-Identifier: MIT */
/* announce.c - see announce.h. */
#include "core/lock/announce.h"
#include "core/context/call.h"
#include "core/lock/table.h"
#include "core/protocol/message.h"
#include "core/protocol/wire.h"
#include "base/rare.h"

static void said(struct hfi_command *command)
{
    hfi_table_unref(command->self);
}

static void say(struct hfi_lock *lock, const char *token, int64_t now)
{
    char channel[HFI_ELECTION_CHANNEL_MOST], text[HFI_MESSAGE_CAPACITY];
    (void)hfi_election_channel(&lock->keys, channel);
    hfi_message_print_notice(token, text);
    struct hfi_command *command = hfi_wire_words("PUBLISH", channel, text, NULL);
    if (command == NULL)
        return;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    command->optional = true;
    hfi_table_ref(lock); /* so that what is said next goes by the same lane, behind this */
    hfi_call_list(lock->client, lock->lane, command, said, lock, now);
}

HFI_RARE void hfi_announce_hold(struct hfi_lock *lock, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    char token[HFI_TOKEN_CAPACITY];
    if (lock->announced)
        return;
    lock->announced = true;
    (void)hfi_token_make(&lock->client->identity, lock->token, token);
    say(lock, token, now);
}

HFI_RARE void hfi_announce_end(struct hfi_lock *lock, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    if (!lock->announced)
        return;
    lock->announced = false;
    say(lock, "-", now);
}
