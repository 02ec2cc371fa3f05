/* SPDX-License-Identifier: MIT */
/* addresses_test.c - a name with several addresses, of which some are dead: dialled on a clock of the test's own. */
#include "pool/peer.h"
#include "pool/dial.h"
#include "pool/topology_one.h"
#include "tests/support/clock_fake.h"
#include "tests/support/fds.h"
#include "tests/support/pool_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 5 };

/* The name service of this program. */
static struct sockaddr_storage listed[MOST];
static int listed_count;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *wish, struct addrinfo **found)
{
    (void)name;
    (void)service;
    *found = NULL;
    if ((wish->ai_flags & AI_NUMERICHOST) != 0)
        return EAI_NONAME;
    for (int i = listed_count - 1; i >= 0; i--) {
        struct addrinfo *one = calloc(1, sizeof *one);
        socklen_t size = listed[i].ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        *one = (struct addrinfo){.ai_family = listed[i].ss_family, .ai_addrlen = size, .ai_next = *found};
        one->ai_addr = (struct sockaddr *)&listed[i];
        *found = one;
    }
    return listed_count > 0 ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *all)
{
    while (all != NULL) {
        struct addrinfo *next = all->ai_next;
        free(all);
        all = next;
    }
}

struct fixture {
    struct hft_server *server;
    struct hfi_deployment deployment;
    struct hfi_peer peer;
    int listener, fillers[3]; /* an address that answers no SYN: its backlog is full */
    int port, silent_port;
};

static struct sockaddr_in address(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static int listen_at_a_free_port(int backlog, int *port)
{
    struct sockaddr_in at = address(0);
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

struct lookup {
    void (*run)(void *arg);
    void *arg;
};

static void *look_up(void *arg)
{
    struct lookup lookup = *(struct lookup *)arg;
    free(arg);
    lookup.run(lookup.arg);
    return NULL;
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    pthread_t thread;
    struct lookup *lookup = malloc(sizeof *lookup);
    (void)self;
    *lookup = (struct lookup){run, arg};
    return pthread_create(&thread, NULL, look_up, lookup) == 0 && pthread_detach(thread) == 0;
}

static void found(void *self)
{
    (void)self;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->server = hft_server_start_tcp(NULL);
    f->port = hft_server_port(f->server);
    f->listener = listen_at_a_free_port(0, &f->silent_port);
    struct sockaddr_in at = address(f->silent_port);
    for (int i = 0; i < 3; i++) {
        f->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(f->fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    f->deployment.settings.endpoint = (struct hfi_endpoint){.scheme = HFI_TCP, .host = (char *)(uintptr_t) "many", .port = 1};
    f->deployment.settings.command_ms = 60000; /* the kernel's own patience is twice as long */
    f->deployment.clock = &hfi_boottime;
    f->peer.deployment = &f->deployment;
    f->peer.endpoint = &f->deployment.settings.endpoint;
    (void)snprintf(f->peer.name, sizeof f->peer.name, "many:1");
    const struct hfi_topology_ops ops = {.in_background = in_background, .found = found, .self = f};
    return hfi_topology_one_new(&f->deployment.settings.endpoint, f->deployment.clock, &ops, &f->peer.topology, NULL) != HF_OK;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hfi_topology_free(f->peer.topology);
    for (int i = 0; i < 3; i++)
        (void)close(f->fillers[i]);
    (void)close(f->listener);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static void list_ports(int first, int second, int third)
{
    const int ports[] = {first, second, third};
    listed_count = 0;
    for (int i = 0; i < 3 && ports[i] != 0; i++) {
        struct sockaddr_in at = address(ports[i]);
        memcpy(&listed[listed_count++], &at, sizeof at);
    }
}

static void list(struct fixture *f, int first, int second, int third)
{
    struct hfi_addresses ignored;
    list_ports(first, second, third);
    assert_int_equal(hfi_topology_wait(f->peer.topology, hft_in_ms(20000), &ignored, NULL), HFI_FOUND);
}

/* Steps the dial at now_ns until its sockets are quiet for a moment, or until it is UP or FAILED. */
static enum hfi_dial_state step(struct hfi_dial *dial, int64_t now_ns)
{
    for (;;) {
        enum hfi_dial_state state = hfi_dial_step(dial, now_ns);
        struct pollfd ready = {hfi_dial_polled(dial).fd, hfi_dial_polled(dial).events, 0};
        if (state != HFI_DIAL_GOING || poll(&ready, 1, 300) != 1)
            return state;
    }
}

static void a_dead_first_address_costs_a_quarter_of_a_second_and_only_once(void **state)
{
    struct fixture *f = *state;
    list(f, f->silent_port, f->port, 0);
    int64_t now_ns = hft_now(), until_ns = now_ns + 2000 * HFI_MS;
    int descriptors = hft_open_descriptors();
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_GOING);
    assert_true(hfi_dial_again_ns(dial) <= now_ns + 250 * HFI_MS);
    assert_int_equal(step(dial, now_ns + 249 * HFI_MS), HFI_DIAL_GOING);
    assert_int_equal(step(dial, now_ns + 250 * HFI_MS), HFI_DIAL_UP);
    hfi_dial_end(&dial);
    dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_UP);
    hfi_dial_end(&dial);
    assert_int_equal(hft_open_descriptors(), descriptors);
}

static void an_address_that_refuses_costs_nothing(void **state)
{
    struct fixture *f = *state;
    list(f, 1, f->port, 0);
    int64_t now_ns = hft_now();
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, now_ns + 2000 * HFI_MS);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_UP);
    hfi_dial_end(&dial);
}

/* connect_ms 300: the last one has its turn long before. */
static void a_short_time_is_shared_by_all_addresses(void **state)
{
    struct fixture *f = *state;
    list(f, f->silent_port, f->silent_port, f->port);
    int64_t now_ns = hft_now();
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, now_ns + 300 * HFI_MS);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_GOING);
    assert_int_equal(step(dial, now_ns + 100 * HFI_MS), HFI_DIAL_GOING);
    assert_int_equal(step(dial, now_ns + 200 * HFI_MS), HFI_DIAL_UP);
    hfi_dial_end(&dial);
}

