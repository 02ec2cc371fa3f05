/* SPDX-License-Identifier: MIT */
/* embedded_test.c - the embedded server: one for any number of processes that join, leave and die. */
#include "base/clock.h"
#include "base/random.h"
#include "pool/embedded.h"
#include "tests/support/fds.h"
#include "tests/support/passing_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 6 };

struct fixture {
    char name[33], runtime[32], folder[104], socket[128];
    /* Shared with the workers. */
    struct shared {
        _Atomic(int) stop, joined, started, failed;
        char failure[384];
    } * shared;
};

static int64_t in_ms(int64_t ms)
{
    return hfi_after_ms(hfi_now(&hfi_boottime), ms);
}

/* In a folder of this test's own, as a login has one. */
static int set_up(void **state)
{
    static int number;
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->name, sizeof f->name, "test-%d-%d", (int)getpid(), ++number);
    (void)snprintf(f->runtime, sizeof f->runtime, "/tmp/holdfast-test-XXXXXX");
    if (mkdtemp(f->runtime) == NULL || setenv("XDG_RUNTIME_DIR", f->runtime, 1) != 0)
        return -1;
    (void)snprintf(f->folder, sizeof f->folder, "%s/holdfast-%s", f->runtime, f->name);
    (void)snprintf(f->socket, sizeof f->socket, "%s/redis.sock", f->folder);
    f->shared = mmap(NULL, sizeof *f->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *state = f;
    return f->shared == MAP_FAILED;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_all(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    remove_all(f->runtime);
    (void)munmap(f->shared, sizeof *f->shared);
    free(f);
    return 0;
}

/* The number of sockets that listen under the path, and the sum of their inodes. The kernel tells them in pieces: a
 * socket of one piece may be gone when another one of the next is made. */
static int listeners_told(const struct fixture *f, unsigned long *inodes)
{
    char line[300];
    int count = 0;
    FILE *sockets = fopen("/proc/net/unix", "re");
    *inodes = 0;
    while (sockets != NULL && fgets(line, sizeof line, sockets) != NULL) {
        unsigned flags = 0;
        unsigned long inode = 0;
        bool known = sscanf(line, "%*[^:]: %*s %*s %x %*s %*s %lu", &flags, &inode) == 2;
        if (known && (flags & 0x10000) != 0 && strstr(line, f->socket) != NULL) {
            count++;
            *inodes += inode;
        }
    }
    if (sockets != NULL)
        (void)fclose(sockets);
    return count;
}

/* Two servers are two, also when the second took the path over. What is told twice was there in between. */
static int listeners(const struct fixture *f)
{
    unsigned long before, after;
    int count;
    (void)listeners_told(f, &after);
    do {
        before = after;
        count = listeners_told(f, &after);
    } while (before != after);
    return count;
}

/* The number of processes with the socket in their command line: servers, also one that does not listen yet. */
static int processes(const struct fixture *f)
{
    DIR *all = opendir("/proc");
    struct dirent *one;
    int count = 0;
    while (all != NULL && (one = readdir(all)) != NULL) {
        char path[300], line[512] = "";
        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", one->d_name);
        int fd = one->d_name[0] >= '0' && one->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t size = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
        count += size > 0 && memmem(line, (size_t)size, f->socket, strlen(f->socket)) != NULL;
        if (fd >= 0)
            (void)close(fd);
    }
    if (all != NULL)
        (void)closedir(all);
    return count;
}

static bool run_id(const char *path, char *out, size_t room)
{
    char info[8192];
    if (!hft_passing_ask(path, info, sizeof info, "INFO server"))
        return false;
    const char *at = strstr(info, "run_id:");
    (void)snprintf(out, room, "%.40s", at != NULL ? at + 7 : "");
    return at != NULL;
}

static void nap_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

static bool is_gone(const struct fixture *f)
{
    int64_t until_ns = in_ms(20000);
    while ((listeners(f) > 0 || processes(f) > 0) && hfi_now(&hfi_boottime) < until_ns)
        nap_ms(2);
    return listeners(f) == 0 && processes(f) == 0;
}

static bool joins(const struct fixture *f, struct hfi_embedded **share, char id[48])
{
    const char *path;
    hf_error error = {0};
    if (hfi_embedded_join(f->name, in_ms(20000), share, &path, &error) == HF_OK)
        return run_id(path, id, 48);
    print_error("%s: %s\n", error.message, error.hint);
    return false;
}

/* A worker joins, uses the server and leaves, again and again, until it is told to stop or is killed. */
static void work(struct fixture *f, bool stay)
{
    struct shared *shared = f->shared;
    uint64_t rng = (uint64_t)getpid();
    while (!atomic_load(&shared->stop)) {
        struct hfi_embedded *share;
        const char *path;
        char text[64];
        hf_error error;
        if (hfi_embedded_join(f->name, in_ms(20000), &share, &path, &error) != HF_OK) {
            (void)snprintf(shared->failure, sizeof shared->failure, "%s", error.message);
            atomic_store(&shared->failed, 1);
            return;
        }
        if (!hft_passing_ask(path, text, sizeof text, "INCR joined")) {
            (void)snprintf(shared->failure, sizeof shared->failure, "joined, but INCR got no answer");
            atomic_store(&shared->failed, 1);
            return;
        }
        (void)atomic_fetch_add(&shared->joined, 1);
        (void)atomic_fetch_add(&shared->started, strcmp(text, "1") == 0);
        while (stay)
            (void)pause();
        hfi_embedded_leave(share);
        nap_ms((int)(hfi_rng_next(&rng) % 60)); /* so that now and then nobody is left */
    }
}

static pid_t start_worker(struct fixture *f, bool stay)
{
    pid_t pid = fork();
    if (pid == 0) {
        work(f, stay);
        _exit(0);
    }
    return pid;
}

static void the_last_one_to_leave_stops_the_server(void **state)
{
    struct fixture *f = *state;
    struct hfi_embedded *first, *second;
    const char *path, *again;
    char id[2][48] = {"", ""};
    int descriptors = hft_open_descriptors();
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &first, &path, NULL), HF_OK);
    assert_string_equal(path, f->socket);
    assert_true(run_id(path, id[0], sizeof id[0]));
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &second, &again, NULL), HF_OK);
    assert_true(run_id(again, id[1], sizeof id[1]));
    assert_string_equal(id[0], id[1]);
    assert_int_equal(listeners(f), 1);
    hfi_embedded_leave(first);
    assert_int_equal(listeners(f), 1);
    assert_true(run_id(again, id[1], sizeof id[1]));
    hfi_embedded_leave(second);
    assert_true(is_gone(f));
    assert_int_equal(hft_open_descriptors(), descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing of it is a child of ours */
    hfi_embedded_leave(NULL);
}

