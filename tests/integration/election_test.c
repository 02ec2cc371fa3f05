/* SPDX-License-Identifier: MIT */
/* election_test.c - leaders who stand, resign, are deposed or killed, and what observers of another client see of it. */
#include "tests/support/fds.h"
#include "tests/support/messages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NEWS = 64 };

struct news {
    bool leads;
    char name[64], host[128], label[160];
    int64_t pid, fence, held_ms, remaining_ms;
    size_t size;
};

struct record { /* of one observer; filled in its callback, read by the main thread up to `count` */
    _Atomic(int) count, inside;
    _Atomic(bool) overlapped, stay, closes;
    hf_observer *own, *given;
    struct news news[NEWS];
};

static void note(hf_observer *observer, const hf_leader *leader, void *arg)
{
    struct record *record = arg;
    int at = atomic_load(&record->count);
    struct news *news = &record->news[at % NEWS];
    if (atomic_fetch_add(&record->inside, 1) > 0)
        atomic_store(&record->overlapped, true);
    *news = (struct news){.leads = leader != NULL};
    record->given = observer;
    if (leader != NULL) {
        (void)snprintf(news->name, sizeof news->name, "%s", leader->name);
        (void)snprintf(news->host, sizeof news->host, "%s", leader->host);
        (void)snprintf(news->label, sizeof news->label, "%s", leader->label);
        news->pid = leader->pid;
        news->fence = leader->fence;
        news->held_ms = leader->held_ms;
        news->remaining_ms = leader->remaining_ms;
        news->size = leader->size;
    }
    atomic_store(&record->count, at + 1);
    while (atomic_load(&record->stay))
        (void)poll(NULL, 0, 1);
    atomic_fetch_sub(&record->inside, 1); /* the record may be gone once the observer is */
    if (atomic_load(&record->closes))
        hf_observer_close(observer);
}

static hf_observer *must_observe(struct fixture *f, hf_client *client, const char *name, struct record *record)
{
    *record = (struct record){.count = 0};
    if (hf_election_observe(client, name, note, record, &record->own, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return record->own;
}

static const struct news *last(const struct record *record)
{
    return &record->news[(atomic_load(&record->count) - 1) % NEWS];
}

static bool sees_nobody(const struct record *record)
{
    return atomic_load(&record->count) > 0 && !last(record)->leads;
}

static bool sees(const struct record *record, const char *label)
{
    return atomic_load(&record->count) > 0 && last(record)->leads && strcmp(last(record)->label, label) == 0;
}

static void an_observer_sees_who_leads_who_resigns_and_who_is_next(void **state)
{
    struct fixture *f = *state;
    struct record record;
    struct hft_taker next;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    HFT_UNTIL_TRUE(hft_is_heard(f->server, "hf:e:{chief}:hf:{chief}"));
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.wait_ms = HF_FOREVER, .owner_label = "10.0.0.7:8080"));
    HFT_UNTIL_TRUE(sees(&record, "10.0.0.7:8080"));
    const struct news *news = last(&record);
    assert_string_equal(news->name, "chief");
    assert_true(news->host[0] != 0);
    assert_int_equal(news->pid, getpid());
    assert_true(news->fence == hf_lease_fence(lease));
    assert_in_range(news->held_ms, 0, 10000);
    assert_in_range(news->remaining_ms, 5000, 10500);
    assert_int_equal(news->size, sizeof(hf_leader));
    assert_ptr_equal(record.given, observer);
    hft_take(&next, f->b, "chief", HF_LOCK(.wait_ms = HF_FOREVER, .owner_label = "the next"));
    HFT_UNTIL_TRUE(hft_queued(f->server, "chief") == 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&next), HF_OK);
    HFT_UNTIL_TRUE(sees(&record, "the next"));
    assert_int_equal(hf_lease_release(next.lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    for (int i = 1; i < atomic_load(&record.count); i++) /* each change once */
        assert_true(record.news[i].leads != record.news[i - 1].leads ||
                    strcmp(record.news[i].label, record.news[i - 1].label) != 0);
    assert_false(atomic_load(&record.overlapped));
    hf_observer_close(observer);
}

static void who_leads_already_is_the_first_thing_that_is_told(void **state)
{
    struct fixture *f = *state;
    struct record one, other;
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "here"));
    hf_observer *first = must_observe(f, f->b, "chief", &one), *second = must_observe(f, f->a, "chief", &other);
    HFT_UNTIL_TRUE(sees(&one, "here") && sees(&other, "here"));
    assert_true(one.news[0].leads);
    hf_observer_close(first);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(sees_nobody(&other));
    assert_true(sees(&one, "here")); /* closed */
    hf_observer_close(second);
}

