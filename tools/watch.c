/* SPDX-License-Identifier: MIT */
/* watch.c - holdfast watch: a line for each change of a lock's holder. */
#include "cli.h"
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

struct watch {
    const char *name;
    bool  json;
    sem_t failed; /* the output cannot be written */
};

static void print_text(const char *name, const hf_leader *leader)
{
    char plain[2100], other[700], when[64] = "-";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
    (void)printf("%s  %s: ", when, cli_plain(name, plain, sizeof plain));
    if (leader == NULL) {
        (void)puts("nobody");
    } else if (leader->host[0] == 0) {
        (void)puts("another library");
    } else {
        (void)printf("process %" PRId64 " on %s", leader->pid, cli_plain(leader->host, other, sizeof other));
        if (leader->held_ms >= 0)
            (void)printf(", %s, fence %" PRId64 "\n", cli_plain(leader->label, other, sizeof other), leader->fence);
        else
            (void)puts(" (does not answer)");
    }
}

static void print_json(const char *name, const hf_leader *leader)
{
    bool is_ours = leader != NULL && leader->host[0] != 0, answers = is_ours && leader->held_ms >= 0;
    (void)fputs("{\"name\":", stdout);
    json_string(name);
    (void)printf(",\"held\":%s,\"host\":", leader != NULL ? "true" : "false");
    json_string(is_ours ? leader->host : NULL);
    (void)fputs(",\"pid\":", stdout);
    json_number(is_ours ? leader->pid : -1, 0);
    (void)fputs(",\"label\":", stdout);
    json_string(answers ? leader->label : NULL);
    (void)fputs(",\"held_ms\":", stdout);
    json_number(answers ? leader->held_ms : -1, 0);
    (void)fputs(",\"remaining_ms\":", stdout);
    json_number(leader != NULL ? leader->remaining_ms : -1, 0);
    (void)fputs(",\"fence\":", stdout); /* a string: it has more digits than a JavaScript number keeps */
    if (answers)
        (void)printf("\"%" PRId64 "\"}\n", leader->fence);
    else
        (void)puts("null}");
}

/* Runs in the library's dispatcher thread, the only one that prints. */
static void changed(hf_observer *observer, const hf_leader *leader, void *arg)
{
    struct watch *watch = arg;
    (void)observer;
    (watch->json ? print_json : print_text)(watch->name, leader);
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        (void)sem_post(&watch->failed);
}

static bool ignore(const hf_holder *holder, void *arg)
{
    (void)holder;
    (void)arg;
    return false;
}

int command_watch(int argc, char **argv)
{
    struct cli_look look = {.least = 1, .most = 1, .has_json = true, .only_looks = true};
    hf_client *client;
    int code;
    if (!cli_look(argc, argv, &look, &client, &code))
        return code;
    struct watch watch = {.name = argv[optind], .json = look.json};
    hf_observer *observer;
    hf_error error;
    (void)sem_init(&watch.failed, 0, 0);
    hf_status status = hf_lock_info(client, watch.name, ignore, NULL, &error); /* an observer rides out what is wrong */
    if (status == HF_OK)
        status = hf_election_observe(client, watch.name, changed, &watch, &observer, &error);
    if (status != HF_OK) {
        code = cli_failed(&error);
    } else {
        while (sem_wait(&watch.failed) != 0 && errno == EINTR)
            continue;
        hf_observer_close(observer);
    }
    (void)hf_client_close(client, NULL);
    return code; /* main says that the output cannot be written */
}