static void processes_that_come_and_go_at_once_share_one_server(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WORKERS];
    int most = 0;
    for (int i = 0; i < WORKERS; i++)
        pids[i] = start_worker(f, false);
    int64_t until_ns = in_ms(4000);
    while (hfi_now(&hfi_boottime) < until_ns && !atomic_load(&f->shared->failed)) {
        int now = listeners(f);
        most = now > most ? now : most;
    }
    atomic_store(&f->shared->stop, 1);
    for (int i = 0; i < WORKERS; i++)
        (void)waitpid(pids[i], NULL, 0);
    print_message("             %d joined, %d servers\n", f->shared->joined, f->shared->started);
    assert_string_equal(f->shared->failure, "");
    assert_int_equal(most, 1);
    assert_true(f->shared->started > 1 && f->shared->joined > f->shared->started);
    assert_true(is_gone(f));
}

static void a_server_ends_when_all_who_use_it_are_killed_and_not_before(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WORKERS];
    char ids[WORKERS][48];
    pids[0] = start_worker(f, true); /* it starts the server, and is the first to go */
    int64_t until_ns = in_ms(20000);
    while (atomic_load(&f->shared->joined) < 1 && hfi_now(&hfi_boottime) < until_ns)
        nap_ms(5);
    for (int i = 1; i < WORKERS; i++)
        pids[i] = start_worker(f, true);
    while (atomic_load(&f->shared->joined) < WORKERS && hfi_now(&hfi_boottime) < until_ns)
        nap_ms(5);
    for (int i = 0; i < WORKERS; i++) {
        if (!run_id(f->socket, ids[i], sizeof ids[i]))
            ids[i][0] = 0;
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    assert_true(is_gone(f));
    assert_int_equal(f->shared->joined, WORKERS);
    assert_int_equal(strlen(ids[0]), 40);
    for (int i = 1; i < WORKERS; i++)
        assert_string_equal(ids[i], ids[0]);
}

