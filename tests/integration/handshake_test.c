/* SPDX-License-Identifier: MIT */
/* handshake_test.c - connections that are accepted or refused, and whether the error says what a person needs to
 * know. */
#include "core/context/context.h"
#include "pool/dial.h"
#include "pool/node.h"
#include "pool/pool_private.h"
#include "tests/support/fds.h"
#include "tests/support/pool_kit.h"
#include "tests/support/script_source.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static int own_threads; /* without a pool */

/* Opens the pool, expects the status, and checks that nothing is left of a pool that did not open. */
static void assert_opens(struct hft_pool *kit, hf_status expected, const char *word)
{
    hf_error error = {0};
    assert_true(hft_comes_down_to(hft_running_threads, own_threads)); /* a lookup of the test before has files open */
    int descriptors = hft_open_descriptors();
    int64_t begun_ns = hft_now();
    hf_status status = hft_pool_open(kit, NULL, &error);
    if (status != expected || (status != HF_OK && strstr(error.message, word) == NULL))
        fail_msg("%s, expected %s: %s", hf_status_name(status), word, error.message);
    if (status == HF_OK) {
        hft_pool_close(kit);
    } else {
        assert_true(error.server[0] != 0);
        assert_true(error.hint[0] != 0);
        assert_true(hft_now() - begun_ns < 4 * kit->settings.connect_ms * HFI_MS);
    }
    assert_true(hft_comes_down_to(hft_running_threads, own_threads));
    assert_int_equal(hft_open_descriptors(), descriptors);
}

static void log_in(struct hft_pool *kit, const char *user, const char *password)
{
    kit->settings.endpoint.user = (char *)(uintptr_t)user;
    kit->settings.endpoint.password = (char *)(uintptr_t)password;
}

static void passwords_and_users_are_checked_and_never_shown(void **state)
{
    static const struct {
        const char *user, *password;
        hf_status status;
    } cases[] = {{NULL, "open sesame", HF_OK},
                 {"default", "open sesame", HF_OK},
                 {NULL, NULL, HF_DENIED},
                 {NULL, "wrong sesame", HF_DENIED},
                 {"nobody", "open sesame", HF_DENIED}};
    (void)state;
    struct hft_server *server = hft_server_start("requirepass \"open sesame\"");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hft_pool kit;
        hf_error error = {0};
        hft_pool_init(&kit, server);
        log_in(&kit, cases[i].user, cases[i].password);
        hf_status status = hft_pool_open(&kit, NULL, &error);
        assert_int_equal(status, cases[i].status);
        assert_null(strstr(error.message, "sesame"));
        assert_null(strstr(error.hint, "sesame"));
        if (status == HF_OK)
            hft_pool_close(&kit);
    }
    hft_server_stop(server);
}

static void a_user_without_a_password_is_that_user_or_nobody(void **state)
{
    struct hft_pool kit;
    struct hft_call call;
    (void)state;
    struct hft_server *server = hft_server_start("user open on nopass ~* &* +@all\nuser closed on >x ~* &* +@all");
    hft_pool_init(&kit, server);
    log_in(&kit, "open", NULL);
    assert_int_equal(hft_pool_open(&kit, NULL, NULL), HF_OK);
    hft_ask(hfi_pool_lane(kit.pool, HFI_LOCK_LANE, 0), &call, "ACL WHOAMI");
    assert_string_equal(call.reply->str, "open");
    hft_call_done(&call);
    hft_pool_close(&kit);
    hft_pool_init(&kit, server);
    log_in(&kit, "closed", NULL);
    assert_opens(&kit, HF_DENIED, "WRONGPASS");
    hft_server_stop(server);
}

static void a_connection_is_in_its_database_and_has_its_name(void **state)
{
    struct hft_pool kit;
    struct hft_call call;
    struct hfi_server told;
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    hft_pool_init(&kit, server);
    kit.settings.endpoint.database = 3;
    assert_int_equal(hft_pool_open(&kit, NULL, NULL), HF_OK);
    struct hfi_lane *lane = hfi_pool_lane(kit.pool, HFI_LOCK_LANE, 0);
    hft_ask(lane, &call, "CLIENT INFO");
    assert_non_null(strstr(call.reply->str, " name=pool-kit "));
    assert_non_null(strstr(call.reply->str, " db=3 "));
    hft_call_done(&call);
    hfi_pool_server(kit.pool, &told);
    assert_true(told.version >= 60000);
    assert_int_equal(strlen(told.run_id), 40);
    assert_true(told.uptime_s >= 0);
    hft_pool_close(&kit);
    hft_pool_init(&kit, server);
    kit.settings.endpoint.database = 99;
    assert_opens(&kit, HF_INVALID, "out of range");
    hft_server_stop(server);
}

