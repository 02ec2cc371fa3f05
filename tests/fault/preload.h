/* SPDX-License-Identifier: MIT */
/* preload.h - the faults of the preload library, and how a test sets them: in control memory that both share. */
#ifndef HFT_PRELOAD_H
#define HFT_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum hft_call {                      /* a set of them */
                HFT_MALLOC = 1 << 0, /* malloc, calloc, realloc, and what libc allocates by them */
                HFT_SOCKET = 1 << 1,
                HFT_CONNECT = 1 << 2,
                HFT_SEND = 1 << 3,
                HFT_RECV = 1 << 4,
                HFT_POLL = 1 << 5, /* poll, ppoll */
                HFT_EVENTFD = 1 << 6,
                HFT_THREAD = 1 << 7,  /* pthread_create */
                HFT_RANDOM = 1 << 8,  /* getrandom */
                HFT_LOOKUP = 1 << 9,  /* getaddrinfo */
                HFT_OPTION = 1 << 10, /* setsockopt, getsockopt */
                HFT_MAP = 1 << 11,    /* mmap, madvise */
                HFT_FCNTL = 1 << 12,
                HFT_CALLS = 13
};

struct hft_preload {
    _Atomic(unsigned) failing; /* which calls fail; 0: none */
    _Atomic(bool) persistent;  /* the n-th and all after it; else the n-th alone */
    _Atomic(int) os_errno;
    _Atomic(int64_t) nth, count, hits;   /* count: calls of the failing kinds since it was set 0 */
    _Atomic(int) short_io;               /* > 0: send and recv move no more bytes than that */
    _Atomic(int64_t) offset_ns;          /* all clocks but CLOCK_REALTIME are ahead by so much, */
    _Atomic(int64_t) rate_ppm, since_ns; /* ... and run so much faster since then */
    _Atomic(int64_t) wall_offset_ns;
    _Atomic(int64_t) lookup_delay_ms;
};

/* NULL: the library is not preloaded. */
struct hft_preload *hft_preload(void);
/* This thread's calls are neither counted nor spoiled. */
void hft_preload_exempt_me(void);
/* CLOCK_BOOTTIME as the kernel has it, skew or no skew. */
int64_t hft_true_ns(void);

#endif
