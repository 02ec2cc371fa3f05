/* SPDX-License-Identifier: MIT */
/* price_list.c - many threads read a list together, one at times writes it anew, and goes on reading what it wrote: nobody
 * reads half of it, and nobody writes between its writing and its own reading. */
#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { READERS = 8, READS = 40, EDITIONS = 20, PRICES = 16 };

static int list[PRICES];            /* all of one edition; guarded by the lock "prices" */
static _Atomic(int) together, most; /* readers inside, and the most there were */
static _Atomic(int) torn;           /* prices of another edition than the rest */

struct clerk {
    pthread_t thread;
    hf_client *client;
    hf_error error; /* status HF_OK: all went well */
};

static void read_list(int edition)
{
    int inside = atomic_fetch_add(&together, 1) + 1, before = atomic_load(&most);
    while (before < inside && !atomic_compare_exchange_weak(&most, &before, inside))
        continue;
    for (int i = 0; i < PRICES; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL); /* reading takes a while */
        torn += list[i] != (edition != 0 ? edition : list[0]);
    }
    (void)atomic_fetch_sub(&together, 1);
}

static void *reads(void *arg)
{
    struct clerk *me = arg;
    hf_status status = HF_OK;
    for (int i = 0; i < READS && status == HF_OK; i++) {
        hf_lease *lease;
        status = hf_lock_acquire(me->client, "prices", HF_LOCK(.shared = true, .wait_ms = 20000), &lease, &me->error);
        if (status != HF_OK)
            break;
        read_list(0);
        status = hf_lease_release(lease, &me->error);
    }
    me->error.status = status;
    return NULL;
}

static hf_status write_edition(hf_client *client, int edition, hf_error *error)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(client, "prices", HF_LOCK(.wait_ms = 20000), &lease, error);
    if (status != HF_OK)
        return status;
    for (int i = 0; i < PRICES && hf_lease_is_valid(lease); i++)
        list[i] = edition;
    status = hf_lease_downgrade(lease, error); /* the others come in */
    if (status == HF_OK)
        read_list(edition);
    hf_status released = hf_lease_release(lease, status == HF_OK ? error : NULL);
    return status == HF_OK ? released : status;
}

int main(void)
{
    hf_error error;
    hf_client *client;
    struct clerk clerks[READERS];
    int begun = 0, failed = 0;
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    hf_status status = HF_OK;
    for (; begun < READERS; begun++) {
        clerks[begun] = (struct clerk){.client = client};
        if (pthread_create(&clerks[begun].thread, NULL, reads, &clerks[begun]) != 0)
            break;
    }
    for (int edition = 1; status == HF_OK && edition <= EDITIONS; edition++)
        status = write_edition(client, edition, &error);
    if (status != HF_OK)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    for (int i = 0; i < begun; i++) {
        (void)pthread_join(clerks[i].thread, NULL);
        if (clerks[i].error.status != HF_OK) {
            (void)fprintf(stderr, "%s\n%s\n", clerks[i].error.message, clerks[i].error.hint);
            failed = 1;
        }
    }
    (void)hf_client_close(client, NULL);
    (void)printf("%d editions, up to %d readers at once, %d torn\n", EDITIONS, atomic_load(&most), atomic_load(&torn));
    return status != HF_OK || failed || begun < READERS || atomic_load(&torn) > 0;
}
