/* SPDX-License-Identifier: MIT */
/* hash.h - FNV-1a, 64 bits. */
#ifndef HFI_HASH_H
#define HFI_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HFI_HASH_BEGIN UINT64_C(14695981039346656037)

/* Goes on from `hash`, which is HFI_HASH_BEGIN at first. */
static inline uint64_t hfi_hash(uint64_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

#endif