/* Neither passes between threads, renewals nor lingering are elections. */
static void only_another_grant_is_another_leader(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    const hf_lock_options *options = HF_LOCK(.lease_ms = 900, .linger_ms = 60000, .wait_ms = 5000, .owner_label = "us");
    hf_lease *lease = must_take(f, f->a, "chief", options);
    HFT_UNTIL_TRUE(sees(&record, "us"));
    int64_t before = hft_server_calls(f->server, "publish");
    int told = atomic_load(&record.count);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        lease = must_take(f, f->a, "chief", options);
    }
    HFT_WHILE_RENEWED(f->a, 5, atomic_load(&record.count) == told);
    assert_int_equal(hft_server_calls(f->server, "publish"), before);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_observer_close(observer);
}

static void without_a_label_nothing_is_announced_and_the_leader_is_seen_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    HFT_UNTIL_TRUE(hft_is_heard(f->server, "hf:e:{chief}:hf:{chief}"));
    hf_client *third = hft_client(f->server, HF_CLIENT(.client_name = "mute"));
    redisContext *ear = redisConnectUnix(hft_server_socket(f->server));
    freeReplyObject(redisCommand(ear, "SUBSCRIBE hf:e:{chief}:hf:{chief}"));
    hf_lease *lease = must_take(f, third, "chief", NULL);
    HFT_UNTIL_TRUE(sees(&record, "mute")); /* its client_name */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    freeReplyObject(hft_server_ask(f->server, "PUBLISH hf:e:{chief}:hf:{chief} end"));
    redisReply *heard;
    assert_int_equal(redisGetReply(ear, (void **)&heard), REDIS_OK);
    assert_string_equal(heard->element[2]->str, "end"); /* nothing before */
    freeReplyObject(heard);
    redisFree(ear);
    hf_observer_close(observer);
    assert_int_equal(hf_client_close(third, NULL), HF_OK);
}

/* The announcement travels behind the release; the first one names the token. */
static void a_holder_with_a_label_announces_its_token_once_and_its_end(void **state)
{
    struct fixture *f = *state;
    char token[200], expected[220];
    redisReply *heard;
    redisContext *ear = redisConnectUnix(hft_server_socket(f->server));
    freeReplyObject(redisCommand(ear, "SUBSCRIBE hf:e:{{t}}:hf::{t}x")); /* another name's */
    freeReplyObject(redisCommand(ear, "SUBSCRIBE hf:e:{t}:hf::{t}x"));
    hf_lease *lease = must_take(f, f->a, "{t}x", HF_LOCK(.owner_label = "x"));
    redisReply *value = hft_server_ask(f->server, "GET hf::{t}x");
    (void)snprintf(token, sizeof token, "%s", value->str);
    freeReplyObject(value);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    (void)snprintf(expected, sizeof expected, "L %s", token);
    assert_int_equal(redisGetReply(ear, (void **)&heard), REDIS_OK);
    assert_string_equal(heard->element[2]->str, expected);
    freeReplyObject(heard);
    assert_int_equal(redisGetReply(ear, (void **)&heard), REDIS_OK);
    assert_string_equal(heard->element[2]->str, "L -");
    freeReplyObject(heard);
    redisFree(ear);
}

static void a_deposed_leader_does_not_lead_while_it_stops(void **state)
{
    struct fixture *f = *state;
    struct record record;
    bool had = false;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.lease_ms = 60000, .owner_label = "old"));
    HFT_UNTIL_TRUE(sees(&record, "old"));
    int told = atomic_load(&record.count);
    assert_int_equal(hf_lock_break(f->b, "chief", &had, &f->error), HF_OK);
    assert_true(had);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    HFT_UNTIL_TRUE(hft_lock_exists(f->server, "chief") == 0);
    hf_lease *next = must_take(f, f->b, "chief", HF_LOCK(.owner_label = "new"));
    HFT_UNTIL_TRUE(sees(&record, "new"));
    for (int i = told; i < atomic_load(&record.count); i++)
        assert_true(!record.news[i].leads || record.news[i].fence == hf_lease_fence(next) || record.news[i].fence == 0);
    assert_true(!record.news[told].leads);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(next, NULL), HF_OK);
    hf_observer_close(observer);
}

static void put_and_announce(struct fixture *f, const char *digits)
{
    freeReplyObject(hft_server_ask(f->server, "SET hf:{chief} hf1:0123456789abcdef0123456789abcdef:7:%s:elsewhere:42 PX 60000",
                                   digits));
    freeReplyObject(hft_server_ask(f->server, "PUBLISH hf:e:{chief}:hf:{chief} %s", "L -"));
}

