/* SPDX-License-Identifier: MIT */
/* tls_test.c - rediss://: whom we believe, who is refused and in which words, and that everything else is as in the
 * clear. */
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>

#include "tests/support/takers.h"

#include <dlfcn.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int stop(void **state)
{
    hft_server_stop(*state);
    return 0;
}

static int with_the_right_name(void **state)
{
    *state = hft_server_start_tls("server", NULL);
    return 0;
}

static int with_another_name(void **state)
{
    *state = hft_server_start_tls("elsewhere", NULL);
    return 0;
}

static int expired(void **state)
{
    *state = hft_server_start_tls("expired", NULL);
    return 0;
}

static int signed_by_a_stranger(void **state)
{
    *state = hft_server_start_tls("stranger", NULL);
    return 0;
}

static int for_known_clients(void **state)
{
    *state = hft_server_start_tls("server", "tls-auth-clients yes");
    return 0;
}

static int in_the_clear(void **state)
{
    *state = hft_server_start_tcp(NULL);
    return 0;
}

/* Opens a client, with `more` behind the URL. */
static hf_status open_by(const struct hft_server *server, const char *more, hf_client **client, hf_error *error)
{
    char url[512];
    (void)snprintf(url, sizeof url, "%s%s", hft_server_url(server), more);
    return hf_client_open(url, NULL, client, error);
}

static bool note_belief(const hf_finding *finding, void *arg)
{
    bool *believes = arg;
    *believes = *believes || strstr(finding->what, "tls_verify=none") != NULL;
    return true;
}

/* And hf_client_check warns of whoever believes anybody. */
static void must_open(const struct hft_server *server, const char *more)
{
    bool believes = false;
    hf_client *client;
    hf_error error;
    redisReply *reply;
    hf_status status = open_by(server, more, &client, &error);
    if (status != HF_OK)
        fail_msg("%s: %s (%s)", more, error.message, error.hint);
    assert_int_equal(hf_command(client, &reply, NULL, "PING"), HF_OK);
    freeReplyObject(reply);
    assert_int_equal(hf_client_check(client, note_belief, &believes, NULL), HF_OK);
    assert_int_equal(believes, strstr(more, "none") != NULL);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void must_refuse(const struct hft_server *server, const char *more, hf_status refused, const char *words)
{
    hf_client *client;
    hf_error error;
    assert_int_equal(open_by(server, more, &client, &error), refused);
    assert_null(client);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" (hint: %s) does not say \"%s\"", error.message, error.hint, words);
}

static void locks_and_values_and_commands_go_through(void **state)
{
    struct hft_server *server = *state;
    hf_client *a, *b;
    hf_lease *lease;
    hf_error error;
    redisReply *reply;
    size_t size = 5 << 20;
    char *big = malloc(size);
    for (size_t i = 0; i < size; i++)
        big[i] = (char)(i * 7 + i / 4096);
    assert_int_equal(open_by(server, "", &a, &error), HF_OK);
    assert_int_equal(open_by(server, "", &b, &error), HF_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hf_lock_acquire(a, "name", NULL, &lease, &error), HF_OK);
        assert_int_equal(hf_lease_release(lease, &error), HF_OK);
        assert_int_equal(hf_lock_acquire(b, "name", NULL, &lease, &error), HF_OK);
        assert_int_equal(hf_lease_release(lease, &error), HF_OK);
    }
    assert_int_equal(hf_command(a, &reply, &error, "SET big %b", big, size), HF_OK);
    freeReplyObject(reply);
    assert_int_equal(hf_command(b, &reply, &error, "GET big"), HF_OK);
    assert_int_equal(reply->len, size);
    assert_memory_equal(reply->str, big, size);
    freeReplyObject(reply);
    free(big);
    assert_int_equal(hf_client_close(a, NULL), HF_OK);
    assert_int_equal(hf_client_close(b, NULL), HF_OK);
}

static void a_certificate_for_somebody_else_is_refused_by_name(void **state)
{
    must_refuse(*state, "", HF_DENIED, "the certificate is for a.example, b.example, not 127.0.0.1");
    must_refuse(*state, "&tls_server_name=c.example", HF_DENIED, "not c.example");
    must_open(*state, "&tls_server_name=b.example");
    must_open(*state, "&tls_verify=ca");
    must_open(*state, "&tls_verify=none");
}

