/* SPDX-License-Identifier: MIT */
/* freshness.c - see freshness.h. */
#include "core/freshness.h"

#include <math.h>

enum hfi_freshness hfi_freshness(int64_t left_ms, int64_t stale_ms, double beta, int64_t load_ms, double u)
{
    if (left_ms < 0)
        return HFI_FRESH;
    int64_t fresh_ms = left_ms - stale_ms;
    if (fresh_ms <= 0)
        return HFI_OLD;
    if (beta > 0 && load_ms > 0 && (double)load_ms * beta * -log(u) >= (double)fresh_ms)
        return HFI_NEARLY_OLD;
    return HFI_FRESH;
}
