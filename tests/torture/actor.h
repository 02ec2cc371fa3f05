/* SPDX-License-Identifier: MIT */
/* actor.h - a process of kills and pauses: acquires its lease, holds it, and records until when it was valid. */
#ifndef HFT_ACTOR_H
#define HFT_ACTOR_H

#include "tests/torture/stage.h"

#include <holdfast/holdfast.h>

hft_act_fn hft_actor_hold;
/* Opens this process's client, or complains and ends it. */
hf_client *hft_actor_client(struct hft_stage *stage);

#endif
