/* SPDX-License-Identifier: MIT */
/* announce.c - see announce.h. */
#include "core/lock/announce.h"
#include "core/context/call.h"
#include "core/protocol/message.h"
#include "base/rare.h"

static void say(struct hfi_lock *lock, const char *token, int64_t now)
{
    char channel[HFI_ELECTION_CHANNEL_MOST], text[HFI_MESSAGE_CAPACITY];
    (void)hfi_election_channel(&lock->keys, channel);
    hfi_message_print_notice(token, text);
    lock->stays = true; /* what is said next must come behind this */
    hfi_call_publish(lock->client, lock->lane, channel, text, now);
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