static void an_expired_certificate_is_refused(void **state)
{
    must_refuse(*state, "", HF_DENIED, "its certificate has expired");
    must_refuse(*state, "&tls_verify=ca", HF_DENIED, "its certificate has expired");
    must_open(*state, "&tls_verify=none");
}

static void a_certificate_of_a_stranger_is_refused(void **state)
{
    must_refuse(*state, "", HF_DENIED, "nobody that we trust has signed its certificate");
    must_refuse(*state, "&tls_verify=ca", HF_DENIED, "nobody that we trust");
    must_open(*state, "&tls_verify=none");
}

static void a_client_without_the_certificate_that_is_asked_for_is_told(void **state)
{
    const char *folder = hft_server_folder(*state);
    char both[256], one[256];
    (void)snprintf(both, sizeof both, "&tls_cert_file=%s/client.pem&tls_key_file=%s/client.key", folder, folder);
    must_refuse(*state, "", HF_DENIED, "it asks for a certificate of ours");
    must_open(*state, both);
    (void)strcat(both, "&tls_min=1.3");
    must_open(*state, both);
    (void)snprintf(both, sizeof both, "&tls_cert_file=%s/stranger.pem&tls_key_file=%s/stranger.key", folder, folder);
    must_refuse(*state, both, HF_DENIED, "it refuses our certificate");
    (void)snprintf(one, sizeof one, "&tls_cert_file=%s/client.pem&tls_key_file=%s/server.key", folder, folder);
    must_refuse(*state, one, HF_INVALID, "tls_key_file");
    (void)snprintf(one, sizeof one, "&tls_key_file=%s/client.key", folder);
    must_refuse(*state, one, HF_INVALID, "no tls_cert_file");
}

static void nonsense_in_the_options_is_named(void **state)
{
    hf_client *client;
    hf_error error;
    must_refuse(*state, "&tls_verify=maybe", HF_INVALID, "tls_verify");
    must_refuse(*state, "&tls_min=1.1", HF_INVALID, "tls_min");
    must_refuse(*state, "&tls_server_name=.example", HF_INVALID, "tls_server_name");
    if (HIREDIS_MAJOR < 1)
        must_refuse(*state, "&min_connections=1", HF_INVALID, "cannot borrow");
    else
        must_open(*state, "&min_connections=1");
    must_refuse(*state, "&tls_cert_file=/nowhere", HF_INVALID, "tls_cert_file /nowhere: No such file");
    assert_int_equal(hf_client_open("rediss://127.0.0.1:1?tls_ca_file=/dev/null", NULL, &client, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "tls_ca_file /dev/null"));
    assert_int_equal(hf_client_open("redis://127.0.0.1:1?tls_verify=ca", NULL, &client, &error), HF_INVALID);
    assert_non_null(strstr(error.hint, "rediss://"));
}

static redisReply *ask(hf_conn *conn, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    redisReply *reply = redisvCommand(hf_conn_context(conn), format, words);
    va_end(words);
    return reply;
}

static long long ask_id(hf_conn *conn)
{
    redisReply *reply = ask(conn, "CLIENT ID");
    long long id = reply != NULL ? reply->integer : -1;
    freeReplyObject(reply);
    return id;
}

