/* SPDX-License-Identifier: MIT */
/* writer.c - see writer.h. */
#include "tests/torture/writer.h"
#include "tests/torture/actor.h"
#include "tests/torture/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define AGAIN    3    /* so often a stale holder tries */
#define ALONE_MS 1500 /* so long after its end it waits for somebody to become stale by */

struct writer {
    struct hft_stage *stage;
    struct hft_mark *mark;
    struct hft_store store;
    hf_client *client;
    int lock;
    unsigned rng;
};

static void pause_ms(int64_t ms)
{
    struct timespec length = {ms / 1000, ms % 1000 * HFT_MS};
    (void)nanosleep(&length, NULL);
}

static void add(struct writer *writer, enum hft_writer_sum sum)
{
    atomic_fetch_add(&writer->stage->sums[sum], 1);
}

/* Writes without a validity check until it releases, or until it was refused often enough. True: it was stale. */
static bool write_blindly(struct writer *writer, hf_lease *lease, int64_t turn)
{
    int64_t entered = hft_now_ns(), until = entered + (200 + rand_r(&writer->rng) % 600) * HFT_MS, ended = 0;
    for (int refused = 0; refused < AGAIN;) {
        enum hft_written written = hft_store_write(&writer->store, writer->lock, hf_lease_fence(lease), turn);
        add(writer, HFT_WRITES);
        if (written == HFT_STALE_REFUSED || written == HFT_STALE_WRITTEN) {
            add(writer, HFT_STALE_TRIED);
            if (refused++ == 0)
                add(writer, HFT_STALE_HOLDERS);
        }
        if (written == HFT_STALE_WRITTEN)
            add(writer, HFT_STALE_TAKEN);
        if (written == HFT_LATEST_REFUSED)
            add(writer, HFT_INVERTED);
        if (ended == 0 && !hf_lease_is_valid(lease)) {
            ended = hft_now_ns();
            if (atomic_load(&writer->mark->stroke) < 0 &&
                atomic_load(&writer->stage->sums[HFT_HARMED_NS]) < entered)
                atomic_fetch_add(&writer->stage->ledger->lost[hf_lease_reason(lease)], 1);
        }
        int64_t now = hft_now_ns();
        if (refused == 0 && (ended != 0 ? now > ended + ALONE_MS * HFT_MS : now > until))
            return false;
        pause_ms(10 + rand_r(&writer->rng) % 30);
    }
    return true;
}

/* A turn counts only if the lease is still valid when it has been taken: then turns are in the order of grants. */
static void hold(struct writer *writer, hf_lease *lease)
{
    bool stale = false;
    hf_error error;
    atomic_store(&writer->mark->stroke, -1);
    int64_t turn = hft_store_take_turn(&writer->store, writer->lock);
    if (hf_lease_verify(lease, NULL) == HF_OK) {
        atomic_store(&writer->mark->act, (int)HFT_HOLDING);
        stale = write_blindly(writer, lease, turn);
        atomic_store(&writer->mark->act, (int)HFT_GIVING_BACK);
    }
    hf_status status = hf_lease_release(lease, &error);
    if (stale && status == HF_OK)
        add(writer, HFT_FALSELY_OK);
    if (status != HF_OK && status != HF_LOST && status != HF_UNKNOWN)
        hft_complain(writer->stage->ledger, "release: %s: %s", hf_status_name(status), error.message);
}

void hft_writer_act(struct hft_stage *stage, int process, unsigned seed)
{
    struct writer writer = {.stage = stage, .mark = &stage->marks[process], .rng = seed,
                            .lock = process % stage->ledger->plan.locks};
    char name[24];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "torture:%d", writer.lock);
    hft_store_open(&writer.store, hft_server_socket(stage->store));
    writer.client = hft_actor_client(stage);
    for (;;) {
        bool eager = rand_r(&writer.rng) % 2 == 0; /* asks again and again, without a place in the queue */
        atomic_store(&writer.mark->act, (int)HFT_ASKING);
        hf_status status = hf_lock_acquire(writer.client, name,
            HF_LOCK(.lease_ms = stage->ledger->plan.lease_ms, .wait_ms = eager ? 0 : 3000), &lease, &error);
        if (status == HF_OK)
            hold(&writer, lease);
        else if (status == HF_BUSY || status == HF_TIMEOUT || status == HF_UNAVAILABLE)
            pause_ms(15 + rand_r(&writer.rng) % 75);
        else
            hft_complain(stage->ledger, "acquire of %s: %s: %s", name, hf_status_name(status), error.message);
    }
}