static void killing_processes_at_any_moment_never_makes_two_servers(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WORKERS];
    uint64_t rng = 3;
    int most = 0, kills = 0;
    for (int i = 0; i < WORKERS; i++)
        pids[i] = start_worker(f, false);
    int64_t until_ns = in_ms(5000);
    while (hfi_now(&hfi_boottime) < until_ns && !atomic_load(&f->shared->failed)) {
        nap_ms((int)(hfi_rng_next(&rng) % 15));
        int which = (int)(hfi_rng_next(&rng) % WORKERS), now = listeners(f);
        most = now > most ? now : most;
        (void)kill(pids[which], SIGKILL);
        (void)waitpid(pids[which], NULL, 0);
        pids[which] = start_worker(f, false);
        kills++;
    }
    atomic_store(&f->shared->stop, 1);
    for (int i = 0; i < WORKERS; i++)
        (void)waitpid(pids[i], NULL, 0);
    struct hfi_embedded *share;
    const char *path;
    hf_error error = {0};
    hf_status status = hfi_embedded_join(f->name, in_ms(20000), &share, &path, &error);
    hfi_embedded_leave(share);
    print_message("             %d joined, %d servers, %d killed\n", f->shared->joined, f->shared->started,
                  kills);
    assert_string_equal(f->shared->failure, "");
    assert_string_equal(error.message, "");
    assert_int_equal(status, HF_OK);
    assert_int_equal(most, 1);
    assert_true(is_gone(f));
}

static void a_server_that_does_not_obey_is_killed(void **state)
{
    struct fixture *f = *state;
    struct hfi_embedded *share;
    const char *path;
    char info[8192];
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &share, &path, NULL), HF_OK);
    assert_true(hft_passing_ask(path, info, sizeof info, "INFO server"));
    const char *at = strstr(info, "process_id:");
    assert_non_null(at);
    (void)kill((pid_t)atoi(at + 11), SIGSTOP);
    hfi_embedded_leave(share);
    assert_true(is_gone(f));
}

static void a_server_that_was_killed_is_replaced_and_the_older_members_keep_the_next_one_too(void **state)
{
    const struct fixture *f = *state;
    struct hfi_embedded *first, *second;
    char id[2][48] = {"", ""}, text[8192];
    assert_true(joins(f, &first, id[0]));
    assert_true(hft_passing_ask(f->socket, text, sizeof text, "INFO server"));
    assert_int_equal(kill((pid_t)atoi(strstr(text, "process_id:") + 11), SIGKILL), 0);
    assert_true(is_gone(f));
    assert_true(joins(f, &second, id[1]));
    assert_string_not_equal(id[0], id[1]);
    hfi_embedded_leave(second);
    assert_true(run_id(f->socket, id[0], sizeof id[0]));
    assert_string_equal(id[0], id[1]);
    hfi_embedded_leave(first);
    assert_true(is_gone(f));
}