/* By hiredis 1.0 or later; an older one cannot be told how to read and write. */
static void a_connection_is_lent(void **state)
{
    enum { MUCH = 3000000 };
    hf_client *client;
    hf_conn *conn;
    hf_error error;
    assert_int_equal(open_by(*state, "&max_connections=1", &client, &error), HF_OK);
    if (HIREDIS_MAJOR < 1) {
        assert_int_equal(hf_conn_borrow(client, 0, &conn, &error), HF_INVALID);
        assert_non_null(strstr(error.hint, "hf_command"));
        assert_int_equal(hf_client_close(client, NULL), HF_OK);
        return;
    }
    char *much = malloc(MUCH);
    memset(much, 'm', MUCH);
    assert_int_equal(hf_conn_borrow(client, 0, &conn, &error), HF_OK);
    long long id = ask_id(conn);
    freeReplyObject(ask(conn, "SET much %b", much, (size_t)MUCH)); /* more than sockets hold, both ways */
    redisReply *reply = ask(conn, "GET much");
    assert_true(reply != NULL && reply->len == MUCH && memcmp(reply->str, much, MUCH) == 0);
    freeReplyObject(reply);
    freeReplyObject(ask(conn, "MULTI"));
    hf_conn_return(conn);
    assert_int_equal(hf_conn_borrow(client, 0, &conn, &error), HF_OK);
    assert_int_equal(ask_id(conn), id); /* the same one, out of its transaction */
    assert_int_equal(redisAppendCommand(hf_conn_context(conn), "GET much"), REDIS_OK);
    assert_int_equal(redisBufferWrite(hf_conn_context(conn), &(int){0}), REDIS_OK);
    hf_conn_return(conn); /* with an answer that nobody has read */
    assert_int_equal(hf_conn_borrow(client, 0, &conn, &error), HF_OK);
    assert_int_not_equal(ask_id(conn), id);
    assert_int_equal(redisSetTimeout(hf_conn_context(conn), (struct timeval){0, 50000}), REDIS_OK);
    assert_null(ask(conn, "BLPOP nothing 0"));
    assert_int_equal(hf_conn_context(conn)->err, REDIS_ERR_IO);
    hf_conn_discard(conn);
    assert_int_equal(hf_conn_borrow(client, 0, &conn, &error), HF_OK);
    freeReplyObject(hft_server_ask(*state, "CLIENT KILL ID %lld", ask_id(conn)));
    assert_null(ask(conn, "PING"));
    assert_int_equal(hf_conn_context(conn)->err, REDIS_ERR_EOF);
    hf_conn_return(conn);
    free(much);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_port_in_the_clear_is_recognised(void **state)
{
    char url[64];
    hf_client *client;
    hf_error error;
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%d?connect_ms=200", hft_server_port(*state));
    assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_UNAVAILABLE); /* it waits for the end of a line */
    assert_non_null(strstr(error.message, "does not answer in TLS"));
    assert_non_null(strstr(error.hint, "redis://"));
}

static void a_port_of_tls_is_recognised(void **state)
{
    char url[64];
    hf_client *client;
    hf_error error;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", hft_server_port(*state));
    assert_int_not_equal(hf_client_open(url, NULL, &client, &error), HF_OK);
    assert_non_null(strstr(error.hint, "rediss://"));
}

static void copy_file(const struct hft_server *server, const char *from, const char *to)
{
    char command[256];
    (void)snprintf(command, sizeof command, "cd %s && cp %s %s.new && mv %s.new %s", hft_server_folder(server), from, to, to, to);
    assert_int_equal(system(command), 0); /* a rename, as those who renew certificates do it */
}

static _Atomic(int) warnings_of_files;

static void count_warnings(hf_log_level level, const char *line, void *arg)
{
    (void)arg;
    if (level == HF_LOG_WARNING && strstr(line, "a TLS file has changed") != NULL)
        warnings_of_files++;
}

/* Until a command goes through again; at most 20 s. */
static bool answers(hf_client *client)
{
    redisReply *reply = NULL;
    hf_status status = hf_command(client, &reply, NULL, "PING");
    if (reply != NULL)
        freeReplyObject(reply);
    return status == HF_OK;
}

static hf_client *open_that_counts(const struct hft_server *server)
{
    hf_client *client;
    hf_error error;
    warnings_of_files = 0;
    assert_int_equal(hf_client_open(hft_server_url(server), HF_CLIENT(.log = count_warnings), &client, &error), HF_OK);
    HFT_UNTIL_TRUE(answers(client));
    return client;
}

/* Another authority has signed the server's certificate now, and who reads its own file anew believes it. */
static void change_all_files(struct hft_server *server)
{
    copy_file(server, "other.pem", "ca.pem");
    copy_file(server, "stranger.pem", "server.pem");
    copy_file(server, "stranger.key", "server.key");
    hft_server_restart(server);
}

