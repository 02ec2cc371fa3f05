/* SPDX-License-Identifier: MIT */
/* borrow_test.c - borrowed connections against a real server. */
#include "base/random.h"
#include "pool/borrow.h"
#include "pool/pool.h"
#include "tests/support/fds.h"
#include "tests/support/server.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 4 };

/* The real clock, and a leap that the test can make. */
static _Atomic(int64_t) leap_ns;

static int64_t leaping_clock(void *self)
{
    (void)self;
    return hfi_now(&hfi_boottime) + atomic_load(&leap_ns);
}

static const struct hfi_clock clock_of_pool = {leaping_clock, NULL};

static _Atomic(int) leak_lines;

static void note_line(hf_log_level level, const char *line, void *arg)
{
    (void)arg;
    if (level == HF_LOG_INFO && strstr(line, "not returned yet") != NULL)
        (void)atomic_fetch_add(&leak_lines, 1);
}

struct fixture {
    struct hft_server *server;
    struct hfi_pool *pool;
    struct hfi_pool_settings settings;
    int descriptors;
};

static int64_t in_ms(int64_t ms)
{
    return hfi_after_ms(hfi_now(&clock_of_pool), ms);
}

static void open_pool(struct fixture *f)
{
    static const struct hfi_pool_ops ops;
    static const struct hfi_log log = {note_line, NULL};
    hf_error error;
    if (hfi_pool_open(&f->settings, &ops, NULL, &clock_of_pool, &log, false, &f->pool, &error) != HF_OK)
        fail_msg("%s", error.message);
}

static int set_up_with(void **state, const char *config)
{
    struct fixture *f = calloc(1, sizeof *f);
    atomic_store(&leap_ns, 0);
    atomic_store(&leak_lines, 0);
    f->server = hft_server_start(config);
    f->settings = (struct hfi_pool_settings){.client_name = "borrow-test",
                                             .connect_ms = 5000,
                                             .command_ms = 5000,
                                             .lanes = 1,
                                             .subscribers = 1,
                                             .max_connections = MOST,
                                             .idle_ms = 600000,
                                             .lifetime_ms = 3600000,
                                             .max_value_bytes = 1 << 20};
    f->settings.endpoint.scheme = HFI_UNIX;
    f->settings.endpoint.path = strdup(hft_server_socket(f->server));
    f->settings.endpoint.database = 2;
    if (config == NULL)
        (void)hft_server_ask_integer(f->server, "DBSIZE"); /* its own connection is not to be counted */
    f->descriptors = hft_open_descriptors();
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->pool != NULL)
        (void)hfi_pool_close(f->pool, in_ms(1000));
    hfi_pool_free(f->pool);
    int left = hft_open_descriptors() - f->descriptors;
    hft_server_stop(f->server);
    free(f->settings.endpoint.path);
    free(f->settings.endpoint.user);
    free(f->settings.endpoint.password);
    free(f);
    if (left > 0)
        print_message("             %d descriptors left\n", left);
    return left > 0 ? -1 : 0;
}

static struct hfi_borrowed *borrow(struct fixture *f)
{
    struct hfi_borrowed *borrowed;
    hf_error error;
    if (hfi_borrow(f->pool, in_ms(20000), &borrowed, &error) != HF_OK)
        fail_msg("%s", error.message);
    return borrowed;
}

/* The answer as text; "" if there is none. Valid until this thread's next call. */
static const char *ask(struct hfi_borrowed *borrowed, const char *command)
{
    static _Thread_local char text[256];
    redisReply *reply = redisCommand(hfi_borrowed_context(borrowed), command);
    text[0] = 0;
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(text, sizeof text, "%lld", reply->integer);
    else if (reply != NULL && reply->str != NULL)
        (void)snprintf(text, sizeof text, "%s", reply->str);
    freeReplyObject(reply);
    return text;
}

