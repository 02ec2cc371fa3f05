/* SPDX-License-Identifier: MIT */
/* canceled.c - see canceled.h. */
#include "tests/support/canceled.h"

#include <pthread.h>
#include <stddef.h>

struct calling {
    void (*call)(void *arg);
    void *arg;
};

static void *call_it(void *arg)
{
    struct calling *calling = arg;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)pthread_cancel(pthread_self());
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    calling->call(calling->arg);
    pthread_testcancel();
    return NULL;
}

bool hft_call_canceled(void (*call)(void *arg), void *arg)
{
    struct calling calling = {call, arg};
    pthread_t thread;
    void *ended;
    return pthread_create(&thread, NULL, call_it, &calling) == 0 && pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED;
}
