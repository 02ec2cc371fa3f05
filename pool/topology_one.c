/* SPDX-License-Identifier: MIT */
/* topology_one.c - see topology_one.h. */
#include "pool/topology_one.h"
#include "base/mutex.h"
#include "pool/times.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

struct one {
    struct hfi_topology topology;
    const struct hfi_clock *clock;
    struct hfi_topology_ops ops;
    char *host; /* NULL: nothing to look up */
    char port[8];

    struct hfi_mutex mutex; /* guards all below */
    int references;        /* the owner's, and a running lookup's */
    bool owned, looking;
    int64_t look_again_ns;
    struct hfi_addresses found; /* in the order to try them, see hfi_topology_rate */
    hf_error why;               /* of the last lookup, if it failed */
};

static hf_status unix_address(const char *path, struct hfi_addresses *addresses, hf_error *error)
{
    struct sockaddr_un *at = (struct sockaddr_un *)(void *)&addresses->list[0].at;
    if (strlen(path) >= sizeof at->sun_path)
        return hfi_fail(error, HF_INVALID, "link the socket to a shorter path",
                        "the socket's path is longer than %zu bytes", sizeof at->sun_path - 1);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path, path, strlen(path) + 1);
    addresses->list[0].size = sizeof *at;
    addresses->count = 1;
    return HF_OK;
}

static void move(struct hfi_addresses *addresses, int from, int to)
{
    struct hfi_address moved = addresses->list[from];
    for (int i = from; i > to; i--)
        addresses->list[i] = addresses->list[i - 1];
    addresses->list[to] = moved;
}

/* Interleaves the families (RFC 8305), because the addresses of one family are often all dead together. */
static void mix_families(struct hfi_addresses *addresses)
{
    for (int i = 1; i < addresses->count; i++) {
        int other = i;
        while (other < addresses->count && addresses->list[other].at.ss_family == addresses->list[i - 1].at.ss_family)
            other++;
        if (other < addresses->count)
            move(addresses, other, i);
    }
}

/* -1: not in the list. */
static int index_of(const struct hfi_addresses *addresses, const struct hfi_address *address)
{
    int i = addresses->count - 1;
    while (i >= 0 && (addresses->list[i].size != address->size ||
                      memcmp(&addresses->list[i].at, &address->at, address->size) != 0))
        i--;
    return i;
}

/* Addresses that were known before come first, in their old order. */
static void keep_order(const struct hfi_addresses *before, struct hfi_addresses *found)
{
    int kept = 0;
    for (int i = 0; i < before->count; i++) {
        int index = index_of(found, &before->list[i]);
        if (index >= kept)
            move(found, index, kept++);
    }
}

/* Returns 0, or getaddrinfo's error. */
static int look_up(const char *host, const char *port, int flags, struct hfi_addresses *addresses)
{
    struct addrinfo wish = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *all = NULL;
    int failed = getaddrinfo(host, port, &wish, &all);
    addresses->count = 0;
    for (const struct addrinfo *one = all; one != NULL && failed == 0; one = one->ai_next) {
        if (addresses->count == HFI_ADDRESSES_MOST || one->ai_addrlen > sizeof addresses->list[0].at)
            break;
        struct hfi_address *address = &addresses->list[addresses->count++];
        memcpy(&address->at, one->ai_addr, one->ai_addrlen);
        address->size = one->ai_addrlen;
    }
    if (all != NULL)
        freeaddrinfo(all);
    mix_families(addresses);
    return failed;
}

static void unref_locked(struct one *one)
{
    bool last = --one->references == 0;
    hfi_mutex_unlock(&one->mutex);
    if (!last)
        return;
    hfi_mutex_destroy(&one->mutex);
    free(one->host);
    free(one);
}

static struct one *one_of(struct hfi_topology *topology)
{
    return (struct one *)(void *)topology; /* its first member */
}

static void free_one(struct hfi_topology *topology)
{
    struct one *one = one_of(topology);
    hfi_mutex_lock(&one->mutex);
    one->owned = false;
    unref_locked(one);
}

