/* SPDX-License-Identifier: MIT */
/* wire.c - builds commands from arguments; see wire.h. */
#include "core/protocol/wire.h"
#include "base/decimal.h"
#include "core/policy/fence.h"
#include "core/protocol/dialect.h"
#include "core/protocol/reply_schema.h"
#include "core/protocol/scripts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MOST 16

/* Collects a command's words. Numbers are printed into `number`. */
struct words {
    int count;
    int numbers;
    struct hfi_side_keys *sides; /* some words point into them; NULL: none do, or no memory */
    bool failed;
    const char *text[WORDS_MOST];
    size_t size[WORDS_MOST];
    char number[WORDS_MOST][24];
    char claim[48];
    char token[HFI_TOKEN_CAPACITY];
};

static void begin(struct words *words)
{
    words->count = words->numbers = 0;
    words->sides = NULL;
    words->failed = false;
}

static void add(struct words *words, const void *text, size_t size)
{
    words->text[words->count] = text;
    words->size[words->count++] = size;
}

static void add_text(struct words *words, const char *text)
{
    add(words, text, strlen(text));
}

static void add_number(struct words *words, int64_t number)
{
    char *end = words->number[words->numbers++] + sizeof words->number[0];
    char *at = hfi_decimal(end, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    if (number < 0)
        *--at = '-';
    add(words, at, (size_t)(end - at));
}

/* How long the key of a waiter lives that a release hands the lock to; ` s` behind it: the waiter is a reader. Or how many
 * permits it wants of how many. */
static void add_claim(struct words *words, int64_t claim_ttl_ms, enum hfi_use use, const struct hfi_acquire_params *params)
{
    char *claim = words->claim;
    int size = snprintf(claim, sizeof words->claim, "%" PRId64 "%s", claim_ttl_ms, use == HFI_SHARED ? " s" : "");
    if (use == HFI_SEMAPHORE)
        size += snprintf(claim + size, sizeof words->claim - (size_t)size, " %" PRId32 " %" PRId32, params->permits, params->limit);
    add(words, claim, (size_t)size);
}

static void add_token(struct words *words, const struct hfi_identity *identity, struct hfi_token token)
{
    add(words, words->token, hfi_token_make(identity, token, words->token));
}

/* Adds the keys of a script about one name, in the order of its KEYS. Returns their number. */
static int add_keys(struct words *words, const struct hfi_keys *keys, struct hfi_side_keys *sides)
{
    words->failed = !hfi_side_keys_print(keys, sides);
    if (words->failed)
        return 0;
    words->sides = sides;
    add(words, keys->lock, keys->lock_size);
    add(words, sides->queue, sides->queue_size);
    add(words, sides->waiters, sides->waiters_size);
    add_text(words, HFI_FENCE_KEY);
    if (sides->third == NULL)
        return 4;
    if (keys->use == HFI_FETCH)
        add(words, hfi_keys_name(keys), keys->name_size);
    add(words, sides->third, sides->third_size);
    return keys->use == HFI_FETCH ? 6 : 5;
}

/* The script of the lock's dialect, with what each of them is told at its end; without a dialect `usual`. */
static const struct hfi_script *spoken(struct words *words, const struct hfi_keys *keys, enum hfi_dialect_script which,
                                       const struct hfi_script *usual)
{
    if (keys->dialect == NULL)
        return usual;
    add(words, hfi_keys_name(keys), keys->name_size);
    add_text(words, keys->dialect->parameter);
    return hfi_dialect_scripts[keys->dialect->mark][which];
}

/* Of a grant or a renewal: where replicas confirm, they have to have it. */
static struct hfi_command *to_be_confirmed(struct hfi_command *command)
{
    if (command != NULL)
        command->confirmed = true;
    return command;
}

static struct hfi_command *script(const struct hfi_script *which, int keys, const struct words *words, hfi_reply_validator *fits)
{
    if (words->failed)
        return NULL;
    struct hfi_command *command = hfi_command_script(which, keys, words->count, words->text, words->size);
    if (words->sides != NULL)
        hfi_side_keys_done(words->sides);
    if (command != NULL)
        command->validate = fits;
    return command;
}

struct hfi_command *hfi_wire_words(const char *first, ...)
{
    struct words words;
    begin(&words);
    va_list more;
    va_start(more, first);
    for (const char *word = first; word != NULL && words.count < WORDS_MOST; word = va_arg(more, const char *))
        add_text(&words, word);
    va_end(more);
    return hfi_command_new(words.count, words.text, words.size);
}

/* MULTI, the commands, EXEC, as one command with a reply for each. NULL: no memory. */
static struct hfi_command *transaction(int count, const struct words *const *parts)
{
    static const char *const exec[] = {"EXEC"};
    struct hfi_command *command = hfi_wire_words("MULTI", NULL);
    bool whole = command != NULL;
    for (int i = 0; i < count && whole; i++)
        whole = hfi_command_append(command, parts[i]->count, parts[i]->text, parts[i]->size);
    if (whole && hfi_command_append(command, 1, exec, NULL))
        return command;
    if (command != NULL)
        hfi_command_unref(command);
    return NULL;
}

struct hfi_command *hfi_wire_native(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token,
                                    int64_t ttl_ms, bool timed)
{
    struct words set, fence, time;
    begin(&set);
    begin(&fence);
    begin(&time);
    add_text(&set, "SET");
    add(&set, keys->lock, keys->lock_size);
    add_token(&set, identity, token);
    add_text(&set, "NX");
    add_text(&set, "PX");
    add_number(&set, ttl_ms);
    add_text(&fence, "INCRBY");
    add_text(&fence, HFI_FENCE_KEY);
    add_number(&fence, HFI_FENCE_BLOCK);
    add_text(&time, "TIME");
    int count = timed ? 3 : 2;
    struct hfi_command *command = transaction(count, (const struct words *[]){&set, &fence, &time});
    if (command != NULL) {
        command->validate = hfi_schema_native;
        command->element_count = count;
    }
    return to_be_confirmed(command);
}

static void begin_of_key(struct words *words, const char *verb, const struct hfi_name *key)
{
    begin(words);
    add_text(words, verb);
    add(words, key->text, key->size);
}

struct hfi_command *hfi_wire_get(const struct hfi_name *key)
{
    struct words get;
    begin_of_key(&get, "GET", key);
    return hfi_command_new(get.count, get.text, get.size);
}

struct hfi_command *hfi_wire_pttl(const struct hfi_name *key)
{
    struct words pttl;
    begin_of_key(&pttl, "PTTL", key);
    return hfi_command_new(pttl.count, pttl.text, pttl.size);
}

struct hfi_command *hfi_wire_get_pttl(const struct hfi_name *key)
{
    struct words get, pttl;
    begin_of_key(&get, "GET", key);
    begin_of_key(&pttl, "PTTL", key);
    return transaction(2, (const struct words *[]){&get, &pttl});
}

struct hfi_command *hfi_wire_acquire(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                     struct hfi_token token, const struct hfi_acquire_params *params,
                                     const struct hfi_asking *asking)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    add_token(&words, identity, token);
    add_number(&words, params->ttl_ms);
    add_number(&words, asking->not_after_us);
    add_text(&words, asking->once ? "try" : "wait");
    add_number(&words, asking->echo);
    add_number(&words, params->ticket);
    add_claim(&words, params->claim_ttl_ms, keys->use, params);
    add_number(&words, params->patience_ms * 1000);
    if (keys->use == HFI_FETCH)
        add_number(&words, asking->enough_ms);
    const struct hfi_script *usual = keys->use == HFI_SHARED ? hfi_script_acquire_shared : hfi_script_acquire;
    if (keys->use != HFI_SEMAPHORE)
        return to_be_confirmed(script(spoken(&words, keys, HFI_DIALECT_ACQUIRE, usual), key_count, &words, hfi_schema_acquire));
    add_number(&words, params->most);
    return to_be_confirmed(script(hfi_script_acquire_permits, key_count, &words, hfi_schema_acquire_permits));
}

