/* SPDX-License-Identifier: MIT */
/* pace.h - how often questions that messages, answers or errors bring about may follow one another: in the long run once in
 * HFI_PACE_NS, and two at once, so that what a new subscription makes us ask does not delay the question about its first message.
 * Each is paid for until a moment, ns. Pure. */
#ifndef HFI_PACE_H
#define HFI_PACE_H

#include "base/clock.h"

#define HFI_PACE_NS (10 * HFI_MS)

/* When a question that is wanted at `at_ns` may be asked. */
static inline int64_t hfi_pace_next_ns(int64_t paid_until_ns, int64_t at_ns)
{
    int64_t least = paid_until_ns - HFI_PACE_NS;
    return at_ns > least ? at_ns : least;
}

/* It is asked now, before its time if something else made it due: the new moment. The next one is HFI_PACE_NS away at most. */
static inline int64_t hfi_pace_paid_ns(int64_t paid_until_ns, int64_t now_ns)
{
    int64_t most = now_ns + HFI_PACE_NS, from = paid_until_ns > now_ns ? paid_until_ns : now_ns;
    return (from < most ? from : most) + HFI_PACE_NS;
}

#endif
