/* SPDX-License-Identifier: MIT */
/* script_stand.c - see script_stand.h. */
#include "tests/scene/script_stand.h"
#include "tests/sim/lua.h"
#include "tests/support/script_source.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW     INT64_C(1790000000000000)
#define AHEAD   INT64_C(2000000) /* us that a counter is ahead of the clock, when it has just been put so */
#define TOKEN(c) "hf1:" c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c ":1f:0123456789abcdef:host:1"

static const struct {
    const char *word, *stands_for;
} words_of[] = {{"K", "hf:{n}"},
                {"Q", "hf:queue:{n}:hf:{n}"},
                {"W", "hf:wait:{n}:hf:{n}"},
                {"H", "hf:held:{n}:hf:{n}"},
                {"F", "hf:fence"},
                {"V", "n"},
                {"M", "hf:absent:{n}:hf:{n}"},
                {"T", "hf:tag:{t}"},
                {"U", "hf:tag:{u}"},
                {"A", TOKEN("a")},
                {"B", TOKEN("b")},
                {"C", TOKEN("c")},
                {"D", TOKEN("d")},
                {"E", TOKEN("e")},
                {"X", "theirs"},
                {"Y", "hf1:short"}};
enum { WORDS = sizeof words_of / sizeof words_of[0] };

static struct sim_keyspace keys;
static char said[20000]; /* messages since the last call */
const char *hft_hearers;
int hft_monitors;
int hft_behind_us;

/* ---- words ---- */

static void append(char *text, size_t room, const char *more)
{
    size_t at = strlen(text);
    (void)snprintf(text + at, room - at, "%s%s", at > 0 ? " " : "", more);
}

/* NULL: it is not one of those. */
static const char *meaning_of(const char *word)
{
    int i = 0;
    while (i < WORDS && strcmp(words_of[i].word, word) != 0)
        i++;
    return i < WORDS ? words_of[i].stands_for : NULL;
}

/* The permit of a token, "A#2", written for people or for the server. NULL: it is not one. */
static const char *permit_of(const char *word, bool for_people)
{
    static char permit[200];
    const char *sharp = strchr(word, '#');
    for (int i = 0; sharp != NULL && i < WORDS; i++) {
        const char *from = for_people ? words_of[i].stands_for : words_of[i].word;
        if (strlen(from) != (size_t)(sharp - word) || memcmp(from, word, strlen(from)) != 0)
            continue;
        (void)snprintf(permit, sizeof permit, "%s%s", for_people ? words_of[i].word : words_of[i].stands_for, sharp);
        return permit;
    }
    return NULL;
}

/* What a word of a call stands for; a_b is one word with a blank in it. */
static void append_meaning(char *out, size_t room, const char *word)
{
    char copy[200], number[24], *rest;
    (void)snprintf(copy, sizeof copy, "%s", word);
    for (char *part = strtok_r(copy, "_", &rest); part != NULL; part = strtok_r(NULL, "_", &rest)) {
        long long more = 0, times = 1;
        const char *meaning = strchr(part, '#') != NULL ? permit_of(part, false) : meaning_of(part);
        bool is_number = strcmp(part, "now") == 0 || sscanf(part, "now%lld", &more) == 1;
        if (sscanf(part, "F%lld", &more) == 1) {
            is_number = true;
            more += AHEAD;
            times = 2048;
        }
        (void)snprintf(number, sizeof number, "%lld", ((long long)NOW + more) * times);
        append(out, room, meaning != NULL ? meaning : is_number ? number : part);
    }
}

static void append_number(char *text, size_t room, long long number)
{
    char word[40];
    long long from_now = number - NOW, fences = number / 2048 - NOW - AHEAD;
    if (from_now == 0)
        (void)snprintf(word, sizeof word, "now");
    else if (llabs(from_now) < 1000000000)
        (void)snprintf(word, sizeof word, "now%+lld", from_now);
    else if (number % 2048 == 0 && llabs(fences) < 1000000000)
        (void)snprintf(word, sizeof word, "F%+lld", fences);
    else
        (void)snprintf(word, sizeof word, "%lld", number);
    append(text, room, word);
}

/* A text's words, each as short as it can be. */
static void append_text(char *out, size_t room, const char *text)
{
    char copy[600], *rest;
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *end;
        long long number = strtoll(word, &end, 10);
        int i = 0;
        while (i < WORDS && strcmp(words_of[i].stands_for, word) != 0)
            i++;
        const char *permit = permit_of(word, true);
        if (i < WORDS || permit != NULL)
            append(out, room, permit != NULL ? permit : words_of[i].word);
        else if (*end == 0 && end != word)
            append_number(out, room, number);
        else
            append(out, room, word);
    }
}

