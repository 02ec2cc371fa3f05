/* SPDX-License-Identifier: MIT */
/* dial_connect.c - the sockets of a dial: connects to several addresses side by side; the first one connected wins. */
#include "pool/dial_private.h"
#include "base/descriptor.h"
#include "pool/deployment.h"
#include "pool/times.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

static void drop(int *fd)
{
    int dropped = *fd;
    *fd = -1; /* cleared before close(): a child forked in between must not close a reused descriptor */
    if (dropped >= 0)
        (void)close(dropped);
}

void hfi_dial_end_race(struct hfi_dial *dial)
{
    for (int i = 0; i < HFI_ADDRESSES_MOST; i++)
        drop(&dial->racing[i]);
    drop(&dial->any);
}

static void set_tcp(const struct hfi_dial *dial, int fd)
{
    const int on = 1, idle_s = 15, interval_s = 5, probes = 3;
    const unsigned int unanswered_ms = (unsigned int)(2 * dial->deployment->settings.command_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

static void win(struct hfi_dial *dial, int index)
{
    dial->connection.fd = dial->racing[index];
    dial->connection.number = dial->number = hfi_descriptor_number();
    dial->racing[index] = -1;
    dial->winner = index;
    hfi_dial_end_race(dial);
    hfi_dial_enter(dial, HFI_STEP_START);
}

static void give_up(struct hfi_dial *dial, int index, int os_errno, const char *what, int64_t now_ns)
{
    drop(&dial->racing[index]);
    (void)hfi_dial_fail_os(dial, os_errno, what);
    hfi_race_failed(&dial->race, now_ns);
}

/* Adds one of several sockets to the epoll. False: see errno. */
static bool watch(struct hfi_dial *dial, int fd)
{
    struct epoll_event event = {.events = EPOLLOUT};
    if (dial->any < 0)
        dial->any = hfi_descriptor(epoll_create1(EPOLL_CLOEXEC));
    dial->number = hfi_descriptor_number();
    return dial->any >= 0 && epoll_ctl(dial->any, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void try_address(struct hfi_dial *dial, int index, int64_t now_ns)
{
    const struct hfi_address *address = &dial->addresses.list[index];
    int family = address->at.ss_family;
    int fd = hfi_descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    dial->racing[index] = fd;
    dial->number = hfi_descriptor_number();
    if (fd < 0 || (dial->addresses.count > 1 && !watch(dial, fd))) {
        give_up(dial, index, errno, "make a socket for", now_ns); /* without IPv6 here, still try IPv4 */
        return;
    }
    if (family != AF_UNIX)
        set_tcp(dial, fd);
    if (connect(fd, (const struct sockaddr *)&address->at, address->size) == 0) {
        win(dial, index);
    } else if (errno == EAGAIN) { /* a unix socket with a full backlog: nothing to poll for */
        drop(&dial->racing[index]);
        hfi_race_postponed(&dial->race, now_ns + HFI_BACKLOG_WAIT_NS);
    } else if (errno != EINPROGRESS && errno != EINTR) {
        give_up(dial, index, errno, "connect to", now_ns);
    }
}

static void look_at(struct hfi_dial *dial, int index, int64_t now_ns)
{
    int failed = 0;
    socklen_t size = sizeof failed;
    struct pollfd ready = {dial->racing[index], POLLOUT, 0};
    if (ready.fd < 0 || poll(&ready, 1, 0) != 1)
        return;
    if (getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
        failed = errno;
    if (failed == 0)
        win(dial, index);
    else
        give_up(dial, index, failed, "connect to", now_ns);
}

bool hfi_dial_connect(struct hfi_dial *dial, int64_t now_ns)
{
    int next = 0;
    for (int i = 0; i < dial->race.begun && dial->step == HFI_STEP_CONNECT; i++)
        look_at(dial, i, now_ns);
    while (dial->step == HFI_STEP_CONNECT && (next = hfi_race_begin(&dial->race, now_ns)) >= 0)
        try_address(dial, next, now_ns);
    if (dial->step == HFI_STEP_CONNECT && hfi_race_is_lost(&dial->race))
        return false;
    dial->events = dial->any >= 0 ? POLLIN : POLLOUT;
    dial->again_ns = hfi_race_again_ns(&dial->race);
    return true;
}
