/* SPDX-License-Identifier: MIT */
/* leader.c - three candidates, one leader at a time, and an observer that knows where it is. The server is $HOLDFAST_URL.
 * Each candidate would be a process of its own; here each is a thread with a client of its own. */
#include <holdfast/holdfast.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { CANDIDATES = 3 };

struct candidate {
    pthread_t   thread;
    char        address[32]; /* where the others find it */
    hf_status   status;
    int64_t     fence;
};

static _Atomic(int) leading, most; /* how many lead now, and led at once */
static _Atomic(bool) seen[CANDIDATES];
static struct candidate candidates[CANDIDATES];

/* Stands, leads for a while, resigns. A real one would lead on as long as hf_lease_is_valid says so. */
static void *stand(void *arg)
{
    struct candidate *me = arg;
    hf_client *client;
    hf_lease *lease;
    me->status = hf_client_open(NULL, NULL, &client, NULL);
    if (me->status != HF_OK)
        return NULL;
    me->status = hf_lock_acquire(client, "leader", HF_LOCK(.wait_ms = HF_FOREVER, .owner_label = me->address), &lease, NULL);
    if (me->status == HF_OK) {
        int now = atomic_fetch_add(&leading, 1) + 1;
        if (now > atomic_load(&most))
            atomic_store(&most, now);
        me->fence = hf_lease_fence(lease);
        while (hf_lease_is_valid(lease) && !atomic_load(&seen[me - candidates]))
            (void)poll(NULL, 0, 10); /* its work */
        atomic_fetch_sub(&leading, 1);
        me->status = hf_lease_release(lease, NULL);
    }
    (void)hf_client_close(client, NULL);
    return NULL;
}

static void changed(hf_observer *observer, const hf_leader *leader, void *arg)
{
    (void)observer;
    (void)arg;
    if (leader == NULL) {
        (void)printf("nobody leads\n");
        return;
    }
    (void)printf("%s leads, fence %" PRId64 "\n", leader->label[0] != 0 ? leader->label : "somebody", leader->fence);
    for (int i = 0; i < CANDIDATES; i++)
        if (strcmp(leader->label, candidates[i].address) == 0)
            atomic_store(&seen[i], true);
}

int main(void)
{
    hf_client *client;
    hf_observer *observer;
    hf_error error;
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK ||
        hf_election_observe(client, "leader", changed, NULL, &observer, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    for (int i = 0; i < CANDIDATES; i++) {
        (void)snprintf(candidates[i].address, sizeof candidates[i].address, "10.0.0.%d:8080", i + 1);
        if (pthread_create(&candidates[i].thread, NULL, stand, &candidates[i]) != 0)
            return 1;
    }
    int led = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        (void)pthread_join(candidates[i].thread, NULL);
        led += candidates[i].status == HF_OK && candidates[i].fence > 0;
    }
    hf_observer_close(observer);
    (void)hf_client_close(client, NULL);
    (void)printf("%d have led, %d at a time, and each was seen\n", led, atomic_load(&most));
    return led == CANDIDATES && atomic_load(&most) == 1 ? 0 : 1;
}
