/* SPDX-License-Identifier: MIT */
/* pace.c - see pace.h. */
#include "pool/pace.h"
#include "pool/times.h"

#define EACH_WAITS 16 /* of each thread, else a turn goes on: those that began in another turn are few then */
#define SLOW       2  /* a turn still without them ends when it has lasted so many times what the faster way takes for them */
#define WORTH      16 /* to look uses more of the CPU: it has to be faster by this part */
#define WINS       3
#define GAP_MOST   61 /* a prime: else pauses after each 4 or 8 turns, as between bursts, could meet all trials */
#define PAUSES     2  /* in such a part of the shortest turn a follower begins to wait, or there is no crowd */

static bool wins(const struct hfi_pace *pace, int64_t took_ns)
{
    int64_t slept_ns = pace->usual ? took_ns : pace->usual_ns, looked_ns = pace->usual ? pace->usual_ns : took_ns;
    return (looked_ns < slept_ns - slept_ns / WORTH) != pace->usual;
}

/* In a void turn nobody began to wait for a while. Where threads sleep that says nothing. Where they look, that may be why: to sleep is
 * tried after the next turn, or now, if it was to be tried next anyway. */
static void end_usual_turn(struct hfi_pace *pace, int64_t took_ns, bool is_void, bool is_slow)
{
    pace->usual_ns = took_ns;
    if (is_void && !pace->usual)
        return;
    if (is_void)
        pace->left = pace->left > 1 ? 2 : 1;
    else if (is_slow)
        pace->left = 1;
    if (--pace->left <= 0)
        atomic_store(&pace->looks, !pace->usual);
}

/* Without a crowd to sleep is right, which keeps nobody from the CPU. A trial of looks, if void, says nothing. */
static void end_trial(struct hfi_pace *pace, int64_t took_ns, bool is_void)
{
    int gap = 2 * pace->gap + 1;
    bool is_won = is_void ? pace->usual : wins(pace, took_ns), is_lost = !is_won && !is_void;
    if (!is_void)
        pace->fast_ns = is_won ? took_ns : pace->usual_ns;
    pace->wins += is_won ? 1 : is_lost && pace->wins > 0 ? -1 : 0;
    pace->gap = pace->left = (is_won || is_lost) && pace->wins > 0 ? 1 : gap < GAP_MOST ? gap : GAP_MOST;
    if (pace->wins == WINS) {
        pace->usual = !pace->usual;
        pace->wins = 0;
    }
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
    int waits = atomic_load(&pace->waits), whole = EACH_WAITS * (followers + 1);
    int64_t lasted_ns = now_ns - pace->began_ns, took_ns = lasted_ns / (waits > 0 ? waits : 1);
    bool looks = atomic_load(&pace->looks), is_void = atomic_exchange(&pace->is_void, false);
    bool is_slow = (looks || pace->usual) && waits < whole && lasted_ns > SLOW * whole * pace->fast_ns;
    if (!is_void && !is_slow && waits < whole)
        return;
    if (looks == pace->usual)
        end_usual_turn(pace, took_ns, is_void, is_slow);
    else
        end_trial(pace, took_ns, is_void);
    begin_turn(pace, now_ns, waits);
}

void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int64_t before_ns = atomic_load_explicit(&pace->noted_ns, memory_order_relaxed), ends_ns = atomic_load(&pace->turn_ends_ns);
    if (now_ns - before_ns > HFI_TURN_NS / PAUSES)
        atomic_store(&pace->is_void, true);
    if (now_ns > before_ns) /* else this thread lost the CPU since it looked at the clock */
        atomic_store_explicit(&pace->noted_ns, now_ns, memory_order_relaxed);
    if (now_ns < ends_ns || !atomic_compare_exchange_strong(&pace->turn_ends_ns, &ends_ns, HFI_NEVER))
        return;
    end_turn(pace, now_ns, followers);
    atomic_store(&pace->turn_ends_ns, now_ns + HFI_TURN_NS);
}
