/* SPDX-License-Identifier: MIT */
/* command.c - the bytes of commands and their reference counts. Commands are framed here because hiredis prints every
 * length with printf and reuses no memory. */
#include "pool/command.h"
#include "pool/script.h"
#include "base/check.h"
#include "base/decimal.h"
#include "base/rare.h"
#include "base/thread.h"

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A script's command begins with "*5\r\n$7\r\nEVALSHA\r\n$40\r\n<sha1>\r\n". This is the part between count and
 * digest. */
#define SHA_DIGITS 40
#define EVALSHA_HEAD (sizeof "$7\r\nEVALSHA\r\n$40\r\n" - 1)

static const char ping[] = "*1\r\n$4\r\nPING\r\n";

#define HEAD_MOST 23 /* "$", 20 digits, "\r\n" */
#define SPARES    64
#define EVAL_MOST 48

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

HFI_RARE bool hfi_command_ping_first(struct hfi_command *command)
{
    size_t size = sizeof ping - 1;
    HFI_CHECK(command->replies == 1);
    if (!make_capacity(command, size))
        return false;
    memmove(command->bytes + size, command->bytes, command->size);
    memcpy(command->bytes, ping, size);
    command->size += size;
    command->ahead = (int)size;
    command->replies++;
    return true;
}

static HFI_RARE size_t print_eval(char head[EVAL_MOST], const struct hfi_script *script)
{
    return (size_t)snprintf(head, EVAL_MOST, "$4\r\nEVAL\r\n$%u\r\n", script->size);
}

/* Where the script's count of words ends. 0: there are other commands beside it. */
static size_t front_of(const struct hfi_command *command)
{
    const char *count_end = memchr(command->bytes + command->ahead, '\n', command->size - (size_t)command->ahead);
    bool alone = command->replies == 1 + (command->ahead > 0);
    return command->script != NULL && alone && count_end != NULL ? (size_t)(count_end + 1 - command->bytes) : 0;
}

/* Makes it EVAL with the source of `script`, permanently. False: no memory. */
static HFI_RARE bool inline_script(struct hfi_command *command, const struct hfi_script *script)
{
    char head[EVAL_MOST];
    size_t front = front_of(command), skipped = front; /* the "\r\n" after digits or source stays */
    if (front == 0)
        return false;
    skipped += command->inlined ? print_eval(head, command->script) + command->script->size : EVALSHA_HEAD + SHA_DIGITS;
    size_t head_size = print_eval(head, script), size = front + head_size + script->size + (command->size - skipped);
    char *bytes = malloc(size), *at = bytes;
    if (bytes == NULL)
        return false;
    memcpy(at, command->bytes, front);
    at += front;
    memcpy(at, head, head_size);
    at += head_size;
    at = hfi_script_copy(script, at);
    memcpy(at, command->bytes + skipped, command->size - skipped);
    drop_bytes(command);
    command->bytes = bytes;
    command->size = command->capacity = size;
    command->script = script;
    command->inlined = true;
    return true;
}

void hfi_command_use_clock(struct hfi_command *command, bool by_key)
{
    const struct hfi_script *other = command->script != NULL ? hfi_script_other(command->script) : NULL;
    size_t front = other != NULL && (other->clock == HFI_ASKS_KEY) == by_key ? front_of(command) : 0;
    if (front > 0 && command->inlined) {
        (void)inline_script(command, other); /* without memory it is refused, and mended then */
    } else if (front > 0) {
        memcpy(command->bytes + front + EVALSHA_HEAD, other->sha1, SHA_DIGITS);
        command->script = other;
    }
}

HFI_RARE bool hfi_command_mend(struct hfi_command *command, const char *error, bool *by_key)
{
    if (command->script == NULL)
        return false;
    if (strncmp(error, "NOSCRIPT", 8) == 0)
        return !command->inlined && inline_script(command, command->script);
    if (!hfi_script_lacks_time(command->script, error))
        return false;
    *by_key = true;
    return inline_script(command, hfi_script_other(command->script));
}

int64_t hfi_command_earliest_ns(const struct hfi_list *commands, int64_t until_ns)
{
    for (const struct hfi_list *at = commands->next; at != commands; at = at->next) {
        const struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        until_ns = command->until_ns < until_ns ? command->until_ns : until_ns;
    }
    return until_ns;
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