static struct hfi_pool_counts counts_of(struct fixture *f)
{
    struct hfi_pool_counts counts;
    hfi_pool_count(f->pool, &counts);
    return counts;
}

static void nap(void)
{
    (void)poll(NULL, 0, 2);
}

static void a_borrowed_connection_is_a_real_and_greeted_one(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    struct hfi_borrowed *borrowed = borrow(f);
    assert_string_equal(ask(borrowed, "CLIENT GETNAME"), "borrow-test");
    assert_string_equal(ask(borrowed, "SET a 1"), "OK");
    assert_int_equal(hft_server_ask_integer(f->server, "DBSIZE"), 0); /* database 2 was selected */
    assert_int_equal(counts_of(f).cl_active, 1);
    assert_int_equal(counts_of(f).sv_active, 1);
    hfi_borrow_return(borrowed);
    assert_int_equal(counts_of(f).cl_active, 0);
    assert_int_equal(counts_of(f).sv_idle, 1);
}

static void the_newest_idle_connection_is_lent_first(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    struct hfi_borrowed *first = borrow(f), *second = borrow(f), *again;
    char id[32];
    (void)snprintf(id, sizeof id, "%s", ask(first, "CLIENT ID"));
    hfi_borrow_return(second);
    hfi_borrow_return(first);
    again = borrow(f);
    assert_string_equal(ask(again, "CLIENT ID"), id);
    hfi_borrow_return(again);
    assert_int_equal(counts_of(f).sv_idle, 2);
}

enum mess {
    MULTI,
    WATCH,
    SELECT,
    NAME,
    SUBSCRIBE,
    HUGE_TIMEOUT, /* mended */
    UNREAD,
    UNANSWERED,
    LATE,
    UNSENT,
    ERROR,
    NON_BLOCKING,
    MONITOR,
    HUNG_UP,
    MESSES
};

static void make(enum mess mess, struct hfi_borrowed *borrowed)
{
    redisContext *context = hfi_borrowed_context(borrowed);
    static const char *const said[MESSES] = {[MULTI] = "MULTI",           [WATCH] = "WATCH a",
                                             [SELECT] = "SELECT 5",       [NAME] = "CLIENT SETNAME other",
                                             [SUBSCRIBE] = "SUBSCRIBE c", [ERROR] = "BLPOP nothing 0",
                                             [MONITOR] = "MONITOR"};
    int done = 0;
    if (mess == HUGE_TIMEOUT)
        (void)redisSetTimeout(context, (struct timeval){3600, 0});
    if (mess == ERROR)
        (void)redisSetTimeout(context, (struct timeval){0, 10000});
    if (said[mess] != NULL)
        (void)ask(borrowed, said[mess]);
    if (mess == LATE) /* its +OK comes while the connection is being reset */
        (void)ask(borrowed, "CLIENT PAUSE 60 WRITE");
    if (mess == UNREAD || mess == UNANSWERED || mess == UNSENT || mess == LATE)
        (void)redisAppendCommand(context, mess == UNANSWERED ? "BLPOP nothing 0" : "SET a 1");
    while ((mess == UNREAD || mess == UNANSWERED || mess == LATE) && done == 0)
        (void)redisBufferWrite(context, &done);
    if (mess == UNREAD) {
        struct pollfd readable = {context->fd, POLLIN, 0};
        (void)poll(&readable, 1, 5000);
    }
    if (mess == NON_BLOCKING)
        (void)fcntl(context->fd, F_SETFL, fcntl(context->fd, F_GETFL) | O_NONBLOCK);
    if (mess == HUNG_UP)
        freeReplyObject(redisCommand(context, "CLIENT KILL ID %s SKIPME no", ask(borrowed, "CLIENT ID")));
}

