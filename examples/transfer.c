/* SPDX-License-Identifier: MIT */
/* transfer.c - threads move money between accounts, each under the locks of both. Two locks taken one by one, here in one
 * order, there in the other, would wait for each other for ever; hf_multilock_acquire takes both or none. */
#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 4, TELLERS = 6, TRANSFERS = 50 };

static const char *const names[ACCOUNTS] = {"account:ann", "account:bob", "account:cid", "account:dan"};
static long balance[ACCOUNTS] = {100, 100, 100, 100}; /* each guarded by the lock of its name */

struct teller {
    pthread_t thread;
    hf_client *client;
    unsigned seed;
    hf_error error; /* status HF_OK: all went well */
};

static hf_status transfer(hf_client *client, int from, int to, long amount, hf_error *error)
{
    const char *const both[] = {names[from], names[to]};
    hf_lease *lease;
    hf_status status = hf_multilock_acquire(client, both, 2, HF_LOCK(.wait_ms = 20000), &lease, error);
    if (status != HF_OK)
        return status;
    if (hf_lease_is_valid(lease) && balance[from] >= amount) {
        balance[from] -= amount;
        balance[to] += amount;
    }
    return hf_lease_release(lease, error);
}

static void *work(void *arg)
{
    struct teller *me = arg;
    hf_status status = HF_OK;
    for (int i = 0; i < TRANSFERS && status == HF_OK; i++) {
        int from = rand_r(&me->seed) % ACCOUNTS, to = (from + 1 + rand_r(&me->seed) % (ACCOUNTS - 1)) % ACCOUNTS;
        status = transfer(me->client, from, to, rand_r(&me->seed) % 50, &me->error);
    }
    me->error.status = status;
    return NULL;
}

int main(void)
{
    hf_error error;
    hf_client *client;
    struct teller tellers[TELLERS];
    long total = 0;
    int failed = 0, begun = 0;
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    for (; begun < TELLERS; begun++) {
        tellers[begun] = (struct teller){.client = client, .seed = (unsigned)begun};
        if (pthread_create(&tellers[begun].thread, NULL, work, &tellers[begun]) != 0)
            break;
    }
    for (int i = 0; i < begun; i++) {
        (void)pthread_join(tellers[i].thread, NULL);
        if (tellers[i].error.status != HF_OK) {
            (void)fprintf(stderr, "%s\n%s\n", tellers[i].error.message, tellers[i].error.hint);
            failed = 1;
        }
    }
    (void)hf_client_close(client, NULL);
    for (int i = 0; i < ACCOUNTS; i++) {
        (void)printf("%s %ld\n", names[i], balance[i]);
        total += balance[i];
    }
    (void)printf("together %ld, as before\n", total);
    return failed || begun < TELLERS || total != 100L * ACCOUNTS;
}
