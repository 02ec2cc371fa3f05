/* SPDX-License-Identifier: MIT */
/* hpp_test.cpp - holdfast.hpp: handles end with their scope, move, and never throw. */
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdio>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

static int failures;
#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            std::printf("FAILED %s, line %d: %s\n", __func__, __LINE__, #condition);                       \
            failures++;                                                                                    \
        }                                                                                                  \
    } while (0)

static_assert(!std::is_copy_constructible_v<holdfast::lease> && !std::is_copy_assignable_v<holdfast::lease>);
static_assert(std::is_nothrow_move_constructible_v<holdfast::lease>);
static_assert(std::is_nothrow_move_assignable_v<holdfast::client>);
static_assert(!std::is_copy_constructible_v<holdfast::item> && std::is_nothrow_move_constructible_v<holdfast::item>);
static_assert(!std::is_convertible_v<holdfast::lease, bool>);

static hf_status try_once(holdfast::client &client, const char *name, holdfast::lease &lease)
{
    return client.acquire(name, hf_lock_options_default(), lease);
}

static void a_lease_is_given_back_where_its_scope_ends(holdfast::client &one, holdfast::client &two)
{
    holdfast::lease other;
    {
        holdfast::lease lease;
        CHECK(!lease && !lease.is_valid());
        CHECK(try_once(one, "scope", lease) == HF_OK);
        CHECK(lease && lease.is_valid() && lease.remaining_ms() > 0 && lease.fence() > 0);
        CHECK(lease.state() == HF_LEASE_HELD && lease.reason() == HF_REASON_NONE);
        CHECK(std::string(lease.name()) == "scope");
        CHECK(try_once(two, "scope", other) == HF_BUSY && !other);
    }
    CHECK(try_once(two, "scope", other) == HF_OK && other);
    hf_error error;
    CHECK(other.release(&error) == HF_OK && !other);
}

static void a_moved_lease_is_released_once_by_its_new_owner(holdfast::client &one, holdfast::client &two)
{
    holdfast::lease first, second, other;
    CHECK(try_once(one, "moved", first) == HF_OK);
    second = std::move(first);
    CHECK(second.is_valid());
    {
        holdfast::lease third(std::move(second));
        CHECK(try_once(two, "moved", other) == HF_BUSY);
    }
    CHECK(try_once(two, "moved", other) == HF_OK);
    CHECK(try_once(one, "another", second) == HF_OK);
    second = std::move(other); /* gives "another" back */
    CHECK(try_once(two, "another", other) == HF_OK);
}

static void a_failed_acquire_empties_its_result_and_says_why(holdfast::client &one)
{
    holdfast::lease lease;
    hf_error error;
    CHECK(try_once(one, "first", lease) == HF_OK);
    CHECK(one.acquire("", hf_lock_options_default(), lease, &error) == HF_INVALID);
    CHECK(!lease && error.status == HF_INVALID && error.message[0] != 0);
}

static void a_fired_cancel_ends_a_wait_in_another_thread(holdfast::client &one, holdfast::client &two)
{
    holdfast::cancel cancel;
    holdfast::lease held, wanted;
    CHECK(one.make_cancel(cancel) == HF_OK && cancel);
    CHECK(try_once(two, "canceled", held) == HF_OK);
    hf_lock_options options = hf_lock_options_default();
    options.wait_ms = HF_FOREVER;
    options.cancel = cancel.get();
    hf_status status = HF_OK;
    std::thread waiter([&] { status = one.acquire("canceled", options, wanted); });
    cancel.fire(); /* before or during the wait: it sticks */
    waiter.join();
    CHECK(status == HF_CANCELED && !wanted);
    cancel.unfire();
    CHECK(held.release() == HF_OK);
    CHECK(one.acquire("canceled", options, wanted) == HF_OK);
}