static void a_borrowed_connection_is_as_new_for_the_next_borrower(void **state)
{
    struct fixture *f = *state;
    f->settings.command_ms = 300; /* UNANSWERED is noticed by its silence */
    open_pool(f);
    for (enum mess mess = MULTI; mess < MESSES; mess++) {
        struct hfi_borrowed *borrowed = borrow(f);
        char id[32];
        (void)snprintf(id, sizeof id, "%s", ask(borrowed, "CLIENT ID"));
        make(mess, borrowed);
        hfi_borrow_return(borrowed);
        borrowed = borrow(f);
        bool is_the_same = strcmp(ask(borrowed, "CLIENT ID"), id) == 0;
        struct timeval timeout;
        socklen_t size = sizeof timeout;
        (void)getsockopt(hfi_borrowed_context(borrowed)->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, &size);
        /* What a MONITOR gets to see before it ends is chance. */
        if ((mess != MONITOR && is_the_same != (mess < UNREAD)) ||
            strcmp(ask(borrowed, "PING"), "PONG") != 0 ||
            strcmp(ask(borrowed, "CLIENT GETNAME"), "borrow-test") != 0 ||
            strcmp(ask(borrowed, "SET here yes"), "OK") != 0 || timeout.tv_sec != 0 ||
            timeout.tv_usec < 290000)
            fail_msg("after mess %d: same %d, ping %s, name %s", mess, is_the_same, ask(borrowed, "PING"),
                     ask(borrowed, "CLIENT GETNAME"));
        (void)ask(borrowed, "DEL here");
        hfi_borrow_return(borrowed);
        assert_int_equal(hft_server_ask_integer(f->server, "DBSIZE"), 0);
    }
    assert_int_equal(counts_of(f).cl_active, 0);
    assert_int_equal(counts_of(f).sv_tested, 0);
}

static int set_up_password(void **state)
{
    return set_up_with(state, "user me on >secret ~* &* +@all\nuser default off");
}

static void a_returned_connection_is_logged_in_again(void **state)
{
    struct fixture *f = *state;
    f->settings.endpoint.user = strdup("me");
    f->settings.endpoint.password = strdup("secret");
    open_pool(f);
    for (int i = 0; i < 3; i++) {
        struct hfi_borrowed *borrowed = borrow(f);
        assert_string_equal(ask(borrowed, "ACL WHOAMI"), "me");
        hfi_borrow_return(borrowed);
    }
    assert_int_equal(counts_of(f).sv_idle, 1);
}

static void no_borrower_waits_longer_than_its_wait_ms(void **state)
{
    struct fixture *f = *state;
    struct hfi_borrowed *all[MOST], *one;
    hf_error error;
    open_pool(f);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(hfi_borrow(f->pool, 0, &all[i], NULL), HF_OK);
    assert_int_equal(hfi_borrow(f->pool, 0, &one, &error), HF_BUSY);
    assert_null(one);
    assert_non_null(strstr(error.message, "4 connections"));
    int64_t until_ns = in_ms(30);
    assert_int_equal(hfi_borrow(f->pool, until_ns, &one, &error), HF_TIMEOUT);
    assert_true(hfi_now(&clock_of_pool) >= until_ns);
    assert_int_equal(counts_of(f).cl_waiting, 0);
    for (int i = 0; i < MOST; i++)
        hfi_borrow_discard(all[i]);
    assert_int_equal(counts_of(f).sv_idle, 0);
}

struct borrower {
    pthread_t thread;
    struct fixture *f;
    hf_status status;
    int number;
    _Atomic(int) *order;
    bool discards;
};

static void *borrow_once(void *arg)
{
    struct borrower *me = arg;
    struct hfi_borrowed *borrowed;
    me->status = hfi_borrow(me->f->pool, in_ms(20000), &borrowed, NULL);
    if (me->status != HF_OK)
        return NULL;
    me->number = atomic_fetch_add(me->order, 1);
    if (me->discards)
        hfi_borrow_discard(borrowed);
    else
        hfi_borrow_return(borrowed);
    return NULL;
}

