/* SPDX-License-Identifier: MIT */
/* script_error.c - see script_error.h. */
#include "core/protocol/script_error.h"
#include "core/protocol/dialect.h"

#include <stdio.h>
#include <string.h>

void hfi_script_error_annotate(const char *reply, const struct hfi_script *script, hf_error *error)
{
    char command[32];
    if (error == NULL || error->status != HF_DENIED)
        return;
    const struct hfi_script *other = hfi_script_other(script);
    if (other != NULL && strstr(reply, other->sha1) != NULL)
        script = other;
    if (!hfi_script_command(script, reply, command, sizeof command))
        return;
    size_t used = strlen(error->message);
    (void)snprintf(error->message + used, sizeof error->message - used, ", which is %s", command);
}

hf_status hfi_script_error_key(const struct hfi_keys *keys, const char *which, hf_error *error)
{
    struct hfi_side_keys sides;
    if (!hfi_side_keys_print(keys, &sides))
        return hfi_fail(error, HF_FOREIGN, "", "another program keeps something else under one of its keys");
    char held[sizeof "hf:held:" + HFI_ANY_KEY_MOST]; /* named like the queue */
    size_t held_size = (size_t)snprintf(held, sizeof held, "hf:held:%s", sides.queue + strlen("hf:queue:"));
    size_t lock_size;
    const char *lock = hfi_watched_key(keys, &lock_size);
    const struct {
        const char *which, *key;
        size_t size;
        const char *type;
    } all[] = {{"queue", sides.queue, sides.queue_size, "sorted set"},
               {"wait", sides.waiters, sides.waiters_size, "hash"},
               {"held", held, held_size, "sorted set"},
               {"permits", keys->lock, keys->lock_size, "sorted set"},
               {"fence", HFI_FENCE_KEY, strlen(HFI_FENCE_KEY), "number"},
               {"data", hfi_keys_name(keys), keys->name_size, "string"},
               {"absent", sides.third, sides.third_size, "string"},
               {"lock", lock, lock_size, keys->dialect != NULL ? keys->dialect->holds : "string"}};
    size_t at = 0;
    while (at + 1 < sizeof all / sizeof all[0] && strcmp(all[at].which, which) != 0)
        at++;
    char key[224];
    (void)hfi_fail(error, HF_FOREIGN, "another program keeps something else there: delete it, or choose another name",
                   "the key %s is not a %s", hfi_quote(key, sizeof key, all[at].key, all[at].size), all[at].type);
    hfi_side_keys_done(&sides);
    return HF_FOREIGN;
}
