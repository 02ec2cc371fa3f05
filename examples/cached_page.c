/* SPDX-License-Identifier: MIT */
/* cached_page.c - many threads want the same page at once; it is rendered once. */
#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 16 };
static const char page[] = "<h1>Hello</h1>";
static const char *const sources[] = {"", "CACHED", "LOADED", "SHARED", "STALE", "LOCAL"};

static hf_client *client;
static atomic_int renders;

/* The slow work. All others that want the page wait for it, on this machine and on others. */
static hf_status render(hf_loading *loading, void *arg)
{
    (void)arg;
    (void)atomic_fetch_add(&renders, 1);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    return hf_loading_set(loading, page, sizeof page - 1);
}

struct visitor {
    pthread_t thread;
    hf_source source; /* 0: no page */
    bool      is_right;
};

static void *visit(void *arg)
{
    struct visitor *visitor = arg;
    hf_value *value;
    hf_error error;
    if (hf_fetch(client, "page:/hello", HF_FETCH(.load = render, .ttl_ms = 10000), &value, &error) == HF_OK) {
        visitor->source = value->source;
        visitor->is_right = value->size == sizeof page - 1 && memcmp(value->data, page, value->size) == 0;
        hf_value_free(value);
    } else {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    }
    return NULL;
}

int main(void)
{
    hf_error error;
    struct visitor visitors[THREADS + 1] = {0};
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK ||
        hf_fetch_forget(client, "page:/hello", &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        (void)hf_client_close(client, NULL);
        return 1;
    }
    int started = 0;
    while (started < THREADS &&
           pthread_create(&visitors[started].thread, NULL, visit, &visitors[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        (void)pthread_join(visitors[i].thread, NULL);
    (void)visit(&visitors[THREADS]); /* and one who comes later */

    int right = 0, from[HF_LOCAL + 1] = {0};
    for (int i = 0; i <= THREADS; i++) {
        right += visitors[i].is_right;
        from[visitors[i].source]++;
    }
    for (int source = HF_CACHED; source <= HF_LOCAL; source++)
        if (from[source] > 0)
            (void)printf("%-8s%d\n", sources[source], from[source]);
    (void)printf("%d visitors got the page, it was rendered %d time(s)\n", right, atomic_load(&renders));
    (void)hf_client_close(client, NULL);
    return right == THREADS + 1 && atomic_load(&renders) == 1 && from[HF_LOADED] == 1 ? 0 : 1;
}
