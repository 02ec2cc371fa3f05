/* SPDX-License-Identifier: MIT */
/*
 * fence.h - is a block of fences ahead of all fences given before? And what time is it at the server? Pure.
 *
 * The server's counter runs ahead of its clock: a fence is about (server time in us + 1..2 s) x 2048. So a counter that
 * was lost or went back is detected by comparing its fences with the estimated server time (rule P8).
 */
#ifndef HFI_FENCE_H
#define HFI_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#define HFI_FENCE_BLOCK 2048

/* Highest server time seen, and when. From there the estimates run as much too slow, or too fast, as two clocks may
 * err. */
struct hfi_server_clock {
    int64_t us;       /* 0: none seen */
    int64_t seen_ns;  /* our clock */
};

/* A reply carries server time, and was read at now_ns: the server wrote it before. */
void    hfi_server_clock_observe(struct hfi_server_clock *clock, int64_t server_us, int64_t now_ns);
/* A lower bound of the server's time; 0 if none was seen. */
int64_t hfi_server_clock_at_least_us(const struct hfi_server_clock *clock, int64_t now_ns);
/* An upper bound of the server's time, if the sample is right. */
int64_t hfi_server_clock_at_most_us(const struct hfi_server_clock *clock, int64_t now_ns);

/* The last sample of one connection, to notice a clock that was stepped (P0). */
struct hfi_sample {
    int64_t us, sent_ns, answered_ns; /* 0: none */
    bool    dates;                    /* may date grants (P8): it was taken on the lane's present connection */
};
/* True: since the sample, the server's clock and ours have diverged by more than their rate errors allow. Replaces the
 * sample. */
bool hfi_sample_is_stepped(struct hfi_sample *sample, int64_t server_us, int64_t sent_ns, int64_t answered_ns);

/* May the block that starts at `first` be used? `seen` was the highest fence known when it was requested; at_least_us
 * is the lower bound of the server's time then; granted_us is what the server's clock said when it granted the block, or
 * an upper bound of that (0: neither is known). */
bool hfi_fence_is_good(int64_t first, int64_t seen, int64_t at_least_us, int64_t granted_us);

#endif