/* Whoever begins to observe after a break knows no value before; a failover may lose the break. */
static void a_revoked_token_leads_nobody_and_the_one_before_leads_if_it_is_back(void **state)
{
    static const char *const granted = "fffffffe00000001", *const revoked = "ffffffff00000001";
    struct fixture *f = *state;
    struct record record;
    put_and_announce(f, revoked);
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    HFT_UNTIL_TRUE(hft_is_heard(f->server, "hf:e:{chief}:hf:{chief}"));
    for (int i = 0; i < 2; i++) {
        put_and_announce(f, granted);
        HFT_UNTIL_TRUE(last(&record)->leads);
        assert_string_equal(last(&record)->host, "elsewhere");
        put_and_announce(f, revoked);
        HFT_UNTIL_TRUE(sees_nobody(&record));
    }
    assert_int_equal(atomic_load(&record.count), 5);
    hf_observer_close(observer);
}

static int lead_until_killed(int from, int to, void *arg)
{
    char word = 0;
    hf_lease *lease;
    if (read(from, &word, 1) != 1)
        return 1;
    hf_client *client = hft_client(*(struct hft_server **)arg, NULL);
    if (hf_lock_acquire(client, "chief", HF_LOCK(.lease_ms = 600, .owner_label = "mortal"), &lease, NULL) != HF_OK)
        return 1;
    (void)!write(to, "+", 1);
    (void)!read(from, &word, 1);
    return 0;
}

static void a_killed_leader_leads_until_its_key_ends(void **state)
{
    (void)state;
    struct fixture f = {.server = hft_server_start(NULL)};
    struct hft_process leader;
    struct record record;
    hft_process_start(&leader, lead_until_killed, &f.server);
    f.b = hft_client(f.server, NULL);
    hf_observer *observer = must_observe(&f, f.b, "chief", &record);
    hft_process_tell(&leader, '.');
    assert_int_equal(hft_process_read(&leader), '+');
    HFT_UNTIL_TRUE(sees(&record, "mortal"));
    assert_int_equal(last(&record)->pid, leader.pid);
    (void)kill(leader.pid, SIGKILL);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    assert_int_equal(hft_lock_exists(f.server, "chief"), 0);
    (void)hft_process_end(&leader);
    hf_observer_close(observer);
    assert_int_equal(hf_client_close(f.b, NULL), HF_OK);
    hft_server_stop(f.server);
}

static void it_sees_through_the_servers_restart(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "before"));
    HFT_UNTIL_TRUE(sees(&record, "before"));
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    (void)hf_lease_release(lease, NULL);
    lease = must_take(f, f->a, "chief", HF_LOCK(.wait_ms = 10000, .owner_label = "after"));
    HFT_UNTIL_TRUE(sees(&record, "after"));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_observer_close(observer);
}

static void a_server_that_is_away_is_no_error(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hft_server_kill(f->server);
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    hf_observer_close(observer);
}

static void other_programs_keys_are_leaders_without_a_name(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "theirs", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    static const char *const commands[] = {"SET hf:{theirs} x", "SET hf:{theirs} %b", "RPUSH hf:{theirs} a"};
    for (int i = 0; i < 3; i++) {
        freeReplyObject(hft_server_ask(f->server, "DEL hf:{theirs}"));
        freeReplyObject(hft_server_ask(f->server, "PUBLISH hf:e:{theirs}:hf:{theirs} %s", "L -"));
        HFT_UNTIL_TRUE(sees_nobody(&record));
        freeReplyObject(hft_server_ask(f->server, commands[i], "", (size_t)0));
        freeReplyObject(hft_server_ask(f->server, "PUBLISH hf:e:{theirs}:hf:{theirs} %s", "L whatever"));
        HFT_UNTIL_TRUE(sees(&record, ""));
        assert_string_equal(last(&record)->host, "");
        assert_int_equal(last(&record)->pid, 0);
        assert_int_equal(last(&record)->fence, 0);
        assert_int_equal(last(&record)->held_ms, -1);
    }
    hf_observer_close(observer);
}

static void a_lock_that_is_shared_has_no_leader(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_lease *reader = must_take(f, f->a, "chief", HF_LOCK(.shared = true, .owner_label = "reader"));
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    assert_int_equal(hf_lease_release(reader, NULL), HF_OK);
    hf_observer_close(observer);
}

