/* SPDX-License-Identifier: MIT */
/*
 * fence.h - are the fences we are given ahead of all that were given before? And what time is it at the server? Pure.
 *
 * The server's counter runs ahead of its clock: a fence is about (server time in us + 1..2 s) x 2048. So a counter that
 * was lost or went back shows itself (rule P8), and the estimate of the server's time is what it is held against.
 */
#ifndef HFI_FENCE_H
#define HFI_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#define HFI_FENCE_BLOCK 2048

/* Highest server time seen, and when: times on from there run slow by what two clocks may err. */
struct hfi_server_clock {
    int64_t us;       /* 0: none seen */
    int64_t seen_ns;  /* our clock */
};

/* A reply that carries server time. sent_ns..now_ns is when the server wrote it. */
void    hfi_server_clock_observe(struct hfi_server_clock *clock, int64_t server_us, int64_t now_ns);
/* Never more than it can be there; 0 if none was seen. */
int64_t hfi_server_clock_at_least_us(const struct hfi_server_clock *clock, int64_t now_ns);
/* Never less than it can be there, if the sample is right. */
int64_t hfi_server_clock_at_most_us(const struct hfi_server_clock *clock, int64_t now_ns);

/* One connection's samples, to notice a clock that was stepped (P0). */
struct hfi_sample {
    int64_t us, sent_ns, answered_ns; /* 0: none */
};
/* True: between the sample and this reply the server's clock and ours differ by more than their rates may. Replaces
 * the sample. */
bool hfi_sample_is_stepped(struct hfi_sample *sample, int64_t server_us, int64_t sent_ns, int64_t answered_ns);

/* `first` starts a block that was asked for when `seen` was the highest fence known, and was given when the server's clock
 * said granted_us (0: not told). at_least_us: what it says now at least. */
bool hfi_fence_is_good(int64_t first, int64_t seen, int64_t at_least_us, int64_t granted_us);

#endif
