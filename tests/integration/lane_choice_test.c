/* SPDX-License-Identifier: MIT */
/* lane_choice_test.c - when a name takes another lock lane, when it stays on the one it has, and by which lane a value is read. */
#include "tests/support/lock_lanes.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"
#include "core/protocol/name.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LANES 16

/* A way to ask for a lock once others wait on the lane that it had. */
static void moves(struct fixture *f, const char *name, void (*take)(struct fixture *f, const char *name))
{
    assert_int_equal(hft_lock_once(f->a, name, 0, NULL), HF_OK);
    int lane = hft_lane_of(f->a, name);
    HFT_UNTIL_TRUE(hft_lane_is_up(f->a, 0) && hft_lane_is_up(f->a, 1));
    hft_lane_waits(f->a, lane, 1);
    hft_readers_look(f->a, false, false);
    take(f, name);
    hft_lane_waits(f->a, lane, -1);
    assert_int_not_equal(hft_lane_of(f->a, name), lane);
}

static void acquire(struct fixture *f, const char *name)
{
    assert_int_equal(hft_lock_once(f->a, name, 0, NULL), HF_OK);
}

static void pending(struct fixture *f, const char *name)
{
    hf_pending *pending;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire_start(f->a, name, HF_LOCK(.wait_ms = 20000), NULL, NULL, &pending, &f->error), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(pending));
    assert_int_equal(hf_pending_take(pending, &lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
}

static void multilock(struct fixture *f, const char *name)
{
    const char *names[] = {name, "zzz"}; /* the first of them in the order of keys, too */
    hf_lease *lease;
    assert_int_equal(hf_multilock_acquire(f->a, names, 2, NULL, &lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
}

static void a_free_name_takes_the_lane_that_fewest_wait_for(void **state)
{
    moves(*state, "acquired", acquire);
    moves(*state, "pending", pending);
    moves(*state, "all or none", multilock);
}

static void a_name_that_is_held_or_waited_for_stays(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(f->b, "n", NULL, &lease, &f->error), HF_OK);
    hft_take(&taker, f->a, "n", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "n") == 1);
    hft_lane_waits(f->a, 0, 1);
    hft_readers_look(f->a, false, false);
    assert_int_equal(hft_lock_once(f->a, "n", 0, NULL), HF_BUSY);
    assert_int_equal(hft_lane_of(f->a, "n"), 0);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    hft_readers_look(f->a, false, false);
    assert_int_equal(hft_lock_once(f->a, "n", 0, NULL), HF_BUSY);
    assert_int_equal(hft_lane_of(f->a, "n"), 0);
    assert_int_equal(hf_lease_release(taker.lease, &f->error), HF_OK);
    hft_lane_waits(f->a, 0, -1);
}

/* By another lane the break may come first. */
static void a_break_comes_behind_a_release_that_was_posted(void **state)
{
    struct fixture *f = *state;
    hft_lane_waits(f->a, 0, 1);
    for (int i = 0; i < 200; i++) {
        char name[16];
        bool had_holder = true;
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "n%d", i);
        hft_readers_look(f->a, false, false); /* so it takes the other lane */
        assert_int_equal(hf_lock_acquire(f->a, name, NULL, &lease, &f->error), HF_OK);
        assert_int_equal(hf_lease_post_release(lease, &f->error), HF_OK);
        assert_int_equal(hf_lock_break(f->a, name, &had_holder, &f->error), HF_OK);
        assert_false(had_holder);
    }
    hft_lane_waits(f->a, 0, -1);
}

static void prefer_lane(struct fixture *f, int index)
{
    static int avoided = -1;
    if (avoided >= 0)
        hft_lane_waits(f->a, avoided, -1);
    avoided = index < 0 ? -1 : 1 - index;
    if (avoided >= 0)
        hft_lane_waits(f->a, avoided, 1);
    hft_readers_look(f->a, false, false);
}

/* A name that is taken alone and shared has a lock for each, but one key: what one has posted is executed before what the other asks. */
static void what_one_kind_asks_comes_behind_what_the_other_has_posted(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 300; i++) {
        char name[16];
        bool is_shared = i % 2 == 0, breaks = i % 3 == 0, had_holder = false;
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "k%d", i);
        prefer_lane(f, 0);
        assert_int_equal(hft_lock_once(f->a, name, 0, &f->error), HF_OK);
        prefer_lane(f, 1);
        assert_int_equal(hf_lock_acquire(f->a, name, HF_LOCK(.shared = is_shared), &lease, &f->error), HF_OK);
        prefer_lane(f, 0);
        assert_int_equal(hf_lease_post_release(lease, &f->error), HF_OK);
        if (breaks) {
            assert_int_equal(hf_lock_break(f->a, name, &had_holder, &f->error), HF_OK);
            assert_false(had_holder);
        } else {
            assert_int_equal(hf_lock_acquire(f->a, name, HF_LOCK(.shared = !is_shared, .wait_ms = 0), &lease, &f->error), HF_OK);
            assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
        }
    }
    prefer_lane(f, -1);
}