static void a_flood_of_notices_costs_a_look_in_ten_milliseconds(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "chief", &record);
    HFT_UNTIL_TRUE(sees_nobody(&record));
    HFT_UNTIL_TRUE(hft_is_heard(f->server, "hf:e:{chief}:hf:{chief}"));
    int64_t looks = hft_server_calls(f->server, "pttl"), from_ms = hft_boottime_ms();
    for (int i = 0; i < 3000; i++)
        freeReplyObject(hft_server_ask(f->server, "PUBLISH hf:e:{chief}:hf:{chief} %s", i % 2 == 0 ? "L -" : "L hf1:x"));
    int64_t took_ms = hft_boottime_ms() - from_ms;
    assert_true(hft_server_calls(f->server, "pttl") - looks <= took_ms / 10 + 3);
    assert_int_equal(atomic_load(&record.count), 1);
    hf_observer_close(observer);
}

static void it_may_be_closed_inside_its_callback_and_while_that_runs(void **state)
{
    struct fixture *f = *state;
    struct record inside, outside;
    (void)must_observe(f, f->b, "chief", &inside);
    HFT_UNTIL_TRUE(sees_nobody(&inside));
    hf_observer *observer = must_observe(f, f->b, "chief", &outside);
    HFT_UNTIL_TRUE(sees_nobody(&outside));
    atomic_store(&inside.closes, true);
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "one"));
    HFT_UNTIL_TRUE(sees(&inside, "one") && sees(&outside, "one"));
    int told = atomic_load(&inside.count);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(sees_nobody(&outside));
    assert_int_equal(atomic_load(&inside.count), told);
    atomic_store(&outside.stay, true);
    lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "two"));
    HFT_UNTIL_TRUE(atomic_load(&outside.inside) == 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    atomic_store(&outside.stay, false);
    hf_observer_close(observer);
    assert_int_equal(atomic_load(&outside.inside), 0); /* close waited */
    hf_observer_close(NULL);
}

static void with_a_loop_of_ones_own_it_is_told_there(void **state)
{
    struct fixture *f = *state;
    struct record record, never;
    hf_client *looped = hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER));
    hf_observer *observer = must_observe(f, looped, "chief", &record), *unheard = must_observe(f, looped, "chief", &never);
    struct pollfd fd = {.fd = hf_client_fd(looped), .events = POLLIN};
    HFT_UNTIL_TRUE(poll(&fd, 1, 0) == 1);
    assert_int_equal(atomic_load(&record.count), 0);
    while (atomic_load(&record.count) == 0 || atomic_load(&never.count) == 0) {
        assert_int_equal(poll(&fd, 1, 20000), 1);
        (void)hf_client_dispatch(looped);
    }
    assert_true(sees_nobody(&record));
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "seen"));
    HFT_UNTIL_TRUE(poll(&fd, 1, 0) == 1);
    int told = atomic_load(&never.count);
    hf_observer_close(unheard); /* what was posted is withdrawn */
    while (!sees(&record, "seen")) {
        assert_int_equal(poll(&fd, 1, 20000), 1);
        (void)hf_client_dispatch(looped);
    }
    assert_int_equal(atomic_load(&never.count), told);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(looped, NULL), HF_OK);
    hf_observer_close(observer);
}

static void a_client_closes_with_open_observers(void **state)
{
    struct fixture *f = *state;
    struct record records[8];
    hf_observer *observers[8];
    for (int round = 0; round < 20; round++) {
        hf_client *client = hft_client(f->server, NULL);
        for (int i = 0; i < 8; i++)
            observers[i] = must_observe(f, client, i % 2 == 0 ? "chief" : "deputy", &records[i]);
        if (round % 2 == 0)
            HFT_UNTIL_TRUE(atomic_load(&records[7].count) > 0);
        if (round % 4 == 0)
            hf_observer_close(observers[0]);
        assert_int_equal(hf_client_close(client, NULL), HF_OK);
        int told = 0, later = 0;
        for (int i = 0; i < 8; i++)
            told += atomic_load(&records[i].count);
        for (int i = round % 4 == 0 ? 1 : 0; i < 8; i++)
            hf_observer_close(observers[i]);
        for (int i = 0; i < 8; i++)
            later += atomic_load(&records[i].count);
        assert_int_equal(told, later);
    }
}