static void waiting_borrowers_are_served_in_order(void **state)
{
    struct fixture *f = *state;
    struct hfi_borrowed *all[MOST];
    struct borrower waiters[8];
    _Atomic(int) order = 0;
    open_pool(f);
    for (int i = 0; i < MOST; i++)
        all[i] = borrow(f);
    for (int i = 0; i < 8; i++) {
        /* A discarded connection passes the right to dial to the next waiter, a returned one passes itself: both
         * keep the order. */
        waiters[i] = (struct borrower){.f = f, .order = &order, .number = -1, .discards = i % 2 == 1};
        (void)pthread_create(&waiters[i].thread, NULL, borrow_once, &waiters[i]);
        for (int tries = 0; tries < 5000 && counts_of(f).cl_waiting != (uint64_t)i + 1; tries++)
            nap();
    }
    bool waited = counts_of(f).cl_waiting == 8 && counts_of(f).maxwait_us > 0;
    hfi_borrow_return(all[0]);
    for (int i = 0; i < 8; i++)
        (void)pthread_join(waiters[i].thread, NULL);
    for (int i = 1; i < MOST; i++)
        hfi_borrow_return(all[i]);
    assert_true(waited);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(waiters[i].status, HF_OK);
        assert_int_equal(waiters[i].number, i);
    }
}

static void while_the_server_is_down_borrowing_fails_at_once_and_then_works_again(void **state)
{
    struct fixture *f = *state;
    struct hfi_borrowed *borrowed;
    hf_error error;
    open_pool(f);
    hfi_borrow_return(borrow(f));
    hft_server_kill(f->server);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hfi_borrow(f->pool, in_ms(20000), &borrowed, &error), HF_UNAVAILABLE);
        assert_true(error.message[0] != 0 && error.hint[0] != 0);
    }
    hft_server_restart(f->server);
    hf_status status = HF_UNAVAILABLE;
    int64_t until_ns = in_ms(20000);
    while (status == HF_UNAVAILABLE && hfi_now(&clock_of_pool) < until_ns) {
        status = hfi_borrow(f->pool, in_ms(20000), &borrowed, &error);
        nap();
    }
    assert_int_equal(status, HF_OK);
    assert_string_equal(ask(borrowed, "PING"), "PONG");
    hfi_borrow_return(borrowed);
}

static void a_connection_is_asked_before_use_only_after_idling(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    for (int i = 0; i < 3; i++)
        hfi_borrow_return(borrow(f));
    int64_t pings = hft_server_calls(f->server, "ping");
    hfi_borrow_return(borrow(f));
    assert_int_equal(hft_server_calls(f->server, "ping"), pings);
    atomic_fetch_add(&leap_ns, 31000 * HFI_MS);
    assert_int_equal(counts_of(f).sv_used, 1);
    assert_int_equal(counts_of(f).sv_idle, 0);
    hfi_borrow_return(borrow(f));
    assert_true(hft_server_calls(f->server, "ping") > pings);
    assert_int_equal(counts_of(f).sv_used, 0);
}

static bool comes_true(bool (*is_true)(struct fixture *), struct fixture *f)
{
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), 20000);
    bool is = is_true(f);
    for (; !is && hfi_now(&hfi_boottime) < until_ns; is = is_true(f))
        nap();
    return is;
}

static bool none_idle(struct fixture *f)
{
    return counts_of(f).sv_idle + counts_of(f).sv_used == 0;
}

static bool two_idle(struct fixture *f)
{
    return counts_of(f).sv_idle == 2;
}

static bool one_line(struct fixture *f)
{
    (void)f;
    return atomic_load(&leak_lines) > 0;
}

static void idle_connections_are_closed(void **state)
{
    struct fixture *f = *state;
    f->settings.idle_ms = 50;
    open_pool(f);
    hfi_borrow_return(borrow(f));
    assert_true(comes_true(none_idle, f));
}