struct hfi_command *hfi_wire_release(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    if (keys->use == HFI_SEMAPHORE)
        return hfi_wire_shrink(identity, keys, token, 0);
    int key_count = add_keys(&words, keys, &sides);
    add_token(&words, identity, token);
    return script(spoken(&words, keys, HFI_DIALECT_RELEASE, hfi_script_release), key_count, &words, hfi_schema_release);
}

struct hfi_command *hfi_wire_shrink(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token, int64_t keep)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    add_token(&words, identity, token);
    add_number(&words, keep);
    return script(hfi_script_release_permits, key_count, &words, hfi_schema_release);
}

struct hfi_command *hfi_wire_more(const struct hfi_identity *identity, const struct hfi_keys *keys, struct hfi_token token,
                                  int64_t ttl_ms, int64_t size)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    add_token(&words, identity, token);
    add_number(&words, ttl_ms);
    add_number(&words, size);
    return to_be_confirmed(script(spoken(&words, keys, HFI_DIALECT_MORE, hfi_script_more), key_count, &words, hfi_schema_more));
}

struct hfi_command *hfi_wire_renew_in_dialect(const struct hfi_identity *identity, const struct hfi_renewal *renewal)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, renewal->keys, &sides);
    add_token(&words, identity, renewal->token);
    add_number(&words, renewal->ttl_ms);
    const struct hfi_script *renew = spoken(&words, renewal->keys, HFI_DIALECT_RENEW, NULL);
    struct hfi_command *command = to_be_confirmed(script(renew, key_count, &words, hfi_schema_renew));
    if (command != NULL)
        command->element_count = 2;
    return command;
}

struct hfi_command *hfi_wire_downgrade(const struct hfi_identity *identity, const struct hfi_keys *keys,
                                       struct hfi_token token, int64_t ttl_ms)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    add_token(&words, identity, token);
    add_number(&words, ttl_ms);
    return script(hfi_script_downgrade, key_count, &words, hfi_schema_downgrade);
}

