/* SPDX-License-Identifier: MIT */
/* random.c - see random.h. */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

bool hfi_random(void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        at += got;
        size -= (size_t)got;
    }
    return true;
}

hf_status hfi_random_fail(hf_error *error, const char *what)
{
    int os_errno = errno;
    (void)hfi_fail(error, HF_INTERNAL, "does a seccomp filter or sandbox forbid getrandom? allow it",
                   "the kernel gives no random bytes (getrandom) for %s", what);
    hfi_fail_errno(error, os_errno);
    return HF_INTERNAL;
}

/* splitmix64: a Weyl sequence, then two xor-multiply rounds. */
uint64_t hfi_dice(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t hfi_jitter(uint64_t *state, int64_t value, double part)
{
    double die = (double)(hfi_dice(state) >> 11) / 9007199254740992.0; /* [0, 1), 53 bits */
    return value + (int64_t)((double)value * part * (2.0 * die - 1.0));
}