static void the_least_number_is_kept_ready(void **state)
{
    struct fixture *f = *state;
    f->settings.idle_ms = 50;
    f->settings.min_connections = 2;
    open_pool(f);
    assert_true(comes_true(two_idle, f));
    hft_server_restart(f->server);
    struct hfi_borrowed *first = borrow(f), *second = borrow(f), *third = borrow(f);
    hfi_borrow_discard(first);
    hfi_borrow_return(second);
    hfi_borrow_return(third);
    assert_true(comes_true(two_idle, f));
}

static void a_connection_past_its_lifetime_is_not_lent_again(void **state)
{
    struct fixture *f = *state;
    f->settings.lifetime_ms = 100000;
    open_pool(f);
    char id[32];
    struct hfi_borrowed *borrowed = borrow(f);
    (void)snprintf(id, sizeof id, "%s", ask(borrowed, "CLIENT ID"));
    hfi_borrow_return(borrowed);
    borrowed = borrow(f);
    assert_string_equal(ask(borrowed, "CLIENT ID"), id);
    atomic_fetch_add(&leap_ns, 111000 * HFI_MS); /* 10 % jitter */
    hfi_borrow_return(borrowed);
    assert_int_equal(counts_of(f).sv_idle, 0);
    borrowed = borrow(f);
    assert_string_not_equal(ask(borrowed, "CLIENT ID"), id);
    hfi_borrow_return(borrowed);
}

static bool listener_sleeps(struct fixture *f)
{
    (void)f;
    return hft_is_asleep(hft_thread_named("hf-listener"));
}

static void a_connection_that_is_not_returned_is_told_of_once(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    struct hfi_borrowed *borrowed = borrow(f);
    atomic_fetch_add(&leap_ns, 61000 * HFI_MS);
    assert_true(comes_true(one_line, f));
    atomic_fetch_add(&leap_ns, 61000 * HFI_MS);
    hfi_pool_kick(f->pool); /* wakes the listener */
    assert_true(comes_true(listener_sleeps, f));
    assert_int_equal(leak_lines, 1);
    hfi_borrow_return(borrowed);
}

static void closing_wakes_waiters_and_leaves_lent_connections_to_their_borrowers(void **state)
{
    struct fixture *f = *state;
    struct hfi_borrowed *all[MOST];
    struct borrower waiter = {.f = f};
    _Atomic(int) order = 0;
    waiter.order = &order;
    open_pool(f);
    for (int i = 0; i < MOST; i++)
        all[i] = borrow(f);
    (void)pthread_create(&waiter.thread, NULL, borrow_once, &waiter);
    for (int tries = 0; tries < 5000 && counts_of(f).cl_waiting == 0; tries++)
        nap();
    hfi_borrow_end(f->pool);
    (void)pthread_join(waiter.thread, NULL);
    struct hfi_borrowed *late;
    hf_status status = hfi_borrow(f->pool, in_ms(1000), &late, NULL);
    hfi_borrow_return(all[0]);
    bool closed = hfi_pool_close(f->pool, in_ms(1000));
    hfi_pool_free(f->pool);
    f->pool = NULL;
    bool works = strcmp(ask(all[1], "PING"), "PONG") == 0;
    for (int i = 1; i < MOST; i++)
        hfi_borrow_discard(all[i]);
    assert_int_equal(waiter.status, HF_CLOSED);
    assert_int_equal(status, HF_CLOSED);
    assert_true(closed && works);
}