static void files_that_change_are_read_again_and_bad_ones_change_nothing(void **state)
{
    struct hft_server *server = *state;
    hf_client *client = open_that_counts(server);
    copy_file(server, "server.key", "ca.pem"); /* no certificate at all */
    hft_server_restart(server);
    HFT_UNTIL_TRUE(answers(client));
    assert_int_equal(warnings_of_files, 1);
    change_all_files(server);
    HFT_UNTIL_TRUE(answers(client));
    assert_int_equal(warnings_of_files, 1);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static _Atomic(bool) is_short; /* of descriptors, for OpenSSL's files */

/* OpenSSL's way to a file: in front of libc's, as the program's own. */
__attribute__((visibility("default"))) FILE *fopen64(const char *path, const char *mode)
{
    union {
        void *symbol;
        FILE *(*open)(const char *, const char *);
    } libc = {dlsym(RTLD_NEXT, "fopen64")};
    if (atomic_load(&is_short) && strstr(path, "/ca.pem") != NULL) {
        errno = EMFILE;
        return NULL;
    }
    return libc.open(path, mode);
}

static void a_file_that_changed_while_descriptors_were_short_is_read_later(void **state)
{
    struct hft_server *server = *state;
    hf_client *client = open_that_counts(server);
    atomic_store(&is_short, true);
    change_all_files(server);
    HFT_UNTIL_TRUE(warnings_of_files > 0);
    atomic_store(&is_short, false);
    HFT_UNTIL_TRUE(answers(client));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

#define LOADERS 4

struct load {
    hf_client *client;
    _Atomic(bool) over;
    _Atomic(int) had, refused;
};

static void *lock_and_release(void *arg)
{
    struct load *load = arg;
    while (!atomic_load(&load->over)) {
        hf_lease *lease;
        if (hf_lock_acquire(load->client, "loaded", HF_LOCK(.wait_ms = 20000), &lease, NULL) == HF_OK) {
            (void)hf_lease_release(lease, NULL); /* of a server that is killed it may be UNKNOWN */
            (void)atomic_fetch_add(&load->had, 1);
        } else {
            (void)atomic_fetch_add(&load->refused, 1);
        }
    }
    return NULL;
}

static void certificates_may_be_exchanged_while_locks_are_taken(void **state)
{
    static const char *const files[][2] = {{"stranger.pem", "server.pem"}, {"stranger.key", "server.key"}};
    struct hft_server *server = *state;
    char both[128];
    struct load load = {NULL, false, 0, 0};
    pthread_t threads[LOADERS];
    hf_error error;
    (void)snprintf(both, sizeof both, "cd %s && cat other.pem >>ca.pem", hft_server_folder(server)); /* as who exchanges them has to */
    assert_int_equal(system(both), 0);
    assert_int_equal(hf_client_open(hft_server_url(server), NULL, &load.client, &error), HF_OK);
    for (int i = 0; i < LOADERS; i++)
        (void)pthread_create(&threads[i], NULL, lock_and_release, &load);
    for (int round = 0; round < 4; round++) {
        int had = atomic_load(&load.had);
        copy_file(server, "ca.pem", "ca.pem"); /* another file, which is read again */
        for (int i = 0; i < 2; i++) { /* by way of a third file, back and forth */
            copy_file(server, files[i][1], "aside");
            copy_file(server, files[i][0], files[i][1]);
            copy_file(server, "aside", files[i][0]);
        }
        hft_server_restart(server);
        HFT_UNTIL_TRUE(atomic_load(&load.had) > had + 100);
    }
    atomic_store(&load.over, true);
    for (int i = 0; i < LOADERS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(load.refused, 0);
    hf_status status = hf_client_close(load.client, NULL);
    assert_true(status == HF_OK || status == HF_UNKNOWN); /* of a server that was killed an answer may be owed for ever */
}

int main(void)
{
#define TEST(test, with) cmocka_unit_test_setup_teardown(test, with, stop)
    const struct CMUnitTest tests[] = {
        TEST(locks_and_values_and_commands_go_through, with_the_right_name),
        TEST(a_certificate_for_somebody_else_is_refused_by_name, with_another_name),
        TEST(an_expired_certificate_is_refused, expired),
        TEST(a_certificate_of_a_stranger_is_refused, signed_by_a_stranger),
        TEST(a_client_without_the_certificate_that_is_asked_for_is_told, for_known_clients),
        TEST(files_that_change_are_read_again_and_bad_ones_change_nothing, with_the_right_name),
        TEST(a_file_that_changed_while_descriptors_were_short_is_read_later, with_the_right_name),
        TEST(certificates_may_be_exchanged_while_locks_are_taken, with_the_right_name),
        TEST(nonsense_in_the_options_is_named, with_the_right_name),
        TEST(a_connection_is_lent, with_the_right_name),
        TEST(a_port_in_the_clear_is_recognised, in_the_clear),
        TEST(a_port_of_tls_is_recognised, with_the_right_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
