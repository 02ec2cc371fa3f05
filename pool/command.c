/* SPDX-License-Identifier: MIT */
/* command.c - the bytes of commands and their reference counts. Commands are framed here because hiredis prints every
 * length with printf and reuses no memory. */
#include "pool/command.h"
#include "pool/script.h"
#include "base/decimal.h"
#include "base/thread.h"

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A script's command begins with "*5\r\n$7\r\nEVALSHA\r\n$40\r\n<sha1>\r\n". This is the part between count and
 * digest. */
#define SHA_DIGITS 40
static const char evalsha_head[] = "$7\r\nEVALSHA\r\n$40\r\n";

#define HEAD_MOST 23 /* "$", 20 digits, "\r\n" */
#define SPARES    64

/* A command is made in one thread and mostly freed in another, the reader: an allocator would move its memory from the
 * cache of the one thread to that of the other. So a freed command waits here, in the slot of the thread that made it
 * (`home`), for that thread's next command. Its bytes are cleared, because this cache outlives every client. */
static struct {
    _Alignas(64) _Atomic(struct hfi_command *) command;
} cached[SPARES];

static void drop_bytes(struct hfi_command *command)
{
    if (command->bytes != command->first)
        free(command->bytes);
    else
        memset(command->first, 0, command->size);
}

static bool make_capacity(struct hfi_command *command, size_t more)
{
    if (more <= command->capacity - command->size)
        return true;
    size_t capacity = command->size + more;
    char *bytes = capacity >= more ? malloc(capacity) : NULL;
    if (bytes == NULL)
        return false;
    memcpy(bytes, command->bytes, command->size);
    drop_bytes(command);
    command->bytes = bytes;
    command->capacity = capacity;
    return true;
}

static void put(struct hfi_command *command, const void *bytes, size_t size)
{
    memcpy(command->bytes + command->size, bytes, size);
    command->size += size;
}

static void put_head(struct hfi_command *command, char kind, size_t number)
{
    char head[HEAD_MOST], *at = head + sizeof head;
    *--at = '\n';
    *--at = '\r';
    at = hfi_decimal(at, number);
    *--at = kind;
    put(command, at, (size_t)(head + sizeof head - at));
}

static void put_word(struct hfi_command *command, const char *word, size_t size)
{
    put_head(command, '$', size);
    put(command, word, size);
    put(command, "\r\n", 2);
}

static size_t size_of(int index, const char *const *argv, const size_t *sizes)
{
    return sizes != NULL ? sizes[index] : strlen(argv[index]);
}

/* Puts the word count and reserves capacity for all words: `before` words of `front` bytes in all, which the caller
 * puts first, and argv. False: no memory. */
static bool begin(struct hfi_command *command, int before, size_t front, int argc, const char *const *argv,
                  const size_t *sizes)
{
    size_t words = (size_t)before + (size_t)argc, most = HEAD_MOST + words * (HEAD_MOST + 2) + front;
    for (int i = 0; i < argc; i++)
        most += size_of(i, argv, sizes);
    if (!make_capacity(command, most))
        return false;
    put_head(command, '*', words);
    command->replies++;
    return true;
}

static void put_words(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes)
{
    for (int i = 0; i < argc; i++)
        put_word(command, argv[i], size_of(i, argv, sizes));
}

static struct hfi_command *blank(void)
{
    int home = (int)(hfi_thread_number() % SPARES);
    struct hfi_command *command = atomic_exchange(&cached[home].command, NULL);
    if (command == NULL)
        command = malloc(sizeof *command);
    if (command == NULL)
        return NULL;
    memset(command, 0, offsetof(struct hfi_command, first));
    command->home = home;
    command->bytes = command->first;
    command->capacity = sizeof command->first;
    hfi_list_init(&command->link);
    atomic_init(&command->references, 1);
    return command;
}

struct hfi_command *hfi_command_new(int argc, const char *const *argv, const size_t *sizes)
{
    struct hfi_command *command = blank();
    if (command != NULL && !hfi_command_append(command, argc, argv, sizes)) {
        hfi_command_unref(command);
        return NULL;
    }
    return command;
}

struct hfi_command *hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t capacity)
{
    char number[HEAD_MOST], *count = hfi_decimal(number + sizeof number, (size_t)keys);
    size_t digits = (size_t)(number + sizeof number - count);
    struct hfi_command *command = blank();
    if (command == NULL)
        return NULL;
    if (!begin(command, 3 + argc, 7 + SHA_DIGITS + digits + capacity, 0, NULL, NULL)) {
        hfi_command_unref(command);
        return NULL;
    }
    put_word(command, "EVALSHA", 7);
    put_word(command, script->sha1, SHA_DIGITS);
    put_word(command, count, digits);
    command->script = script;
    return command;
}

bool hfi_command_word(struct hfi_command *command, const char *word, size_t size)
{
    if (!make_capacity(command, HEAD_MOST + size + 2))
        return false;
    put_word(command, word, size);
    return true;
}

struct hfi_command *hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                       const size_t *sizes)
{
    size_t capacity = 0;
    for (int i = 0; i < argc; i++)
        capacity += size_of(i, argv, sizes);
    struct hfi_command *command = hfi_command_script_begin(script, keys, argc, capacity);
    if (command != NULL)
        put_words(command, argc, argv, sizes);
    return command;
}

bool hfi_command_append(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes)
{
    if (!begin(command, 0, 0, argc, argv, sizes))
        return false;
    put_words(command, argc, argv, sizes);
    return true;
}

bool hfi_command_inline_script(struct hfi_command *command)
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
    int head_size = snprintf(head, sizeof head, "$4\r\nEVAL\r\n$%u\r\n", script->size);
    size_t size = front + (size_t)head_size + script->size + (command->size - skipped);
    char *bytes = malloc(size), *at = bytes;
    if (bytes == NULL)
        return false;
    memcpy(at, command->bytes, front);
    at += front;
    memcpy(at, head, (size_t)head_size);
    at += head_size;
    at = hfi_script_copy(script, at);
    memcpy(at, command->bytes + skipped, command->size - skipped);
    drop_bytes(command);
    command->bytes = bytes;
    command->size = command->capacity = size;
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
    drop_bytes(command);
    struct hfi_command *none = NULL;
    if (!atomic_compare_exchange_strong(&cached[command->home].command, &none, command))
        free(command);
}
