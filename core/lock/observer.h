/* SPDX-License-Identifier: MIT */
/* observer.h - the observers of a client (election.h). A message only makes an observer look at the lock's key; what the
 * observer is told comes from the key. observation.c decides when to look. */
#ifndef HFI_OBSERVER_H
#define HFI_OBSERVER_H

#include "core/context/context.h"
#include "core/protocol/message.h"

/* A message came on this channel; text NULL: the subscription is live (again). False: it is no election's channel. */
bool hfi_observers_notice(hf_client *client, const char *channel, size_t channel_size, const char *text, size_t size);
/* Message A: the answer of a holder. */
void hfi_observers_answer(hf_client *client, const struct hfi_message *message);
/* For close, before pool and watchdog end: no observer looks or tells any more. */
void hfi_observers_stop(hf_client *client);

#endif
