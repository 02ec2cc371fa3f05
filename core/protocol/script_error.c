/* SPDX-License-Identifier: MIT */
/* script_error.c - see script_error.h. The command's name stands in the source line that the error names:
 * "..., on @user_script:11." */
#include "core/protocol/script_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *line_of(const char *source, long number)
{
    const char *line = source;
    while (line != NULL && --number > 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line;
}

void hfi_script_error_annotate(const char *reply, const struct hfi_script *script, hf_error *error)
{
    static const char mark[] = "on @user_script:", call[] = "call('";
    const char *at = strstr(reply, mark);
    if (error == NULL || at == NULL || error->status != HF_DENIED)
        return;
    char *source = hfi_script_source(script);
    const char *line = source != NULL ? line_of(source, strtol(at + strlen(mark), NULL, 10)) : NULL;
    const char *word = line != NULL ? strstr(line, call) : NULL;
    if (word != NULL && word < line + strcspn(line, "\n")) {
        word += strlen(call);
        size_t used = strlen(error->message);
        (void)snprintf(error->message + used, sizeof error->message - used, ", which is %.*s", (int)strcspn(word, "'"),
                       word);
    }
    free(source);
}

hf_status hfi_script_error_key(const struct hfi_keys *keys, const char *which, hf_error *error)
{
    struct hfi_side_keys sides;
    if (!hfi_side_keys_print(keys, &sides))
        return hfi_fail(error, HF_FOREIGN, "", "another program keeps something else under one of its keys");
    char held[sizeof "hf:held:" + HFI_ANY_KEY_MOST]; /* named like the queue */
    size_t held_size = (size_t)snprintf(held, sizeof held, "hf:held:%s", sides.queue + strlen("hf:queue:"));
    const struct {
        const char *which, *key;
        size_t size;
        const char *type;
    } all[] = {{"queue", sides.queue, sides.queue_size, "sorted set"},
               {"wait", sides.waiters, sides.waiters_size, "hash"},
               {"held", held, held_size, "sorted set"},
               {"permits", keys->lock, keys->lock_size, "sorted set"},
               {"fence", HFI_FENCE_KEY, strlen(HFI_FENCE_KEY), "number"},
               {"data", keys->name, keys->name_size, "string"},
               {"absent", sides.absent, sides.absent_size, "string"},
               {"lock", keys->lock, keys->lock_size, "string"}};
    size_t at = 0;
    while (at + 1 < sizeof all / sizeof all[0] && strcmp(all[at].which, which) != 0)
        at++;
    char key[224];
    (void)hfi_fail(error, HF_FOREIGN, "another program keeps something else there: delete it, or choose another name",
                   "the key %s is not a %s", hfi_quote(key, sizeof key, all[at].key, all[at].size), all[at].type);
    hfi_side_keys_done(&sides);
    return HF_FOREIGN;
}
