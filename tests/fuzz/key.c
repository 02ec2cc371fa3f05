/* SPDX-License-Identifier: MIT */
/* key.c - names and templates: refused, or keys that share a slot and are never equal to one another. */
#include "tests/fuzz/fuzz.h"

#include "core/protocol/key.h"
#include "core/protocol/options.h"

static void make(const char *key_template, enum hfi_use use, const char *text, size_t size)
{
    struct hfi_name name = hfi_name_of(use, text, size), again;
    struct hfi_keys keys;
    hf_error error;
    if (hfi_keys_make(key_template, &name, &keys, &error) != HF_OK) {
        HFT_MUST(error.status == HF_INVALID && error.message[0] != 0);
        return;
    }
    struct hfi_side_keys sides;
    HFT_MUST(hfi_side_keys_print(&keys, &sides));
    unsigned slot = hfi_key_slot(keys.lock, keys.lock_size);
    HFT_MUST(slot < 16384 && slot == hfi_key_slot(sides.queue, sides.queue_size));
    HFT_MUST(slot == hfi_key_slot(sides.waiters, sides.waiters_size));
    HFT_MUST(keys.name_size == size && memcmp(hfi_keys_name(&keys), text, size) == 0 && hfi_keys_name(&keys)[size] == 0);
    HFT_MUST((use == HFI_FETCH) == (sides.third != NULL));
    HFT_MUST(keys.lock_size != keys.name_size || use == HFI_MUTEX || memcmp(keys.lock, hfi_keys_name(&keys), size) != 0);
    if (sides.third != NULL)
        HFT_MUST(slot == hfi_key_slot(sides.third, sides.third_size) && slot == hfi_key_slot(text, size));
    hfi_side_keys_done(&sides);
    HFT_MUST(hfi_key_name(key_template, keys.lock, keys.lock_size, &again));
    HFT_MUST(again.use == use && again.size == size && memcmp(again.text, text, size) == 0 && again.hash == name.hash);
    /* Where a lock of this client lies, no page of it does. */
    HFT_MUST(use == HFI_FETCH || hfi_fetch_key_check(key_template, keys.lock, keys.lock_size, &error) == HF_INVALID);
    hfi_keys_done(&keys);
}

/* Any text as a lock's key: the name is a part of it, or there is none. */
static void unmake(const char *key_template, const char *key, size_t size)
{
    struct hfi_name name;
    if (hfi_key_name(key_template, key, size, &name))
        HFT_MUST(name.size > 0 && name.text >= key && name.size <= size && (size_t)(name.text - key) <= size - name.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_error error;
    struct hfi_name taken;
    char *key_template = hft_line(&data, &size), *name = malloc(size + 1);
    HFT_MUST(name != NULL);
    if (size > 0)
        memcpy(name, data, size);
    name[size] = 0;
    unmake(NULL, name, size);
    if (hfi_template_check(key_template, &error) == HF_OK)
        unmake(key_template, name, size);
    if (hfi_name_take(HFI_MUTEX, name, size, &taken, &error) == HF_OK) {
        HFT_MUST(taken.size == size || size == 0);
        make(NULL, HFI_MUTEX, name, taken.size);
        make(NULL, HFI_FETCH, name, taken.size);
        if (hfi_template_check(key_template, &error) == HF_OK) {
            make(key_template, HFI_MUTEX, name, taken.size);
            make(key_template, HFI_FETCH, name, taken.size);
        }
    }
    free(name);
    free(key_template);
    return 0;
}
