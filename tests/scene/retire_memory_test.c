/* SPDX-License-Identifier: MIT */
/* retire_memory_test.c - the memory of a token's retirement is freed however it ends; and without memory for it the
 * key expires. (Linked so that hfi_retirement_begin, malloc, free, hfi_perturb and those of cached.h are those below.) */
#include "tests/scene/scene.h"
#include "core/context/cached.h"
#include "core/lock/retirement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM  160
#define ALIVE 64

struct hfi_retirement *__real_hfi_retirement_begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns);
struct hfi_retirement *__wrap_hfi_retirement_begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void __real_free(void *bytes);
void __wrap_free(void *bytes);

static struct {
    const char *at; /* the mark of base/perturb.h at which the next thread stops; NULL: none */
    int64_t ms;
} stops[2];
static bool begins, refuses; /* begins: what is allocated now is a retirement */
static bool caches;          /* false: what is no longer needed is freed, and can be counted */
static void *alive[ALIVE];

struct hfi_retirement *__wrap_hfi_retirement_begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns)
{
    begins = true;
    struct hfi_retirement *retirement = __real_hfi_retirement_begin(lock, token, ends_ns, left_ns);
    begins = false;
    return retirement;
}

void *__wrap_malloc(size_t size)
{
    if (begins && refuses)
        return NULL;
    void *bytes = __real_malloc(size);
    for (int i = 0; begins && i < ALIVE; i++) {
        if (alive[i] == NULL) {
            alive[i] = bytes;
            break;
        }
    }
    return bytes;
}

void __wrap_free(void *bytes)
{
    for (int i = 0; bytes != NULL && i < ALIVE; i++)
        if (alive[i] == bytes)
            alive[i] = NULL;
    __real_free(bytes);
}

void *__real_hfi_cached_take(_Atomic(void *) *slot);
void *__wrap_hfi_cached_take(_Atomic(void *) *slot);
void *__real_hfi_cached_leave(hf_client *client, _Atomic(void *) *slot, void *memory);
void *__wrap_hfi_cached_leave(hf_client *client, _Atomic(void *) *slot, void *memory);

void *__wrap_hfi_cached_take(_Atomic(void *) *slot)
{
    return caches ? __real_hfi_cached_take(slot) : NULL;
}

void *__wrap_hfi_cached_leave(hf_client *client, _Atomic(void *) *slot, void *memory)
{
    return caches ? __real_hfi_cached_leave(client, slot, memory) : memory;
}

void __wrap_hfi_perturb(const char *place);

void __wrap_hfi_perturb(const char *place)
{
    for (int i = 0; i < 2; i++) {
        if (stops[i].at == NULL || strcmp(place, stops[i].at) != 0)
            continue;
        stops[i].at = NULL;
        sim_stop(stops[i].ms * HFI_MS);
    }
}

static void stop_at(int i, const char *mark, int64_t ms)
{
    stops[i].at = mark;
    stops[i].ms = ms;
}

static int living(void)
{
    int count = 0;
    for (int i = 0; i < ALIVE; i++)
        count += alive[i] != NULL;
    return count;
}

static void other(const char *token, char by, char *out)
{
    (void)snprintf(out, ROOM, "%s", token);
    char *digit = strchr(strchr(strchr(out, ':') + 1, ':') + 1, ':') + 1;
    *digit = *digit == by ? (char)(by + 1) : by;
}

static struct sim_process *process;
static char token[ROOM];

static hf_lease *take(void)
{
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    return lease;
}

static void set(const char *value)
{
    char line[ROOM + 60];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 60000", value);
    hft_tell(line);
}

static int begin(void **state)
{
    (void)hft_scene_begin(state);
    stops[0].at = stops[1].at = NULL;
    refuses = caches = false;
    memset(alive, 0, sizeof alive);
    process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200, .guard_ms = 300));
    assert_int_equal(hft_released(process, take()), HF_OK);
    hft_pass_ms(500);
    return living();
}