static void add_floor(struct words *words, int64_t seen, int64_t estimate_us)
{
    int64_t blocks = seen / HFI_FENCE_BLOCK + (seen > 0 ? 1 : 0); /* the next multiple: Lua holds it exactly */
    add_number(words, blocks * HFI_FENCE_BLOCK);
    add_number(words, estimate_us);
}

struct hfi_command *hfi_wire_floor(int64_t seen, int64_t estimate_us)
{
    struct words words;
    begin(&words);
    add_text(&words, HFI_FENCE_KEY);
    add_floor(&words, seen, estimate_us);
    return script(hfi_script_fence_floor, 1, &words, hfi_schema_floor);
}

struct hfi_command *hfi_wire_quarantine(int64_t seen, int64_t estimate_us, const char *run_id)
{
    struct words words;
    begin(&words);
    add_text(&words, HFI_FENCE_KEY);
    add_text(&words, HFI_SINCE_KEY);
    add_floor(&words, seen, estimate_us);
    add_text(&words, run_id);
    return script(hfi_script_quarantine, 2, &words, NULL);
}

struct hfi_command *hfi_wire_look(const struct hfi_keys *keys)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    if (keys->dialect == NULL)
        words.count = key_count = words.failed ? 0 : 2; /* lock, queue */
    const struct hfi_script *usual = keys->use == HFI_SEMAPHORE ? hfi_script_look_permits : hfi_script_look;
    return script(spoken(&words, keys, HFI_DIALECT_LOOK, usual), key_count, &words, hfi_schema_look);
}

struct hfi_command *hfi_wire_waiters(const struct hfi_keys *keys, int most)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    if (!hfi_side_keys_print(keys, &sides))
        return NULL;
    add_text(&words, "ZRANGE");
    add(&words, sides.queue, sides.queue_size);
    add_number(&words, 0);
    add_number(&words, most - 1);
    add_text(&words, "WITHSCORES");
    struct hfi_command *command = hfi_command_new(words.count, words.text, words.size);
    hfi_side_keys_done(&sides);
    return command;
}

struct hfi_command *hfi_wire_break(const struct hfi_keys *keys, const char *random_hex, bool force)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    add_text(&words, random_hex);
    add_text(&words, force ? "force" : "");
    const struct hfi_script *usual = keys->use == HFI_SEMAPHORE ? hfi_script_break_permits : hfi_script_break;
    return script(spoken(&words, keys, HFI_DIALECT_BREAK, usual), key_count, &words, hfi_schema_break);
}

struct hfi_command *hfi_wire_forget(const struct hfi_keys *keys)
{
    struct hfi_side_keys sides;
    struct words words;
    begin(&words);
    int key_count = add_keys(&words, keys, &sides);
    return script(hfi_script_forget, key_count, &words, hfi_schema_forget);
}

static bool add_rechecks(struct hfi_command *command, const struct hfi_identity *identity,
                         const struct hfi_recheck_params *common, const struct hfi_recheck *rechecks, int count)
{
    struct hfi_side_keys sides;
    struct words words = {.count = 0};
    bool all = true;
    for (int i = 0; i < count; i++) {
        if (!all || !hfi_side_keys_print(rechecks[i].keys, &sides))
            return false;
        all = hfi_command_word(command, rechecks[i].keys->lock, rechecks[i].keys->lock_size) &&
              hfi_command_word(command, sides.queue, sides.queue_size) &&
              hfi_command_word(command, sides.waiters, sides.waiters_size);
        hfi_side_keys_done(&sides);
    }
    add_number(&words, common->not_after_us);
    add_number(&words, common->patience_ms * 1000);
    add_number(&words, common->echo);
    add_claim(&words, common->claim_ttl_ms, rechecks[0].keys->use, NULL);
    for (int i = 0; i < words.count; i++)
        all = all && hfi_command_word(command, words.text[i], words.size[i]);
    for (int i = 0; i < count; i++)
        all = all && hfi_wire_add_token(command, identity, rechecks[i].token);
    return all;
}

struct hfi_command *hfi_wire_recheck(const struct hfi_identity *identity, const struct hfi_recheck_params *common,
                                     const struct hfi_recheck *rechecks, int count)
{
    size_t capacity = 4 * 20 + (size_t)count * HFI_TOKEN_CAPACITY;
    for (int i = 0; i < count; i++)
        capacity += 3 * (size_t)rechecks[i].keys->lock_size + 2 * ((size_t)rechecks[i].keys->tag_size + 12);
    struct hfi_command *command = hfi_command_script_begin(hfi_script_recheck, 3 * count, 4 * count + 4, capacity);
    if (command == NULL)
        return NULL;
    if (!add_rechecks(command, identity, common, rechecks, count)) {
        hfi_command_unref(command);
        return NULL;
    }
    command->validate = hfi_schema_recheck;
    command->element_count = count + 1;
    return command;
}
