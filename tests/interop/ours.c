/* SPDX-License-Identifier: MIT */
/* ours.c - `interop_ours URL NAME [DIALECT]`: a process of ours among neighbours. It is told what to do by lines on standard input,
 * and answers each with a line; README.md has the words, which every neighbour speaks too. With a DIALECT it is in the middle of a
 * move: it takes the lock in that first, and then in the URL's. Uses the public API only. */
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct actor {
    const char *name, *dialect;
    hf_client *client;
    hf_lease *old, *lease; /* NULL: nothing is held */
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void rest_us(long us)
{
    struct timespec rest = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&rest, &rest) != 0)
        ;
}

static void refuse(const hf_error *error)
{
    (void)printf("not %s %s %s\n", hf_status_name(error->status), error->message, error->hint);
}

/* A command of the program's own, beside the lock. The answer's number, 0 for nil; a text's number for a text. */
static long ask(struct actor *actor, const char *verb, const char *key, const char *argument)
{
    hf_error error;
    redisReply *reply;
    const char *argv[] = {verb, key, argument};
    if (hf_command_argv(actor->client, &reply, &error, argument == NULL ? 2 : 3, argv, NULL) != HF_OK) {
        refuse(&error);
        exit(1);
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)printf("not %s\n", reply->str);
        exit(1);
    }
    long number = reply->type == REDIS_REPLY_STRING ? atol(reply->str) : (long)reply->integer;
    freeReplyObject(reply);
    return number;
}

static long about(struct actor *actor, const char *verb, const char *what, const char *argument)
{
    char key[600];
    (void)snprintf(key, sizeof key, "interop:%s:%s", what, actor->name);
    return ask(actor, verb, key, argument);
}

static bool is_taken(struct actor *actor, int64_t wait_ms)
{
    hf_error error;
    hf_status status = HF_OK;
    if (actor->dialect != NULL)
        status = hf_lock_acquire(actor->client, actor->name, HF_LOCK(.wait_ms = wait_ms, .dialect = actor->dialect),
                                 &actor->old, &error);
    if (status == HF_OK)
        status = hf_lock_acquire(actor->client, actor->name, HF_LOCK(.wait_ms = wait_ms), &actor->lease, &error);
    if (status == HF_OK)
        return true;
    (void)hf_lease_release(actor->old, NULL);
    actor->old = NULL;
    refuse(&error);
    return false;
}

static bool is_given(struct actor *actor)
{
    hf_error error;
    hf_status status = hf_lease_release(actor->lease, &error), of_old = hf_lease_release(actor->old, status == HF_OK ? &error : NULL);
    actor->lease = actor->old = NULL;
    if (status == HF_OK && of_old == HF_OK)
        return true;
    (void)printf("lost %s %s\n", hf_status_name(error.status), error.message);
    return false;
}

static void take(struct actor *actor, const char *words)
{
    long wait_ms = atol(words);
    int64_t asked = now_ns();
    if (is_taken(actor, wait_ms))
        (void)printf("took %" PRId64 " %" PRId64 " %" PRId64 "\n", asked, now_ns(), hf_lease_fence(actor->lease));
}

static void give(struct actor *actor, const char *words)
{
    int64_t began = now_ns();
    (void)words;
    if (actor->lease == NULL)
        (void)printf("not held\n");
    else if (is_given(actor))
        (void)printf("gave %" PRId64 " %" PRId64 "\n", began, now_ns());
}

/* Sections that read a number, add one and write it back, and log the fence. How many are inside is counted too. */
static void count(struct actor *actor, const char *words)
{
    long sections = 0, away_us = 0, most = 0;
    unsigned seed = 0;
    char text[32];
    (void)sscanf(words, "%ld %ld %u", &sections, &away_us, &seed);
    for (long i = 0; i < sections; i++) {
        if (!is_taken(actor, HF_FOREVER))
            return;
        long inside = about(actor, "INCR", "inside", NULL);
        (void)snprintf(text, sizeof text, "%ld", about(actor, "GET", "count", NULL) + 1);
        (void)about(actor, "SET", "count", text);
        (void)snprintf(text, sizeof text, "%" PRId64, hf_lease_fence(actor->lease));
        (void)about(actor, "RPUSH", "log", text);
        (void)about(actor, "DECR", "inside", NULL);
        most = inside > most ? inside : most;
        if (!is_given(actor))
            return;
        rest_us(away_us > 0 ? rand_r(&seed) % away_us : 0);
    }
    (void)printf("counted %ld %ld\n", sections, most);
}

/* The cache look-up: a page that is not there is looked up again under the lock, and loaded by who still misses it. */
static void look(struct actor *actor, const char *words)
{
    char page[32], loads[32];
    for (int i = 0, pages = atoi(words); i < pages; i++) {
        (void)snprintf(page, sizeof page, "page:%d", i);
        (void)snprintf(loads, sizeof loads, "loads:%d", i);
        if (about(actor, "EXISTS", page, NULL) != 0)
            continue;
        if (!is_taken(actor, HF_FOREVER))
            return;
        if (about(actor, "EXISTS", page, NULL) == 0) {
            (void)about(actor, "INCR", loads, NULL);
            (void)about(actor, "SET", page, "loaded");
        }
        if (!is_given(actor))
            return;
    }
    (void)printf("looked\n");
}

/* Sections of 20 to 40 ms with 5 to 15 ms between them: when each was asked for, taken and given back. */
static void baton(struct actor *actor, const char *words)
{
    struct { int64_t asked, taken, giving; } *sections;
    int count = 0;
    unsigned seed = 0;
    (void)sscanf(words, "%d %u", &count, &seed);
    sections = calloc((size_t)count + 1, sizeof *sections);
    for (int i = 0; i < count && sections != NULL; i++) {
        sections[i].asked = now_ns();
        if (!is_taken(actor, HF_FOREVER))
            return;
        sections[i].taken = now_ns();
        rest_us(20000 + rand_r(&seed) % 20000);
        sections[i].giving = now_ns();
        if (!is_given(actor))
            return;
        rest_us(5000 + rand_r(&seed) % 10000);
    }
    (void)printf("batons");
    for (int i = 0; i < count && sections != NULL; i++)
        (void)printf(" %" PRId64 ",%" PRId64 ",%" PRId64, sections[i].asked, sections[i].taken, sections[i].giving);
    (void)printf("\n");
    free(sections);
}

static const struct {
    const char *word;
    void (*act)(struct actor *, const char *words);
} acts[] = {{"take", take}, {"give", give}, {"count", count}, {"look", look}, {"baton", baton}};

static void obey(struct actor *actor, char *line)
{
    char *words = line + strcspn(line, " \n");
    size_t length = (size_t)(words - line);
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strlen(acts[i].word) == length && strncmp(acts[i].word, line, length) == 0) {
            acts[i].act(actor, words);
            return;
        }
    (void)printf("not understood\n");
}

int main(int argc, char **argv)
{
    char line[256];
    hf_error error;
    if (argc != 3 && argc != 4) {
        (void)fprintf(stderr, "interop_ours URL NAME [DIALECT]\n");
        return 2;
    }
    struct actor actor = {.name = argv[2], .dialect = argv[3]};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (hf_client_open(argv[1], NULL, &actor.client, &error) != HF_OK) {
        refuse(&error);
        return 1;
    }
    (void)printf("ready\n");
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(&actor, line);
    (void)hf_lease_release(actor.lease, NULL);
    (void)hf_lease_release(actor.old, NULL);
    (void)hf_client_close(actor.client, NULL);
    return 0;
}
