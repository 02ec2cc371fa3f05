/* SPDX-License-Identifier: MIT */
/* locks.c - holdfast ls, show and break: an operator's view of the locks and semaphores. */
#include "cli.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELL = 2100, COLUMNS = 9 }; /* a cell holds 512 bytes of a name, each shown as \xNN */

struct table {
    char **cells; /* COLUMNS of them make a row */
    size_t rows;
    bool   no_memory;
};

static const char *const titles[COLUMNS] = {"NAME", "HOST",    "PID",   "LABEL",  "HELD",
                                            "LEFT", "WAITING", "FENCE", "PERMITS"}; /* the last of semaphores only */

static void seconds(char *out, size_t room, int64_t ms)
{
    if (ms < 0)
        (void)snprintf(out, room, "-");
    else
        (void)snprintf(out, room, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
}

static void count(char *out, size_t room, int64_t number)
{
    if (number < 0)
        (void)snprintf(out, room, "-");
    else
        (void)snprintf(out, room, "%" PRId64, number);
}

/* Label, fence and hold time are known to the holder alone, which may be dead. */
static bool answers(const hf_holder *holder)
{
    return holder->foreign_value == NULL && holder->held_ms >= 0;
}

/* Leaves the object open: the caller writes the last brace. */
static void print_json(const hf_holder *holder, bool semaphore)
{
    bool ours = holder->foreign_value == NULL;
    (void)fputs("{\"name\":", stdout);
    json_string(holder->name);
    (void)fputs(",\"host\":", stdout);
    json_string(ours ? holder->host : NULL);
    (void)fputs(",\"pid\":", stdout);
    json_number(ours ? holder->pid : -1, 0);
    (void)fputs(",\"label\":", stdout);
    json_string(answers(holder) ? holder->label : NULL);
    (void)fputs(",\"held_ms\":", stdout);
    json_number(ours ? holder->held_ms : -1, 0);
    (void)fputs(",\"remaining_ms\":", stdout);
    json_number(holder->remaining_ms, 0);
    (void)fputs(",\"waiting\":", stdout);
    json_number(holder->waiting, 0);
    (void)fputs(",\"fence\":", stdout); /* a string: it has more digits than a JavaScript number keeps */
    if (answers(holder))
        (void)printf("\"%" PRId64 "\"", holder->fence);
    else
        json_string(NULL);
    (void)fputs(",\"foreign_value\":", stdout);
    json_string(holder->foreign_value);
    if (semaphore)
        (void)printf(",\"permits\":%" PRId64, holder->permits);
    else
        (void)fputs(holder->shared ? ",\"shared\":true" : ",\"shared\":false", stdout);
}

struct listing {
    size_t count;
    bool   semaphore;
};

static bool add_json(const hf_holder *holder, void *arg)
{
    struct listing *listing = arg;
    (void)fputs(listing->count++ == 0 ? "[" : ",\n ", stdout);
    print_json(holder, listing->semaphore);
    (void)putchar('}');
    return true;
}

static bool add_row(const hf_holder *holder, void *arg)
{
    struct table *table = arg;
    char **cells = realloc(table->cells, (table->rows + 1) * COLUMNS * sizeof *cells);
    if (cells == NULL) {
        table->no_memory = true;
        return false;
    }
    table->cells = cells;
    char cell[COLUMNS][CELL];
    bool foreign = holder->foreign_value != NULL;
    char name[CELL - sizeof " (shared)"];
    (void)snprintf(cell[0], CELL, "%s%s", cli_plain(holder->name, name, sizeof name), holder->shared ? " (shared)" : "");
    (void)cli_plain(foreign ? "(another library)" : holder->host, cell[1], CELL);
    count(cell[2], CELL, foreign ? -1 : holder->pid);
    (void)cli_plain(foreign ? holder->foreign_value : answers(holder) ? holder->label : "(does not answer)", cell[3], CELL);
    seconds(cell[4], CELL, foreign ? -1 : holder->held_ms);
    seconds(cell[5], CELL, holder->remaining_ms);
    count(cell[6], CELL, holder->waiting);
    count(cell[7], CELL, answers(holder) ? holder->fence : -1);
    count(cell[8], CELL, holder->permits);
    char **row = cells + table->rows * COLUMNS;
    for (int i = 0; i < COLUMNS; i++)
        if ((row[i] = strdup(cell[i][0] != 0 ? cell[i] : "-")) == NULL)
            table->no_memory = true;
    table->rows++;
    return !table->no_memory;
}

static void print_table(const struct table *table, int columns)
{
    int width[COLUMNS];
    for (int i = 0; i < columns; i++) {
        width[i] = (int)strlen(titles[i]);
        for (size_t row = 0; row < table->rows; row++) {
            int length = (int)strlen(table->cells[row * COLUMNS + (size_t)i]);
            width[i] = length > width[i] ? length : width[i];
        }
    }
    for (size_t row = 0; row <= table->rows; row++) {
        const char *const *cells = titles;
        if (row > 0)
            cells = (const char *const *)table->cells + (row - 1) * COLUMNS;
        for (int i = 0; i < columns - 1; i++)
            (void)printf("%-*s  ", width[i], cells[i]);
        (void)printf("%s\n", cells[columns - 1]);
    }
}

static int list_table(hf_client *client, const char *glob, bool semaphore)
{
    struct table table = {NULL, 0, false};
    hf_error error;
    int code = CLI_DONE;
    if ((semaphore ? hf_semaphore_list : hf_lock_list)(client, glob, add_row, &table, &error) != HF_OK) {
        code = cli_failed(&error);
    } else if (table.no_memory) {
        cli_say("out of memory listing the locks");
        code = CLI_OS;
    } else if (table.rows > 0) {
        print_table(&table, semaphore ? COLUMNS : COLUMNS - 1);
    }
    for (size_t i = 0; i < table.rows * COLUMNS; i++)
        free(table.cells[i]);
    free(table.cells);
    return code;
}

/* After a failure the array stays open, so that no reader takes it for complete. */
static int list_json(hf_client *client, const char *glob, bool semaphore)
{
    struct listing listing = {.semaphore = semaphore};
    hf_error error;
    if ((semaphore ? hf_semaphore_list : hf_lock_list)(client, glob, add_json, &listing, &error) != HF_OK)
        return cli_failed(&error);
    (void)puts(listing.count == 0 ? "[]" : "]");
    return CLI_DONE;
}

int command_ls(int argc, char **argv)
{
    struct cli_look look = {.most = 1, .has_json = true, .has_semaphore = true, .only_looks = true};
    hf_client *client;
    int code;
    if (!cli_look(argc, argv, &look, &client, &code))
        return code;
    const char *glob = optind < argc ? argv[optind] : "*";
    code = look.json ? list_json(client, glob, look.semaphore) : list_table(client, glob, look.semaphore);
    (void)hf_client_close(client, NULL);
    return code;
}

static void since(char *out, size_t room, int64_t held_ms)
{
    time_t then = time(NULL) - (time_t)(held_ms / 1000);
    struct tm parts;
    if (localtime_r(&then, &parts) == NULL || strftime(out, room, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        (void)snprintf(out, room, "-");
}

static void print_holder(const hf_holder *holder, bool semaphore)
{
    char text[CELL], when[64];
    if (semaphore)
        (void)printf("permits    %" PRId64 "\n", holder->permits);
    if (holder->foreign_value != NULL) {
        (void)printf("holder     another library: %s\n", cli_plain(holder->foreign_value, text, CELL));
    } else {
        (void)printf("host       %s\n", cli_plain(holder->host, text, CELL));
        (void)printf("pid        %" PRId64 "\n", holder->pid);
        if (answers(holder)) {
            (void)printf("label      %s\n", cli_plain(holder->label, text, CELL));
            since(when, sizeof when, holder->held_ms);
            seconds(text, CELL, holder->held_ms);
            (void)printf("since      %s (%s)\n", when, text);
            (void)printf("fence      %" PRId64 "\n", holder->fence);
        } else {
            (void)printf("answers    no\n");
        }
    }
    if (holder->remaining_ms >= 0) {
        seconds(text, CELL, holder->remaining_ms);
        (void)printf("remaining  %s\n", text);
    }
}

struct showing {
    bool json, semaphore;
    int count; /* of holders: one, or all readers, or all grants of a semaphore */
    int64_t waiting;
};

static bool show(const hf_holder *holder, void *arg)
{
    struct showing *showing = arg;
    char text[CELL];
    int before = showing->count++;
    showing->waiting = holder->waiting;
    if (showing->json && before > 0)
        (void)fputs(before == 1 ? ",\"others\":[" : "},", stdout);
    if (showing->json) {
        print_json(holder, showing->semaphore);
        return true;
    }
    if (before == 0)
        (void)printf("name       %s\n%s", cli_plain(holder->name, text, CELL), holder->shared ? "shared     yes\n" : "");
    else
        (void)puts("and");
    print_holder(holder, showing->semaphore);
    return true;
}

struct line {
    bool json;
    int  count;
};

static bool show_waiter(const hf_waiter *waiter, void *arg)
{
    struct line *line = arg;
    char host[CELL], left[32];
    line->count++;
    if (line->json) {
        (void)fputs(line->count > 1 ? ",{\"host\":" : "{\"host\":", stdout);
        json_string(waiter->host);
        (void)printf(",\"pid\":%" PRId64 ",\"waits_ms\":%" PRId64 "}", waiter->pid, waiter->waits_ms);
    } else {
        seconds(left, sizeof left, waiter->waits_ms);
        (void)printf("           %d. process %" PRId64 " on %s, for %s\n", line->count, waiter->pid,
                     cli_plain(waiter->host, host, CELL), left);
    }
    return true;
}

/* The holder has been shown by now: a failure to list the waiters is printed and does not change the exit code. */
static void show_waiters(hf_client *client, const char *name, const struct showing *showing)
{
    struct line line = {.json = showing->json};
    hf_error error;
    if (showing->json)
        (void)printf("%s,\"waiters\":[", showing->count > 1 ? "}]" : "");
    else if (showing->waiting >= 0)
        (void)printf("waiting    %" PRId64 "\n", showing->waiting);
    hf_status (*waiters)(hf_client *, const char *, hf_waiter_fn *, void *, hf_error *) =
        showing->semaphore ? hf_semaphore_waiters : hf_lock_waiters;
    if (showing->waiting > 0 && waiters(client, name, show_waiter, &line, &error) != HF_OK)
        (void)cli_failed(&error);
    if (showing->json)
        (void)fputs("]}", stdout);
}

static hf_status visit_holders(hf_client *client, const struct cli_look *look, const char *name, hf_holder_fn *visit, void *arg,
                               hf_error *error)
{
    return (look->semaphore ? hf_semaphore_info : hf_lock_info)(client, name, visit, arg, error);
}

int command_show(int argc, char **argv)
{
    struct cli_look look = {.least = 1, .most = 1, .has_json = true, .has_semaphore = true, .only_looks = true};
    hf_client *client;
    int code;
    if (!cli_look(argc, argv, &look, &client, &code))
        return code;
    char text[CELL];
    struct showing showing = {.json = look.json, .semaphore = look.semaphore};
    hf_error error;
    if (visit_holders(client, &look, argv[optind], show, &showing, &error) != HF_OK) {
        code = cli_failed(&error);
    } else {
        code = showing.count > 0 ? CLI_DONE : CLI_NO;
        if (showing.count > 0)
            show_waiters(client, argv[optind], &showing);
        if (look.json)
            (void)puts(showing.count > 0 ? "" : "null");
        else if (showing.count == 0)
            (void)printf("%s is free\n", cli_plain(argv[optind], text, CELL));
    }
    (void)hf_client_close(client, NULL);
    return code;
}

/* Those that a lock or permits are taken from. */
struct victims {
    int     alive, silent; /* holders of ours, by whether they answer */
    bool    is_foreign;    /* another library's key */
    int64_t remaining_ms;  /* of the silent one that has it longest */
    char    living[400], quiet[400]; /* one of each: its process */
};

static bool look_at(const hf_holder *holder, void *arg)
{
    struct victims *victims = arg;
    char host[280];
    victims->is_foreign = victims->is_foreign || holder->foreign_value != NULL;
    if (holder->foreign_value != NULL)
        return true;
    bool lives = answers(holder);
    (void)snprintf(lives ? victims->living : victims->quiet, sizeof victims->living, "process %" PRId64 " on %s", holder->pid,
                   cli_plain(holder->host, host, sizeof host));
    victims->alive += lives;
    victims->silent += !lives;
    if (!lives && holder->remaining_ms > victims->remaining_ms)
        victims->remaining_ms = holder->remaining_ms;
    return true;
}

/* A live holder frees the lock at once, or when its time to stop is over. Whether one that does not answer is still
 * at work cannot be known. */
static void say_when_free(hf_client *client, const struct cli_look *look, const char *name, const struct victims *before)
{
    struct victims now = {.silent = 0};
    char plain[CELL], left[32];
    if (before->silent == 0 || visit_holders(client, look, name, look_at, &now, NULL) != HF_OK ||
        now.silent == 0 || strcmp(before->quiet, now.quiet) != 0) /* it has another holder by now */
        return;
    seconds(left, sizeof left, now.remaining_ms);
    (void)cli_plain(name, plain, sizeof plain);
    if (now.silent > 1)
        cli_say("%d holders, %s one of them, did not answer: what they have of %s is free in %s at the latest", now.silent, before->quiet,
                plain, left);
    else
        cli_say("the holder, %s, did not answer: %s is free in %s at the latest", before->quiet, plain, left);
    (void)fprintf(stderr, "  until then it may still be at work; if you know that it is not, --force gives the lock to the "
                          "next waiter now\n");
}

static void say_who_was_alive(const struct victims *before)
{
    if (before->alive > 1)
        cli_say("%d holders, %s one of them, were alive: until they stop, they and the next holder may all be at work", before->alive,
                before->living);
    else if (before->alive == 1)
        cli_say("the holder, %s, was alive: until it stops, it and the next holder may both be at work", before->living);
}

static int left_alone(const char *name)
{
    char plain[CELL];
    cli_say("another library holds %s: nobody there can be asked to stop", cli_plain(name, plain, CELL));
    (void)fprintf(stderr, "  if its holder is gone, --force takes it; holdfast show tells what is there\n");
    return CLI_NO;
}

int command_break(int argc, char **argv)
{
    struct cli_look look = {.least = 1, .most = 1, .has_force = true, .has_semaphore = true};
    hf_client *client;
    int code;
    if (!cli_look(argc, argv, &look, &client, &code))
        return code;
    const char *name = argv[optind];
    char text[CELL];
    bool had_holder = false;
    struct victims victims = {.silent = 0};
    hf_status status;
    hf_error error;
    status = visit_holders(client, &look, name, look_at, &victims, &error);
    if (!look.force && (status != HF_OK || (victims.is_foreign && !look.semaphore))) {
        code = status != HF_OK ? cli_failed(&error) : left_alone(name);
        (void)hf_client_close(client, NULL);
        return code;
    }
    if (look.semaphore)
        status = (look.force ? hf_semaphore_break_now : hf_semaphore_break)(client, name, &had_holder, &error);
    else
        status = (look.force ? hf_lock_break_now : hf_lock_break)(client, name, &had_holder, &error);
    if (status != HF_OK) {
        code = cli_failed(&error);
    } else if (!had_holder) {
        cli_say("nothing to break: %s is free", cli_plain(name, text, CELL));
        code = CLI_NO;
    } else if (look.force) {
        say_who_was_alive(&victims);
    } else {
        say_when_free(client, &look, name, &victims);
    }
    (void)hf_client_close(client, NULL);
    return code;
}
