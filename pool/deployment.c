/* SPDX-License-Identifier: MIT */
/* deployment.c - see deployment.h. */
#include "pool/deployment.h"
#include "base/descriptor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool copy_settings(struct hfi_deployment *deployment, const struct hfi_pool_settings *from)
{
    struct hfi_pool_settings *to = &deployment->settings;
    *to = *from;
    to->client_name = NULL;
    to->tls = (struct hfi_tls_settings){0};
    to->sentinel_user = to->sentinel_password = NULL;
    if (to->lanes < 1)
        to->lanes = 1;
    if (to->subscribers < 1)
        to->subscribers = 1;
    if (!hfi_endpoint_copy(&to->endpoint, &from->endpoint))
        return false;
    to->client_name = strdup(from->client_name != NULL ? from->client_name : "");
    return to->client_name != NULL;
}

bool hfi_deployment_init(struct hfi_deployment *deployment, const struct hfi_pool_settings *settings)
{
    atomic_init(&deployment->hurry_ns, HFI_NEVER);
    deployment->hurry_fd = hfi_descriptor_event();
    return copy_settings(deployment, settings) && deployment->hurry_fd >= 0;
}

void hfi_deployment_done(struct hfi_deployment *deployment)
{
    if (deployment->hurry_fd >= 0)
        (void)close(deployment->hurry_fd);
    free((char *)(uintptr_t)deployment->settings.client_name);
    hfi_endpoint_done(&deployment->settings.endpoint);
}

bool hfi_deployment_follower_looks(const struct hfi_deployment *deployment, int followers)
{
    return hfi_costs_follower_looks(&deployment->costs, followers) || hfi_pace_looks(&deployment->pace);
}
