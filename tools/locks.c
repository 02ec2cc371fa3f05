/* SPDX-License-Identifier: MIT */
/* locks.c - holdfast ls, show and break: an operator's view of the locks. */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELL = 2100, COLUMNS = 8 }; /* 512 bytes of a name, each shown as \xNN, fit into a cell */

struct table {
    char **cells; /* COLUMNS of them make a row */
    size_t rows;
    bool   no_memory;
};

static const char *const titles[COLUMNS] = {"NAME", "HOST", "PID",     "LABEL",
                                            "HELD", "LEFT", "WAITING", "FENCE"};

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
    (void)cli_plain(holder->name, cell[0], CELL);
    (void)cli_plain(foreign ? "(another library)" : holder->host, cell[1], CELL);
    count(cell[2], CELL, foreign ? -1 : holder->pid);
    (void)cli_plain(foreign ? holder->foreign_value : holder->label, cell[3], CELL);
    seconds(cell[4], CELL, foreign ? -1 : holder->held_ms);
    seconds(cell[5], CELL, holder->remaining_ms);
    count(cell[6], CELL, holder->waiting);
    count(cell[7], CELL, foreign ? -1 : holder->fence);
    char **row = cells + table->rows * COLUMNS;
    for (int i = 0; i < COLUMNS; i++)
        if ((row[i] = strdup(cell[i][0] != 0 ? cell[i] : "-")) == NULL)
            table->no_memory = true;
    table->rows++;
    return !table->no_memory;
}

static void print_table(const struct table *table)
{
    int width[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
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
        for (int i = 0; i < COLUMNS - 1; i++)
            (void)printf("%-*s  ", width[i], cells[i]);
        (void)printf("%s\n", cells[COLUMNS - 1]);
    }
}

int command_ls(int argc, char **argv)
{
    const char *url = NULL;
    int code;
    if (!cli_url_only(argc, argv, 0, 1, &url, &code))
        return code;
    hf_client *client;
    if ((code = cli_open_to_look(url, &client)) != CLI_DONE)
        return code;
    struct table table = {NULL, 0, false};
    hf_error error;
    if (hf_lock_list(client, optind < argc ? argv[optind] : "*", add_row, &table, &error) != HF_OK) {
        code = cli_failed(&error);
    } else if (table.no_memory) {
        cli_say("no memory for so many locks");
        code = CLI_OS;
    } else if (table.rows > 0) {
        print_table(&table);
    }
    for (size_t i = 0; i < table.rows * COLUMNS; i++)
        free(table.cells[i]);
    free(table.cells);
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

static bool show(const hf_holder *holder, void *arg)
{
    bool *held = arg;
    char text[CELL], when[64];
    *held = true;
    (void)printf("name       %s\n", cli_plain(holder->name, text, CELL));
    if (holder->foreign_value != NULL) {
        (void)printf("holder     another library: %s\n", cli_plain(holder->foreign_value, text, CELL));
    } else {
        (void)printf("host       %s\n", cli_plain(holder->host, text, CELL));
        (void)printf("pid        %" PRId64 "\n", holder->pid);
        (void)printf("label      %s\n", cli_plain(holder->label, text, CELL));
        if (holder->held_ms >= 0) {
            since(when, sizeof when, holder->held_ms);
            seconds(text, CELL, holder->held_ms);
            (void)printf("since      %s (%s)\n", when, text);
        }
        (void)printf("fence      %" PRId64 "\n", holder->fence);
    }
    if (holder->remaining_ms >= 0) {
        seconds(text, CELL, holder->remaining_ms);
        (void)printf("remaining  %s\n", text);
    }
    if (holder->waiting >= 0)
        (void)printf("waiting    %" PRId64 "\n", holder->waiting);
    return true;
}

int command_show(int argc, char **argv)
{
    const char *url = NULL;
    int code;
    if (!cli_url_only(argc, argv, 1, 1, &url, &code))
        return code;
    hf_client *client;
    if ((code = cli_open_to_look(url, &client)) != CLI_DONE)
        return code;
    char text[CELL];
    bool held = false;
    hf_error error;
    if (hf_lock_info(client, argv[optind], show, &held, &error) != HF_OK) {
        code = cli_failed(&error);
    } else if (!held) {
        (void)printf("%s is free\n", cli_plain(argv[optind], text, CELL));
        code = CLI_NO;
    }
    (void)hf_client_close(client, NULL);
    return code;
}

int command_break(int argc, char **argv)
{
    const char *url = NULL;
    int code;
    if (!cli_url_only(argc, argv, 1, 1, &url, &code))
        return code;
    hf_client *client;
    if ((code = cli_open_to_look(url, &client)) != CLI_DONE)
        return code;
    char text[CELL];
    bool had_holder = false;
    hf_error error;
    if (hf_lock_break(client, argv[optind], &had_holder, &error) != HF_OK) {
        code = cli_failed(&error);
    } else if (!had_holder) {
        cli_say("nothing to break: %s is free", cli_plain(argv[optind], text, CELL));
        code = CLI_NO;
    }
    (void)hf_client_close(client, NULL);
    return code;
}
