/* SPDX-License-Identifier: MIT */
/* fencing.c - a writer that is paused for longer than its lease comes back and writes; the store refuses it,
 * for it has seen a higher fence. No lock can do that by itself: a pause may fall between check and write. */
#include <holdfast/holdfast.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The store: any database with a column for the fence. Here it is memory that two processes share. */
struct store {
    pthread_mutex_t mutex;
    int64_t fence; /* the highest it has seen */
    char    text[64];
};

static bool store_write(struct store *store, int64_t fence, const char *text)
{
    (void)pthread_mutex_lock(&store->mutex);
    bool accepted = fence >= store->fence;
    if (accepted) {
        store->fence = fence;
        (void)snprintf(store->text, sizeof store->text, "%s", text);
    }
    (void)pthread_mutex_unlock(&store->mutex);
    (void)printf("write \"%s\" with fence %" PRId64 ": %s\n", text, fence, accepted ? "accepted" : "REFUSED");
    (void)fflush(stdout);
    return accepted;
}

static bool take(hf_client **client, hf_lease **lease)
{
    hf_error error;
    *lease = NULL;
    if (hf_client_open(NULL, NULL, client, &error) == HF_OK &&
        hf_lock_acquire(*client, "ledger", HF_LOCK(.lease_ms = 500, .wait_ms = 10000), lease,
                        &error) == HF_OK)
        return true;
    (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    (void)hf_client_close(*client, NULL);
    return false;
}

/* Holds the lock, falls asleep (a long GC pause, a swapped-out machine), and writes when it wakes. */
static int paused_writer(struct store *store)
{
    hf_client *client;
    hf_lease *lease;
    if (!take(&client, &lease))
        return 1;
    bool first = store_write(store, hf_lease_fence(lease), "paused writer, before");
    (void)raise(SIGSTOP);
    bool second = store_write(store, hf_lease_fence(lease), "paused writer, after");
    hf_status released = hf_lease_release(lease, NULL);
    (void)printf("paused writer: its release says %s\n", hf_status_name(released));
    (void)fflush(stdout);
    (void)hf_client_close(client, NULL);
    return first && !second && released == HF_LOST ? 0 : 1;
}

int main(void)
{
    struct store *store =
        mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED)
        return 1;
    pthread_mutexattr_t shared;
    (void)pthread_mutexattr_init(&shared);
    (void)pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&store->mutex, &shared);

    pid_t other = fork(); /* before there is a client: each process has its own */
    if (other == 0)
        _exit(paused_writer(store));
    int status = 0;
    (void)waitpid(other, &status, WUNTRACED);
    if (!WIFSTOPPED(status))
        return 1; /* it could not take the lock, and has said why */

    hf_client *client;
    hf_lease *lease;
    bool good = take(&client, &lease); /* the paused writer's lease runs out first */
    if (good) {
        good = store_write(store, hf_lease_fence(lease), "the next holder");
        (void)kill(other, SIGCONT);
        (void)waitpid(other, &status, 0);
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        good = hf_lease_release(lease, NULL) == HF_OK && good;
        (void)hf_client_close(client, NULL);
    } else {
        (void)kill(other, SIGKILL);
        (void)waitpid(other, NULL, 0);
    }
    (void)printf("the store has \"%s\"\n", store->text);
    return good && strcmp(store->text, "the next holder") == 0 ? 0 : 1;
}
