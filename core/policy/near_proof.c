/* SPDX-License-Identifier: MIT */
/* near_proof.c - see near_proof.h. */
#include "core/policy/near_proof.h"
#include "base/clock.h"

#include <stddef.h>

static void disarm_all(struct hfi_near_proof *proof)
{
    for (int i = 0; i < proof->count; i++)
        proof->lanes[i].epoch = 0;
}

bool hfi_near_hears(struct hfi_near_proof *proof, int64_t tracker, uint64_t run, int64_t stamp_ns)
{
    bool is_another = tracker != proof->tracker || run != proof->run;
    if (is_another) {
        disarm_all(proof);
        proof->tracker = tracker;
        proof->run = run;
        proof->heard_ns = stamp_ns;
    } else if (stamp_ns > proof->heard_ns) {
        proof->heard_ns = stamp_ns;
    }
    return is_another;
}

enum hfi_near_ask hfi_near_next(const struct hfi_near_proof *proof, int lane)
{
    if (proof->lanes[lane].epoch != 0)
        return HFI_NEAR_BEAT;
    return proof->tracker != 0 ? HFI_NEAR_ARM : HFI_NEAR_ASK_NOTHING;
}

/* An answer to a question of an earlier epoch says nothing of this one, good or bad: another answer has decided since. */
void hfi_near_answered(struct hfi_near_proof *proof, int lane, const struct hfi_near_answer *answer)
{
    struct hfi_near_lane *at = &proof->lanes[lane];
    bool is_arming = answer->epoch == 0;
    bool fits = answer->is_good && answer->connection != 0 && answer->tracker == proof->tracker && answer->run == proof->run &&
                answer->run != 0;
    if (at->epoch != answer->epoch)
        return;
    if (is_arming && fits) {
        at->epoch = ++proof->epochs;
        at->connection = answer->connection;
        at->answered_ns = answer->stamp_ns;
    } else if (!is_arming && answer->connection != 0) {
        if (!fits || answer->connection != at->connection)
            at->epoch = 0;
        else if (answer->stamp_ns > at->answered_ns)
            at->answered_ns = answer->stamp_ns;
    }
}

void hfi_near_met(struct hfi_near_proof *proof, int lane, uint32_t connection)
{
    if (connection != proof->lanes[lane].connection)
        proof->lanes[lane].epoch = 0;
}

void hfi_near_all_changed(struct hfi_near_proof *proof)
{
    for (int i = 0; i < proof->count; i++)
        if (proof->lanes[i].epoch != 0)
            proof->lanes[i].epoch = ++proof->epochs;
}

int64_t hfi_near_proved_ns(const struct hfi_near_proof *proof, int lane)
{
    const struct hfi_near_lane *at = &proof->lanes[lane];
    if (at->epoch == 0)
        return 0;
    return at->answered_ns < proof->heard_ns ? at->answered_ns : proof->heard_ns;
}

enum hfi_near_verdict hfi_near_judge(const struct hfi_near_mark *mark, uint64_t epoch, int64_t proved_ns, int64_t near_ms,
                                     int64_t lag_ms, int64_t now_ns)
{
    if (mark->epoch == 0 || mark->epoch != epoch || now_ns >= mark->end_ns || now_ns >= hfi_after_ms(mark->read_ns, near_ms))
        return HFI_NEAR_OVER;
    return now_ns < hfi_after_ms(proved_ns, lag_ms) ? HFI_NEAR_GOOD : HFI_NEAR_UNPROVED;
}