static int end(void **state)
{
    return hft_scene_end(state);
}

static void a_retirement_that_is_answered(void **state)
{
    (void)state;
    hf_lease *lease = take();
    assert_int_equal(hft_released(process, lease), HF_OK);
    hft_pass_ms(1);
    assert_int_equal(living(), 0);
}

static void a_retirement_that_is_answered_late(void **state)
{
    (void)state;
    struct hft_actor giver;
    hf_lease *lease = take();
    hft_pass_ms(20);
    hft_stall_up(hft_lock_wire(process), 60000);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(living(), 1);
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    hft_pass_ms(500);
    assert_int_equal(living(), 0);
}

static void a_retirement_that_is_hastened_while_its_timer_is_set(void **state)
{
    (void)state;
    struct hft_actor giver;
    hf_lease *lease = take();
    hft_pass_ms(20);
    hft_stall_up(hft_lock_wire(process), 60000);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    hft_pass_ms(50);
    int64_t hastened = sim.now;
    hft_publish(process, "R %s hf:{n}", token);
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    assert_true(sim.now - hastened < HFI_MS);
    hft_pass_ms(2);
    assert_int_equal(living(), 0); /* the alarm too */
    hft_pass_ms(1000);
    assert_int_equal(living(), 0);
}

/* The timer has fired for a retirement that was over, or whose client was closed, before the thread that it woke
 * could look. */
static void a_retirement_whose_timer_fires_too_late(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        struct hft_actor giver;
        assert_int_equal(begin(state), 0);
        hf_lease *lease = take();
        sim_server_refuse(SIM_NO_DISK);
        hft_give_back(&giver, process, lease);
        HFT_UNTIL(giver.ended != 0);
        sim_server_refuse(SIM_TAKES_ALL);
        int sent = hft_listed(process, "release");
        stop_at(0, "closing-rings", 100);
        HFT_UNTIL(stops[0].at == NULL);
        if (closes) { /* what was refused is tried once more */
            assert_int_equal(hft_close(process), HF_OK);
        } else {
            hft_publish(process, "R %s hf:{n}", token);
            hft_pass_ms(5);
            assert_int_equal(living(), 1);
        }
        assert_string_equal(hft_key("hf:{n}"), "");
        hft_pass_ms(200);
        assert_int_equal(living(), 0);
        assert_int_equal(hft_listed(process, "release") - sent, 1);
    }
}

/* The timer fires when there is no connection any more, and before the close's last look at the retirement. */
static void a_retirement_whose_last_release_ends_after_it(void **state)
{
    (void)state;
    struct hft_actor giver;
    hf_lease *lease = take();
    sim_server_refuse(SIM_NO_DISK);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    hft_pass_ms(300);
    int sent = hft_listed(process, "release");
    stop_at(0, "closing-stopped", 200);
    stop_at(1, "release-answered", 200);
    (void)hft_close(process);
    assert_true(stops[0].at == NULL && stops[1].at == NULL);
    assert_int_equal(hft_listed(process, "release") - sent, 1);
    assert_int_equal(living(), 0);
}

static void a_retirement_that_is_refused_to_the_end(void **state)
{
    (void)state;
    struct hft_actor giver;
    hf_lease *lease = take();
    sim_server_refuse(SIM_NO_DISK);
    hft_give_back(&giver, process, lease);
    hft_pass_ms(5000);
    assert_int_equal(living(), 1);
    hft_pass_ms(15000);
    assert_int_equal(living(), 0);
}

static void a_retirement_that_waits_for_a_revoked_holder(void **state)
{
    (void)state;
    char revoked[ROOM];
    hf_lease *lease = take();
    hft_revoked(token, '8', revoked);
    set(revoked);
    hft_publish(process, "B %s %s", token, revoked);
    HFT_UNTIL(!hft_is_valid(process, lease));
    hft_pass_ms(50);
    assert_int_equal(living(), 1);
    hft_publish(process, "R %s hf:{n}", revoked); /* not sooner for that, and once */
    hft_pass_ms(50);
    assert_int_equal(living(), 1);
    hft_pass_ms(1000);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_int_equal(living(), 0);
}

