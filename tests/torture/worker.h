/* SPDX-License-Identifier: MIT */
/* worker.h - one process of a torture: a client, and threads that acquire, hold and release locks. */
#ifndef HFT_WORKER_H
#define HFT_WORKER_H

#include "tests/torture/ledger.h"

/* Works until ledger->stop, then closes everything and ends the process: 0, or 1 and a complaint. */
_Noreturn void hft_work(struct hft_ledger *ledger, const char *url, int number, unsigned seed);

#endif
