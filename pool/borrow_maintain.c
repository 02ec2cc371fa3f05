/* SPDX-License-Identifier: MIT */
/* borrow_maintain.c - the listener's part of the borrowed connections: closes idle ones, reports leaks, fills up to
 * min_connections. */
#include "pool/borrow_private.h"
#include "pool/borrowers.h"
#include "pool/dial.h"
#include "pool/times.h"

static bool may_close_idle(const struct hfi_borrowers *all, const struct hfi_borrowed *borrowed, int left,
                           int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &all->deployment->settings;
    if (now_ns >= borrowed->dies_ns)
        return true;
    return settings->idle_ms > 0 && left > settings->min_connections &&
           now_ns >= hfi_after_ms(borrowed->idle_since_ns, settings->idle_ms);
}

/* Closes idle connections that have been idle or alive for too long. */
static void close_idle(struct hfi_borrowers *all, int64_t now_ns)
{
    struct hfi_list old;
    hfi_list_init(&old);
    hfi_borrowers_lock(all);
    int left = all->total;
    for (struct hfi_list *link = all->idle.next, *next; link != &all->idle; link = next) {
        next = link->next;
        if (!may_close_idle(all, hfi_container_of(link, struct hfi_borrowed, link), left, now_ns))
            continue;
        (void)hfi_borrow_take_idle_locked(all, link);
        hfi_list_append(&old, link);
        left--;
    }
    hfi_borrowers_unlock(all);
    while (!hfi_list_is_empty(&old)) {
        struct hfi_borrowed *borrowed = hfi_list_first(&old, struct hfi_borrowed, link);
        hfi_list_remove(&borrowed->link);
        hfi_borrow_destroy(borrowed);
        hfi_borrowers_lock(all);
        hfi_borrow_pass_on_right_locked(all);
        hfi_borrowers_unlock(all);
    }
}

/* Logs connections that are out for too long, each once. */
static void report_leaks(struct hfi_borrowers *all, int64_t now_ns)
{
    int leaks = 0;
    int64_t longest_ns = 0;
    hfi_borrowers_lock(all);
    for (struct hfi_list *link = all->out.next; link != &all->out; link = link->next) {
        struct hfi_borrowed *borrowed = hfi_container_of(link, struct hfi_borrowed, link);
        int64_t out_ns = now_ns - borrowed->out_since_ns;
        if (borrowed->reported || out_ns < HFI_LEAK_AFTER_NS)
            continue;
        borrowed->reported = true;
        leaks++;
        longest_ns = out_ns > longest_ns ? out_ns : longest_ns;
    }
    hfi_borrowers_unlock(all);
    if (leaks > 0)
        hfi_log(&all->deployment->log, HF_LOG_INFO,
                "%d connection(s) to %s borrowed %lld s ago and not returned yet", leaks,
                all->peer->name, (long long)(longest_ns / HFI_SECOND));
}

static bool begin_fill(struct hfi_borrowers *all, int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &all->deployment->settings;
    hfi_borrowers_lock(all);
    bool begin =
        all->total < settings->min_connections && all->total < all->slots && now_ns >= all->down_until_ns;
    all->total += begin ? 1 : 0;
    all->dialing += begin ? 1 : 0;
    hfi_borrowers_unlock(all);
    return begin;
}

/* The listener's own dial has ended. */
static void end_fill(struct hfi_borrowers *all, bool up, int64_t now_ns)
{
    struct hfi_borrowed *borrowed = up ? hfi_borrow_wrap(all, hfi_dial_take(all->dial), all->fill_redirections, now_ns) : NULL;
    hfi_borrowers_lock(all);
    all->dialing--;
    if (borrowed != NULL) {
        all->down_until_ns = 0;
        hfi_backoff_up(&all->backoff, now_ns);
        hfi_borrow_pass_on_locked(all, borrowed, now_ns);
    } else {
        if (all->dial != NULL && !up)
            all->why = *hfi_dial_error(all->dial);
        else
            (void)hfi_fail(&all->why, HF_NOMEM, NULL, "no memory for a connection to %s",
                           all->peer->name);
        all->down_until_ns = hfi_backoff_next_ns(&all->backoff, now_ns);
        hfi_borrow_pass_on_right_locked(all);
    }
    hfi_borrowers_unlock(all);
    hfi_dial_end(&all->dial);
}

/* Dials, one at a time, until there are min_connections. */
static void fill(struct hfi_borrowers *all, int64_t now_ns)
{
    while (all->dial != NULL || begin_fill(all, now_ns)) {
        if (all->dial != NULL && !hfi_borrow_is_current(all, all->fill_redirections))
            hfi_dial_end(&all->dial); /* it goes to a server that is not meant any more */
        if (all->dial == NULL) {
            all->fill_redirections = atomic_load(&all->peer->redirections);
            all->dial = hfi_dial_begin(all->peer, HFI_DIAL_BORROWER, -1,
                                       hfi_after_ms(now_ns, all->deployment->settings.connect_ms));
        }
        enum hfi_dial_state state = all->dial != NULL ? hfi_dial_step(all->dial, now_ns) : HFI_DIAL_FAILED;
        if (state == HFI_DIAL_GOING)
            return;
        end_fill(all, state == HFI_DIAL_UP, now_ns);
    }
}

int64_t hfi_borrowers_maintain(struct hfi_borrowers *all, int64_t now_ns, struct hfi_polled *polled)
{
    fill(all, now_ns);
    *polled = hfi_dial_polled(all->dial);
    if (now_ns >= all->maintain_at_ns) {
        close_idle(all, now_ns);
        report_leaks(all, now_ns);
        all->maintain_at_ns = now_ns + HFI_MAINTAIN_EVERY_NS;
    }
    hfi_borrowers_lock(all);
    bool is_needed = all->total > 0 || all->deployment->settings.min_connections > 0;
    int64_t again_ns = is_needed ? all->maintain_at_ns : HFI_NEVER;
    if (all->dial == NULL && all->down_until_ns > now_ns && all->total < all->deployment->settings.min_connections)
        again_ns = all->down_until_ns < again_ns ? all->down_until_ns : again_ns;
    hfi_borrowers_unlock(all);
    if (all->dial != NULL && hfi_dial_again_ns(all->dial) < again_ns)
        again_ns = hfi_dial_again_ns(all->dial);
    return again_ns;
}