static void a_value_is_loaded_by_a_lambda_and_outlives_its_client(const char *uri)
{
    holdfast::value value;
    {
        holdfast::client client;
        CHECK(holdfast::client::open(uri, client) == HF_OK);
        CHECK(client.forget("cpp:page") == HF_OK);
        int loads = 0;
        std::string page = "from a lambda";
        auto load = [&](hf_loading *loading) {
            loads++;
            if (hf_loading_tag(loading, "cpp") != HF_OK)
                return HF_NOMEM;
            if (hf_loading_old(loading, nullptr) != nullptr)
                return hf_loading_same(loading);
            return hf_loading_set(loading, page.data(), page.size());
        };
        CHECK(client.fetch("cpp:page", hf_fetch_options_default(), load, value) == HF_OK);
        CHECK(value && value.source() == HF_LOADED && !value.absent());
        CHECK(client.fetch("cpp:page", hf_fetch_options_default(), load, value) == HF_OK);
        CHECK(value && value.source() == HF_CACHED && value.fresh_ms() > 0);
        CHECK(loads == 1 && client.stats().loads == 1);
        std::size_t forgotten = 0;
        CHECK(client.forget_tag("cpp", &forgotten) == HF_OK && forgotten == 1);
        CHECK(client.fetch("cpp:page", hf_fetch_options_default(), load, value) == HF_OK);
        CHECK(value.source() == HF_LOADED && client.stats().loads_same == 0);
        CHECK(client.forget_tag("cpp") == HF_OK);
        hf_error error;
        holdfast::value none;
        CHECK(client.fetch("cpp:none", hf_fetch_options_default(),
                           [](hf_loading *loading) { return hf_loading_fail(loading, 5, "no origin"); }, none,
                           &error) == HF_LOAD_FAILED);
        CHECK(!none && error.os_errno == 5);
        hf_fetch_options aside = hf_fetch_options_default();
        aside.where = HF_LOAD_ASIDE;
        aside.arg_size = sizeof load; /* bytes of an object are no copy of it */
        CHECK(client.fetch("cpp:page", aside, load, none, &error) == HF_INVALID);
    }
    CHECK(value.view() == "from a lambda");
}

static hf_status load_plainly(hf_loading *loading)
{
    return hf_loading_set(loading, "plain", 5);
}

static void a_plain_function_is_a_loader_too(holdfast::client &client)
{
    holdfast::value value;
    CHECK(client.fetch("cpp:plain", hf_fetch_options_default(), load_plainly, value) == HF_OK);
    CHECK(value.view() == "plain");
    CHECK(client.forget("cpp:plain") == HF_OK);
    CHECK(client.fetch("cpp:plain", hf_fetch_options_default(), &load_plainly, value) == HF_OK);
    CHECK(value.view() == "plain" && value.source() == HF_LOADED);
}

static void a_loading_knows_what_it_replaces_and_names_tags(holdfast::client &client)
{
    holdfast::value value;
    hf_fetch_options options = hf_fetch_options_default();
    options.ttl_ms = 1;
    options.stale_ms = 60000;
    auto load = [](holdfast::loading loading) {
        CHECK(std::string(loading.key()) == "cpp:old" && loading.is_wanted() && loading.fence() > 0);
        CHECK(loading.tag("cpp:tag") == HF_OK);
        if (loading.old().data() == nullptr)
            return loading.set("first");
        CHECK(loading.old() == "first");
        loading.set_ttl(60000);
        return loading.same();
    };
    CHECK(client.forget("cpp:old") == HF_OK);
    CHECK(client.fetch("cpp:old", options, load, value) == HF_OK && value.view() == "first");
    while (client.stats().loads_same == 0) /* it is old after a millisecond */
        CHECK(client.fetch("cpp:old", options, load, value) == HF_OK && value.view() == "first");
    CHECK(value.stored() && value.fresh_ms() > 1000);
    std::size_t forgotten = 0;
    CHECK(client.forget_tag("cpp:tag", &forgotten) == HF_OK && forgotten == 1);
    CHECK(client.fetch("cpp:old", options, [](holdfast::loading loading) { return loading.absent(); }, value) == HF_OK);
    CHECK(value.absent() && value.view().empty());
    hf_error error;
    CHECK(client.fetch("cpp:old", options, [](holdfast::loading loading) { return loading.fail(5, "no origin"); }, value,
                       &error) == HF_LOAD_FAILED);
    CHECK(!value && error.os_errno == 5);
}