static void a_server_that_is_not_there_is_named(void **state)
{
    struct hft_pool kit;
    (void)state;
    hft_pool_init(&kit, NULL);
    kit.settings.endpoint.path = (char *)(uintptr_t) "/tmp/no/such.sock";
    assert_opens(&kit, HF_UNAVAILABLE, "/tmp/no/such.sock");
    kit.settings.endpoint =
        (struct hfi_endpoint){.scheme = HFI_TCP, .host = (char *)(uintptr_t) "127.0.0.1", .port = 1};
    assert_opens(&kit, HF_UNAVAILABLE, "127.0.0.1:1");
    kit.settings.endpoint.host = (char *)(uintptr_t) "no-such-host.invalid";
    assert_opens(&kit, HF_UNAVAILABLE, "no-such-host.invalid");
}

static void tcp_and_names_work_too(void **state)
{
    struct hft_pool kit;
    struct hfi_connection connection;
    (void)state;
    struct hft_server *server = hft_server_start_tcp(NULL);
    hft_pool_init(&kit, NULL);
    kit.settings.endpoint = (struct hfi_endpoint){
        .scheme = HFI_TCP, .host = (char *)(uintptr_t) "127.0.0.1", .port = hft_server_port(server)};
    assert_opens(&kit, HF_OK, "");
    struct addrinfo *found = NULL;
    bool named = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (!named)
        print_message("this machine has no localhost: an address it is\n");
    kit.settings.endpoint.host = (char *)(uintptr_t)(named ? "localhost" : "127.0.0.1"); /* ::1 may be first, and refuse */
    if (named)
        freeaddrinfo(found);
    assert_int_equal(hft_pool_open(&kit, NULL, NULL), HF_OK);
    assert_int_equal(hfi_dial_now(&kit.pool->node->peer, hft_in_ms(5000), &connection, NULL), HF_OK);
    assert_int_equal(send(connection.fd, "PING\r\n", 6, 0), 6);
    HFT_UNTIL(recv(connection.fd, (char[16]){0}, 16, MSG_DONTWAIT) == 7);
    (void)close(connection.fd);
    hft_pool_close(&kit);
    hft_server_stop(server);
}

static void another_users_server_is_not_taken_for_our_private_one(void **state)
{
    struct hft_pool kit;
    (void)state;
    if (geteuid() != 0) {
        print_message("             needs root, to be two users\n");
        skip();
    }
    struct hft_server *server = hft_server_start(NULL);
    hft_pool_init(&kit, server);
    kit.settings.endpoint.scheme = HFI_EMBEDDED;
    assert_opens(&kit, HF_OK, "");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/other.sock", hft_server_folder(server));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(seteuid(65534), 0); /* a listener's user is who called listen */
    int listens = listen(fd, 8);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(listens, 0);
    kit.settings.endpoint.path = at.sun_path;
    assert_opens(&kit, HF_UNAVAILABLE, "another user's server");
    (void)close(fd);
    hft_server_stop(server);
}

static void a_replica_is_refused(void **state)
{
    struct hft_pool kit;
    (void)state;
    struct hft_server *server = hft_server_start("replicaof 127.0.0.1 1");
    hft_pool_init(&kit, server);
    assert_opens(&kit, HF_UNAVAILABLE, "slave");
    hft_server_stop(server);
}

static void a_frozen_server_is_given_connect_ms(void **state)
{
    struct hft_pool kit;
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    hft_pool_init(&kit, server);
    kit.settings.connect_ms = 100;
    hft_server_freeze(server);
    assert_opens(&kit, HF_UNAVAILABLE, "within connect_ms");
    hft_server_thaw(server);
    assert_opens(&kit, HF_OK, "");
    hft_server_stop(server);
}

static void a_user_with_few_rights_gets_in_and_one_without_the_needed_ones_hears_which(void **state)
{
    struct hft_pool kit;
    (void)state;
    struct hft_server *server =
        hft_server_start("user few on >x ~* -@all +time +ping\nuser none on >x -@all +ping");
    hft_pool_init(&kit, server);
    log_in(&kit, "few", "x");
    assert_opens(&kit, HF_OK, "");
    kit.settings.endpoint.database = 2;
    assert_opens(&kit, HF_DENIED, "select");
    hft_server_stop(server);
}

/* ---- scripts ---- */

static const struct hfi_piece pieces[] = {{0, 0}, {0, 8}, {1, 6}, {7, 1}, {0, 1}};
static const struct hfi_script_text of_two = {"return 2", pieces, "two"}, of_three = {"3return ", pieces, "three"};
static const struct hfi_script two = {
    .text = &of_two, .size = 8, .pieces = {1}, .sha1 = "7f923f79fe76194c868d7e1d0820de36700eb649"};
