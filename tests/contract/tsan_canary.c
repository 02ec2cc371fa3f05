/* SPDX-License-Identifier: MIT */
/* tsan_canary.c - puts a letter into an inbox and goes on writing to it: a race in the middle of annotated and
 * suppressed code, which ThreadSanitizer has to report nevertheless. */
#include "base/inbox.h"

#include <pthread.h>
#include <stdio.h>

struct letter {
    struct hfi_inbox_node node;
    int text;
};

static struct hfi_inbox inbox;
static struct letter letter;

static void *send_too_early(void *arg)
{
    hfi_inbox_put(&inbox, &letter.node);
    letter.text = 42; /* the race */
    return arg;
}

int main(void)
{
    pthread_t sender;
    hfi_inbox_init(&inbox);
    if (pthread_create(&sender, NULL, send_too_early, NULL) != 0)
        return 1;
    while (hfi_inbox_take(&inbox) == NULL)
        ;
    (void)printf("%d\n", letter.text);
    (void)pthread_join(sender, NULL);
    return 0;
}
