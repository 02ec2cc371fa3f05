/* SPDX-License-Identifier: MIT */
/* near.c - see near.h. */
#include "tests/support/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

hf_value *hft_near_fetch(struct fixture *f, const char *key, const hf_fetch_options *options)
{
    hf_value *value;
    if (hf_fetch(f->client, key, options, &value, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return value;
}

hf_source hft_near_source(struct fixture *f, const char *key)
{
    hf_value *value = hft_near_fetch(f, key, NEAR());
    hf_source source = value->source;
    hf_value_free(value);
    return source;
}

void hft_come_near(struct fixture *f, const char *key)
{
    HFT_UNTIL_TRUE(hft_near_source(f, key) == HF_NEAR);
}

hf_stats hft_near_stats(const struct fixture *f)
{
    hf_stats now;
    hf_client_stats(f->client, &now);
    return now;
}