static void items_have_their_values_or_say_why_not(holdfast::client &client)
{
    std::vector<holdfast::item> items;
    for (const char *key : {"cpp:many:1", "cpp:many:2", "cpp:many:3"}) {
        CHECK(client.forget(key) == HF_OK);
        items.emplace_back(key); /* moved as the vector grows */
    }
    std::size_t loaded = 0;
    auto load = [&](hf_loading *const *loadings, std::size_t count) {
        for (std::size_t i = 0; i < count; i++) {
            holdfast::loading loading(loadings[i]);
            std::string key = loading.key();
            (void)(key.back() == '2' ? loading.fail(5, "no origin") : loading.set(key));
        }
        loaded += count;
        return HF_OK;
    };
    hf_error error;
    CHECK(client.fetch_many(items.data(), items.size(), hf_fetch_options_default(), load, &error) == HF_LOAD_FAILED);
    CHECK(loaded == 3 && error.os_errno == 5);
    CHECK(!items[1] && items[1].status() == HF_LOAD_FAILED && items[1].view().empty());
    CHECK(items[0] && items[0].status() == HF_OK && items[0].view() == "cpp:many:1");
    holdfast::value taken = items[0].take();
    CHECK(!items[0] && taken.view() == "cpp:many:1" && taken.source() == HF_LOADED);
    items.erase(items.begin() + 1);
    CHECK(client.fetch_many(items.data(), items.size(), hf_fetch_options_default(), load) == HF_OK && loaded == 3);
    CHECK(items[1].view() == "cpp:many:3" && items[1].get()->source == HF_CACHED);
    hf_fetch_options aside = hf_fetch_options_default();
    aside.where = HF_REFRESH_ASIDE;
    CHECK(client.fetch_many(items.data(), items.size(), aside, load, &error) == HF_INVALID);
    CHECK(!items[0] && !items[1]);
}

static hf_status load_number(hf_loading *raw, void *arg) noexcept
{
    return holdfast::loading(raw).set(std::to_string(*static_cast<const int *>(arg)));
}

static void a_loader_thread_gets_a_copy_and_memory_has_the_rest(holdfast::client &client)
{
    holdfast::value value;
    int number = 42;
    hf_fetch_options options = hf_fetch_options_default();
    options.load = load_number;
    options.arg = &number;
    options.arg_size = sizeof number;
    options.where = HF_LOAD_ASIDE;
    options.near_ms = 60000;
    CHECK(client.fetch("cpp:aside", options, value) == HF_OK && value.view() == "42");
    CHECK(client.stats().loads_aside == 1);
    while (client.stats().hits_near == 0) /* kept near by the first read that is tracked */
        CHECK(client.fetch("cpp:aside", options, value) == HF_OK && value.view() == "42");
    CHECK(value.source() == HF_NEAR);
    CHECK(client.forget("cpp:aside") == HF_OK);
    CHECK(client.fetch("cpp:aside", options, value) == HF_OK && value.source() == HF_LOADED);
}

static void a_pending_is_taken_or_ends_with_its_scope(holdfast::client &one, holdfast::client &two)
{
    holdfast::lease lease, other;
    hf_lock_options wait = hf_lock_options_default();
    wait.wait_ms = HF_FOREVER;
    {
        holdfast::pending first, second;
        CHECK(one.start("cpp:pending", wait, nullptr, nullptr, first) == HF_OK && first);
        struct pollfd in = {first.fd(), POLLIN, 0};
        CHECK(poll(&in, 1, 20000) == 1 && first.is_done());
        CHECK(first.take(lease) == HF_OK && lease && !first);
        CHECK(two.start("cpp:pending", wait, nullptr, nullptr, second) == HF_OK && !second.is_done());
    } /* the second is canceled */
    CHECK(two.stats().waiting == 0);
    CHECK(lease.release() == HF_OK);
    {
        holdfast::pending granted;
        CHECK(two.start("cpp:pending", wait, nullptr, nullptr, granted) == HF_OK);
        struct pollfd in = {granted.fd(), POLLIN, 0};
        CHECK(poll(&in, 1, 20000) == 1);
    } /* what it has is given back */
    wait.wait_ms = 20000;
    CHECK(one.acquire("cpp:pending", wait, other) == HF_OK);
    wait.cancel = reinterpret_cast<hf_cancel *>(&wait);
    holdfast::pending none;
    CHECK(one.start("cpp:pending", wait, nullptr, nullptr, none) == HF_INVALID && !none);
}