static int connections(struct fixture *f, const char *client_name)
{
    redisReply *list = hft_server_ask(f->server, "CLIENT LIST");
    int count = 0;
    for (const char *at = list->str; (at = strstr(at, client_name)) != NULL; at++)
        count++;
    freeReplyObject(list);
    return count;
}

/* Each call that found the first lane down dialled another one. */
static void an_outage_makes_no_more_lanes(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.lanes = LANES, .client_name = "of-few-lanes"));
    assert_int_equal(hft_lock_once(client, "n", 0, NULL), HF_OK);
    HFT_UNTIL_TRUE(connections(f, "of-few-lanes") == 4); /* the first, the last, renewals, messages */
    hft_server_kill(f->server);
    for (int i = 0; i < 4 * LANES; i++) { /* names of their own: what was cut may be owed yet */
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(hft_lock_once(client, name, 0, NULL), HF_UNAVAILABLE);
    }
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(connections(f, "of-few-lanes") == 4);
    assert_int_equal(hft_lock_once(client, "n", 20000, NULL), HF_OK);
    assert_int_equal(connections(f, "of-few-lanes"), 4);
    assert_true(hft_closes(f->server, client, &f->error));
}

static void fetch(struct fixture *f, const hf_fetch_options *options)
{
    hf_value *value;
    assert_int_equal(hf_fetch(f->a, "page", options, &value, &f->error), options->wait_ms == HF_OFF ? HF_BUSY : HF_OK);
    hf_value_free(value);
}

/* From here on there is a value, and both lanes are up. */
static void load(struct fixture *f, const hf_fetch_options *options)
{
    fetch(f, options);
    HFT_UNTIL_TRUE(hft_value_lane_is_up(f->a, 0) && hft_value_lane_is_up(f->a, 1));
}

/* The lane that two reads take while others wait on that one; -1: one each. */
static int lane_of_reads_that(struct fixture *f, bool look, int crowded, const hf_fetch_options *options)
{
    uint64_t before[2], count[2];
    hft_value_lane_waits(f->a, crowded, 1);
    for (int i = 0; i < 2; i++)
        before[i] = hft_value_lane_commands(f->a, i);
    for (int i = 0; i < 2; i++) {
        hft_readers_look(f->a, !look, look); /* at the others it says nothing of these */
        fetch(f, options);
    }
    for (int i = 0; i < 2; i++)
        count[i] = hft_value_lane_commands(f->a, i) - before[i];
    hft_value_lane_waits(f->a, crowded, -1);
    return count[0] != 0 && count[1] != 0 ? -1 : count[1] != 0;
}

static int lane_of_reads(struct fixture *f, int crowded, const hf_fetch_options *options)
{
    return lane_of_reads_that(f, false, crowded, options);
}

static void a_read_takes_the_lane_that_fewest_wait_for(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page);
    load(f, plain);
    for (int crowded = 0; crowded < 2; crowded++)
        assert_int_equal(lane_of_reads(f, crowded, plain), 1 - crowded);
}

static void where_readers_look_few_share_the_first_lane(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page);
    load(f, plain);
    assert_int_equal(lane_of_reads_that(f, true, 0, plain), 0);
    HFT_UNTIL_TRUE(hft_lane_is_up(f->a, 0) && hft_lane_is_up(f->a, 1));
    hft_lane_waits(f->a, 0, 1);
    for (int look = 0; look < 2; look++) {
        hft_readers_look(f->a, look, !look);
        acquire(f, "n");
        assert_int_equal(hft_lane_of(f->a, "n"), 1 - look);
    }
    hft_reader_sleeps(f->a);
    acquire(f, "n");
    assert_int_equal(hft_lane_of(f->a, "n"), 1);
    hft_lane_waits(f->a, 0, -1);
}

/* Else it would miss what was stored, or forgotten, by the lane of the key. */
static void a_read_takes_no_lane_that_has_met_another_server(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page);
    load(f, plain);
    hft_value_lane_met_another(f->a, 0);
    int lane = lane_of_reads(f, 0, plain);
    assert_int_not_equal(lane, -1);
    assert_int_equal(lane_of_reads(f, 1, plain), lane);
}

