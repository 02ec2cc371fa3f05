/* SPDX-License-Identifier: MIT */
/* doctor.c - holdfast doctor: prints what hf_client_check finds, or the rights that a user needs. */
#include "cli.h"
#include "json.h"

#include <stdio.h>

static const char *word(const hf_finding *finding)
{
    switch (finding->level) {
    case HF_LOG_ERROR:
        return "error";
    case HF_LOG_WARNING:
        return "warning";
    default: /* nothing is wrong; with a remedy it could be better */
        return finding->remedy[0] != 0 ? "note" : "ok";
    }
}

struct visit {
    bool json, is_ill;
    int  count;
};

static void print(const hf_finding *finding)
{
    (void)printf("%-8s %s\n", word(finding), finding->what);
    if (finding->remedy[0] != 0)
        (void)printf("%-8s -> %s\n", "", finding->remedy);
}

static void print_json(const hf_finding *finding, bool is_first)
{
    (void)printf("%s{\"level\":\"%s\",\"what\":", is_first ? "[" : ",\n ", word(finding));
    json_string(finding->what);
    (void)fputs(",\"remedy\":", stdout);
    json_string(finding->remedy[0] != 0 ? finding->remedy : NULL);
    (void)putchar('}');
}

static bool find(const hf_finding *finding, void *arg)
{
    struct visit *visit = arg;
    if (visit->json)
        print_json(finding, visit->count == 0);
    else
        print(finding);
    visit->count++;
    if (finding->level == HF_LOG_ERROR)
        visit->is_ill = true;
    return true;
}

/* tests/contract/acl.sh tries it: all that there is to be done goes with these rights, and none of them is in vain. */
static int print_acl(void)
{
    static const char acl[] =
        "ACL SETUSER holdfast on >PASSWORD resetkeys resetchannels -@all ~hf:* &hf:c:* &hf:e:* &__keyspace@*"
        " +get +strlen +set +del +exists +persist +pexpire +pttl +hget +hset +hdel +zadd +zcard +zrange +zrank +zrem +zscore"
        " +zremrangebyscore +incrby +time +scan +multi +exec +discard +eval +evalsha +script|load +script|exists +publish"
        " +subscribe +unsubscribe +pubsub|numsub +role +info +ping +select +client|setname";
    return puts(acl) >= 0 && fputs("# more, where it is so:\n"
                                   "#   hf_fetch:                              ~YOUR-KEYS*\n"
                                   "#   a key_template of your own:            ~IT\n"
                                   "#   a dialect:                             docs/interop.md, Rights\n"
                                   "#   key events may be looked at, set:      +config|get +config|set\n"
                                   "#   near_ms, or no key events: client tracking: +client|id +client|tracking +client|caching"
                                   " +client|getredir &__redis__:invalidate\n"
                                   "#   replicas confirm:                      +wait\n"
                                   "# The user at the sentinels (tests/integration/sentinel_test.c tries it):\n"
                                   "#   ACL SETUSER watcher on >PASSWORD resetchannels &+switch-master -@all +client|setname +role"
                                   " +info\n"
                                   "#     +subscribe +sentinel|master +sentinel|replicas +sentinel|sentinels +sentinel|myid\n",
                                   stdout) >= 0
               ? CLI_DONE
               : CLI_OUTPUT;
}

/* If the server could not be examined, the last finding says why: so the array is always whole. */
static void end_json(struct visit *visit, const hf_error *error)
{
    hf_finding failure = {.level = HF_LOG_ERROR, .what = cli_message(error), .remedy = error->hint};
    if (error->status != HF_OK)
        (void)find(&failure, visit);
    (void)puts("]");
}

int command_doctor(int argc, char **argv)
{
    struct cli_look look = {.has_json = true, .has_acl = true};
    hf_client *client;
    int code;
    if (!cli_look_read(argc, argv, &look, &code))
        return code;
    if (look.acl && (look.json || look.url != NULL))
        return cli_misused(argv[0], "--acl asks no server, and prints a line for redis-cli: neither --url nor --json goes with it");
    if (look.acl)
        return print_acl();
    struct visit visit = {.json = look.json};
    hf_error error = {.status = HF_OK};
    if (cli_look_open(&look, &client, &error, &code)) {
        if (hf_client_check(client, find, &visit, &error) != HF_OK)
            code = cli_failed(&error);
        else if (visit.is_ill)
            code = CLI_NO;
        (void)hf_client_close(client, NULL);
    }
    if (look.json)
        end_json(&visit, &error);
    return code;
}
