/* SPDX-License-Identifier: MIT */
/* tls_stream_test.c - the transport of TLS by itself, against OpenSSL's own server side: bytes arrive whole and in order
 * whatever the socket takes and wherever the records are cut, keys change under way, and a receiver that was told EAGAIN
 * has everything that poll() will not announce. */
#include "pool/secure.h"
#include "tests/support/server.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WHOLE  (1 << 20)
#define RECORD 13200 /* five of them are a little more than HFI_RECV_WHOLE */

struct stage {
    struct hft_server *server; /* for its certificates alone */
    struct hfi_secure *secure;
    struct hfi_connection ours;
    SSL_CTX *context;
    SSL *theirs;
    int their_fd;
    pthread_t echo;
    bool updates_keys;
    _Atomic(bool) failed;

    int relay_in, relay_out; /* the relay's ends, towards us and towards them; -1: there is no relay */
    size_t cut;              /* it forwards this many bytes at a time */
    pthread_t relays[2];     /* one for each direction */
};

static const struct hfi_log silence = {NULL, NULL};

/* Echoes what it reads until the end of the stream. */
static void *echo(void *arg)
{
    struct stage *s = arg;
    char bytes[RECORD];
    int turn = 0, got = 0;
    bool good = SSL_accept(s->theirs) == 1;
    while (good && (got = SSL_read(s->theirs, bytes, (int)sizeof bytes)) > 0) {
        if (s->updates_keys && ++turn % 20 == 0)
            good = SSL_key_update(s->theirs, SSL_KEY_UPDATE_REQUESTED) == 1;
        good = good && SSL_write(s->theirs, bytes, got) == got;
    }
    if (!good || SSL_get_error(s->theirs, got) != SSL_ERROR_ZERO_RETURN)
        atomic_store(&s->failed, true);
    (void)SSL_shutdown(s->theirs);
    (void)shutdown(s->their_fd, SHUT_WR);
    return NULL;
}

static bool forward(int from, int to, size_t most)
{
    char bytes[20000];
    ssize_t got = read(from, bytes, most < sizeof bytes ? most : sizeof bytes);
    for (ssize_t at = 0; got > 0 && at < got;) {
        ssize_t sent = write(to, bytes + at, (size_t)(got - at));
        if (sent <= 0)
            return false;
        at += sent;
    }
    if (got <= 0)
        (void)shutdown(to, SHUT_WR);
    return got > 0;
}

static void *relay_there(void *arg)
{
    struct stage *s = arg;
    while (forward(s->relay_in, s->relay_out, s->cut))
        ;
    return NULL;
}

static void *relay_back(void *arg)
{
    struct stage *s = arg;
    while (forward(s->relay_out, s->relay_in, s->cut))
        ;
    return NULL;
}

static void make_pair(int ends[2], int buffer)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (int i = 0; i < 2 && buffer > 0; i++)
        assert_int_equal(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer), 0);
}

/* cut 0: no relay. buffer: the sockets', 0 is the system's. */
static void begin(struct stage *s, size_t cut, int buffer)
{
    int near[2], far[2] = {-1, -1};
    make_pair(near, buffer);
    if (cut > 0)
        make_pair(far, buffer);
    s->cut = cut;
    s->relay_in = cut > 0 ? near[1] : -1;
    s->relay_out = far[0];
    s->their_fd = cut > 0 ? far[1] : near[1];
    s->ours = HFI_NO_CONNECTION;
    s->ours.fd = near[0];
    atomic_store(&s->failed, false);
    s->theirs = SSL_new(s->context);
    assert_int_equal(SSL_set_fd(s->theirs, s->their_fd), 1);
    assert_true(hfi_secure_wrap(s->secure, "localhost", &s->ours));
    assert_int_equal(pthread_create(&s->echo, NULL, echo, s), 0);
    if (cut > 0)
        assert_int_equal(pthread_create(&s->relays[0], NULL, relay_there, s) |
                             pthread_create(&s->relays[1], NULL, relay_back, s), 0);
    for (int wants; (wants = s->ours.transport->start(&s->ours)) != 0;) {
        struct pollfd on = {s->ours.fd, (short)wants, 0};
        assert_true(wants > 0);
        assert_int_equal(poll(&on, 1, 20000), 1);
    }
}

/* As a connection ends that is lost: without a word. */
static void break_off(struct stage *s)
{
    s->ours.transport->close(&s->ours);
    assert_int_equal(pthread_join(s->echo, NULL), 0);
    SSL_free(s->theirs);
    (void)close(s->their_fd);
}

