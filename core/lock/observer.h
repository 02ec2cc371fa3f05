/* SPDX-License-Identifier: MIT */
/* observer.h - those of this client who watch who holds a lock (election.h). Messages only tell when to look: what is
 * told was read from the key. observation.c decides when. */
#ifndef HFI_OBSERVER_H
#define HFI_OBSERVER_H

#include "core/context/context.h"
#include "core/protocol/message.h"

/* A message on an election's channel, or that channel has come up; text NULL: it has. False: it is no such channel. */
bool hfi_observers_notice(hf_client *client, const char *channel, size_t channel_size, const char *text, size_t size);
/* Message A: the answer of a holder. */
void hfi_observers_answer(hf_client *client, const struct hfi_message *message);
/* For close, before pool and watchdog end: no observer looks or tells any more. */
void hfi_observers_stop(hf_client *client);

#endif