static void several_of_one_lock_in_whatever_order_they_end(void **state)
{
    (void)state;
    static const char orders[][6] = {"02468", "86420", "40826"};
    for (int i = 0; i < 3; i++) {
        char orphan[ROOM];
        sim_server_freeze(sim.now + 100 * HFI_MS);
        for (int n = 0; n < 5; n++) {
            other(token, orders[i][n], orphan);
            if (n == 2)
                set(orphan);
            hft_publish(process, "R %s hf:{n}", orphan);
            hft_publish(process, "R %s hf:{n}", orphan);
        }
        hft_pass_ms(50);
        assert_int_equal(living(), 5);
        hft_pass_ms(60);
        assert_string_equal(hft_key("hf:{n}"), "");
        hft_pass_ms(2000);
        assert_int_equal(living(), 0);
    }
}

static void those_that_are_open_when_the_client_closes(void **state)
{
    (void)state;
    struct hft_actor giver;
    char revoked[ROOM];
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(begin(state), 0);
        hf_lease *lease = take();
        hft_pass_ms(20);
        if (kind == 0) { /* waits for its next release; nobody can be asked */
            sim_server_freeze(sim.now + 60000 * HFI_MS);
            hft_give_back(&giver, process, lease);
            HFT_UNTIL(giver.ended != 0);
            hft_pass_ms(50);
        } else if (kind == 1) { /* its release is under way */
            sim_server_freeze(sim.now + 60000 * HFI_MS);
            hft_give_back(&giver, process, lease);
            hft_pass_ms(20);
        } else { /* a revoked holder has its time */
            hft_revoked(token, '8', revoked);
            set(revoked);
            hft_publish(process, "B %s %s", token, revoked);
            HFT_UNTIL(!hft_is_valid(process, lease));
            hft_pass_ms(20);
        }
        assert_int_equal(living(), 1);
        int sent = hft_listed(process, "release");
        assert_int_equal(hft_close(process), kind == 2 ? HF_OK : HF_UNKNOWN);
        assert_int_equal(hft_listed(process, "release") - sent, 1); /* also behind one that got no answer */
        assert_int_equal(living(), 0);
        if (kind == 2)
            assert_string_equal(hft_key("hf:{n}"), "");
        hft_pass_ms(5000);
    }
}

#define TURNS 4

static struct {
    hf_status status;
    int releases, living;
} turns[TURNS];

/* The first release is refused for a while. */
static void take_turns(void *arg)
{
    hf_client *client = arg;
    for (int i = 0; i < TURNS; i++) {
        hf_lease *lease = NULL;
        int sent = hft_listed(process, "release");
        turns[i].status = hf_lock_acquire(client, "n", HF_LOCK(.wait_ms = 5000), &lease, NULL);
        sim_server_refuse(i == 0 ? SIM_NO_DISK : SIM_TAKES_ALL);
        if (turns[i].status == HF_OK)
            turns[i].status = hf_lease_release(lease, NULL);
        sim_server_refuse(SIM_TAKES_ALL);
        sim_stop(1500 * HFI_MS);
        turns[i].releases = hft_listed(process, "release") - sent;
        turns[i].living = living();
    }
}

static void what_is_cached_is_blank_for_the_next_one_of_its_thread(void **state)
{
    (void)state;
    caches = true;
    hft_run(process, take_turns, process->client);
    for (int i = 0; i < TURNS; i++) {
        assert_int_equal(turns[i].status, i == 0 ? HF_UNKNOWN : HF_OK);
        assert_int_equal(turns[i].releases, i == 0 ? 2 : 1);
        assert_int_equal(turns[i].living, 1); /* always the same */
    }
    assert_int_equal(hft_close(process), HF_OK);
    assert_int_equal(living(), 0);
}