static void a_fork_child_that_cleans_up_does_not_disturb_its_parent(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    struct hfi_borrowed *idle = borrow(f), *out = borrow(f);
    hfi_borrow_return(idle);
    pid_t child = fork();
    if (child == 0) {
        hfi_pool_forked(f->pool);
        int marker = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes a number that was closed */
        hfi_borrow_forked(out);
        _exit(fcntl(marker, F_GETFD) >= 0 ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_string_equal(ask(out, "PING"), "PONG");
    hfi_borrow_return(out);
    out = borrow(f);
    assert_string_equal(ask(out, "PING"), "PONG");
    hfi_borrow_return(out);
    assert_int_equal(counts_of(f).sv_idle, 2);
}

enum { STORMERS = 12, ROUNDS = 150 };

struct stormer {
    pthread_t thread;
    struct fixture *f;
    int number, counted, failed;
};

static void *storm(void *arg)
{
    struct stormer *me = arg;
    uint64_t rng = (uint64_t)me->number;
    for (int i = 0; i < ROUNDS; i++) {
        struct hfi_borrowed *borrowed;
        if (hfi_borrow(me->f->pool, in_ms(20000), &borrowed, NULL) != HF_OK) {
            me->failed++;
            continue;
        }
        me->counted += ask(borrowed, "INCR count")[0] != 0;
        uint64_t die = hfi_rng_next(&rng) % 8;
        if (die == 0)
            hfi_borrow_discard(borrowed);
        else if (die < 4)
            make(die == 1 ? MULTI : die == 2 ? SELECT : UNREAD, borrowed);
        if (die != 0)
            hfi_borrow_return(borrowed);
    }
    return NULL;
}

static void in_a_storm_no_answer_goes_astray_and_the_limit_holds(void **state)
{
    struct fixture *f = *state;
    struct stormer stormers[STORMERS];
    open_pool(f);
    for (int i = 0; i < STORMERS; i++) {
        stormers[i] = (struct stormer){.f = f, .number = i};
        (void)pthread_create(&stormers[i].thread, NULL, storm, &stormers[i]);
    }
    uint64_t most = 0, now = 0, finished = 0;
    while (finished < 50) {
        struct hfi_pool_counts counts = counts_of(f);
        now = counts.sv_active + counts.sv_idle + counts.sv_used + counts.sv_tested;
        most = now > most ? now : most;
        finished =
            counts.cl_active + counts.cl_waiting + counts.sv_tested + counts.sv_login == 0 ? finished + 1 : 0;
        nap();
    }
    int counted = 0, failed = 0;
    for (int i = 0; i < STORMERS; i++) {
        (void)pthread_join(stormers[i].thread, NULL);
        counted += stormers[i].counted;
        failed += stormers[i].failed;
    }
    struct hfi_borrowed *borrowed = borrow(f);
    char total[32];
    (void)snprintf(total, sizeof total, "%s", ask(borrowed, "GET count"));
    hfi_borrow_return(borrowed);
    assert_int_equal(failed, 0);
    assert_int_equal(counted, STORMERS * ROUNDS);
    assert_int_equal(atoi(total), STORMERS * ROUNDS);
    assert_true(most <= MOST);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_borrowed_connection_is_a_real_and_greeted_one),
        TEST(the_newest_idle_connection_is_lent_first),
        TEST(a_borrowed_connection_is_as_new_for_the_next_borrower),
        cmocka_unit_test_setup_teardown(a_returned_connection_is_logged_in_again, set_up_password, tear_down),
        TEST(no_borrower_waits_longer_than_its_wait_ms),
        TEST(waiting_borrowers_are_served_in_order),
        TEST(while_the_server_is_down_borrowing_fails_at_once_and_then_works_again),
        TEST(a_connection_is_asked_before_use_only_after_idling),
        TEST(idle_connections_are_closed),
        TEST(the_least_number_is_kept_ready),
        TEST(a_connection_past_its_lifetime_is_not_lent_again),
        TEST(a_connection_that_is_not_returned_is_told_of_once),
        TEST(closing_wakes_waiters_and_leaves_lent_connections_to_their_borrowers),
        TEST(a_fork_child_that_cleans_up_does_not_disturb_its_parent),
        TEST(in_a_storm_no_answer_goes_astray_and_the_limit_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
