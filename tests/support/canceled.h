/* SPDX-License-Identifier: MIT */
/* canceled.h - a call in a thread that pthread_cancel has been called for. */
#ifndef HFT_CANCELED_H
#define HFT_CANCELED_H

#include <stdbool.h>

/* Calls it in such a thread, which ends at its first cancellation point: in the call, or behind it. False: no thread. */
bool hft_call_canceled(void (*call)(void *arg), void *arg);

#endif