/* ---- no memory for one ---- */

static void without_memory_a_release_gets_its_error_at_once(void **state)
{
    (void)state;
    struct hft_actor giver;
    hf_lease *lease = take();
    refuses = true;
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_true(giver.ended - giver.began < 5 * HFI_MS);
    lease = NULL;
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0); /* by itself */
}

static void without_memory_what_another_thread_has_left_will_do(void **state)
{
    (void)state;
    struct hft_actor giver;
    caches = true;
    hft_run(process, take_turns, process->client);
    hf_lease *lease = take();
    refuses = true;
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_OK);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_int_equal(hft_close(process), HF_OK);
    assert_int_equal(living(), 0);
}

/* Its key stays until it expires. */
static void without_memory_close_tells_of_the_key_that_stays(void **state)
{
    for (int expired = 0; expired < 2; expired++) {
        struct hft_actor giver;
        assert_int_equal(begin(state), 0);
        hf_lease *lease = take();
        refuses = true;
        hft_give_back(&giver, process, lease);
        HFT_UNTIL(giver.ended != 0);
        refuses = false;
        if (expired)
            hft_pass_ms(15000);
        assert_int_equal(hft_close(process), expired ? HF_OK : HF_UNKNOWN);
        assert_int_equal(hft_key("hf:{n}")[0] == 0, expired);
    }
}

static void post(void *arg)
{
    (void)hf_lease_post_release(arg, NULL);
}

static void without_memory_nothing_is_done_and_nothing_ends(void **state)
{
    (void)state;
    char orphan[ROOM], revoked[ROOM];
    hf_lease *lease = take();
    other(token, '8', orphan);
    hft_revoked(token, '4', revoked);
    refuses = true;
    int sent = hft_listed(process, "release");
    hft_publish(process, "R %s hf:{n}", orphan);
    hft_pass_ms(20);
    hft_run(process, post, lease);
    hft_publish(process, "B %s %s", token, revoked);
    hft_pass_ms(1000);
    assert_int_equal(hft_listed(process, "release"), sent);
    refuses = false;
    hft_publish(process, "R %s hf:{n}", token);
    hft_pass_ms(5);
    assert_string_equal(hft_key("hf:{n}"), ""); /* a message heals it */
    hft_pass_ms(2000);
    assert_int_equal(living(), 0);
}

/* The token of a grant that is over: only a retirement could release it. */
static void without_memory_a_forgotten_token_stays(void **state)
{
    (void)state;
    char orphan[ROOM];
    other(token, '4', orphan);
    set(orphan);
    refuses = true;
    int sent = hft_listed(process, "release");
    hft_publish(process, "R %s hf:{n}", orphan);
    hft_pass_ms(20);
    assert_int_equal(hft_listed(process, "release"), sent);
    refuses = false;
    hft_publish(process, "R %s hf:{n}", orphan);
    hft_pass_ms(5);
    assert_string_equal(hft_key("hf:{n}"), "");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_retirement_that_is_answered),
        TEST(a_retirement_that_is_answered_late),
        TEST(a_retirement_that_is_hastened_while_its_timer_is_set),
        TEST(a_retirement_whose_timer_fires_too_late),
        TEST(a_retirement_whose_last_release_ends_after_it),
        TEST(a_retirement_that_is_refused_to_the_end),
        TEST(a_retirement_that_waits_for_a_revoked_holder),
        TEST(several_of_one_lock_in_whatever_order_they_end),
        TEST(those_that_are_open_when_the_client_closes),
        TEST(what_is_cached_is_blank_for_the_next_one_of_its_thread),
        TEST(without_memory_a_release_gets_its_error_at_once),
        TEST(without_memory_what_another_thread_has_left_will_do),
        TEST(without_memory_close_tells_of_the_key_that_stays),
        TEST(without_memory_nothing_is_done_and_nothing_ends),
        TEST(without_memory_a_forgotten_token_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