/* Else the server would tell nobody of it. */
static void a_tracked_read_takes_the_lane_of_its_key(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    const hf_fetch_options *near = HF_FETCH(.load = hft_load, .arg = &page, .near_ms = 60000);
    load(f, HF_FETCH(.load = hft_load, .arg = &page));
    int lane = lane_of_reads(f, 0, near);
    assert_int_not_equal(lane, -1);
    assert_int_equal(hf_fetch_forget(f->a, "page", &f->error), HF_OK);
    assert_int_equal(lane_of_reads(f, 1, near), lane);
}

/* The answer that the load's lease, or its fill, was given may be older than the read (read_lane.h). */
static void a_read_beside_a_load_takes_the_lane_of_its_key(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded", .stay = true}, other = {.data = "loaded"};
    struct hft_fetcher loader;
    const hf_fetch_options *reads = HF_FETCH(.load = hft_load, .arg = &other, .wait_ms = HF_OFF);
    hft_fetch(&loader, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page));
    HFT_UNTIL_TRUE(atomic_load(&page.inside) == 1 && hft_value_lane_is_up(f->a, 0) && hft_value_lane_is_up(f->a, 1));
    int lane = lane_of_reads(f, 0, reads);
    assert_int_not_equal(lane, -1);
    assert_int_equal(lane_of_reads(f, 1, reads), lane);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    hf_value_free(loader.value);
    for (int crowded = 0; crowded < 2; crowded++)
        assert_int_equal(lane_of_reads(f, crowded, HF_FETCH(.load = hft_load, .arg = &other)), 1 - crowded);
}

static int lane_of_key(const char *key)
{
    return (int)(hfi_name_of(HFI_FETCH, key, strlen(key)).hash % 2);
}

static int lane_of_tag(const char *text)
{
    struct hfi_name tag = {.hash = 0};
    assert_int_equal(hfi_tag_take(text, &tag, NULL), HF_OK);
    return (int)(tag.hash % 2);
}

/* One that has this value lane of two. */
static const char *name_on(int lane, int (*lane_of)(const char *name), const char *prefix, char name[16])
{
    int i = 0;
    do
        (void)snprintf(name, 16, "%s%d", prefix, i++);
    while (lane_of(name) != lane);
    return name;
}

static bool was_a_dial_refused(struct fixture *f)
{
    redisReply *info = hft_server_ask(f->server, "INFO stats");
    const char *count = strstr(info->str, "rejected_connections:");
    bool was = count != NULL && count[strlen("rejected_connections:")] != '0';
    freeReplyObject(info);
    return was;
}

/* Else the loader would run beside a value that the server has. */
static void a_read_whose_own_lane_cannot_be_dialled_takes_another(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page);
    hf_value *value;
    char keys[2][16];
    for (int lane = 0; lane < 2; lane++)
        freeReplyObject(hft_server_ask(f->server, "SET %s there PX 600000", name_on(lane, lane_of_key, "page", keys[lane])));
    assert_int_equal(hf_fetch(f->a, keys[0], plain, &value, &f->error), HF_OK);
    hf_value_free(value);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxclients %d", connections(f, "id=")));
    for (int i = 0; i < 3; i++) { /* it is dialled; and that has failed */
        assert_int_equal(hf_fetch(f->a, keys[1], plain, &value, &f->error), HF_OK);
        assert_int_equal(value->source, HF_CACHED);
        assert_string_equal(value->data, "there");
        hf_value_free(value);
        HFT_UNTIL_TRUE(was_a_dial_refused(f));
    }
    assert_int_equal(page.loads, 0);
}

static void reads_of_one_key_have_lanes_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "loaded"};
    hf_client *client = hft_client(f->server, HF_CLIENT(.lanes = 2, .client_name = "of-one-key"));
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page);
    hf_value *value;
    freeReplyObject(hft_server_ask(f->server, "SET page there PX 600000"));
    assert_int_equal(hf_fetch(client, "page", plain, &value, &f->error), HF_OK);
    hf_value_free(value);
    HFT_UNTIL_TRUE(hft_is_connected(client));
    int before = connections(f, "of-one-key");
    hft_value_lane_waits(client, lane_of_key("page"), 1);
    hft_readers_look(client, false, false);
    assert_int_equal(hf_fetch(client, "page", plain, &value, &f->error), HF_OK);
    hf_value_free(value);
    HFT_UNTIL_TRUE(connections(f, "of-one-key") == before + 1);
    hft_value_lane_waits(client, lane_of_key("page"), -1);
    assert_int_equal(hf_client_close(client, &f->error), HF_OK);
}

