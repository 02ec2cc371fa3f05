/* SPDX-License-Identifier: MIT */
/* reset_test.c - connection state that survives RESET, or a server without RESET: a returned connection is as good
 * as new, or is not lent again. */
#include "pool/borrow.h"
#include "pool/node.h"
#include "pool/pool_private.h"
#include "tests/support/pool_kit.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

struct fixture {
    struct hft_server *server;
    struct hft_pool kit;
};

static int set_up_with(void **state, const char *config)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(config);
    hft_pool_init(&f->kit, f->server);
    f->kit.settings.max_connections = 2;
    f->kit.settings.idle_ms = f->kit.settings.lifetime_ms = 3600000;
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, NULL);
}

static int set_up_password(void **state)
{
    return set_up_with(state, "user me on >secret ~* &* +@all\nuser default off");
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hft_pool_close(&f->kit);
    free(f->kit.settings.endpoint.user);
    free(f->kit.settings.endpoint.password);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static struct hfi_borrowed *borrow(struct fixture *f)
{
    struct hfi_borrowed *borrowed;
    hf_error error;
    if (hfi_borrow(f->kit.pool, hft_in_ms(20000), &borrowed, &error) != HF_OK)
        fail_msg("%s", error.message);
    return borrowed;
}

static void say(struct hfi_borrowed *borrowed, const char *command)
{
    redisReply *reply = redisCommand(hfi_borrowed_context(borrowed), command);
    assert_non_null(reply);
    freeReplyObject(reply);
}

/* The word behind ` name=` in CLIENT INFO. */
static void look(struct hfi_borrowed *borrowed, const char *name, char *out, size_t room)
{
    redisReply *reply = redisCommand(hfi_borrowed_context(borrowed), "CLIENT INFO");
    assert_non_null(reply);
    const char *at = strstr(reply->str, name);
    assert_non_null(at);
    (void)snprintf(out, room, "%.*s", (int)strcspn(at + strlen(name), " \n"), at + strlen(name));
    freeReplyObject(reply);
}

/* One borrower says both (NULL: the first alone) and gives the connection back. Returns the next one; *is_same: by the same connection. */
static struct hfi_borrowed *hand_on(struct fixture *f, const char *first, const char *then, bool *is_same)
{
    char before[32], after[32];
    struct hfi_borrowed *borrowed = borrow(f);
    look(borrowed, "id=", before, sizeof before);
    say(borrowed, first);
    if (then != NULL)
        say(borrowed, then);
    hfi_borrow_return(borrowed);
    borrowed = borrow(f);
    look(borrowed, "id=", after, sizeof after);
    *is_same = strcmp(before, after) == 0;
    return borrowed;
}

static void leaves_eviction_as_it_was(struct fixture *f, const char *besides)
{
    char flags[32];
    bool is_same;
    struct hfi_borrowed *borrowed = hand_on(f, "CLIENT NO-EVICT on", besides, &is_same);
    look(borrowed, " flags=", flags, sizeof flags);
    hfi_borrow_return(borrowed);
    assert_null(strchr(flags, 'e'));
    assert_true(is_same || besides != NULL); /* not thrown away for it */
}

static void leaves_no_debugger(struct fixture *f, const char *mode, const char *besides)
{
    bool is_same;
    struct hfi_borrowed *borrowed = hand_on(f, mode, besides, &is_same);
    redisReply *reply = redisCommand(hfi_borrowed_context(borrowed), "EVAL %s 0", "return 42");
    bool answered = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 42;
    freeReplyObject(reply);
    hfi_borrow_discard(borrowed);
    if (!answered)
        fail_msg("after %s and %s a script is stopped at its first line", mode, besides != NULL ? besides : "nothing");
    assert_true(is_same);
}

static void debugs_nobody(struct fixture *f)
{
    static const char *const modes[] = {"SCRIPT DEBUG YES", "SCRIPT DEBUG SYNC"}, *const all[] = {NULL, "MULTI", "SUBSCRIBE c"};
    for (int i = 0; i < 6; i++)
        leaves_no_debugger(f, modes[i % 2], all[i / 2]);
}

static void open_pool(struct fixture *f)
{
    hf_error error;
    if (hft_pool_open(&f->kit, NULL, &error) != HF_OK)
        fail_msg("%s", error.message);
}

static void the_next_borrower_may_be_evicted_again(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    leaves_eviction_as_it_was(f, NULL);
    leaves_eviction_as_it_was(f, "MULTI");
    leaves_eviction_as_it_was(f, "SUBSCRIBE c");
}

static void the_next_borrower_may_be_evicted_again_where_there_is_a_password(void **state)
{
    struct fixture *f = *state;
    f->kit.settings.endpoint.user = strdup("me");
    f->kit.settings.endpoint.password = strdup("secret");
    open_pool(f);
    leaves_eviction_as_it_was(f, NULL);
    leaves_eviction_as_it_was(f, "MULTI");
    leaves_eviction_as_it_was(f, "SUBSCRIBE c");
}

static void the_next_borrowers_scripts_are_not_debugged(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    debugs_nobody(f);
}

static void the_next_borrowers_scripts_are_not_debugged_where_there_is_a_password(void **state)
{
    struct fixture *f = *state;
    f->kit.settings.endpoint.user = strdup("me");
    f->kit.settings.endpoint.password = strdup("secret");
    open_pool(f);
    debugs_nobody(f);
}

static void before_reset_was_known_they_are_not_debugged_either(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    struct hfi_borrowed *borrowed = borrow(f);
    hfi_borrow_return(borrowed);
    (void)hfi_peer_note_server(&f->kit.pool->node->peer, &(struct hfi_server){.version = 60009});
    leaves_no_debugger(f, "SCRIPT DEBUG YES", "MULTI");
}

/* HELLO 3 as a program with hiredis 1.x could send it; the test's own hiredis cannot read the answer. */
static void say_hello_3(struct hfi_borrowed *borrowed)
{
    int fd = hfi_borrowed_context(borrowed)->fd;
    char bytes[4096];
    struct pollfd readable = {fd, POLLIN, 0};
    assert_int_equal(send(fd, "HELLO 3\r\n", 9, 0), 9);
    assert_int_equal(poll(&readable, 1, 20000), 1);
    assert_true(recv(fd, bytes, sizeof bytes, 0) > 0);
}

static void before_reset_was_known_the_protocol_goes_back_too(void **state)
{
    struct fixture *f = *state;
    char resp[32];
    open_pool(f);
    struct hfi_borrowed *borrowed = borrow(f);
    (void)hfi_peer_note_server(&f->kit.pool->node->peer, &(struct hfi_server){.version = 60009});
    say_hello_3(borrowed);
    hfi_borrow_return(borrowed);
    borrowed = borrow(f);
    look(borrowed, " resp=", resp, sizeof resp);
    hfi_borrow_return(borrowed);
    assert_string_equal(resp, "2");
    assert_int_equal(hft_server_ask_integer(f->server, "DBSIZE"), 0);
}

/* As a user who has no right to switch it off again. */
static void nor_where_the_last_one_has_become_a_weaker_user(void **state)
{
    struct fixture *f = *state;
    open_pool(f);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER weak on >pw -@all"));
    leaves_no_debugger(f, "SCRIPT DEBUG YES", "AUTH weak pw");
}

/* As whoever one borrower has authenticated, the next one is the URI's user again, by the same connection. */
static void leaves_no_user(struct fixture *f, int version, const char *besides)
{
    bool is_same;
    open_pool(f);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER alice on >pw ~* &* +@all"));
    hfi_borrow_return(borrow(f)); /* it is dialled, and the version is learned */
    (void)hfi_peer_note_server(&f->kit.pool->node->peer, &(struct hfi_server){.version = version});
    struct hfi_borrowed *borrowed = hand_on(f, "AUTH alice pw", besides, &is_same);
    redisReply *reply = redisCommand(hfi_borrowed_context(borrowed), "ACL WHOAMI");
    assert_non_null(reply);
    assert_string_equal(reply->str, "default");
    freeReplyObject(reply);
    hfi_borrow_return(borrowed);
    assert_true(is_same);
}

static void the_next_borrower_is_not_who_the_last_one_was(void **state)
{
    leaves_no_user(*state, 70000, "SUBSCRIBE c");
}

static void before_reset_was_known_he_is_not_either(void **state)
{
    leaves_no_user(*state, 60009, NULL);
}

static void nor_while_nobody_has_learned_the_version(void **state)
{
    leaves_no_user(*state, 0, "SUBSCRIBE c"); /* which nothing but RESET ends */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_next_borrower_may_be_evicted_again),
        cmocka_unit_test_setup_teardown(the_next_borrower_may_be_evicted_again_where_there_is_a_password, set_up_password,
                                        tear_down),
        TEST(the_next_borrowers_scripts_are_not_debugged),
        cmocka_unit_test_setup_teardown(the_next_borrowers_scripts_are_not_debugged_where_there_is_a_password,
                                        set_up_password, tear_down),
        TEST(before_reset_was_known_the_protocol_goes_back_too),
        TEST(before_reset_was_known_they_are_not_debugged_either),
        TEST(nor_where_the_last_one_has_become_a_weaker_user),
        TEST(the_next_borrower_is_not_who_the_last_one_was),
        TEST(before_reset_was_known_he_is_not_either),
        TEST(nor_while_nobody_has_learned_the_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