static const struct hfi_script three = {.text = &of_three, .size = 8, .pieces = {2, 3, 4}};

/* Opens a pool that wants the scripts; how many were loaded. */
static int64_t loaded_by_opening(struct hft_server *server, const char *user, const struct hfi_script *const *scripts)
{
    struct hft_pool kit;
    hf_error error;
    int64_t before = hft_server_calls(server, "script|load");
    hft_pool_init(&kit, server);
    if (user != NULL)
        log_in(&kit, user, "x");
    if (hft_pool_open(&kit, scripts, &error) != HF_OK)
        fail_msg("%s", error.message);
    HFT_UNTIL(atomic_load(&kit.owner.greetings) == 2); /* the reserved lane too */
    hft_pool_close(&kit);
    return hft_server_calls(server, "script|load") - before;
}

static void a_script_that_the_server_has_is_not_sent_again(void **state)
{
    struct hfi_script named = three;
    const struct hfi_script *const both[] = {&two, &named, NULL}, *const one[] = {&two, NULL};
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    redisReply *sha1 = hft_server_ask(server, "SCRIPT LOAD %s", hft_script_source(&three));
    (void)snprintf(named.sha1, sizeof named.sha1, "%s", sha1->str);
    assert_int_equal(loaded_by_opening(server, NULL, both), 1); /* `two`, by one of the lanes */
    assert_int_equal(loaded_by_opening(server, NULL, both), 0);
    freeReplyObject(hft_server_ask(server, "SCRIPT FLUSH"));
    assert_int_equal(loaded_by_opening(server, NULL, one), 1);
    freeReplyObject(sha1);
    hft_server_stop(server);
}

static void whoever_may_not_ask_for_scripts_loads_them_and_whoever_may_not_load_them_goes_without(void **state)
{
    const struct hfi_script *const one[] = {&two, NULL};
    (void)state;
    struct hft_server *server = hft_server_start("user loads on >x ~* +@all -script +script|load\n"
                                                 "user asks on >x ~* +@all -script +script|exists\n"
                                                 "user neither on >x ~* +@all -script");
    assert_int_equal(loaded_by_opening(server, "asks", one), 0);
    assert_int_equal(loaded_by_opening(server, "neither", one), 0);
    assert_int_equal(loaded_by_opening(server, "loads", one), 1);
    assert_int_equal(loaded_by_opening(server, "loads", one), 1);
    hft_server_stop(server);
}

static int64_t bytes_heard(struct hft_server *server)
{
    redisReply *info = hft_server_ask(server, "INFO stats");
    const char *at = strstr(info->str, "total_net_input_bytes:");
    assert_non_null(at);
    int64_t bytes = strtoll(strchr(at, ':') + 1, NULL, 10);
    freeReplyObject(info);
    return bytes;
}

static hf_client *open_wholly(const struct hft_server *server)
{
    hf_client *client;
    assert_int_equal(hf_client_open(hft_server_url(server), NULL, &client, NULL), HF_OK);
    HFT_UNTIL(hft_is_subscribed(client->pool, client->identity.channel, HFI_CHANNEL_SIZE));
    HFT_UNTIL(hfi_lane_is_up(hfi_pool_lane(client->pool, HFI_RESERVED_LANE, 0)));
    return client;
}

/* A road of 64 kbit/s carries 8 kB in a second, and after a lost connection its leases wait for that. */
static void a_further_connection_costs_less_than_a_thousand_bytes(void **state)
{
    enum { CONNECTIONS = 3 }; /* one lock lane, the reserved lane, the subscriber */
    hf_client *clients[2];
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    clients[0] = open_wholly(server);
    int64_t before = bytes_heard(server);
    clients[1] = open_wholly(server);
    int64_t each = (bytes_heard(server) - before) / CONNECTIONS;
    print_message("%lld bytes\n", (long long)each);
    assert_true(each < 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_client_close(clients[i], NULL), HF_OK);
    hft_server_stop(server);
}

/* ---- peers that are no Redis ---- */

static struct {
    int fd;
    const char *_Atomic answer;
    _Atomic(bool) over;
} impostor;

