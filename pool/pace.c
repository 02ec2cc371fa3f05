/* SPDX-License-Identifier: MIT */
/* pace.c - see pace.h. */
#include "pool/pace.h"
#include "pool/times.h"

#define EACH_WAITS  16 /* of each follower, else a turn goes on: those that began in another turn are few then */
#define WORTH       16 /* to look uses more of the CPU: it has to be faster by this part */
#define WINS        3
#define GAP_MOST    64

static void end_usual_turn(struct hfi_pace *pace, int64_t wait_ns)
{
    pace->usual_ns = wait_ns;
    if (pace->left-- <= 0)
        atomic_store(&pace->looks, !pace->usual);
}

static void end_other_turn(struct hfi_pace *pace, int64_t wait_ns)
{
    int64_t slept_ns = pace->usual ? wait_ns : pace->usual_ns, looked_ns = pace->usual ? pace->usual_ns : wait_ns;
    bool looks = looked_ns < slept_ns - slept_ns / WORTH;
    pace->wins += looks != pace->usual ? 1 : pace->wins > 0 ? -1 : 0;
    pace->gap = pace->wins > 0 ? 1 : pace->gap < GAP_MOST ? 2 * pace->gap + 1 : GAP_MOST;
    if (pace->wins == WINS) {
        pace->usual = !pace->usual;
        pace->wins = 0;
    }
    pace->left = pace->gap;
    atomic_store(&pace->looks, pace->usual);
}

static void begin_turn(struct hfi_pace *pace, int64_t now_ns)
{
    pace->began_ns = now_ns;
    atomic_store(&pace->waits, 0);
}

void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int waits = atomic_fetch_add(&pace->waits, 1) + 1;
    int64_t ends_ns = atomic_load(&pace->turn_ends_ns);
    if (now_ns < ends_ns || !atomic_compare_exchange_strong(&pace->turn_ends_ns, &ends_ns, HFI_NEVER))
        return;
    if (now_ns - ends_ns > HFI_TURN_NS / 4) { /* there was no crowd, or it had no CPU */
        begin_turn(pace, now_ns);
    } else if (waits >= EACH_WAITS * followers) {
        int64_t wait_ns = (now_ns - pace->began_ns) / waits;
        if (atomic_load(&pace->looks) == pace->usual)
            end_usual_turn(pace, wait_ns);
        else
            end_other_turn(pace, wait_ns);
        begin_turn(pace, now_ns);
    }
    atomic_store(&pace->turn_ends_ns, now_ns + HFI_TURN_NS);
}

bool hfi_pace_looks(const struct hfi_pace *pace)
{
    return atomic_load(&pace->looks);
}
