/* SPDX-License-Identifier: MIT */
/* first_lock.c - acquires a lock, works while the lease is valid, releases it. The server is $HOLDFAST_URL. */
#include <holdfast/holdfast.h>
#include <inttypes.h>
#include <stdio.h>

static int failed(const char *what, const hf_error *error)
{
    (void)fprintf(stderr, "%s: %s\n%s\n", what, error->message, error->hint);
    return 1;
}

int main(void)
{
    hf_client *client;
    hf_lease *lease, *second;
    hf_error error;
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK)
        return failed("open", &error);

    if (hf_lock_acquire(client, "invoice:42", HF_LOCK(.wait_ms = 2000), &lease, &error) != HF_OK) {
        (void)hf_client_close(client, NULL);
        return failed("acquire", &error);
    }
    (void)printf("we hold %s, fence %" PRId64 "\n", hf_lease_name(lease), hf_lease_fence(lease));

    /* Another client that tries meanwhile gets HF_BUSY at once, in this process or on any other machine. */
    hf_client *other;
    if (hf_client_open(NULL, NULL, &other, &error) != HF_OK)
        return failed("open", &error);
    hf_status status = hf_lock_acquire(other, "invoice:42", HF_LOCK(.wait_ms = 0), &second, &error);
    (void)printf("another client: %s, %s\n", hf_status_name(status), hf_status_text(status));

    int steps = 0;
    while (steps < 3 && hf_lease_is_valid(lease)) /* ask before every step that must not be done twice */
        (void)printf("step %d, %s\n", ++steps, "while the lease is valid");

    hf_status released = hf_lease_release(lease, &error);
    if (released != HF_OK)
        (void)failed("release", &error); /* HF_LOST: somebody may have been in, so undo the steps */
    else
        (void)printf("released; nobody else was in\n");
    (void)hf_client_close(other, NULL);
    (void)hf_client_close(client, NULL);
    return status == HF_BUSY && steps == 3 && released == HF_OK ? 0 : 1;
}