static void *pretend(void *arg)
{
    (void)arg;
    while (!atomic_load(&impostor.over)) {
        char said[1024];
        const char *answer;
        int fd = accept(impostor.fd, NULL, NULL);
        if (fd < 0)
            break;
        answer = atomic_load(&impostor.answer);
        if (answer[0] != 0 && recv(fd, said, sizeof said, 0) > 0)
            (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
        else
            (void)shutdown(fd, SHUT_RDWR);
        (void)close(fd);
    }
    return NULL;
}

static void peers_that_are_no_redis_or_too_old_are_told_apart(void **state)
{
    static char endless[200000];
    static const struct {
        const char *answer, *word;
        hf_status status;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "Redis protocol", HF_PROTOCOL},
        {"+OK\r\n*1\r\n$5\r\nslave\r\n$2\r\n:)\r\n", "not a primary", HF_UNAVAILABLE},
        {"+OK\r\n*1\r\n$6\r\nmaster\r\n$22\r\nredis_version:5.0.14\r\n\r\n", "5.0.14", HF_PROTOCOL},
        {"+OK\r\n*1\r\n$6\r\nmaster\r\n$9\r\nnothing\r\n\r\n", "version", HF_PROTOCOL},
        {"+OK\r\n:7\r\n", "role", HF_PROTOCOL},
        {"+OK\r\n*1\r\n$6\r\nmaster\r\n$21\r\nredis_version:7.0.15\n\r\n+OK\r\n", "more than it was asked",
         HF_PROTOCOL},
        {"-LOADING Redis is loading the dataset in memory\r\n", "LOADING", HF_UNAVAILABLE},
        {"-ERR max number of clients reached\r\n", "max number", HF_UNAVAILABLE},
        {"-DENIED Redis is running in protected mode\r\n", "protected", HF_DENIED},
        {"", "", HF_UNAVAILABLE},
        {endless, "without end", HF_PROTOCOL},
    };
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct hft_pool kit;
    pthread_t thread;
    (void)state;
    memset(endless, 'x', sizeof endless - 1);
    memcpy(endless, "+", 1);
    char folder[] = "/tmp/handshake-XXXXXX";
    assert_non_null(mkdtemp(folder));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/s", folder);
    impostor.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(impostor.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(impostor.fd, 8), 0);
    atomic_store(&impostor.answer, "");
    assert_int_equal(pthread_create(&thread, NULL, pretend, NULL), 0);
    hft_pool_init(&kit, NULL);
    kit.settings.endpoint.path = at.sun_path;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hf_error error = {0};
        atomic_store(&impostor.answer, cases[i].answer);
        hf_status status = hft_pool_open(&kit, NULL, &error);
        if (status != cases[i].status || strstr(error.message, cases[i].word) == NULL)
            fail_msg("case %zu: %s: %s", i, hf_status_name(status), error.message);
    }
    atomic_store(&impostor.over, true);
    (void)shutdown(impostor.fd, SHUT_RDWR);
    (void)pthread_join(thread, NULL);
    (void)close(impostor.fd);
    (void)unlink(at.sun_path);
    (void)rmdir(folder);
}

static void opening_and_closing_leaves_nothing(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    int descriptors = hft_open_descriptors();
    for (int i = 0; i < 200; i++) {
        struct hft_pool kit;
        hft_pool_init(&kit, server);
        assert_int_equal(hft_pool_open(&kit, NULL, NULL), HF_OK);
        assert_true(hfi_pool_subscribe(kit.pool, "c", 1));
        hft_pool_close(&kit);
    }
    assert_int_equal(hft_open_descriptors(), descriptors);
    assert_true(hft_comes_down_to(hft_running_threads, own_threads));
    hft_server_stop(server);
}

static void *nothing(void *arg)
{
    return arg;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_and_users_are_checked_and_never_shown),
        cmocka_unit_test(a_user_without_a_password_is_that_user_or_nobody),
        cmocka_unit_test(a_connection_is_in_its_database_and_has_its_name),
        cmocka_unit_test(a_server_that_is_not_there_is_named),
        cmocka_unit_test(tcp_and_names_work_too),
        cmocka_unit_test(another_users_server_is_not_taken_for_our_private_one),
        cmocka_unit_test(a_replica_is_refused),
        cmocka_unit_test(a_frozen_server_is_given_connect_ms),
        cmocka_unit_test(a_user_with_few_rights_gets_in_and_one_without_the_needed_ones_hears_which),
        cmocka_unit_test(a_script_that_the_server_has_is_not_sent_again),
        cmocka_unit_test(whoever_may_not_ask_for_scripts_loads_them_and_whoever_may_not_load_them_goes_without),
        cmocka_unit_test(a_further_connection_costs_less_than_a_thousand_bytes),
        cmocka_unit_test(peers_that_are_no_redis_or_too_old_are_told_apart),
        cmocka_unit_test(opening_and_closing_leaves_nothing),
    };
    pthread_t first; /* a sanitizer's own thread comes with it */
    if (pthread_create(&first, NULL, nothing, NULL) != 0 || pthread_join(first, NULL) != 0)
        return 1;
    own_threads = hft_running_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
