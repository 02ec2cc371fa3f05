/* SPDX-License-Identifier: MIT */
/* own_lock.c - the cost of acquire + release without other waiters, against the plain loop, which first has to prove
 * that it is as fast as it can be. */
#include "bench/crew.h"
#include "bench/pairs.h"
#include "bench/place.h"
#include "bench/plain_loop.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <string.h>

#define TOKEN "00000001-0123456789abcdef"

struct proof { /* in a database of its own */
    struct bench_server *server;
    redisContext *context;
    char sha[41];
};

/* Commands a second of one of the two, by redis-benchmark, each with one of this many keys at random. */
static double ask(const struct bench_server *server, int count, int keys, const char *command)
{
    char line[512];
    double rate = 0;
    (void)snprintf(line, sizeof line,
                   "redis-benchmark -p %d --dbnum 1 -c 1 -P 1 -n %d -r %d --csv %s 2>/dev/null", server->port,
                   count, keys, command);
    FILE *run = popen(line, "re");
    while (run != NULL && fgets(line, sizeof line, run) != NULL) {
        char *comma = strstr(line, "\",\"");
        if (comma == NULL || sscanf(comma + 3, "%lf", &rate) != 1)
            rate = 0;
    }
    if (run == NULL || pclose(run) != 0 || rate <= 0)
        bench_die("redis-benchmark does not answer");
    return rate;
}

static void command(const struct proof *proof, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    redisReply *reply = redisvCommand(proof->context, format, words);
    va_end(words);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        bench_die("%s: %s", format, reply != NULL ? reply->str : proof->context->errstr);
    freeReplyObject(reply);
}

/* The rate of pairs that the plain loop's two commands allow, each measured by itself. They do what they do in the
 * loop: the SETs find their key free, the scripts find theirs to delete (but for every fortieth). Commands that
 * change nothing would be up to a tenth faster. */
static double prove(void *arg, double seconds)
{
    static const char fill[] =
        "for i = 0, ARGV[1] - 1 do "
        "redis.call('SET', string.format('proof:%012d', i), ARGV[2], 'PX', 100000) end";
    struct proof *proof = arg;
    char give[160];
    int count = (int)(8000 * seconds) + 500, keys = 20 * count;
    double take = ask(proof->server, count, 999999999, "SET proof:__rand_int__ " TOKEN " NX PX 100000");
    command(proof, "FLUSHDB SYNC");
    command(proof, "EVAL %s 0 %d %s", fill, keys, TOKEN);
    (void)snprintf(give, sizeof give, "EVALSHA %s 1 proof:__rand_int__ " TOKEN, proof->sha);
    double both = 1 / (1 / take + 1 / ask(proof->server, count, keys, give));
    command(proof, "FLUSHDB SYNC");
    return both;
}

/* Where each wake-up is dear the goal is the same for all. */
static struct bench_goal goal(const struct bench *bench, bool judged, double limit)
{
    return judged ? AT_LEAST(bench->dear ? 1.5 : limit) : NO_GOAL;
}

static void one_thread(struct bench *bench, struct bench_server *server, enum bench_place place)
{
    const char *where = bench_place_name(place);
    bool judged = place == BENCH_APART;
    char row[80];
    struct bench_pairs pairs;
    bench_pairs_open(&pairs, server->url, server->port, 1);
    struct proof proof = {server, redisConnect("127.0.0.1", server->port), ""};
    (void)snprintf(proof.sha, sizeof proof.sha, "%s", bench_plain_sha(pairs.plain[0]));
    command(&proof, "SELECT 1");
    struct bench_side plain = {"plain loop", bench_pairs_plain, &pairs},
                      judge = {"redis-benchmark", prove, &proof};
    (void)snprintf(row, sizeof row, "the yardstick itself, %s", where);
    if (bench_compare(bench, row, "pairs/s", AT_LEAST(0.9), &plain, &judge).ratio < 0.9)
        bench_void(bench, "the plain loop is below 0.9 x redis-benchmark");
    redisFree(proof.context);
    (void)snprintf(row, sizeof row, "1 thread, %s", where);
    bench_pairs_compare(bench, &pairs, row, goal(bench, judged, 2.2));
    bench_pairs_account(bench, &pairs, row);
    pairs.posted = true;
    (void)snprintf(row, sizeof row, "1 thread, posted release, %s", where);
    bench_pairs_compare(bench, &pairs, row, goal(bench, judged, 4));
    bench_pairs_close(&pairs);
}

static void many_threads(struct bench *bench, struct bench_server *server, enum bench_place place)
{
    const char *where = bench_place_name(place);
    bool judged = place == BENCH_UNPINNED;
    char row[80];
    struct bench_pairs pairs;
    bench_pairs_open(&pairs, server->url, server->port, 64);
    (void)snprintf(row, sizeof row, "64 threads, a lock each, %s", where);
    bench_pairs_compare(bench, &pairs, row, goal(bench, judged, 1.6));
    pairs.posted = true;
    (void)snprintf(row, sizeof row, "64 threads, posted release, %s", where);
    bench_pairs_compare(bench, &pairs, row, goal(bench, judged, 2.3));
    bench_pairs_limit(bench, &pairs, row);
    bench_pairs_close(&pairs);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "own_lock", "acquire + release of a lock that nobody else wants");
    bench_server_start(&server, -1);
    for (int i = 0; i < 2; i++) {
        enum bench_place place = i == 0 ? BENCH_APART : BENCH_UNPINNED;
        bench_place(&server, place);
        one_thread(&bench, &server, place);
        many_threads(&bench, &server, place);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
