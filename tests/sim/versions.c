/* SPDX-License-Identifier: MIT */
/* versions.c - see versions.h. */
#include "tests/sim/versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sim_versions_begin(struct sim_versions *versions, void (*violated)(const char *what))
{
    versions->violated = violated;
    versions->count = 0;
    memset(versions->now, 0, sizeof versions->now);
}

static const struct sim_version *find(const struct sim_versions *versions, int page, int64_t number)
{
    for (int i = versions->count; i-- > 0;)
        if (versions->all[i].page == page && versions->all[i].number == number)
            return &versions->all[i];
    return NULL;
}

static struct sim_version *place_of(struct sim_versions *versions, int page, int64_t number)
{
    const struct sim_version *known = find(versions, page, number);
    if (known != NULL)
        return &versions->all[known - versions->all];
    if (versions->count == SIM_VERSIONS_MOST) {
        versions->violated("[books] more versions than there is room for");
        versions->count = 0;
    }
    struct sim_version *one = &versions->all[versions->count++];
    *one = (struct sim_version){.page = page, .number = number};
    return one;
}

void sim_versions_is(struct sim_versions *versions, int page, int64_t number, int64_t ends_at, int64_t now)
{
    int64_t before = versions->now[page];
    if (before != SIM_NO_VALUE && before != number)
        place_of(versions, page, before)->until = versions->ends_at[page] < now ? versions->ends_at[page] : now;
    if (number != SIM_NO_VALUE && before != number) {
        struct sim_version *one = place_of(versions, page, number);
        one->since = now;
        one->until = INT64_MAX;
    }
    versions->now[page] = number;
    versions->ends_at[page] = ends_at;
}

int64_t sim_versions_since(const struct sim_versions *versions, int page, int64_t number)
{
    const struct sim_version *one = find(versions, page, number);
    return one != NULL ? one->since : -1;
}

void sim_versions_given(struct sim_versions *versions, int page, int64_t number, const char *source, int64_t least, int64_t own)
{
    const struct sim_version *one = find(versions, page, number);
    char text[200];
    if (one == NULL)
        (void)snprintf(text, sizeof text, "[no-old-value] page %d: value %" PRId64 " (%s) was never there", page, number, source);
    else if (one->until < least)
        (void)snprintf(text, sizeof text, "[no-old-value] page %d: value %" PRId64 " (%s) was replaced %.3f ms too long ago", page,
                       number, source, (double)(least - one->until) / 1e6);
    else if (one->until <= own)
        (void)snprintf(text, sizeof text, "[own-writes-seen] page %d: value %" PRId64 " (%s) was replaced by this process", page,
                       number, source);
    else
        return;
    versions->violated(text);
}
