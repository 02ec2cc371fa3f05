/* SPDX-License-Identifier: MIT */
/* witness.c - see witness.h. It asks the kernel, not the server: a frozen one does not answer. */
#include "tests/torture/witness.h"
#include "tests/support/child.h"
#include "tests/torture/ledger.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS_MOST 256
#define LOOK_MS      1
#define PATIENCE_NS  (2000 * HFT_MS) /* who is still there then is late enough */

_Noreturn static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- who is connected ---- */

/* The inodes of established connections to this port of this machine. (/proc/net/tcp says it too, but takes 15 ms.) */
static int established(int port, unsigned long *inodes)
{
    static int diagnosis = -1;
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 wish;
    } question = {{.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                  {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1 << TCP_ESTABLISHED}};
    _Alignas(struct nlmsghdr) char answer[32768];
    int count = 0;
    if (diagnosis < 0 && (diagnosis = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) < 0)
        give_up("witness: NETLINK_SOCK_DIAG");
    if (send(diagnosis, &question, sizeof question, 0) != sizeof question)
        give_up("witness: NETLINK_SOCK_DIAG");
    for (;;) {
        ssize_t got = recv(diagnosis, answer, sizeof answer, 0);
        if (got <= 0)
            give_up("witness: NETLINK_SOCK_DIAG");
        size_t left = (size_t)got;
        for (const struct nlmsghdr *at = (const void *)answer; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
            const struct inet_diag_msg *one = NLMSG_DATA(at);
            if (at->nlmsg_type == NLMSG_DONE)
                return count;
            if (at->nlmsg_type == NLMSG_ERROR)
                give_up("witness: NETLINK_SOCK_DIAG");
            if (ntohs(one->id.idiag_dport) == port && count < SOCKETS_MOST)
                inodes[count++] = one->idiag_inode;
        }
    }
}

static bool has_one_of(pid_t pid, const unsigned long *inodes, int count)
{
    char path[64], target[64];
    bool has = false;
    const struct dirent *entry;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    while (folder != NULL && !has && (entry = readdir(folder)) != NULL) {
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[size > 0 ? size : 0] = 0;
        unsigned long inode = strncmp(target, "socket:[", 8) == 0 ? strtoul(target + 8, NULL, 10) : 0;
        for (int i = 0; i < count && inode != 0; i++)
            has = has || inodes[i] == inode;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return has;
}

static void watch_them_leave(struct hft_witness *witness, int port, int64_t switched_ns)
{
    unsigned long inodes[SOCKETS_MOST];
    bool is_off[HFT_WATCHED_MOST] = {false};
    for (int left = witness->client_count; left > 0;) {
        int count = established(port, inodes);
        for (int i = 0; i < witness->client_count; i++) {
            bool is_there = !is_off[i] && has_one_of(witness->clients[i], inodes, count);
            int64_t now_ns = hft_now_ns(); /* by then it was off */
            if (is_off[i] || (is_there && now_ns - switched_ns < PATIENCE_NS))
                continue;
            is_off[i] = true;
            left--;
            witness->late_ns[atomic_fetch_add(&witness->lates, 1)] = now_ns - switched_ns;
        }
        if (left > 0)
            (void)poll(NULL, 0, LOOK_MS);
    }
}

/* ---- what is published ---- */

static redisContext *subscribe(const struct hft_server *sentinel)
{
    redisContext *context = redisConnectUnix(hft_server_socket(sentinel));
    if (context == NULL || context->err != 0)
        give_up("witness: a sentinel");
    freeReplyObject(redisCommand(context, "SUBSCRIBE +switch-master"));
    return context;
}

/* "mymaster HOST PORT HOST PORT": the port of the former primary; 0: nothing was heard. */
static int heard(redisContext *context)
{
    redisReply *reply = NULL;
    int port = 0;
    if (redisBufferRead(context) != REDIS_OK)
        give_up("witness: a sentinel");
    while (redisGetReplyFromReader(context, (void **)&reply) == REDIS_OK && reply != NULL) {
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[2]->str != NULL)
            (void)sscanf(reply->element[2]->str, "%*s %*s %d", &port);
        freeReplyObject(reply);
    }
    return port;
}

_Noreturn static void attend(struct hft_witness *witness, const struct hft_fleet *fleet)
{
    redisContext *sentinels[HFT_FLEET_MOST];
    struct pollfd ready[HFT_FLEET_MOST];
    int last = 0; /* each sentinel says it */
    for (int i = 0; i < fleet->sentinels; i++) {
        sentinels[i] = subscribe(fleet->sentinel[i]);
        ready[i] = (struct pollfd){sentinels[i]->fd, POLLIN, 0};
    }
    atomic_store(&witness->port, 0); /* ready */
    while (poll(ready, (nfds_t)fleet->sentinels, -1) > 0) {
        int64_t now_ns = hft_now_ns();
        int former = 0, watched = atomic_load(&witness->port);
        for (int i = 0; i < fleet->sentinels; i++)
            if (ready[i].revents != 0 && (former = heard(sentinels[i])) != 0 && former != last) {
                last = former;
                int at = atomic_load(&witness->switches);
                if (at == HFT_SWITCHES_MOST)
                    continue;
                witness->switched_ns[at] = now_ns;
                atomic_store(&witness->switches, at + 1);
                if (former == watched) {
                    watch_them_leave(witness, former, now_ns);
                    atomic_store(&witness->port, 0);
                }
            }
    }
    give_up("witness: poll");
}

struct hft_witness *hft_witness_start(const struct hft_fleet *fleet)
{
    struct hft_witness *witness = mmap(NULL, sizeof *witness, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (witness == MAP_FAILED)
        give_up("witness: memory");
    atomic_store(&witness->port, -1);
    pid_t pid = hft_fork();
    if (pid == 0)
        attend(witness, fleet);
    witness->pid = pid;
    while (!hft_witness_is_done(witness))
        (void)poll(NULL, 0, LOOK_MS);
    return witness;
}

bool hft_witness_watch(struct hft_witness *witness, int port, const pid_t *clients, int count)
{
    unsigned long inodes[SOCKETS_MOST];
    int connected = established(port, inodes);
    for (int i = 0; i < count; i++)
        if (!has_one_of(clients[i], inodes, connected))
            return false;
    memcpy(witness->clients, clients, (size_t)count * sizeof *clients);
    witness->client_count = count;
    atomic_store(&witness->port, port);
    return true;
}

bool hft_witness_is_done(const struct hft_witness *witness)
{
    return atomic_load(&witness->port) == 0;
}

void hft_witness_end(struct hft_witness *witness)
{
    (void)kill(witness->pid, SIGKILL);
    (void)waitpid(witness->pid, NULL, 0);
}
