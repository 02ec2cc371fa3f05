/* SPDX-License-Identifier: MIT */
/* transfer_funds.c - money moves between accounts in Redis, under the locks of both. One teller falls asleep between reading and
 * writing, for longer than its locks last; another one transfers meanwhile. The store refuses the sleeper, for its fences are
 * lower, and it begins again. With --naive the recipe of SET NX PX, write and DEL does the same, and makes money of nothing. */
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE "500"
/* Fences are compared as text: they always have 19 digits, and Lua's numbers would round them. */
static const char write_both[] =
    "for i = 1, 2 do if (redis.call('HGET', KEYS[i], 'fence') or '') > ARGV[i] then return 0 end end "
    "for i = 1, 2 do redis.call('HSET', KEYS[i], 'fence', ARGV[i], 'balance', ARGV[i + 2]) end return 1";

static void stop_if(bool failed, const hf_error *error)
{
    if (failed) {
        (void)fprintf(stderr, "%s\n%s\n", error->message, error->hint);
        exit(1);
    }
}

/* A command to the store. Its answer as a number, 0 for nil. */
static long ask(hf_client *client, int count, const char *const *words)
{
    hf_error error = {.message = "the store refused a command"};
    redisReply *reply;
    stop_if(hf_command_argv(client, &reply, &error, count, words, NULL) != HF_OK, &error);
    stop_if(reply->type == REDIS_REPLY_ERROR, &error);
    long number = reply->type == REDIS_REPLY_STRING ? atol(reply->str) : (long)reply->integer;
    number += reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return number;
}
#define ASK(client, ...) ask(client, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

/* The balances as they are to be. */
static void read_both(hf_client *client, const char *from, const char *to, long amount, char (*balances)[24])
{
    (void)snprintf(balances[0], 24, "%ld", ASK(client, "HGET", from, "balance") - amount);
    (void)snprintf(balances[1], 24, "%ld", ASK(client, "HGET", to, "balance") + amount);
}

static void transfer(hf_client *client, const char *from, const char *to, long amount, bool sleeps)
{
    for (bool done = false; !done; sleeps = false) {
        char fences[2][24], balances[2][24];
        hf_lease *lease;
        hf_error error;
        hf_status status = hf_multilock_acquire(client, (const char *[]){from, to}, 2,
                                                HF_LOCK(.lease_ms = atol(LEASE), .wait_ms = 10000), &lease, &error);
        stop_if(status != HF_OK, &error);
        read_both(client, from, to, amount, balances);
        if (sleeps)
            (void)raise(SIGSTOP);
        (void)snprintf(fences[0], 24, "%" PRId64, hf_lease_fence_of(lease, from));
        (void)snprintf(fences[1], 24, "%" PRId64, hf_lease_fence_of(lease, to));
        done = ASK(client, "EVAL", write_both, "2", from, to, fences[0], fences[1], balances[0], balances[1]) == 1;
        status = hf_lease_release(lease, &error);
        if (!done) /* HF_LOST: the lease may be lost behind the write too; what the store has accepted stays */
            (void)printf("%s to %s: refused, the release says %s; again\n", from, to, hf_status_name(status));
    }
}

static void transfer_naively(hf_client *client, const char *from, const char *to, long amount, bool sleeps)
{
    const char *const both[] = {from, to};
    char key[2][64], balances[2][24];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(key[i], sizeof key[i], "lock:%s", both[i]);
        while (ASK(client, "SET", key[i], "taken", "NX", "PX", LEASE) == 0)
            (void)usleep(10000);
    }
    read_both(client, from, to, amount, balances);
    if (sleeps)
        (void)raise(SIGSTOP);
    (void)ASK(client, "HSET", from, "balance", balances[0]);
    (void)ASK(client, "HSET", to, "balance", balances[1]);
    (void)ASK(client, "DEL", key[0], key[1]); /* by now perhaps another teller's */
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"account:ann", "account:bob", "account:cid"};
    bool naive = argc == 2 && strcmp(argv[1], "--naive") == 0;
    void (*move)(hf_client *, const char *, const char *, long, bool) = naive ? transfer_naively : transfer;
    int status = 0;
    long total = 0;
    hf_client *client;
    hf_error error;
    pid_t sleeper = fork(); /* before there is a client: each process has its own */
    (void)prctl(PR_SET_PDEATHSIG, sleeper == 0 ? SIGKILL : 0);
    stop_if(hf_client_open(NULL, NULL, &client, &error) != HF_OK, &error);
    if (sleeper == 0) {
        for (int i = 0; i < 3; i++)
            (void)ASK(client, "HSET", names[i], "balance", "100");
        move(client, names[0], names[1], 30, true);
        return hf_client_close(client, NULL) != HF_OK;
    }
    (void)waitpid(sleeper, &status, WUNTRACED);
    if (WIFSTOPPED(status))
        move(client, names[1], names[2], 50, false);
    (void)kill(sleeper, SIGCONT);
    (void)waitpid(sleeper, &status, 0);
    for (int i = 0; i < 3; total += ASK(client, "HGET", names[i], "balance"), i++)
        (void)printf("%s %ld\n", names[i], ASK(client, "HGET", names[i], "balance"));
    (void)printf("together %ld of 300%s\n", total, total == 300 ? "" : ": the sleeper has written what it read before");
    (void)hf_client_close(client, NULL);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0 && (total == 300) == !naive);
}