static void an_address_that_connects_and_says_nothing_is_not_the_first_again(void **state)
{
    struct fixture *f = *state;
    int port, mute = listen_at_a_free_port(16, &port);
    list(f, port, f->port, 0);
    int64_t now_ns = hft_now(), until_ns = now_ns + 500 * HFI_MS;
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_GOING);
    assert_int_equal(step(dial, until_ns), HFI_DIAL_FAILED);
    assert_non_null(strstr(hfi_dial_error(dial)->message, "connected, but there was no answer"));
    hfi_dial_end(&dial);
    dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_UP);
    hfi_dial_end(&dial);
    (void)close(mute);
}

static void an_address_of_no_use_comes_after_all_others_whatever_they_do(void **state)
{
    struct fixture *f = *state;
    int port, mute = listen_at_a_free_port(16, &port);
    list(f, port, 1, f->port); /* the second one refuses at once: it is no answer to who comes first */
    int64_t now_ns = hft_now(), until_ns = now_ns + 500 * HFI_MS;
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_GOING);
    assert_int_equal(step(dial, until_ns), HFI_DIAL_FAILED);
    hfi_dial_end(&dial);
    dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    assert_int_equal(step(dial, now_ns), HFI_DIAL_UP);
    hfi_dial_end(&dial);
    (void)close(mute);
}

/* The ports of what is dialled next, "7 8 9". */
static const char *order(struct hfi_topology *topology)
{
    static char ports[64];
    struct hfi_addresses addresses;
    size_t used = 0;
    (void)hfi_topology_primary(topology, &addresses, NULL);
    for (int i = 0; i < addresses.count; i++)
        used += (size_t)snprintf(ports + used, sizeof ports - used, "%s%d", i > 0 ? " " : "",
                                 ntohs(((struct sockaddr_in *)&addresses.list[i].at)->sin_port));
    return ports;
}