/* As cleaners of temporary files do, who leave sockets in use alone. */
static void files_that_a_cleaner_removes_make_no_second_server(void **state)
{
    const struct fixture *f = *state;
    static const char *const files[] = {"members", "start.lock", "server.lock", "server.log", "server.pid"};
    struct hfi_embedded *first, *second;
    char id[2][48] = {"", ""}, path[160];
    assert_true(joins(f, &first, id[0]));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f->folder, files[i]);
        (void)unlink(path);
    }
    assert_true(joins(f, &second, id[1]));
    assert_int_equal(listeners(f), 1);
    assert_string_equal(id[0], id[1]);
    hfi_embedded_leave(first);
    assert_true(run_id(f->socket, id[0], sizeof id[0]));
    hfi_embedded_leave(second);
    assert_true(is_gone(f));
}

static void where_folder_or_socket_were_removed_nobody_else_gets_in_until_the_last_one_is_gone(void **state)
{
    const struct fixture *f = *state;
    struct hfi_embedded *first, *second;
    char id[2][48] = {"", ""};
    for (int round = 0; round < 2; round++) {
        const char *path;
        hf_error error = {0};
        assert_true(joins(f, &first, id[0]));
        if (round == 0)
            remove_all(f->folder);
        else
            assert_int_equal(unlink(f->socket), 0);
        assert_int_equal(hfi_embedded_join(f->name, in_ms(300), &second, &path, &error), HF_UNAVAILABLE);
        assert_non_null(strstr(error.message, round == 0 ? "its folder was removed" : "its socket was removed"));
        assert_int_equal(listeners(f), 1);
        hfi_embedded_leave(first);
        assert_true(joins(f, &second, id[1]));
        assert_string_not_equal(id[0], id[1]);
        hfi_embedded_leave(second);
        assert_true(is_gone(f));
    }
}

static void a_folder_of_the_login_comes_first_and_one_that_runs_elsewhere_before(void **state)
{
    struct fixture *f = *state;
    struct hfi_embedded *elsewhere, *here;
    char id[2][48] = {"", ""}, folder[96];
    const char *path, *again;
    (void)snprintf(folder, sizeof folder, "/tmp/holdfast-%d-%s", (int)geteuid(), f->name);
    assert_int_equal(chmod(f->runtime, 0755), 0); /* others may enter it: it is none */
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &elsewhere, &path, NULL), HF_OK);
    assert_null(strstr(path, f->runtime));
    assert_true(run_id(path, id[0], sizeof id[0]));
    assert_int_equal(chmod(f->runtime, 0700), 0);
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &here, &again, NULL), HF_OK);
    assert_string_equal(path, again);
    assert_true(run_id(again, id[1], sizeof id[1]));
    assert_string_equal(id[0], id[1]);
    hfi_embedded_leave(elsewhere);
    hfi_embedded_leave(here);
    assert_int_equal(hfi_embedded_join(f->name, in_ms(20000), &here, &path, NULL), HF_OK);
    assert_string_equal(path, f->socket);
    hfi_embedded_leave(here);
    assert_true(is_gone(f));
    remove_all(folder);
}

static void a_folder_that_is_not_ours_alone_is_refused(void **state)
{
    struct fixture *f = *state;
    struct hfi_embedded *share;
    const char *path;
    hf_error error;
    assert_int_equal(symlink("/tmp", f->folder), 0);
    assert_int_equal(hfi_embedded_join(f->name, in_ms(1000), &share, &path, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "not a folder of ours"));
    assert_null(share);
    assert_int_equal(unlink(f->folder), 0);

    assert_int_equal(mkdir(f->folder, 0700), 0);
    assert_int_equal(chmod(f->folder, 0750), 0);
    assert_int_equal(hfi_embedded_join(f->name, in_ms(1000), &share, &path, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "entered by other users"));
    if (geteuid() == 0) {
        assert_int_equal(chmod(f->folder, 0700), 0);
        assert_int_equal(chown(f->folder, 65534, 65534), 0);
        assert_int_equal(hfi_embedded_join(f->name, in_ms(1000), &share, &path, &error), HF_UNAVAILABLE);
        assert_non_null(strstr(error.message, "belongs to another user"));
    }
    assert_int_equal(processes(f), 0);
}