static void end(struct stage *s)
{
    char rest[64];
    s->ours.transport->finish(&s->ours);
    for (ssize_t got = -1; got != 0;) {
        struct pollfd on = {s->ours.fd, POLLIN, 0};
        assert_int_equal(poll(&on, 1, 20000), 1);
        got = s->ours.transport->recv(&s->ours, rest, sizeof rest);
        assert_true(got == 0 || errno == EAGAIN);
    }
    assert_int_equal(pthread_join(s->echo, NULL), 0);
    for (int i = 0; i < 2 && s->relay_in >= 0; i++)
        assert_int_equal(pthread_join(s->relays[i], NULL), 0);
    s->ours.transport->close(&s->ours);
    SSL_free(s->theirs);
    const int fds[] = {s->relay_in, s->relay_out, s->their_fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    assert_false(atomic_load(&s->failed));
}

static char byte_at(size_t i)
{
    return (char)(i * 31 + i / 251 + i / 65536);
}

/* Sends `whole` bytes in pieces of random sizes, and reads them back as they come. */
static void echo_all(struct stage *s, size_t whole, size_t piece_most)
{
    static char in[65536], out[65536];
    size_t sent = 0, got = 0, piece = 0;
    unsigned seed = 1;
    while (got < whole) {
        ssize_t more;
        short events = POLLIN;
        while (sent < whole) {
            if (piece == 0) {
                seed = seed * 1103515245 + 12345;
                piece = 1 + seed / 65536 % piece_most;
                piece = piece < whole - sent ? piece : whole - sent;
            }
            for (size_t i = 0; i < piece; i++)
                out[i] = byte_at(sent + i);
            more = s->ours.transport->send(&s->ours, out, piece);
            if (more < 0)
                break;
            sent += (size_t)more;
            piece -= (size_t)more;
        }
        if (sent < whole) {
            assert_int_equal(errno, EAGAIN);
            events |= POLLOUT;
        }
        while ((more = s->ours.transport->recv(&s->ours, in, sizeof in)) > 0) {
            for (ssize_t i = 0; i < more; i++, got++)
                if (in[i] != byte_at(got))
                    fail_msg("byte %zu is wrong", got);
        }
        assert_true(more < 0 && errno == EAGAIN);
        struct pollfd on = {s->ours.fd, events, 0};
        if (got < whole)
            assert_int_equal(poll(&on, 1, 20000), 1); /* or bytes were left where nobody looks */
    }
}

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    char ca[160], path[160], key[160];
    hf_error error;
    (void)signal(SIGPIPE, SIG_IGN); /* the echo writes to connections that were broken off */
    s->server = hft_server_start_tls("server", NULL);
    (void)snprintf(path, sizeof path, "%s/server.pem", hft_server_folder(s->server));
    (void)snprintf(key, sizeof key, "%s/server.key", hft_server_folder(s->server));
    s->context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(s->context, path) != 1 ||
        SSL_CTX_use_PrivateKey_file(s->context, key, SSL_FILETYPE_PEM) != 1)
        return -1;
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", hft_server_folder(s->server));
    const struct hfi_tls_settings settings = {.ca_file = ca, .verify = HFI_TLS_FULL, .min = 12};
    *state = s;
    if (hfi_secure_open(&settings, &silence, &s->secure, &error) == HF_OK)
        return 0;
    print_message("%s: %s\n", error.message, error.hint);
    return -1;
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    hfi_secure_free(s->secure);
    SSL_CTX_free(s->context);
    hft_server_stop(s->server);
    free(s);
    return 0;
}

static void bytes_arrive_whole_through_sockets_that_take_little(void **state)
{
    begin(*state, 0, 0);
    echo_all(*state, WHOLE, 40000);
    end(*state);
    begin(*state, 0, 2048);
    echo_all(*state, WHOLE, 40000);
    end(*state);
}

static void records_may_be_cut_anywhere(void **state)
{
    static const size_t cuts[] = {1, 2, 3, 5, 7, 16, 21, 22, 1000, 16384, 16406};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        begin(*state, cuts[i], i % 2 == 0 ? 2048 : 0);
        echo_all(*state, cuts[i] < 8 ? 20000 : WHOLE / 4, i % 3 == 0 ? 100 : 30000);
        end(*state);
    }
}

static void keys_change_under_way(void **state)
{
    struct stage *s = *state;
    s->updates_keys = true;
    begin(s, 0, 2048);
    echo_all(s, WHOLE, 40000);
    end(s);
    begin(s, 7, 0);
    echo_all(s, WHOLE / 8, 3000);
    end(s);
}

static void a_single_receive_leaves_nothing_that_poll_does_not_see(void **state)
{
    struct stage *s = *state;
    static char bytes[HFI_RECV_WHOLE];
    begin(s, 0, 0);
    for (size_t whole = 5 * RECORD; whole < 10 * RECORD; whole += RECORD / 12) {
        size_t sent = 0;
        while (sent < whole)
            sent += (size_t)s->ours.transport->send(&s->ours, bytes, whole - sent < RECORD ? whole - sent : RECORD);
        for (int queued = 0; (size_t)queued < whole;) { /* more than fits: the echo brings it */
            assert_int_equal(ioctl(s->ours.fd, FIONREAD, &queued), 0);
            (void)sched_yield();
        }
        for (size_t got = 0; got < whole;) {
            struct pollfd on = {s->ours.fd, POLLIN, 0};
            assert_int_equal(poll(&on, 1, 5000), 1);
            ssize_t more = s->ours.transport->recv(&s->ours, bytes, sizeof bytes); /* once for each poll */
            assert_true(more > 0 || errno == EAGAIN);
            got += more > 0 ? (size_t)more : 0;
        }
    }
    end(s);
}

static void the_second_dial_resumes_the_first_ones_session(void **state)
{
    struct stage *s = *state;
    s->updates_keys = false;
    for (int turn = 0; turn < 4; turn++) {
        begin(s, 0, 0);
        echo_all(s, 1000, 1000); /* the ticket comes with the first bytes */
        if (turn > 0)
            assert_int_equal(SSL_session_reused(s->theirs), 1);
        if (turn % 2 == 0)
            break_off(s);
        else
            end(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_whole_through_sockets_that_take_little),
        cmocka_unit_test(records_may_be_cut_anywhere),
        cmocka_unit_test(keys_change_under_way),
        cmocka_unit_test(the_second_dial_resumes_the_first_ones_session),
        cmocka_unit_test(a_single_receive_leaves_nothing_that_poll_does_not_see),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
