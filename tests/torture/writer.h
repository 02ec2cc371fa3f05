/* SPDX-License-Identifier: MIT */
/* writer.h - a process of `stale`: acquires its lease and writes to the store with its fence, without a check that
 * the lease is still its own. */
#ifndef HFT_WRITER_H
#define HFT_WRITER_H

#include "tests/torture/stage.h"

enum hft_writer_sum { /* of stage->sums */
    HFT_WRITES,
    HFT_STALE_TRIED,
    HFT_STALE_TAKEN,
    HFT_INVERTED,
    HFT_STALE_HOLDERS, /* who tried once at least */
    HFT_FALSELY_OK,    /* of those, whose release said HF_OK */
    HFT_HARMED_NS,     /* the director's: until then leases may have been harmed */
};

hft_act_fn hft_writer_act;

#endif
