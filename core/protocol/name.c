/* SPDX-License-Identifier: MIT */
/* name.c - see name.h. */
#include "core/protocol/name.h"
#include "base/hash.h"

#include <holdfast/fetch.h>
#include <string.h>

struct hfi_name hfi_name_of(enum hfi_use use, const char *text, size_t size)
{
    uint64_t hash = hfi_hash(HFI_HASH_BEGIN ^ (uint64_t)use, text, size);
    return (struct hfi_name){use, text, size, hash ^ (hash >> 29), NULL};
}

struct hfi_name hfi_name_in(const struct hfi_dialect *dialect, struct hfi_name name)
{
    if (dialect == NULL)
        return name;
    name = hfi_name_of(HFI_DIALECT, name.text, name.size);
    name.dialect = dialect;
    return name;
}

static hf_status take(const char *what, size_t most, enum hfi_use use, const char *text, size_t size, struct hfi_name *name,
                      hf_error *error)
{
    bool is_counted = size != 0;
    if (text == NULL)
        return hfi_fail(error, HF_INVALID, "", "the %s is NULL", what);
    if (!is_counted)
        size = strnlen(text, most + 1);
    if (size == 0)
        return hfi_fail(error, HF_INVALID, "", "the %s is empty", what);
    if (size > most)
        return hfi_fail(error, HF_INVALID, "use a hash of it if it must be that long", "the %s is longer than %zu bytes",
                        what, most);
    if (is_counted && memchr(text, 0, size) != NULL)
        return hfi_fail(error, HF_INVALID, "", "the %s has a NUL byte in it", what);
    *name = hfi_name_of(use, text, size);
    return HF_OK;
}

hf_status hfi_name_take(enum hfi_use use, const char *text, size_t size, struct hfi_name *name, hf_error *error)
{
    const char *what = use == HFI_FETCH ? "key" : use == HFI_SEMAPHORE ? "semaphore's name" : "lock name";
    return take(what, use == HFI_FETCH ? HF_KEY_MAX : HF_NAME_MAX, use, text, size, name, error);
}

hf_status hfi_tag_take(const char *text, struct hfi_name *tag, hf_error *error)
{
    return take("tag", HF_NAME_MAX, HFI_FETCH, text, 0, tag, error);
}
