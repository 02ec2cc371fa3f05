/* SPDX-License-Identifier: MIT */
/*
 * holdfast.hpp - the same for C++17: handles that end with their scope, are moved and not copied, and never throw.
 *
 * Statuses, options and errors are those of C. Every call returns its hf_status, writes its result to an object given
 * by reference (empty unless HF_OK) and explains itself in *error; nullptr is "not interested". See the C headers for
 * how long a call blocks and which threads may make it.
 */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <holdfast/holdfast.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast {

/* One C handle and the function that ends it. */
template <typename Handle, typename End> class handle {
public:
    handle() noexcept = default;
    explicit handle(Handle *raw) noexcept : raw_(raw) {}
    handle(handle &&other) noexcept : raw_(other.detach()) {}
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    handle &operator=(handle &&other) noexcept
    {
        if (this != &other)
            reset(other.detach());
        return *this;
    }
    ~handle() { reset(); }

    explicit operator bool() const noexcept { return raw_ != nullptr; }
    Handle *get() const noexcept { return raw_; }
    /* Returns the C handle, which the caller now has to end. */
    [[nodiscard]] Handle *detach() noexcept { return std::exchange(raw_, nullptr); }
    /* Ends the old handle. */
    void reset(Handle *raw = nullptr) noexcept
    {
        Handle *old = std::exchange(raw_, raw);
        if (old != nullptr)
            End()(old);
    }

private:
    Handle *raw_ = nullptr;
};

namespace detail {
struct end_client {
    void operator()(hf_client *client) const noexcept { (void)hf_client_close(client, nullptr); }
};
struct end_lease {
    void operator()(hf_lease *lease) const noexcept { (void)hf_lease_release(lease, nullptr); }
};
struct end_value {
    void operator()(hf_value *value) const noexcept { hf_value_free(value); }
};
struct end_pending {
    void operator()(hf_pending *pending) const noexcept
    {
        hf_lease *lease = nullptr;
        if (hf_pending_take(pending, &lease, nullptr) == HF_OK)
            (void)hf_lease_post_release(lease, nullptr);
    }
};
struct end_observer {
    void operator()(hf_observer *observer) const noexcept { hf_observer_close(observer); }
};
struct end_cancel {
    void operator()(hf_cancel *cancel) const noexcept { hf_cancel_close(cancel); }
};
} // namespace detail

/* A lease. Its destructor releases it and drops the result: call release() where HF_LOST matters. */
class lease : public handle<hf_lease, detail::end_lease> {
public:
    using handle::handle;

    bool is_valid() const noexcept { return hf_lease_is_valid(get()); }
    std::int64_t remaining_ms() const noexcept { return hf_lease_remaining_ms(get()); }
    std::int64_t fence() const noexcept { return hf_lease_fence(get()); }
    std::int64_t fence_of(const char *name) const noexcept { return hf_lease_fence_of(get(), name); }
    hf_lease_condition state() const noexcept { return hf_lease_state(get()); }
    hf_reason reason() const noexcept { return hf_lease_reason(get()); }
    const char *name() const noexcept { return hf_lease_name(get()); }
    int event_fd() noexcept { return hf_lease_event_fd(get()); }
    hf_status bind(hf_error *error = nullptr) noexcept { return hf_lease_bind(get(), error); }
    hf_status unbind(hf_error *error = nullptr) noexcept { return hf_lease_unbind(get(), error); }
    hf_status verify(hf_error *error = nullptr) noexcept { return hf_lease_verify(get(), error); }
    hf_status downgrade(hf_error *error = nullptr) noexcept { return hf_lease_downgrade(get(), error); }
    hf_status release(hf_error *error = nullptr) noexcept { return hf_lease_release(detach(), error); }
    hf_status post_release(hf_error *error = nullptr) noexcept
    {
        return hf_lease_post_release(detach(), error);
    }
};

/* A lease that is asked for (async.h). Its destructor cancels it, or gives back what it has got. Its hf_done_fn may end it
 * by this object's take() once start has returned: in a program that dispatches itself. */
class pending : public handle<hf_pending, detail::end_pending> {
public:
    using handle::handle;

    bool is_done() const noexcept { return hf_pending_is_done(get()); }
    int fd() noexcept { return hf_pending_fd(get()); }
    [[nodiscard]] hf_status take(lease &result, hf_error *error = nullptr) noexcept
    {
        hf_lease *raw = nullptr;
        hf_status status = hf_pending_take(detach(), &raw, error);
        result.reset(raw);
        return status;
    }
};

/* A value of hf_fetch. Its view lives as long as this object. An empty object has no value: call no accessor. */
class value : public handle<hf_value, detail::end_value> {
public:
    using handle::handle;

    std::string_view view() const noexcept
    {
        if (get()->absent)
            return std::string_view();
        return std::string_view(static_cast<const char *>(get()->data), get()->size);
    }
    hf_source source() const noexcept { return get()->source; }
    bool absent() const noexcept { return get()->absent; }
    bool stored() const noexcept { return get()->stored; }
    std::int64_t fresh_ms() const noexcept { return get()->fresh_ms; }
};

/* One key of client::fetch_many, and then its value. The key's bytes are the caller's, and needed during that call. An item may
 * be used for another call: its value ends then. Items can be moved, so they may stand in a std::vector. */
class item {
public:
    item() noexcept = default;
    explicit item(const char *key) noexcept { raw_.key = key; }
    item(const char *key, std::size_t key_size) noexcept : item(key) { raw_.key_size = key_size; }
    item(item &&other) noexcept : raw_(other.raw_) { other.raw_.value = nullptr; }
    item(const item &) = delete;
    item &operator=(const item &) = delete;
    item &operator=(item &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~item() { hf_value_free(raw_.value); }

    explicit operator bool() const noexcept { return raw_.value != nullptr; }
    hf_status status() const noexcept { return raw_.status; }
    const hf_value *get() const noexcept { return raw_.value; }
    /* Of the value, as long as the item has it. */
    std::string_view view() const noexcept
    {
        if (raw_.value == nullptr || raw_.value->absent)
            return std::string_view();
        return std::string_view(static_cast<const char *>(raw_.value->data), raw_.value->size);
    }
    /* The item's value, which it has no more then. */
    value take() noexcept { return value(std::exchange(raw_.value, nullptr)); }

private:
    hf_fetch_item raw_ = hf_fetch_item();
};
static_assert(std::is_standard_layout_v<item> && sizeof(item) == sizeof(hf_fetch_item), "an array of the one is one of the other");

/* One run of a loader, for a loader that is written `[](holdfast::loading loading) { return loading.set(page); }`. It owns
 * nothing, and is over when the loader returns. */
class loading {
public:
    loading(hf_loading *raw) noexcept : raw_(raw) {}
    hf_loading *get() const noexcept { return raw_; }

    const char *key() const noexcept { return hf_loading_key(raw_); }
    bool is_wanted() const noexcept { return hf_loading_is_wanted(raw_); }
    std::int64_t fence() const noexcept { return hf_lease_fence(hf_loading_lease(raw_)); }
    /* What this load would replace, until the loader returns. Its data() is nullptr if there is nothing: an old value may be "". */
    std::string_view old() const noexcept
    {
        std::size_t size = 0;
        const void *data = hf_loading_old(raw_, &size);
        return std::string_view(static_cast<const char *>(data), size);
    }
    hf_status set(std::string_view bytes) noexcept { return hf_loading_set(raw_, bytes.data(), bytes.size()); }
    hf_status same() noexcept { return hf_loading_same(raw_); }
    hf_status absent() noexcept { return hf_loading_absent(raw_); }
    hf_status tag(const char *tag) noexcept { return hf_loading_tag(raw_, tag); }
    void set_ttl(std::int64_t ttl_ms) noexcept { hf_loading_set_ttl(raw_, ttl_ms); }
    hf_status fail(int os_errno, const char *message) noexcept { return hf_loading_fail(raw_, os_errno, message); }

private:
    hf_loading *raw_;
};

/* A request that waiting calls end. It must outlive the calls that get it by `options.cancel = cancel.get()`. */
class cancel : public handle<hf_cancel, detail::end_cancel> {
public:
    using handle::handle;

    void fire() noexcept { hf_cancel_fire(get()); }
    void unfire() noexcept { hf_cancel_reset(get()); }
};

/* Watches who leads, until it ends. What it calls must not throw. */
class observer : public handle<hf_observer, detail::end_observer> {
public:
    using handle::handle;
};

/* A client. Its destructor closes it; leases and values that outlive it stay readable. */
class client : public handle<hf_client, detail::end_client> {
public:
    using handle::handle;

    [[nodiscard]] static hf_status open(const char *uri, const hf_client_options &options, client &result,
                                        hf_error *error = nullptr) noexcept
    {
        hf_client *raw = nullptr;
        hf_status status = hf_client_open(uri, &options, &raw, error);
        result.reset(raw);
        return status;
    }
    [[nodiscard]] static hf_status open(const char *uri, client &result, hf_error *error = nullptr) noexcept
    {
        return open(uri, hf_client_options_default(), result, error);
    }
    hf_status close(hf_error *error = nullptr) noexcept
    {
        hf_status status = hf_client_close(get(), error);
        if (status != HF_INVALID) // then nothing was closed
            (void)detach();
        return status;
    }

    [[nodiscard]] hf_status acquire(const char *name, const hf_lock_options &options, lease &result,
                                    hf_error *error = nullptr) noexcept
    {
        hf_lease *raw = nullptr;
        hf_status status = hf_lock_acquire(get(), name, &options, &raw, error);
        result.reset(raw);
        return status;
    }
    [[nodiscard]] hf_status start(const char *name, const hf_lock_options &options, hf_done_fn *done, void *done_arg,
                                  pending &result, hf_error *error = nullptr) noexcept
    {
        hf_pending *raw = nullptr;
        hf_status status = hf_lock_acquire_start(get(), name, &options, done, done_arg, &raw, error);
        result.reset(raw);
        return status;
    }
    /* All of these names, or none: hf_multilock_acquire. */
    [[nodiscard]] hf_status acquire(const char *const *names, std::size_t count, const hf_lock_options &options,
                                    lease &result, hf_error *error = nullptr) noexcept
    {
        hf_lease *raw = nullptr;
        hf_status status = hf_multilock_acquire(get(), names, count, &options, &raw, error);
        result.reset(raw);
        return status;
    }
    /* Permits of a semaphore: hf_semaphore_acquire, and the same for an event loop. */
    [[nodiscard]] hf_status acquire_permits(const char *name, int limit, int permits, const hf_lock_options &options,
                                            lease &result, hf_error *error = nullptr) noexcept
    {
        hf_lease *raw = nullptr;
        hf_status status = hf_semaphore_acquire(get(), name, limit, permits, &options, &raw, error);
        result.reset(raw);
        return status;
    }
    [[nodiscard]] hf_status start_permits(const char *name, int limit, int permits, const hf_lock_options &options,
                                          hf_done_fn *done, void *done_arg, pending &result, hf_error *error = nullptr) noexcept
    {
        hf_pending *raw = nullptr;
        hf_status status = hf_semaphore_acquire_start(get(), name, limit, permits, &options, done, done_arg, &raw, error);
        result.reset(raw);
        return status;
    }
    hf_status break_lock(const char *name, bool &had_holder, hf_error *error = nullptr) noexcept
    {
        return hf_lock_break(get(), name, &had_holder, error);
    }
    hf_status break_lock_now(const char *name, bool &had_holder, hf_error *error = nullptr) noexcept
    {
        return hf_lock_break_now(get(), name, &had_holder, error);
    }
    hf_status break_permits(const char *name, bool &had_holder, hf_error *error = nullptr) noexcept
    {
        return hf_semaphore_break(get(), name, &had_holder, error);
    }
    hf_status break_permits_now(const char *name, bool &had_holder, hf_error *error = nullptr) noexcept
    {
        return hf_semaphore_break_now(get(), name, &had_holder, error);
    }

    [[nodiscard]] hf_status fetch(const char *key, const hf_fetch_options &options, value &result,
                                  hf_error *error = nullptr) noexcept
    {
        hf_value *raw = nullptr;
        hf_status status = hf_fetch(get(), key, &options, &raw, error);
        result.reset(raw);
        return status;
    }
    /* `load` is anything that can be called with a loading, or an hf_loading *, and returns an hf_status. If it throws, the
     * program ends: the frames below it are C. It runs in this thread: a `.where` that is aside is HF_INVALID here, for nothing
     * says how a loader thread gets a copy; use the call above, with `.load`, `.arg` and `.arg_size`, or `.copy_arg` and `.free_arg`. */
    template <typename Load,
              typename = std::enable_if_t<std::is_invocable_r_v<hf_status, Load &, hf_loading *>>>
    [[nodiscard]] hf_status fetch(const char *key, hf_fetch_options options, Load &&load, value &result,
                                  hf_error *error = nullptr) noexcept
    {
        using callable = std::remove_reference_t<Load>;
        /* A void * cannot point to a function, only to an object: the function is called through a pointer object. */
        using object = std::conditional_t<std::is_function_v<callable>, std::decay_t<Load>, callable>;
        options.arg_size = 0;
        options.copy_arg = nullptr;
        options.free_arg = nullptr;
        options.load = [](hf_loading *loading, void *arg) noexcept -> hf_status {
            return (*static_cast<object *>(arg))(loading);
        };
        if constexpr (std::is_function_v<callable>) {
            object pointer = load;
            options.arg = std::addressof(pointer);
            return fetch(key, options, result, error);
        } else {
            options.arg = const_cast<void *>(static_cast<const void *>(std::addressof(load)));
            return fetch(key, options, result, error);
        }
    }
    /* hf_fetch_many: HF_OK if every item has its value. The others say why not, each in its status(). */
    [[nodiscard]] hf_status fetch_many(item *items, std::size_t count, const hf_fetch_options &options,
                                       hf_error *error = nullptr) noexcept
    {
        for (std::size_t i = 0; items != nullptr && i < count; i++)
            (void)items[i].take();
        return hf_fetch_many(get(), reinterpret_cast<hf_fetch_item *>(items), count, &options, error);
    }
    /* `load` is anything that can be called as an hf_load_many_fn without its arg, but a plain function: that is
     * `.load_many`. It runs in this thread, as above. */
    template <typename Load,
              typename = std::enable_if_t<std::is_invocable_r_v<hf_status, Load &, hf_loading *const *, std::size_t>>>
    [[nodiscard]] hf_status fetch_many(item *items, std::size_t count, hf_fetch_options options, Load &&load,
                                       hf_error *error = nullptr) noexcept
    {
        using object = std::remove_reference_t<Load>;
        static_assert(!std::is_function_v<object>, "a plain function is options.load_many");
        options.arg_size = 0;
        options.copy_arg = nullptr;
        options.free_arg = nullptr;
        options.load_many = [](hf_loading *const *loadings, std::size_t missing, void *arg) noexcept -> hf_status {
            return (*static_cast<object *>(arg))(loadings, missing);
        };
        options.load = [](hf_loading *one, void *arg) noexcept -> hf_status { return (*static_cast<object *>(arg))(&one, 1); };
        options.arg = const_cast<void *>(static_cast<const void *>(std::addressof(load)));
        return fetch_many(items, count, options, error);
    }
    hf_status forget(const char *key, hf_error *error = nullptr) noexcept
    {
        return hf_fetch_forget(get(), key, error);
    }
    hf_status forget_tag(const char *tag, std::size_t *forgotten = nullptr, hf_error *error = nullptr) noexcept
    {
        return hf_fetch_forget_tag(get(), tag, forgotten, error);
    }

    [[nodiscard]] hf_status observe(const char *name, hf_leader_fn *changed, void *arg, observer &result,
                                    hf_error *error = nullptr) noexcept
    {
        hf_observer *raw = nullptr;
        hf_status status = hf_election_observe(get(), name, changed, arg, &raw, error);
        result.reset(raw);
        return status;
    }
    [[nodiscard]] hf_status make_cancel(cancel &result, hf_error *error = nullptr) noexcept
    {
        hf_cancel *raw = nullptr;
        hf_status status = hf_cancel_open(get(), &raw, error);
        result.reset(raw);
        return status;
    }
    hf_stats stats() const noexcept
    {
        hf_stats counted = hf_stats();
        hf_client_stats(get(), &counted);
        return counted;
    }
};

} // namespace holdfast
#endif
