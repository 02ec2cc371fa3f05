/* SPDX-License-Identifier: MIT */
/* campaigns.h - what is done to holders until it was done often enough. */
#ifndef HFT_CAMPAIGNS_H
#define HFT_CAMPAIGNS_H

#include "tests/torture/stage.h"

/* True: nothing was broken. Each prints a summary. */
bool hft_campaign_kills(struct hft_stage *stage);  /* holders are killed -9 */
bool hft_campaign_pauses(struct hft_stage *stage); /* holders are stopped for two leases */
bool hft_campaign_stale(struct hft_stage *stage);  /* holders whose lease is gone go on writing to a store */

/* Runs one campaign. Arguments and exit status are those of a main: 1 where a promise was broken. */
int hft_holders(int argc, char **argv);

#endif