static void rate(struct hfi_topology *topology, int port, bool good)
{
    struct hfi_address rated = {.size = sizeof(struct sockaddr_in)};
    struct sockaddr_in at = address(port);
    memcpy(&rated.at, &at, sizeof at);
    hfi_topology_rate(topology, &rated, good);
}

static void later_lookups_leave_what_is_known_in_its_order(void **state)
{
    struct fixture *f = *state;
    struct hft_clock fake;
    struct hfi_topology *topology;
    struct hfi_addresses ignored;
    const struct hfi_topology_ops ops = {.in_background = in_background, .found = found, .self = f};
    hft_clock_init(&fake, 1000 * HFI_MS);
    assert_int_equal(hfi_topology_one_new(&f->deployment.settings.endpoint, &fake.clock, &ops, &topology, NULL), HF_OK);
    list_ports(11, 12, 13);
    assert_int_equal(hfi_topology_wait(topology, HFI_NEVER, &ignored, NULL), HFI_FOUND);
    assert_string_equal(order(topology), "11 12 13");
    rate(topology, 11, false);
    assert_string_equal(order(topology), "12 13 11");
    rate(topology, 13, true);
    assert_string_equal(order(topology), "13 12 11");
    rate(topology, 14, true); /* not one of them any more */
    assert_string_equal(order(topology), "13 12 11");
    list_ports(14, 11, 13);
    hft_clock_move_ms(&fake, 1000);
    (void)hfi_topology_primary(topology, &ignored, NULL);
    HFT_UNTIL(strcmp(order(topology), "13 11 14") == 0);
    hfi_topology_free(topology);
}

static void where_all_are_dead_it_says_so_in_time_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    int descriptors = hft_open_descriptors();
    list(f, f->silent_port, f->silent_port, 1);
    int64_t now_ns = hft_now(), until_ns = now_ns + 900 * HFI_MS;
    struct hfi_dial *dial = hfi_dial_begin(&f->peer, HFI_DIAL_BORROWER, -1, until_ns);
    for (int i = 0; i < 9; i++)
        assert_int_equal(step(dial, now_ns + 100 * i * HFI_MS), HFI_DIAL_GOING);
    assert_int_equal(step(dial, until_ns), HFI_DIAL_FAILED);
    assert_non_null(strstr(hfi_dial_error(dial)->message, "cannot reach many:1"));
    hfi_dial_end(&dial);
    assert_int_equal(hft_open_descriptors(), descriptors);
}

static void the_families_take_turns(void **state)
{
    static const sa_family_t given[] = {AF_INET6, AF_INET6, AF_INET6, AF_INET, AF_INET};
    static const int expected[] = {0, 3, 1, 4, 2};
    struct fixture *f = *state;
    struct hfi_addresses addresses;
    memset(listed, 0, sizeof listed);
    for (listed_count = 0; listed_count < MOST; listed_count++) {
        listed[listed_count].ss_family = given[listed_count];
        ((struct sockaddr_in *)&listed[listed_count])->sin_port = (in_port_t)listed_count; /* both have it there */
    }
    assert_int_equal(hfi_topology_wait(f->peer.topology, hft_in_ms(20000), &addresses, NULL), HFI_FOUND);
    assert_int_equal(addresses.count, MOST);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(((struct sockaddr_in *)&addresses.list[i].at)->sin_port, expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dead_first_address_costs_a_quarter_of_a_second_and_only_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_address_that_refuses_costs_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_short_time_is_shared_by_all_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_address_that_connects_and_says_nothing_is_not_the_first_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_address_of_no_use_comes_after_all_others_whatever_they_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(later_lookups_leave_what_is_known_in_its_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_all_are_dead_it_says_so_in_time_and_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_families_take_turns, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
