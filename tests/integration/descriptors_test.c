/* SPDX-License-Identifier: MIT */
/* descriptors_test.c - a program may have closed its standard streams: its later output must not go into a
 * descriptor of the library that got one of their numbers. */
#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define FAILED 64 /* of the exit code; the rest says which of 0 to 2 are open */

struct stage {
    const char *url;
    int closed; /* bits of 0 to 2 */
    hf_dispatch dispatch;
};

static int open_now(const struct stage *stage)
{
    int found = 0;
    for (int fd = 0; fd <= 2; fd++)
        if ((stage->closed & 1 << fd) != 0 && fcntl(fd, F_GETFD) >= 0)
            found |= 1 << fd;
    return found;
}

/* A new descriptor has such a number until it is moved: none may keep it. */
static int taken(const struct stage *stage)
{
    int found = open_now(stage);
    for (int i = 0; i < 2000 && found != 0; i++) {
        (void)poll(NULL, 0, 1);
        found = open_now(stage);
    }
    return found;
}

/* Uses everything that makes a descriptor: lanes of both kinds, a subscriber, a borrowed connection, a lease's
 * event, a queue's. */
static int use_all(int from, int to, void *arg)
{
    const struct stage *stage = arg;
    hf_client *client;
    hf_lease *lease = NULL, *late = NULL;
    hf_conn *conn = NULL;
    struct pollfd event = {-1, POLLIN, 0};
    redisReply *reply = NULL;
    (void)from;
    (void)to;
    for (int fd = 0; fd <= 2; fd++)
        if ((stage->closed & 1 << fd) != 0)
            (void)close(fd);
    if (hf_client_open(stage->url, HF_CLIENT(.dispatch = stage->dispatch, .subscribers = 2), &client, NULL) != HF_OK)
        return FAILED;
    int found = taken(stage);
    bool ok = hf_lock_acquire(client, "a", HF_LOCK(.event_fd = true), &lease, NULL) == HF_OK &&
              hf_lock_acquire(client, "b", NULL, &late, NULL) == HF_OK &&
              hf_conn_borrow(client, 5000, &conn, NULL) == HF_OK && hf_command(client, &reply, NULL, "PING") == HF_OK;
    found |= taken(stage);
    event.fd = ok ? hf_lease_event_fd(late) : -1;
    found |= taken(stage);
    ok = ok && event.fd > 2 && poll(&event, 1, 0) == 0;
    hf_conn_return(conn);
    freeReplyObject(reply);
    ok = ok && hf_lease_release(lease, NULL) == HF_OK && hf_lease_release(late, NULL) == HF_OK;
    ok = hf_client_close(client, NULL) == HF_OK && ok;
    return ok ? found : FAILED;
}

static void no_descriptor_of_ours_is_a_standard_one(void **state)
{
    struct hft_server *server = hft_server_start(NULL);
    (void)state;
    for (int closed = 1; closed < 8; closed++)
        for (int dispatch = HF_DISPATCH_THREAD; dispatch <= HF_DISPATCH_CALLER; dispatch++) {
            struct stage stage = {hft_server_url(server), closed, (hf_dispatch)dispatch};
            struct hft_process process;
            hft_process_start(&process, use_all, &stage);
            int found = hft_process_end(&process);
            if (found != 0)
                fail_msg("closed %d: exit code %d (%d: a call failed, else which of 0 to 2 are ours)", closed, found,
                         FAILED);
        }
    hft_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_descriptor_of_ours_is_a_standard_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
