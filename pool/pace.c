/* SPDX-License-Identifier: MIT */
/* pace.c - see pace.h. */
#include "pool/pace.h"
#include "pool/times.h"

#define EACH_WAITS 16 /* of each follower, else a turn goes on: those that began in another turn are few then */
#define SLOW       2  /* times what such a turn takes in the usual way, and it ends */
#define WORTH      16 /* to look uses more of the CPU: it has to be faster by this part */
#define WINS       3
#define GAP_MOST   64
#define PAUSES     2  /* in such a part of the shortest turn a follower begins to wait, or there is no crowd */

static void end_usual_turn(struct hfi_pace *pace, int64_t took_ns)
{
    pace->usual_ns = took_ns;
    if (--pace->left <= 0)
        atomic_store(&pace->looks, !pace->usual);
}

static void settle(struct hfi_pace *pace, bool looks)
{
    pace->usual = looks;
    pace->usual_ns = 0;
    pace->wins = 0;
    pace->gap = pace->left = 1;
    atomic_store(&pace->looks, looks);
}

static void end_other_turn(struct hfi_pace *pace, bool has_won)
{
    int gap = 2 * pace->gap + 1;
    pace->wins += has_won ? 1 : pace->wins > 0 ? -1 : 0;
    pace->gap = pace->left = pace->wins > 0 ? 1 : gap < GAP_MOST ? gap : GAP_MOST;
    atomic_store(&pace->looks, pace->usual);
    if (pace->wins == WINS)
        settle(pace, !pace->usual);
}

static bool wins(const struct hfi_pace *pace, int64_t took_ns)
{
    int64_t slept_ns = pace->usual ? took_ns : pace->usual_ns, looked_ns = pace->usual ? pace->usual_ns : took_ns;
    return (looked_ns < slept_ns - slept_ns / WORTH) != pace->usual;
}

/* Waits that begin meanwhile are the next turn's. */
static void begin_turn(struct hfi_pace *pace, int64_t now_ns, int waits)
{
    pace->began_ns = now_ns;
    (void)atomic_fetch_sub(&pace->waits, waits);
}

/* The usual way is not what it was, or nobody began to wait for a while. After three such turns a crowd sleeps, which keeps nobody
 * from the CPU, and all is measured anew. */
static void end_odd_turn(struct hfi_pace *pace)
{
    if (++pace->wins == WINS)
        settle(pace, false);
}

static void end_turn(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int waits = atomic_load(&pace->waits), whole = EACH_WAITS * followers;
    int64_t lasted_ns = now_ns - pace->began_ns, took_ns = lasted_ns / (waits > 0 ? waits : 1);
    bool is_usual = atomic_load(&pace->looks) == pace->usual, is_void = atomic_exchange(&pace->is_void, false);
    bool is_slow = waits < whole && pace->usual_ns > 0 && lasted_ns > SLOW * whole * pace->usual_ns;
    if (!is_void && !is_slow && waits < whole)
        return;
    if (!is_usual)
        end_other_turn(pace, !is_void && !is_slow && wins(pace, took_ns));
    else if (!is_void && !is_slow)
        end_usual_turn(pace, took_ns);
    else if (pace->usual || !is_void)
        end_odd_turn(pace);
    begin_turn(pace, now_ns, waits);
}

void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers)
{
    int64_t before_ns = atomic_load_explicit(&pace->noted_ns, memory_order_relaxed), ends_ns = atomic_load(&pace->turn_ends_ns);
    if (now_ns > before_ns) /* else this thread lost the CPU since it looked at the clock */
        atomic_store_explicit(&pace->noted_ns, now_ns, memory_order_relaxed);
    if (now_ns - before_ns > HFI_TURN_NS / PAUSES)
        atomic_store(&pace->is_void, true);
    if (now_ns < ends_ns || !atomic_compare_exchange_strong(&pace->turn_ends_ns, &ends_ns, HFI_NEVER))
        return;
    end_turn(pace, now_ns, followers);
    atomic_store(&pace->turn_ends_ns, now_ns + HFI_TURN_NS);
}

void hfi_pace_count(struct hfi_pace *pace)
{
    (void)atomic_fetch_add(&pace->waits, 1);
}

bool hfi_pace_looks(const struct hfi_pace *pace)
{
    return atomic_load(&pace->looks);
}
