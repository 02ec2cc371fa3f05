/* SPDX-License-Identifier: MIT */
/* product_page.c - two servers of a shop keep its pages in their own memory. The price of product 42 changes: one server forgets
 * every page that shows it, by a tag. The other one is told of it, and shows no old price for longer than LAG_MS. */
#include <holdfast/holdfast.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LAG_MS = 500, PAGES = 3, SERVERS = 2 };

static const struct page {
    const char *key;
    int         products[2]; /* that it shows */
} pages[PAGES] = {{"page:/product/42", {42}}, {"page:/shoes", {42, 43}}, {"page:/product/43", {43}}};

static atomic_int price = 10; /* of product 42, in the shop's database */
static atomic_int renders;

static hf_status render(hf_loading *loading, void *arg)
{
    const struct page *page = arg;
    char html[100], tag[32];
    size_t size = 0;
    (void)atomic_fetch_add(&renders, 1);
    for (int i = 0; i < 2 && page->products[i] != 0; i++) {
        int product = page->products[i];
        (void)snprintf(tag, sizeof tag, "product:%d", product);
        (void)hf_loading_tag(loading, tag); /* if that fails, visitors get the page, but it is not stored */
        size += (size_t)snprintf(html + size, sizeof html - size, "<p>%d costs %d</p>", product,
                                 product == 42 ? atomic_load(&price) : 99);
    }
    return hf_loading_set(loading, html, size);
}

/* What the server shows: 1 the price as it is now, 0 an older one, -1 no page. */
static int visit(hf_client *server, const struct page *page, hf_source *source)
{
    hf_value *value;
    hf_error error;
    char now[40];
    if (hf_fetch(server, page->key, HF_FETCH(.load = render, .arg = (void *)page, .near_ms = 60000), &value, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return -1;
    }
    (void)snprintf(now, sizeof now, "42 costs %d<", atomic_load(&price));
    int is_right = page->products[0] != 42 || strstr(value->data, now) != NULL;
    *source = value->source;
    hf_value_free(value);
    return is_right;
}

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Each page, three times at each server: rendered, read to be kept, from memory. */
static int open_shop(hf_client **servers)
{
    hf_source source = HF_CACHED;
    int right = 0, near = 0;
    for (int i = 0; i < SERVERS * PAGES * 3; i++) {
        right += visit(servers[i / 3 % SERVERS], &pages[i / 3 / SERVERS], &source) == 1;
        near += source == HF_NEAR;
    }
    (void)printf("%d visits, %d of them from memory; %d pages rendered\n", right, near, atomic_load(&renders));
    return right == SERVERS * PAGES * 3 && atomic_load(&renders) == PAGES;
}

static int change_price(hf_client **servers, hf_error *error)
{
    size_t forgotten;
    hf_source source = HF_CACHED;
    atomic_store(&price, 12); /* first the database, */
    hf_status status = hf_fetch_forget_tag(servers[0], "product:42", &forgotten, error); /* then the pages */
    if (status != HF_OK) /* UNKNOWN, UNAVAILABLE: some may be left; a shop would call again */
        return 0;
    double done = now_ms(), last_old = done;
    (void)printf("the price changes: %zu pages forgotten\n", forgotten);
    int good = forgotten == 2 && visit(servers[0], &pages[0], &source) == 1; /* where it was forgotten the old price is gone at once */
    for (int i = 0; i < PAGES; i++) /* the other server is told of each page by itself */
        for (double asked = now_ms(); last_old - done <= LAG_MS && visit(servers[1], &pages[i], &source) == 0; asked = now_ms())
            last_old = asked;
    (void)printf("the other server gave the old price out for %.1f ms more (at most %d)\n", last_old - done, LAG_MS);
    good = good && last_old - done <= LAG_MS;
    for (int i = 0; i < SERVERS * PAGES; i++)
        good = visit(servers[i % SERVERS], &pages[i / SERVERS], &source) == 1 && good;
    (void)printf("%d pages rendered in all: the page of 43 has stayed\n", atomic_load(&renders));
    return good && atomic_load(&renders) == PAGES + 2;
}

int main(void)
{
    hf_error error = {.status = HF_OK};
    hf_client *servers[SERVERS] = {NULL}; /* two processes, on two machines */
    int opened = 0, good = 0;
    while (opened < SERVERS && hf_client_open(NULL, HF_CLIENT(.near_lag_ms = LAG_MS), &servers[opened], &error) == HF_OK)
        opened++;
    for (int i = 0; error.status == HF_OK && i < PAGES; i++)
        (void)hf_fetch_forget(servers[0], pages[i].key, &error); /* of an earlier run */
    if (error.status == HF_OK)
        good = open_shop(servers) && change_price(servers, &error);
    if (error.status != HF_OK)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    for (int i = 0; i < opened; i++)
        (void)hf_client_close(servers[i], NULL);
    return !good;
}
