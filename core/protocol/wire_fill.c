/* SPDX-License-Identifier: MIT */
/* wire_fill.c - builds what stores a fetched value, and what forgets those of a tag; see wire.h. */
#include "core/protocol/wire.h"
#include "core/policy/fence.h"
#include "core/protocol/reply_schema.h"
#include "core/protocol/scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool add_text(struct hfi_command *command, const char *text)
{
    return hfi_command_word(command, text, strlen(text));
}

static bool add_number(struct hfi_command *command, int64_t number)
{
    char text[24];
    return hfi_command_word(command, text, (size_t)snprintf(text, sizeof text, "%" PRId64, number));
}

static bool add_keys(struct hfi_command *command, const struct hfi_keys *keys, const struct hfi_tags *tags)
{
    struct hfi_side_keys sides;
    if (!hfi_side_keys_print(keys, &sides))
        return false;
    bool all = hfi_command_word(command, keys->lock, keys->lock_size) &&
               hfi_command_word(command, sides.queue, sides.queue_size) &&
               hfi_command_word(command, sides.waiters, sides.waiters_size) && add_text(command, HFI_FENCE_KEY) &&
               hfi_command_word(command, hfi_keys_name(keys), keys->name_size) && hfi_command_word(command, sides.third, sides.third_size);
    hfi_side_keys_done(&sides);
    for (int i = 0; i < tags->count; i++)
        all = all && add_text(command, tags->keys[i]);
    return all;
}

/* The fence last: the lease's block begins at a multiple, which Lua holds exactly. */
static bool add_arguments(struct hfi_command *command, const struct hfi_identity *identity, struct hfi_token token,
                          const struct hfi_fill *fill)
{
    static const char *const words[] = {[HFI_FILL_VALUE] = "value", [HFI_FILL_SAME] = "same", [HFI_FILL_ABSENT] = "absent",
                                        [HFI_FILL_NOTHING] = "nothing"};
    return hfi_wire_add_token(command, identity, token) && add_text(command, words[fill->what]) &&
           add_number(command, fill->ttl_ms) && hfi_command_word(command, fill->size > 0 ? fill->data : "", fill->size) &&
           (fill->tags->count == 0 || add_number(command, fill->fence - fill->fence % HFI_FENCE_BLOCK));
}

struct hfi_command *hfi_wire_fill(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token,
                                  const struct hfi_fill *fill)
{
    int tags = fill->tags->count, key_count = 6 + tags;
    size_t capacity = 4 * (size_t)keys->lock_size + 3 * (size_t)keys->tag_size + HFI_TOKEN_CAPACITY + 120 + fill->size;
    for (int i = 0; i < tags; i++)
        capacity += strlen(fill->tags->keys[i]);
    struct hfi_command *command = hfi_command_script_begin(hfi_script_fill, key_count, key_count + (tags > 0 ? 5 : 4), capacity);
    if (command == NULL)
        return NULL;
    if (!add_keys(command, keys, fill->tags) || !add_arguments(command, identity, token, fill)) {
        hfi_command_unref(command);
        return NULL;
    }
    command->validate = hfi_schema_fill;
    return command;
}

struct hfi_command *hfi_wire_forget_tag(const char *tag_key, size_t size)
{
    const char *const words[] = {tag_key, HFI_FENCE_KEY};
    struct hfi_command *command =
        hfi_command_script(hfi_script_forget_tag, 2, 2, words, (const size_t[]){size, strlen(HFI_FENCE_KEY)});
    if (command != NULL)
        command->validate = hfi_schema_forget_tag;
    return command;
}