static void permits_are_leases(holdfast::client &one, holdfast::client &two)
{
    holdfast::lease some, rest, none;
    const hf_lock_options once = hf_lock_options_default();
    CHECK(one.acquire_permits("cpp:permits", 3, 2, once, some) == HF_OK && hf_lease_permits(some.get()) == 2);
    CHECK(two.acquire_permits("cpp:permits", 3, 2, once, none) == HF_BUSY && !none);
    {
        holdfast::pending pending;
        CHECK(two.start_permits("cpp:permits", 3, 1, once, nullptr, nullptr, pending) == HF_OK);
        struct pollfd in = {pending.fd(), POLLIN, 0};
        CHECK(poll(&in, 1, 20000) == 1 && pending.take(rest) == HF_OK);
    }
    CHECK(some.release() == HF_OK && rest.release() == HF_OK);
}

static void a_client_that_cannot_be_opened_is_empty()
{
    holdfast::client client;
    hf_error error;
    CHECK(holdfast::client::open("nonsense", client, &error) == HF_INVALID);
    CHECK(!client && error.message[0] != 0);
}

static void an_observer_ends_with_its_scope(holdfast::client &one, holdfast::client &two)
{
    std::atomic<int> led{0};
    holdfast::lease lease;
    hf_lock_options options = hf_lock_options_default();
    options.owner_label = "here";
    {
        holdfast::observer observer, second;
        auto changed = [](hf_observer *, const hf_leader *leader, void *arg) {
            if (leader != nullptr && std::string(leader->label) == "here")
                ++*static_cast<std::atomic<int> *>(arg);
        };
        CHECK(one.observe("led", changed, &led, observer) == HF_OK && observer);
        CHECK(one.observe("", changed, &led, second) == HF_INVALID && !second);
        CHECK(two.acquire("led", options, lease) == HF_OK);
        while (led == 0)
            std::this_thread::yield();
    }
    CHECK(lease.release() == HF_OK && led == 1);
}

static void a_client_that_could_not_be_closed_is_still_there()
{
    holdfast::client client;
    CHECK(holdfast::client::open(nullptr, client) == HF_OK);
    hf_fetch_options options = hf_fetch_options_default();
    holdfast::value value;
    hf_status closed = HF_OK;
    CHECK(client.fetch("cpp:closing", options, [&](holdfast::loading loading) {
        closed = client.close();
        return loading.absent();
    }, value) == HF_OK);
    CHECK(closed == HF_INVALID && client);
    CHECK(client.close() == HF_OK && !client);
}

int main()
{
    holdfast::client one, two;
    if (holdfast::client::open(nullptr, one) != HF_OK ||
        holdfast::client::open(nullptr, hf_client_options_default(), two) != HF_OK) {
        std::printf("no server\n");
        return 1;
    }
    a_lease_is_given_back_where_its_scope_ends(one, two);
    a_moved_lease_is_released_once_by_its_new_owner(one, two);
    a_failed_acquire_empties_its_result_and_says_why(one);
    a_fired_cancel_ends_a_wait_in_another_thread(one, two);
    a_value_is_loaded_by_a_lambda_and_outlives_its_client(nullptr);
    a_plain_function_is_a_loader_too(one);
    a_loading_knows_what_it_replaces_and_names_tags(one);
    items_have_their_values_or_say_why_not(one);
    a_loader_thread_gets_a_copy_and_memory_has_the_rest(one);
    a_pending_is_taken_or_ends_with_its_scope(one, two);
    permits_are_leases(one, two);
    a_client_that_cannot_be_opened_is_empty();
    an_observer_ends_with_its_scope(one, two);
    a_client_that_could_not_be_closed_is_still_there();
    CHECK(two.close() == HF_OK && !two);
    return failures == 0 ? 0 : 1;
}
