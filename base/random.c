/* SPDX-License-Identifier: MIT */
/* random.c - see random.h. */
#include "base/random.h"

#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define STRIPES 64
#define WORDS   14

/* A stripe is nearly two cache lines long. A thread uses the stripe of its number; while another thread is in it, the
 * word comes from the kernel. */
struct hfi_random_supply {
    struct {
        _Atomic(bool) taken;
        uint32_t left;
        uint64_t words[WORDS];
    } stripes[STRIPES];
};

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

struct hfi_random_supply *hfi_random_supply_new(void)
{
    struct hfi_random_supply *supply =
        mmap(NULL, sizeof *supply, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (supply == MAP_FAILED)
        return NULL;
    if (madvise(supply, sizeof *supply, MADV_WIPEONFORK) == 0)
        return supply;
    (void)munmap(supply, sizeof *supply);
    return NULL;
}

void hfi_random_supply_free(struct hfi_random_supply *supply)
{
    if (supply == NULL)
        return;
    explicit_bzero(supply, sizeof *supply);
    (void)munmap(supply, sizeof *supply);
}

bool hfi_random_word(struct hfi_random_supply *supply, uint64_t *word)
{
    int stripe = (int)(hfi_thread_number() % STRIPES);
    if (atomic_exchange(&supply->stripes[stripe].taken, true))
        return hfi_random(word, sizeof *word);
    uint64_t *words = supply->stripes[stripe].words;
    uint32_t left = supply->stripes[stripe].left;
    bool ok = left > 0 || hfi_random(words, sizeof supply->stripes[stripe].words);
    if (ok) {
        left = left > 0 ? left - 1 : WORDS - 1;
        *word = words[left];
        words[left] = 0; /* the supply keeps no copy of what a token was made from */
        supply->stripes[stripe].left = left;
    }
    atomic_store(&supply->stripes[stripe].taken, false);
    return ok;
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
uint64_t hfi_rng_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t hfi_jitter(uint64_t *state, int64_t value, double part)
{
    double die = (double)(hfi_rng_next(state) >> 11) / 9007199254740992.0; /* [0, 1), 53 bits */
    return value + (int64_t)((double)value * part * (2.0 * die - 1.0));
}
