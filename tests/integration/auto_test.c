/* SPDX-License-Identifier: MIT */
/* auto_test.c - auto.h in C11: what it declares ends on every way out of its scope. */
#include <holdfast/holdfast.h>
#include <stdio.h>

static int frees; /* of values, by auto.h */

static void count_and_free(void *value)
{
    frees += value != NULL;
    hf_value_free(value);
}
#define hf_value_free count_and_free
#include <holdfast/auto.h>
#undef hf_value_free

static hf_client *one, *two;

static hf_status is_taken(const char *name)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(two, name, HF_LOCK(.wait_ms = 0), &lease, NULL);
    (void)hf_lease_release(lease, NULL);
    return status;
}

static bool work(const char *name, bool early)
{
    HF_AUTO_LEASE(lease);
    if (hf_lock_acquire(one, name, HF_LOCK(.wait_ms = 2000), &lease, NULL) != HF_OK)
        return false;
    if (early)
        return hf_lease_is_valid(lease) && is_taken(name) == HF_BUSY;
    return is_taken(name) == HF_BUSY;
}

static bool nothing_acquired(void)
{
    HF_AUTO_LEASE(lease);
    return lease == NULL;
}

static bool released_by_hand(const char *name)
{
    HF_AUTO_LEASE(lease);
    if (hf_lock_acquire(one, name, HF_LOCK(.wait_ms = 2000), &lease, NULL) != HF_OK)
        return false;
    hf_status status = hf_lease_release(lease, NULL);
    lease = NULL;
    return status == HF_OK;
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "page", 4);
}

static bool read_page(bool keeps, hf_value **kept)
{
    HF_AUTO_VALUE(page);
    if (page != NULL || hf_fetch(one, "auto:page", HF_FETCH(.load = load), &page, NULL) != HF_OK)
        return false;
    if (keeps) {
        *kept = page;
        page = NULL;
    }
    return true;
}

static bool a_value_is_freed_unless_it_is_kept(void)
{
    hf_value *kept = NULL;
    bool good = read_page(false, &kept) && frees == 1 && read_page(true, &kept) && frees == 1;
    hf_value_free(kept);
    return good;
}

static bool read_parts(hf_value **kept)
{
    hf_fetch_item parts[] = {{.key = "auto:page"}, {.key = "auto:part"}, {.key = ""}};
    HF_AUTO_ITEMS(parts, 3);
    if (hf_fetch_many(one, parts, 2, HF_FETCH(.load = load), NULL) != HF_OK)
        return false;
    *kept = parts[0].value;
    parts[0].value = NULL;
    return true;
}

static bool the_values_of_items_are_freed_unless_they_are_kept(void)
{
    hf_value *kept = NULL;
    int before = frees;
    bool good = read_parts(&kept) && frees == before + 1;
    hf_value_free(kept);
    return good;
}

int main(void)
{
    if (hf_client_open(NULL, NULL, &one, NULL) != HF_OK || hf_client_open(NULL, NULL, &two, NULL) != HF_OK)
        return 1;
    bool good = work("auto", false) && is_taken("auto") == HF_OK && work("auto", true) &&
                is_taken("auto") == HF_OK && nothing_acquired() && released_by_hand("auto") &&
                is_taken("auto") == HF_OK && a_value_is_freed_unless_it_is_kept() &&
                the_values_of_items_are_freed_unless_they_are_kept();
    good = hf_client_close(one, NULL) == HF_OK && hf_client_close(two, NULL) == HF_OK && good;
    (void)printf("%s\n", good ? "ok" : "FAILED");
    return good ? 0 : 1;
}
