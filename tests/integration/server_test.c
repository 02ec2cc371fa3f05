/* SPDX-License-Identifier: MIT */
/* server_test.c - the tests' own server (support/server.h): it does what it is asked to and never outlives the test. */
#include "tests/support/fds.h"
#include "tests/support/server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_server_takes_further_configuration(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start("maxmemory 10mb\nnotify-keyspace-events KEA");
    redisReply *reply = hft_server_ask(server, "CONFIG GET %s", "maxmemory");
    assert_string_equal(reply->element[1]->str, "10485760");
    freeReplyObject(reply);
    assert_int_equal(hft_server_port(server), 0);
    hft_server_stop(server);
}

static void a_server_counts_the_commands_it_ran(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    assert_int_equal(hft_server_calls(server, "incr"), 0);
    assert_int_equal(hft_server_ask_integer(server, "INCR a"), 1);
    assert_int_equal(hft_server_ask_integer(server, "INCR a"), 2);
    assert_int_equal(hft_server_calls(server, "incr"), 2);
    assert_true(hft_server_calls(server, NULL) >= 2);
    hft_server_stop(server);
}

static void a_killed_server_is_gone_and_a_restarted_one_is_empty_at_the_same_place(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start_tcp(NULL);
    int port = hft_server_port(server);
    pid_t first = hft_server_pid(server);
    (void)hft_server_ask_integer(server, "INCR a");
    hft_server_kill(server);
    assert_int_equal(hft_server_pid(server), 0);
    assert_int_equal(kill(first, 0), -1);
    hft_server_restart(server);
    assert_int_equal(hft_server_port(server), port);
    assert_int_equal(hft_server_ask_integer(server, "INCR a"), 1);
    hft_server_stop(server);
}

static void a_frozen_server_does_not_answer_until_it_is_thawed(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    struct timeval limit = {0, 50000};
    hft_server_freeze(server);
    hft_server_freeze(server);
    redisContext *context = redisConnectUnix(hft_server_socket(server));
    (void)redisSetTimeout(context, limit);
    assert_null(redisCommand(context, "PING"));
    redisFree(context);
    hft_server_thaw(server);
    assert_int_equal(hft_server_ask_integer(server, "EXISTS a"), 0);
    hft_server_freeze(server);
    hft_server_stop(server);
}

static void a_stopped_server_leaves_no_descriptor_and_no_folder(void **state)
{
    (void)state;
    struct stat there;
    char folder[64];
    int before = hft_open_descriptors();
    struct hft_server *server = hft_server_start(NULL);
    (void)snprintf(folder, sizeof folder, "%s", hft_server_folder(server));
    assert_int_equal(stat(folder, &there), 0);
    freeReplyObject(hft_server_ask(server, "PING"));
    hft_server_stop(server);
    assert_int_equal(stat(folder, &there), -1);
    assert_int_equal(hft_open_descriptors(), before);
}

struct left {
    pid_t pid;
    char folder[64];
};

/* A test program of its own: starts a server, reports where, and ends in `way`. */
static struct left what_a_test_leaves(int way)
{
    struct left left = {0};
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t test = fork();
    if (test == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        struct hft_server *server = hft_server_start(NULL);
        left.pid = hft_server_pid(server);
        (void)snprintf(left.folder, sizeof left.folder, "%s", hft_server_folder(server));
        if (write(ends[1], &left, sizeof left) != (ssize_t)sizeof left)
            _exit(2);
        if (way != 0)
            (void)raise(way);
        exit(0);
    }
    assert_int_equal(read(ends[0], &left, sizeof left), sizeof left);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(waitpid(test, &status, 0), test);
    while (waitpid(-1, &status, 0) > 0) /* the orphans are ours: see main. Ends when all have ended */
        ;
    return left;
}

static void a_server_dies_with_its_test_however_that_ends(void **state)
{
    (void)state;
    const int ways[] = {0, SIGKILL, SIGABRT, SIGTERM};
    struct stat there;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct left left = what_a_test_leaves(ways[i]);
        assert_int_equal(kill(left.pid, 0), -1);
        assert_int_equal(stat(left.folder, &there), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_takes_further_configuration),
        cmocka_unit_test(a_server_counts_the_commands_it_ran),
        cmocka_unit_test(a_killed_server_is_gone_and_a_restarted_one_is_empty_at_the_same_place),
        cmocka_unit_test(a_frozen_server_does_not_answer_until_it_is_thawed),
        cmocka_unit_test(a_stopped_server_leaves_no_descriptor_and_no_folder),
        cmocka_unit_test(a_server_dies_with_its_test_however_that_ends),
    };
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
