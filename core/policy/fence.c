/* SPDX-License-Identifier: MIT */
/* fence.c - see fence.h. */
#include "core/policy/fence.h"

/* Each clock's rate may err by 1 %, so two clocks may differ by 2 %. */
#define TWO_RHO(x) ((x) / 50)

/* Below LEAST, the counter has begun at 0. Above MOST, nothing could be added to it; no clock gets there before the
 * year 2112. */
#define LEAST (INT64_C(1) << 60)
#define MOST  (INT64_MAX - (INT64_C(1) << 40))

/* How far ahead of the clock the counter must be when it grants. A fence floor puts it twice as far ahead. */
#define AHEAD_US 1000000

void hfi_server_clock_observe(struct hfi_server_clock *clock, int64_t server_us, int64_t now_ns)
{
    if (server_us > hfi_server_clock_at_least_us(clock, now_ns > clock->seen_ns ? now_ns : clock->seen_ns)) {
        clock->us = server_us;
        clock->seen_ns = now_ns;
    }
}

static int64_t elapsed_us(const struct hfi_server_clock *clock, int64_t now_ns)
{
    return now_ns > clock->seen_ns ? (now_ns - clock->seen_ns) / 1000 : 0;
}

int64_t hfi_server_clock_at_least_us(const struct hfi_server_clock *clock, int64_t now_ns)
{
    if (clock->us == 0)
        return 0;
    int64_t elapsed = (now_ns - clock->seen_ns) / 1000;
    return clock->us + elapsed - TWO_RHO(elapsed > 0 ? elapsed : -elapsed);
}

int64_t hfi_server_clock_at_most_us(const struct hfi_server_clock *clock, int64_t now_ns)
{
    int64_t elapsed = elapsed_us(clock, now_ns);
    return clock->us + elapsed + TWO_RHO(elapsed) + 1000;
}

bool hfi_sample_is_stepped(struct hfi_sample *sample, int64_t server_us, int64_t sent_ns, int64_t answered_ns)
{
    bool stepped = false;
    if (sample->us != 0) {
        int64_t there = server_us - sample->us;
        int64_t least = (sent_ns - sample->answered_ns) / 1000, most = (answered_ns - sample->sent_ns) / 1000;
        int64_t slack = TWO_RHO(most > 0 ? most : 0) + 5000;
        stepped = there < least - slack || there > most + slack;
    }
    *sample = (struct hfi_sample){server_us, sent_ns, answered_ns, true};
    return stepped;
}

bool hfi_fence_is_good(int64_t first, int64_t seen, int64_t at_least_us, int64_t granted_us)
{
    int64_t least_us = granted_us > 0 && granted_us + AHEAD_US > at_least_us ? granted_us + AHEAD_US : at_least_us;
    return first >= LEAST && first <= MOST && first > seen && first / HFI_FENCE_BLOCK >= least_us;
}