/* The former primary, whose connections a failover leaves open, would still answer by it. */
static void a_read_sees_what_another_lane_forgot_at_a_new_primary(void **state)
{
    struct fixture *f = *state;
    struct hft_server *former = hft_server_start_tcp(NULL), *promoted = hft_server_start_tcp(NULL);
    struct hft_page page = {.data = "old"};
    char link[200], to[220], url[220], key[16], tag[16], other[16];
    size_t forgotten;
    hf_value *value;
    (void)snprintf(link, sizeof link, "%s.link", hft_server_socket(former));
    (void)snprintf(to, sizeof to, "%s.new", link);
    (void)snprintf(url, sizeof url, "unix://%s", link);
    assert_int_equal(symlink(hft_server_socket(former), link), 0);
    assert_int_equal(symlink(hft_server_socket(promoted), to), 0);
    hf_client *client = hft_client_at(url, HF_CLIENT(.lanes = 2));
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 20000);
    (void)name_on(0, lane_of_key, "page", key);
    page.tags[0] = name_on(1, lane_of_tag, "tag", tag);
    assert_int_equal(hf_fetch(client, key, plain, &value, &f->error), HF_OK);
    hf_value_free(value);
    (void)name_on(1, lane_of_tag, "other", other);
    assert_int_equal(hf_fetch_forget_tag(client, other, &forgotten, &f->error), HF_OK); /* its lane is up */

    freeReplyObject(hft_server_ask(promoted, "REPLICAOF 127.0.0.1 %d", hft_server_port(former)));
    HFT_UNTIL_TRUE(hft_server_ask_integer(promoted, "EXISTS %s", key) == 1);
    freeReplyObject(hft_server_ask(promoted, "REPLICAOF NO ONE"));
    assert_int_equal(rename(to, link), 0);
    assert_int_equal(hf_fetch(client, key, plain, &value, &f->error), HF_OK); /* from here on the lane of the key is never idle */
    hf_value_free(value);
    freeReplyObject(hft_server_ask(former, "REPLICAOF 127.0.0.1 1")); /* it hears nothing of what is forgotten */
    hf_status status;
    do { /* refused by the former primary, then carried out by the new one */
        assert_int_equal(hf_fetch(client, key, plain, &value, &f->error), HF_OK);
        hf_value_free(value);
        status = hf_fetch_forget_tag(client, tag, &forgotten, &f->error);
    } while (status != HF_OK);
    assert_int_equal(forgotten, 1);
    page.data = "new";
    assert_int_equal(hf_fetch(client, key, plain, &value, &f->error), HF_OK);
    assert_string_equal(value->data, "new");
    hf_value_free(value);
    assert_true(hft_closes(promoted, client, &f->error));
    (void)unlink(link);
    hft_server_stop(former);
    hft_server_stop(promoted);
}

#define TEST(name)  cmocka_unit_test_setup_teardown(name, hft_pair_set_up, hft_pair_tear_down)
#define READS(name) cmocka_unit_test_setup_teardown(name, set_up_two_lanes, hft_pair_tear_down)

static int set_up_two_lanes(void **state)
{
    if (hft_pair_set_up(state) != 0)
        return -1;
    struct fixture *f = *state;
    assert_int_equal(hf_client_close(f->a, &f->error), HF_OK);
    f->a = hft_client(f->server, HF_CLIENT(.lanes = 2));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_free_name_takes_the_lane_that_fewest_wait_for),
        TEST(a_name_that_is_held_or_waited_for_stays),
        TEST(a_break_comes_behind_a_release_that_was_posted),
        READS(what_one_kind_asks_comes_behind_what_the_other_has_posted),
        TEST(an_outage_makes_no_more_lanes),
        READS(a_read_takes_the_lane_that_fewest_wait_for),
        READS(where_readers_look_few_share_the_first_lane),
        READS(a_read_takes_no_lane_that_has_met_another_server),
        READS(a_tracked_read_takes_the_lane_of_its_key),
        READS(a_read_beside_a_load_takes_the_lane_of_its_key),
        READS(a_read_whose_own_lane_cannot_be_dialled_takes_another),
        READS(reads_of_one_key_have_lanes_of_their_own),
        READS(a_read_sees_what_another_lane_forgot_at_a_new_primary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
