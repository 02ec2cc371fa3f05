/* SPDX-License-Identifier: MIT */
/* announce.c - see announce.h. */
#include "core/lock/announce.h"
#include "core/context/call.h"
#include "core/lock/table.h"
#include "core/protocol/message.h"
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
    hfi_table_ref(lock); /* so that what is said next goes by the same lane, behind this */
    if (!hfi_call_publish_for(lock->client, lock->lane, channel, text, said, lock, now))
        hfi_table_unref(lock); /* never the last: the caller has one */
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
