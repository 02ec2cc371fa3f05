/* SPDX-License-Identifier: MIT */
/* fragments.c - a page made of 20 fragments, fetched together: one round trip, and one query of the database for all that are
 * missing. A fragment that cannot be loaded is left out, and the others stand. */
#include <holdfast/holdfast.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAGMENTS = 20, NONE = -1 };

struct database {
    int broken; /* the row that cannot be read now */
    int queries, rows;
};

/* SELECT id, html FROM fragments WHERE id IN (...): each loading gets its own answer, or its own failure. */
static hf_status query(hf_loading *const *loadings, size_t count, void *arg)
{
    struct database *database = arg;
    hf_status status = HF_OK; /* of those that have got neither */
    database->queries++;
    database->rows += (int)count;
    for (size_t i = 0; i < count; i++) {
        char html[64];
        int id = atoi(strrchr(hf_loading_key(loadings[i]), '/') + 1);
        int size = snprintf(html, sizeof html, "<div>fragment %d</div>\n", id);
        if (id == database->broken)
            (void)hf_loading_fail(loadings[i], EIO, "its row cannot be read");
        else if (hf_loading_set(loadings[i], html, (size_t)size) != HF_OK)
            status = HF_NOMEM;
    }
    return status;
}

static void name_keys(char (*keys)[32])
{
    for (int i = 0; i < FRAGMENTS; i++)
        (void)snprintf(keys[i], sizeof keys[i], "page:/front/%d", i);
}

/* Returns how many fragments the page has, and what it has asked the database is in *database. */
static int show_page(hf_client *client, struct database *database)
{
    char keys[FRAGMENTS][32];
    hf_fetch_item items[FRAGMENTS] = {{.key = NULL}};
    hf_error error;
    int shown = 0;
    name_keys(keys);
    for (int i = 0; i < FRAGMENTS; i++)
        items[i].key = keys[i];
    database->queries = database->rows = 0;
    if (hf_fetch_many(client, items, FRAGMENTS, HF_FETCH(.load_many = query, .arg = database), &error) != HF_OK)
        (void)printf("%s: %s\n", hf_status_name(error.status), error.message); /* of the first that failed */
    for (int i = 0; i < FRAGMENTS; i++) {
        shown += items[i].status == HF_OK; /* and its html would go to the visitor */
        hf_value_free(items[i].value);     /* NULL unless HF_OK */
    }
    (void)printf("%d fragments; queries: %d, rows: %d\n", shown, database->queries, database->rows);
    return shown;
}

int main(void)
{
    char keys[FRAGMENTS][32];
    struct database database = {.broken = 7};
    hf_client *client;
    hf_error error;
    hf_status status = hf_client_open(NULL, NULL, &client, &error);
    if (status != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    name_keys(keys);
    for (int i = 0; i < FRAGMENTS && status == HF_OK; i++)
        status = hf_fetch_forget(client, keys[i], &error); /* of an earlier run */
    int good = status == HF_OK;
    good = good && show_page(client, &database) == FRAGMENTS - 1 && database.queries == 1 && database.rows == FRAGMENTS;
    database.broken = NONE;
    good = good && show_page(client, &database) == FRAGMENTS && database.queries == 1 && database.rows == 1;
    if (good) {
        (void)printf("fragment 3 is edited\n");
        status = hf_fetch_forget(client, keys[3], &error);
    }
    good = good && status == HF_OK && show_page(client, &database) == FRAGMENTS && database.queries == 1 && database.rows == 1;
    good = good && show_page(client, &database) == FRAGMENTS && database.queries == 0;
    if (status != HF_OK)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    (void)hf_client_close(client, NULL);
    return !good;
}
