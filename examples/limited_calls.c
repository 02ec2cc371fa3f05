/* SPDX-License-Identifier: MIT */
/* limited_calls.c - a service allows three calls at a time; sixteen threads call it, and now and then a bulk call needs two of the
 * three. However they come, it never sees more than three, and the bulk calls get their turn. */
#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIMIT = 3, THREADS = 16, CALLS = 30 };

static _Atomic(int) inside, most, bulk_calls; /* what the service sees */

struct caller {
    pthread_t thread;
    hf_client *client;
    int number;
    hf_error error; /* status HF_OK: all went well */
};

static void call_service(int weight)
{
    int now = atomic_fetch_add(&inside, weight) + weight, before = atomic_load(&most);
    while (before < now && !atomic_compare_exchange_weak(&most, &before, now))
        continue;
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    (void)atomic_fetch_sub(&inside, weight);
}

static void *calls(void *arg)
{
    struct caller *me = arg;
    hf_status status = HF_OK;
    for (int i = 0; i < CALLS && status == HF_OK; i++) {
        int weight = (me->number + i) % 10 == 0 ? 2 : 1;
        hf_lease *lease;
        status = hf_semaphore_acquire(me->client, "service", LIMIT, weight, HF_LOCK(.wait_ms = 30000), &lease, &me->error);
        if (status != HF_OK)
            break;
        call_service(hf_lease_permits(lease));
        atomic_fetch_add(&bulk_calls, weight == 2);
        status = hf_lease_release(lease, &me->error);
    }
    me->error.status = status;
    return NULL;
}

int main(void)
{
    struct caller callers[THREADS];
    hf_client *client;
    hf_error error;
    int failed = 0;
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK) {
        fprintf(stderr, "%s (%s)\n", error.message, error.hint);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.client = client, .number = i};
        if (pthread_create(&callers[i].thread, NULL, calls, &callers[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        failed += callers[i].error.status != HF_OK;
        if (callers[i].error.status != HF_OK)
            fprintf(stderr, "%s (%s)\n", callers[i].error.message, callers[i].error.hint);
    }
    (void)hf_client_close(client, NULL);
    printf("%d calls, %d of them heavy; at most %d at a time\n", THREADS * CALLS, atomic_load(&bulk_calls), atomic_load(&most));
    return failed == 0 && atomic_load(&most) <= LIMIT && atomic_load(&bulk_calls) == THREADS * CALLS / 10 ? EXIT_SUCCESS
                                                                                                           : EXIT_FAILURE;
}
