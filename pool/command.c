/* SPDX-License-Identifier: MIT */
/* command.c - the bytes of commands, and who still needs them. hiredis frames, we keep. */
#include "pool/command.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "*5\r\n$7\r\nEVALSHA\r\n$40\r\n<sha1>\r\n": what stands between the count and the keys. */
#define SHA_DIGITS 40
static const char evalsha_head[] = "$7\r\nEVALSHA\r\n$40\r\n";

static bool add_bytes(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes)
{
    char *framed = NULL;
    /* hiredis' type lacks the inner const; it only reads. */
    long long size = redisFormatCommandArgv(&framed, argc, (const char **)(void *)(uintptr_t)argv, sizes);
    if (size < 0)
        return false;
    char *bytes = realloc(command->bytes, command->size + (size_t)size);
    if (bytes != NULL) {
        memcpy(bytes + command->size, framed, (size_t)size);
        command->bytes = bytes;
        command->size += (size_t)size;
        command->replies++;
    }
    redisFreeCommand(framed);
    return bytes != NULL;
}

struct hfi_command *hfi_command_new(int argc, const char *const *argv, const size_t *sizes)
{
    struct hfi_command *command = calloc(1, sizeof *command);
    if (command == NULL)
        return NULL;
    hfi_list_init(&command->link);
    atomic_init(&command->references, 1);
    if (!add_bytes(command, argc, argv, sizes)) {
        hfi_command_unref(command);
        return NULL;
    }
    return command;
}

struct hfi_command *hfi_command_script(const struct hfi_script *script, int keys, int argc,
                                       const char *const *argv, const size_t *sizes)
{
    char count[16];
    size_t words = (size_t)argc + 3;
    const char **all = malloc(words * sizeof *all);
    size_t *lengths = malloc(words * sizeof *lengths);
    struct hfi_command *command = NULL;
    if (all != NULL && lengths != NULL) {
        (void)snprintf(count, sizeof count, "%d", keys);
        all[0] = "EVALSHA";
        all[1] = script->sha1;
        all[2] = count;
        for (int i = 0; i < argc; i++)
            all[i + 3] = argv[i];
        for (size_t i = 0; i < words; i++)
            lengths[i] = i >= 3 && sizes != NULL ? sizes[i - 3] : strlen(all[i]);
        command = hfi_command_new((int)words, all, lengths);
    }
    if (command != NULL)
        command->script = script;
    free(all);
    free(lengths);
    return command;
}

bool hfi_command_append(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes)
{
    return add_bytes(command, argc, argv, sizes);
}

bool hfi_command_spell_out(struct hfi_command *command)
{
    const struct hfi_script *script = command->script;
    const char *count_end = memchr(command->bytes, '\n', command->size);
    if (script == NULL || command->replies != 1 || count_end == NULL)
        return false;
    size_t front = (size_t)(count_end + 1 - command->bytes);
    size_t skipped = front + sizeof evalsha_head - 1 + SHA_DIGITS; /* the "\r\n" after the digits stays */
    if (command->size < skipped || memcmp(command->bytes + front, evalsha_head, sizeof evalsha_head - 1) != 0)
        return false;
    char head[48];
    int head_size = snprintf(head, sizeof head, "$4\r\nEVAL\r\n$%zu\r\n", script->size);
    size_t size = front + (size_t)head_size + script->size + (command->size - skipped);
    char *bytes = malloc(size), *at = bytes;
    if (bytes == NULL)
        return false;
    memcpy(at, command->bytes, front);
    at += front;
    memcpy(at, head, (size_t)head_size);
    at += head_size;
    memcpy(at, script->source, script->size);
    at += script->size;
    memcpy(at, command->bytes + skipped, command->size - skipped);
    free(command->bytes);
    command->bytes = bytes;
    command->size = size;
    command->script = NULL;
    return true;
}

void hfi_command_ref(struct hfi_command *command)
{
    (void)atomic_fetch_add(&command->references, 1);
}

void hfi_command_unref(struct hfi_command *command)
{
    if (command == NULL || atomic_fetch_sub(&command->references, 1) != 1)
        return;
    if (command->reply != NULL)
        freeReplyObject(command->reply);
    free(command->bytes);
    free(command);
}