/* Without the line of the script that it comes from. */
static void append_error(char *out, size_t room, const char *error)
{
    char copy[200];
    const char *from = strstr(error, " script: ");
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(from != NULL ? from - error : (long)strlen(error)), error);
    append(out, room, copy);
}

static void append_reply(char *out, size_t room, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        append_number(out, room, reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        append(out, room, "-");
    else if (reply->type == REDIS_REPLY_ERROR)
        append_error(out, room, reply->str);
    else if (reply->type != REDIS_REPLY_ARRAY)
        append_text(out, room, reply->str);
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        append_reply(out, room, reply->element[i]);
}

/* ---- the server ---- */

static int64_t hear(void *self, const char *channel, size_t channel_size, const char *message, size_t size)
{
    char text[600];
    (void)self;
    if (channel_size != 37 || memcmp(channel, "hf:c:", 5) != 0)
        fail_msg("a message to %.*s", (int)channel_size, channel);
    for (int i = 6; i < 37; i++)
        assert_int_equal(channel[i], channel[5]);
    (void)snprintf(text, sizeof text, "%c< %.*s", toupper(channel[5]), (int)size, message);
    append(said, sizeof said, "|");
    append_text(said, sizeof said, text);
    return (strchr(hft_hearers, channel[5]) != NULL) + hft_monitors;
}

static int64_t count(void *self, const char *channel, size_t channel_size)
{
    (void)self;
    (void)channel_size;
    return strchr(hft_hearers, channel[5]) != NULL;
}

void hft_forbid(const char *command, const char *key)
{
    keys.forbidden = command;
    keys.forbidden_key = key != NULL ? meaning_of(key) : NULL;
}

void hft_fill_memory(bool full)
{
    keys.refuses = full ? SIM_NO_MEMORY : SIM_TAKES_ALL;
}

static void ignore(void *self, const char *event, const char *key, const char *value)
{
    (void)self;
    (void)event;
    (void)key;
    (void)value;
}

/* One command, or one call of a script: its name, then the number of keys, keys and arguments. */
const char *hft_script(const char *line, const struct hfi_script *script)
{
    static char out[24000];
    static char meanings[SIM_WORDS_MOST][200];
    char copy[1000], *rest;
    struct sim_words words = {.count = 0};
    struct hfi_buffer bytes = {0};
    void *reply = NULL;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *meaning = meanings[words.count];
        meaning[0] = 0;
        append_meaning(meaning, sizeof meanings[0], word);
        words.text[words.count] = meaning;
        words.size[words.count] = strlen(meaning);
        words.count++;
    }
    keys.now_us = NOW - hft_behind_us;
    keys.wrote = false;
    said[0] = out[0] = 0;
    if (script != NULL)
        sim_lua_run(&keys, hft_script_source(script), &words, 0, &bytes);
    else
        (void)sim_keyspace_run(&keys, &words, &bytes);
    redisReader *reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, hfi_buffer_data(&bytes), hfi_buffer_size(&bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    append_reply(out, sizeof out, reply);
    freeReplyObject(reply);
    redisReaderFree(reader);
    hfi_buffer_done(&bytes);
    if (said[0] != 0)
        append(out, sizeof out, said);
    return out;
}

const char *tell(const char *line)
{
    return hft_script(line, NULL);
}

int hft_scripts_begin(void **state)
{
    (void)state;
    sim_keyspace_clear(&keys);
    keys.publish = hear;
    keys.subscribers = count;
    keys.changed = ignore;
    hft_fill_memory(false);
    hft_forbid(NULL, NULL);
    hft_hearers = "abcde";
    hft_monitors = 0;
    hft_behind_us = 0;
    keys.now_us = NOW;
    (void)tell("SET F F+0");
    return 0;
}

void wait_in_line(const char *tokens)
{
    for (int i = 0; tokens[i] != 0; i++) {
        char line[80];
        (void)snprintf(line, sizeof line, "ZADD Q %d %c", i + 1, tokens[i]);
        (void)tell(line);
        (void)snprintf(line, sizeof line, "HSET W %c now+5_7%d_90%d", tokens[i], i, i);
        (void)tell(line);
    }
}