static void a_fork_child_frees_it_and_the_parents_goes_on(void **state)
{
    struct fixture *f = *state;
    struct record record;
    hf_observer *observer = must_observe(f, f->b, "chief", &record), *another;
    HFT_UNTIL_TRUE(sees_nobody(&record));
    pid_t child = fork();
    if (child == 0) {
        bool forked = hf_election_observe(f->b, "chief", note, &record, &another, NULL) == HF_FORKED;
        hf_observer_close(observer);
        _exit(forked && another == NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hf_lease *lease = must_take(f, f->a, "chief", HF_LOCK(.owner_label = "parent's"));
    HFT_UNTIL_TRUE(sees(&record, "parent's"));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_observer_close(observer);
}

static void wrong_arguments_are_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct record record = {.count = 0};
    hf_observer *observer = (hf_observer *)&record;
    assert_int_equal(hf_election_observe(NULL, "x", note, &record, &observer, &f->error), HF_INVALID);
    assert_null(observer);
    assert_int_equal(hf_election_observe(f->a, "x", NULL, &record, &observer, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "changed"));
    assert_int_equal(hf_election_observe(f->a, "x", note, &record, NULL, &f->error), HF_INVALID);
    assert_int_equal(hf_election_observe(f->a, "", note, &record, &observer, NULL), HF_INVALID);
    assert_int_equal(hf_election_observe(f->a, NULL, note, &record, &observer, &f->error), HF_INVALID);
    hf_client *gone = hft_client(f->server, HF_CLIENT(.key_template = "%s"));
    assert_int_equal(hf_election_observe(gone, "hf:e:{x}:hf:{x}", note, &record, &observer, &f->error), HF_INVALID);
    assert_int_equal(hf_client_close(gone, NULL), HF_OK);
    assert_int_equal(atomic_load(&record.count), 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)

struct flapping {
    struct fixture *f;
    hf_client *client;
    int told;
};

/* While a change is told the next one is there already. */
static void flap(hf_observer *observer, const hf_leader *leader, void *arg)
{
    enum { LOOKS = 3 }; /* the second one is sent when the first was answered */
    struct flapping *flapping = arg;
    hf_stats stats;
    (void)observer;
    (void)leader;
    freeReplyObject(hft_server_ask(flapping->f->server, "SET hf:{l} foreign%d PX 60000", ++flapping->told));
    hf_client_stats(flapping->client, &stats);
    for (uint64_t enough = stats.remote_commands + LOOKS; stats.remote_commands < enough;) {
        freeReplyObject(hft_server_ask(flapping->f->server, "PUBLISH hf:e:{l}:hf:{l} %s", "L -"));
        hf_client_stats(flapping->client, &stats);
    }
}

static void a_dispatch_tells_one_change_and_comes_back(void **state)
{
    struct fixture *f = *state;
    struct flapping flapping = {.f = f};
    hf_observer *observer;
    flapping.client = hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER));
    assert_int_equal(hf_election_observe(flapping.client, "l", flap, &flapping, &observer, &f->error), HF_OK);
    struct pollfd fd = {.fd = hf_client_fd(flapping.client), .events = POLLIN};
    for (int told = 0; told < 5; told = flapping.told) {
        assert_int_equal(poll(&fd, 1, 20000), 1);
        hf_client_dispatch(flapping.client);
        assert_in_range(flapping.told - told, 0, 1);
    }
    hf_observer_close(observer);
    assert_true(hft_closes(f->server, flapping.client, &f->error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_leader_leads_until_its_key_ends), /* forks before there are threads */
        WITH_PAIR(an_observer_sees_who_leads_who_resigns_and_who_is_next),
        WITH_PAIR(who_leads_already_is_the_first_thing_that_is_told),
        WITH_PAIR(only_another_grant_is_another_leader),
        WITH_PAIR(without_a_label_nothing_is_announced_and_the_leader_is_seen_all_the_same),
        WITH_PAIR(a_holder_with_a_label_announces_its_token_once_and_its_end),
        WITH_PAIR(a_deposed_leader_does_not_lead_while_it_stops),
        WITH_PAIR(a_revoked_token_leads_nobody_and_the_one_before_leads_if_it_is_back),
        WITH_PAIR(it_sees_through_the_servers_restart),
        WITH_PAIR(a_server_that_is_away_is_no_error),
        WITH_PAIR(other_programs_keys_are_leaders_without_a_name),
        WITH_PAIR(a_lock_that_is_shared_has_no_leader),
        WITH_PAIR(a_flood_of_notices_costs_a_look_in_ten_milliseconds),
        WITH_PAIR(it_may_be_closed_inside_its_callback_and_while_that_runs),
        WITH_PAIR(with_a_loop_of_ones_own_it_is_told_there),
        WITH_PAIR(a_client_closes_with_open_observers),
        WITH_PAIR(a_fork_child_frees_it_and_the_parents_goes_on),
        WITH_PAIR(wrong_arguments_are_refused_by_name),
        WITH_PAIR(a_dispatch_tells_one_change_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
