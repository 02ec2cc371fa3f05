/* SPDX-License-Identifier: MIT */
/* pace.c - see pace.h. */
#include "pool/pace.h"
#include "pool/times.h"

#define EACH_WAITS 16 /* of each follower, else a turn goes on: those that began in another turn are few then */
#define SLOW       2  /* but a way that is so much slower has lost by then */
#define WORTH      16 /* to look uses more of the CPU: it has to be faster by this part */
#define WINS       3
#define GAP_MOST   64
#define PAUSES     4  /* who waits for such a part of a turn waits for no reply: nobody is there */

static int64_t wait_ns(const struct hfi_pace *pace, int64_t now_ns, int waits)
{
    return (now_ns - pace->began_ns) / (waits > 0 ? waits : 1);
}

static bool has_lost(const struct hfi_pace *pace, int64_t now_ns, int waits)
{
    return atomic_load(&pace->looks) != pace->usual && wait_ns(pace, now_ns, waits) > SLOW * pace->usual_ns;
}

static void end_usual_turn(struct hfi_pace *pace, int64_t took_ns)
{
    pace->usual_ns = took_ns;
    if (--pace->left <= 0)
        atomic_store(&pace->looks, !pace->usual);
}

static void end_other_turn(struct hfi_pace *pace, int64_t took_ns)
{
    int64_t slept_ns = pace->usual ? took_ns : pace->usual_ns, looked_ns = pace->usual ? pace->usual_ns : took_ns;
    bool looks = looked_ns < slept_ns - slept_ns / WORTH;
    int gap = 2 * pace->gap + 1;
    pace->wins += looks != pace->usual ? 1 : pace->wins > 0 ? -1 : 0;
    pace->gap = pace->wins > 0 ? 1 : gap < GAP_MOST ? gap : GAP_MOST;
    if (pace->wins == WINS) {
        pace->usual = !pace->usual;
        pace->wins = 0;
    }
    pace->left = pace->gap;
    atomic_store(&pace->looks, pace->usual);
}

/* Waits that begin meanwhile are the next turn's. */
static void begin_turn(struct hfi_pace *pace, int64_t now_ns, int waits)
{
    pace->began_ns = now_ns;
    (void)atomic_fetch_sub(&pace->waits, waits);
}

static void end_turn(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int waits = atomic_load(&pace->waits);
    if (atomic_exchange(&pace->is_void, false)) {
        atomic_store(&pace->looks, pace->usual);
        begin_turn(pace, now_ns, waits);
    } else if (waits >= EACH_WAITS * followers || has_lost(pace, now_ns, waits)) {
        if (atomic_load(&pace->looks) == pace->usual)
            end_usual_turn(pace, wait_ns(pace, now_ns, waits));
        else
            end_other_turn(pace, wait_ns(pace, now_ns, waits));
        begin_turn(pace, now_ns, waits);
    }
}

void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int64_t before_ns = atomic_load_explicit(&pace->noted_ns, memory_order_relaxed), ends_ns = atomic_load(&pace->turn_ends_ns);
    atomic_store_explicit(&pace->noted_ns, now_ns, memory_order_relaxed);
    (void)atomic_fetch_add(&pace->waits, 1);
    if (now_ns - before_ns > HFI_TURN_NS / PAUSES)
        atomic_store(&pace->is_void, true);
    if (now_ns < ends_ns || !atomic_compare_exchange_strong(&pace->turn_ends_ns, &ends_ns, HFI_NEVER))
        return;
    end_turn(pace, now_ns, followers);
    atomic_store(&pace->turn_ends_ns, now_ns + HFI_TURN_NS);
}

bool hfi_pace_looks(const struct hfi_pace *pace)
{
    return atomic_load(&pace->looks);
}