static void a_folder_that_another_user_has_made_in_tmp_is_passed_by(void **state)
{
    const struct fixture *f = *state;
    struct hfi_embedded *share;
    char folder[96], id[48] = "";
    (void)snprintf(folder, sizeof folder, "/tmp/holdfast-%d-%s", (int)geteuid(), f->name);
    assert_int_equal(mkdir(folder, 0755), 0); /* as good as his */
    bool joined = joins(f, &share, id);
    assert_int_equal(rmdir(folder), 0);
    assert_true(joined);
    hfi_embedded_leave(share);
    assert_true(is_gone(f));
}

static void without_a_redis_server_the_error_says_what_to_install(void **state)
{
    struct fixture *f = *state;
    struct hfi_embedded *share;
    const char *path;
    hf_error error;
    char *search = strdup(getenv("PATH"));
    (void)setenv("PATH", "/nowhere", 1);
    hf_status status = hfi_embedded_join(f->name, in_ms(1000), &share, &path, &error);
    (void)setenv("PATH", search, 1);
    free(search);
    assert_int_equal(status, HF_UNAVAILABLE);
    assert_non_null(strstr(error.hint, "apt install redis-server"));
    assert_int_equal(error.os_errno, ENOENT);
}

static void none_of_its_descriptors_is_a_standard_one(void **state)
{
    const struct fixture *f = *state;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct hfi_embedded *share;
        const char *path;
        int found = 0;
        for (int fd = 0; fd <= 2; fd++)
            (void)close(fd);
        if (hfi_embedded_join(f->name, in_ms(20000), &share, &path, NULL) != HF_OK)
            _exit(64);
        for (int fd = 0; fd <= 2; fd++)
            found |= fcntl(fd, F_GETFD) >= 0 ? 1 << fd : 0;
        hfi_embedded_leave(share);
        _exit(found);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* In a child: leaves so many descriptors free, and tries. */
static void try_with(const struct fixture *f, int spare)
{
    struct rlimit few;
    struct hfi_embedded *share;
    const char *path;
    int taken[64], count = 0;
    if (getrlimit(RLIMIT_NOFILE, &few) != 0)
        _exit(64);
    few.rlim_cur = 64;
    (void)setrlimit(RLIMIT_NOFILE, &few);
    while (count < 64 && (taken[count] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    while (spare-- > 0 && count > 0)
        (void)close(taken[--count]);
    if (hfi_embedded_join(f->name, in_ms(2000), &share, &path, NULL) == HF_OK)
        hfi_embedded_leave(share);
    _exit(0);
}

static void where_descriptors_are_short_no_server_is_left_that_does_not_end(void **state)
{
    struct fixture *f = *state;
    for (int spare = 2; spare <= 12; spare++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            try_with(f, spare);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(is_gone(f));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(where_descriptors_are_short_no_server_is_left_that_does_not_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_one_to_leave_stops_the_server, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_that_come_and_go_at_once_share_one_server, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_ends_when_all_who_use_it_are_killed_and_not_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(killing_processes_at_any_moment_never_makes_two_servers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_does_not_obey_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_server_that_was_killed_is_replaced_and_the_older_members_keep_the_next_one_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_a_cleaner_removes_make_no_second_server, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            where_folder_or_socket_were_removed_nobody_else_gets_in_until_the_last_one_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_of_the_login_comes_first_and_one_that_runs_elsewhere_before, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_ours_alone_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_another_user_has_made_in_tmp_is_passed_by, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_of_its_descriptors_is_a_standard_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_redis_server_the_error_says_what_to_install, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
