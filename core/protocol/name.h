/* SPDX-License-Identifier: MIT */
/* name.h - a lock's name or a fetched value's key, as a call was given it, with its hash. Pure. */
#ifndef HFI_NAME_H
#define HFI_NAME_H

#include "base/error.h"

#include <stdint.h>

/* What a name locks: itself, alone; the load of the data key of that name; itself, together with other readers; permits of
 * the semaphore of that name; or itself, alone, as other programs spell it. A name's readers and those of its threads that want
 * it alone meet at the server only, by the same keys. */
enum hfi_use { HFI_MUTEX, HFI_FETCH, HFI_SHARED, HFI_SEMAPHORE, HFI_DIALECT, HFI_USES };

struct hfi_dialect;

struct hfi_name {
    enum hfi_use use;
    const char  *text; /* `size` bytes, not owned */
    size_t       size;
    uint64_t     hash; /* of use and bytes; picks values' lanes, and shards */
    const struct hfi_dialect *dialect; /* of a HFI_DIALECT, which are different locks in different dialects; else NULL */
};

struct hfi_name hfi_name_of(enum hfi_use use, const char *text, size_t size);
/* The same name in that dialect; NULL: itself. */
struct hfi_name hfi_name_in(const struct hfi_dialect *dialect, struct hfi_name name);
/* Makes *name of what a call was given: 1..HF_NAME_MAX bytes, of a data key 1..HF_KEY_MAX, no NUL byte among them. size
 * 0: up to the NUL. HF_OK or INVALID. */
hf_status hfi_name_take(enum hfi_use use, const char *text, size_t size, struct hfi_name *name, hf_error *error);
/* The same of a tag of values: 1..HF_NAME_MAX bytes. It names no lock: its hash picks a lane. */
hf_status hfi_tag_take(const char *text, struct hfi_name *tag, hf_error *error);

#endif