static void looked_up(void *arg)
{
    struct one *one = arg;
    struct hfi_addresses found;
    int failed = look_up(one->host, one->port, 0, &found);
    hfi_mutex_lock(&one->mutex);
    one->looking = false;
    one->look_again_ns = hfi_now(one->clock) + HFI_LOOK_AGAIN_NS;
    if (failed == 0 && found.count > 0) {
        keep_order(&one->found, &found);
        memcpy(found.host, one->found.host, sizeof found.host);
        one->found = found;
    } else {
        (void)hfi_fail(&one->why, HF_UNAVAILABLE, "check the host in the URI, and the name service",
                       "cannot find the address of %s: %s", one->host, gai_strerror(failed));
        hfi_fail_retry(&one->why, 1000);
    }
    hfi_park_wake(&one->topology.looked);
    if (one->owned)
        one->ops.found(one->ops.self); /* under the mutex, so that free waits for it; it only kicks */
    unref_locked(one);
}

/* Calls `in_background` under the mutex: it only queues, and must not take this mutex. */
static void look_up_in_background_locked(struct one *one)
{
    one->looking = true;
    one->references++;
    if (one->ops.in_background != NULL && one->ops.in_background(one->ops.self, looked_up, one))
        return;
    one->references--;
    one->looking = false;
    (void)hfi_fail(&one->why, HF_UNAVAILABLE, "give the server's address instead of its name",
                   "no thread to look up the address of %s", one->host);
}

static void rate(struct hfi_topology *topology, const struct hfi_address *address, bool good)
{
    struct one *one = one_of(topology);
    hfi_mutex_lock(&one->mutex);
    struct hfi_addresses *found = &one->found;
    int index = index_of(found, address);
    if (good && index >= 0)
        move(found, index, 0);
    for (int i = index + 1; !good && index >= 0 && i < found->count; i++)
        move(found, i, i - 1);
    hfi_mutex_unlock(&one->mutex);
}

static enum hfi_where primary(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error)
{
    struct one *one = one_of(topology);
    enum hfi_where where = HFI_NOT_FOUND;
    hfi_mutex_lock(&one->mutex);
    if (one->host != NULL && !one->looking && hfi_now(one->clock) >= one->look_again_ns)
        look_up_in_background_locked(one);
    if (one->found.count > 0) {
        *addresses = one->found;
        where = HFI_FOUND;
    } else if (one->looking) {
        where = HFI_LOOKING;
    } else if (error != NULL) {
        *error = one->why;
    }
    hfi_mutex_unlock(&one->mutex);
    return where;
}

static const struct hfi_topology_kind kind = {.free = free_one, .primary = primary, .rate = rate};

hf_status hfi_topology_one_new(const struct hfi_endpoint *endpoint, const struct hfi_clock *clock,
                               const struct hfi_topology_ops *ops, struct hfi_topology **topology, hf_error *error)
{
    struct one *new = calloc(1, sizeof *new);
    *topology = NULL;
    if (new == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
    hfi_mutex_init(&new->mutex, HFI_RANK_INNER);
    hfi_topology_init(&new->topology, &kind);
    (void)snprintf(new->found.host, sizeof new->found.host, "%s", endpoint->host != NULL ? endpoint->host : "");
    new->clock = clock;
    new->ops = *ops;
    new->references = 1;
    new->owned = true;
    hf_status status = HF_OK;
    if (endpoint->scheme != HFI_TCP) {
        status = unix_address(endpoint->path != NULL ? endpoint->path : "", &new->found, error);
    } else {
        (void)snprintf(new->port, sizeof new->port, "%d", endpoint->port);
        if (look_up(endpoint->host, new->port, AI_NUMERICHOST, &new->found) != 0) {
            new->host = strdup(endpoint->host);
            if (new->host == NULL)
                status = hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
        }
    }
    if (status != HF_OK)
        hfi_topology_free(&new->topology);
    else
        *topology = &new->topology;
    return status;
}
