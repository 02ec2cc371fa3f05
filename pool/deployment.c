/* SPDX-License-Identifier: MIT */
/* deployment.c - see deployment.h. */
#include "pool/deployment.h"
#include "base/descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_server(const struct hfi_endpoint *endpoint, char *name, size_t size)
{
    if (endpoint->scheme != HFI_TCP)
        (void)snprintf(name, size, "%s", endpoint->path != NULL ? endpoint->path : "");
    else if (strchr(endpoint->host, ':') != NULL)
        (void)snprintf(name, size, "[%s]:%d", endpoint->host, endpoint->port);
    else
        (void)snprintf(name, size, "%s:%d", endpoint->host, endpoint->port);
}

static bool copy_settings(struct hfi_deployment *deployment, const struct hfi_pool_settings *from)
{
    struct hfi_pool_settings *to = &deployment->settings;
    *to = *from;
    to->client_name = NULL;
    to->tls = (struct hfi_tls_settings){0};
    if (to->lanes < 1)
        to->lanes = 1;
    if (to->subscribers < 1)
        to->subscribers = 1;
    if (!hfi_endpoint_copy(&to->endpoint, &from->endpoint))
        return false;
    name_server(&to->endpoint, deployment->server_name, sizeof deployment->server_name);
    to->client_name = strdup(from->client_name != NULL ? from->client_name : "");
    return to->client_name != NULL;
}

bool hfi_deployment_init(struct hfi_deployment *deployment, const struct hfi_pool_settings *settings)
{
    deployment->server.uptime_s = -1;
    atomic_init(&deployment->hurry_ns, HFI_NEVER);
    hfi_mutex_init(&deployment->mutex, HFI_RANK_LEAF);
    (void)pthread_cond_init(&deployment->judged, NULL);
    deployment->hurry_fd = hfi_descriptor_event();
    return copy_settings(deployment, settings) && deployment->hurry_fd >= 0;
}

void hfi_deployment_done(struct hfi_deployment *deployment)
{
    if (deployment->hurry_fd >= 0)
        (void)close(deployment->hurry_fd);
    free((char *)(uintptr_t)deployment->settings.client_name);
    hfi_endpoint_done(&deployment->settings.endpoint);
    (void)pthread_cond_destroy(&deployment->judged);
    hfi_mutex_destroy(&deployment->mutex);
}

/* ---- what is known of the server ---- */

void hfi_deployment_note_failure(struct hfi_deployment *deployment, const hf_error *error)
{
    hfi_mutex_lock(&deployment->mutex);
    deployment->why = *error;
    hfi_mutex_unlock(&deployment->mutex);
}

void hfi_deployment_note_server(struct hfi_deployment *deployment, const struct hfi_server *server)
{
    hfi_mutex_lock(&deployment->mutex);
    const char *before = deployment->server.run_id;
    if (server->run_id[0] != 0 && before[0] != 0 && strcmp(server->run_id, before) != 0)
        deployment->primaries++;
    deployment->server = *server;
    hfi_mutex_unlock(&deployment->mutex);
}

unsigned hfi_deployment_primaries(struct hfi_deployment *deployment)
{
    hfi_mutex_lock(&deployment->mutex);
    unsigned primaries = deployment->primaries;
    hfi_mutex_unlock(&deployment->mutex);
    return primaries;
}

bool hfi_deployment_has_moved(struct hfi_deployment *deployment, unsigned primaries, const char *run_id)
{
    hfi_mutex_lock(&deployment->mutex);
    bool moved = deployment->primaries != primaries && strcmp(deployment->server.run_id, run_id) != 0;
    hfi_mutex_unlock(&deployment->mutex);
    return moved;
}

hf_status hfi_deployment_why_down(struct hfi_deployment *deployment, hf_error *error)
{
    hfi_mutex_lock(&deployment->mutex);
    hf_error why = deployment->why;
    hfi_mutex_unlock(&deployment->mutex);
    if (why.status == HF_OK) {
        (void)hfi_fail(&why, HF_UNAVAILABLE, "try again in a moment", "there is no connection to %s yet",
                       deployment->server_name);
        hfi_fail_server(&why, deployment->server_name);
        hfi_fail_retry(&why, -1);
    }
    if (error != NULL)
        *error = why;
    return why.status;
}

void hfi_deployment_server(struct hfi_deployment *deployment, struct hfi_server *server)
{
    hfi_mutex_lock(&deployment->mutex);
    *server = deployment->server;
    hfi_mutex_unlock(&deployment->mutex);
}

/* ---- the first dial ---- */

void hfi_deployment_note_verdict(struct hfi_deployment *deployment)
{
    hfi_mutex_lock(&deployment->mutex);
    deployment->verdicts++;
    (void)pthread_cond_broadcast(&deployment->judged);
    hfi_mutex_unlock(&deployment->mutex);
}

void hfi_deployment_wait_for_verdict(struct hfi_deployment *deployment)
{
    hfi_mutex_lock(&deployment->mutex);
    while (deployment->verdicts == 0)
        hfi_mutex_wait(&deployment->mutex, &deployment->judged);
    hfi_mutex_unlock(&deployment->mutex);
}
