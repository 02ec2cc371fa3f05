/* SPDX-License-Identifier: MIT */
/* scene.c - see scene.h. It takes the place of the simulator's own checks (watch.c, tokens.c). */
#include "tests/scene/scene.h"
#include "core/context/context.h"
#include "core/protocol/scripts.h"
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/history.h"
#include "tests/sim/pool_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP_NS    (HFI_MS / 20)
#define KINDS_MOST 64
#define SCRIPTS_MOST   16
#define ARGUMENTS_MOST 12

static struct tally {
    int process; /* 0: what the server did */
    char what[32];
    int count;
} tallies[KINDS_MOST];
static int tally_count;
static struct {
    char script[24], arguments[ARGUMENTS_MOST][160];
} calls[SCRIPTS_MOST]; /* the last of each */
static int64_t (*publish)(void *self, const char *channel, size_t channel_size, const char *message, size_t size);

static void count(int process, const char *what)
{
    int i = 0;
    while (i < tally_count && (tallies[i].process != process || strcmp(tallies[i].what, what) != 0))
        i++;
    if (i == KINDS_MOST)
        abort();
    if (i == tally_count) {
        tallies[tally_count++] = (struct tally){.process = process};
        (void)snprintf(tallies[i].what, sizeof tallies[i].what, "%s", what);
    }
    tallies[i].count++;
}

static int counted(int process, const char *what)
{
    int sum = 0;
    for (int i = 0; i < tally_count; i++)
        if ((process < 0 ? tallies[i].process > 0 : tallies[i].process == process) && strcmp(tallies[i].what, what) == 0)
            sum += tallies[i].count;
    return sum;
}

/* ---- what sim tells its onlookers ---- */

void sim_lane_lists(const struct hfi_command *command, bool counts)
{
    char word[32];
    const char *at = memchr(command->bytes, '$', command->size);
    (void)counts; /* the scenes count them all */
    if (command->script != NULL)
        (void)snprintf(word, sizeof word, "%s", hfi_script_name(command->script));
    else if (at == NULL || sscanf(at, "$%*d %31s", word) != 1)
        abort();
    count(sim.self->id, strcmp(word, "MULTI") == 0 ? "native" : word);
}

void sim_script_over(void)
{
}

/* Scenes have one server: nobody takes over. */
void sim_command_over(void)
{
}

void sim_watch_hears_of(int primary, uint64_t epoch, int relies_on, uint64_t by_epoch)
{
    (void)primary, (void)epoch, (void)relies_on, (void)by_epoch;
}

void sim_watch_moves(struct sim_process *process, int reign)
{
    (void)process, (void)reign;
}

void sim_watch_has_met(struct sim_process *process, int reign)
{
    (void)process, (void)reign;
}

void sim_near_look(void)
{
}

bool sim_neighbours_serve(void)
{
    return false;
}

void sim_neighbours_hear(const char *channel, size_t size)
{
    (void)channel, (void)size;
}

void sim_script_ran(const char *script, const struct sim_words *words, const struct sim_process *process)
{
    int i = 0;
    (void)process;
    count(0, script);
    while (i < SCRIPTS_MOST && calls[i].script[0] != 0 && strcmp(calls[i].script, script) != 0)
        i++;
    if (i == SCRIPTS_MOST)
        abort();
    (void)snprintf(calls[i].script, sizeof calls[i].script, "%s", script);
    int first = 3 + atoi(words->text[2]);
    for (int n = 0; n < ARGUMENTS_MOST; n++)
        (void)snprintf(calls[i].arguments[n], sizeof calls[i].arguments[n], "%s",
                       first + n < words->count ? words->text[first + n] : "");
}

const char *hft_argument(const char *script, int n)
{
    for (int i = 0; i < SCRIPTS_MOST; i++)
        if (strcmp(calls[i].script, script) == 0)
            return calls[i].arguments[n - 1];
    fail_msg("%s has not run", script);
    return "";
}

void sim_key_changed(const char *event, const char *key, const char *value)
{
    (void)event;
    (void)key;
    (void)value;
}

void sim_hears(const struct sim_process *process)
{
    (void)process;
}

static int64_t note_message(void *self, const char *channel, size_t channel_size, const char *message, size_t size)
{
    char letter[3] = {'/', size > 0 ? message[0] : '-', 0};
    count(0, letter);
    return publish(self, channel, channel_size, message, size);
}

int hft_listed(const struct sim_process *process, const char *command)
{
    return counted(process != NULL ? process->id : -1, command);
}

int hft_ran(const char *script)
{
    return counted(0, script);
}

int hft_said(char letter)
{
    return counted(0, (char[]){'/', letter, 0});
}

/* ---- the world ---- */

/* A scene stops in the middle: its processes end as if they were killed, and free no memory. AddressSanitizer calls
 * this. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}

int hft_scene_begin(void **state)
{
    (void)state;
    sim_threads_end(); /* a test may play several scenes */
    sim_begin(1, getenv("HFT_VERBOSE") != NULL);
    sim_network_begin();
    sim_network.delay_least = sim_network.delay_most = HFT_TRIP_NS;
    sim_server_begin();
    sim_server->clock_ppm = 0;
    publish = sim_server->keys.publish;
    sim_server->keys.publish = note_message;
    tally_count = 0;
    memset(calls, 0, sizeof calls);
    return 0;
}

int hft_scene_end(void **state)
{
    (void)state;
    if (sim.failure[0] != 0)
        print_error("%s\n", sim.failure);
    sim_threads_end();
    return sim.failure[0] != 0 ? -1 : 0;
}

void hft_pass_ms(int64_t ms)
{
    sim_run(sim.now + ms * HFI_MS);
}

void hft_step(int64_t until, const char *what)
{
    if (sim.now >= until || sim.failure[0] != 0)
        fail_msg("in vain for: %s %s", what, sim.failure);
    sim_run(sim.now + STEP_NS);
}

/* ---- processes ---- */

struct opening {
    struct sim_process *process;
    const hf_client_options *options;
    hf_status status;
    hf_error error;
};

struct errand {
    void (*run)(void *arg);
    void *arg;
    bool over;
};

static void go(void *arg)
{
    struct errand *errand = arg;
    errand->run(errand->arg);
    errand->over = true;
}

void hft_run(struct sim_process *process, void (*run)(void *arg), void *arg)
{
    struct errand errand = {.run = run, .arg = arg};
    sim_thread_start(process, go, &errand);
    HFT_UNTIL(errand.over);
}

static void open_client(void *arg)
{
    struct opening *opening = arg;
    opening->status = hf_client_open("redis://virtual", opening->options, &opening->process->client, &opening->error);
}

hf_status hft_open(struct sim_process **process, const hf_client_options *options, hf_error *error)
{
    struct opening opening = {.process = sim_process_new(), .options = options};
    *process = opening.process;
    opening.process->clock_ppm = 0;
    hft_run(opening.process, open_client, &opening);
    *error = opening.error;
    return opening.status;
}

struct sim_process *hft_process(const hf_client_options *options)
{
    struct sim_process *process;
    hf_error error;
    if (hft_open(&process, options, &error) != HF_OK)
        fail_msg("%s", error.message);
    if (sim_server->takes_subscribers)
        HFT_UNTIL(sim_server_is_heard(process->client->identity.channel));
    hft_pass_ms(1);
    return process;
}

static void close_client(void *arg)
{
    struct opening *closing = arg;
    hf_client *client = closing->process->client;
    closing->process->client = NULL;
    closing->status = hf_client_close(client, NULL);
}

hf_status hft_close(struct sim_process *process)
{
    struct opening closing = {.process = process};
    hft_run(process, close_client, &closing);
    return closing.status;
}

/* ---- threads ---- */

static void take(void *arg)
{
    struct hft_actor *actor = arg;
    actor->status = hf_lock_acquire(actor->process->client, actor->name, &actor->options, &actor->lease, &actor->error);
    actor->ended = sim.now;
}

void hft_take(struct hft_actor *actor, struct sim_process *process, const char *name, const hf_lock_options *options)
{
    *actor = (struct hft_actor){.process = process, .name = name, .began = sim.now};
    actor->options = options != NULL ? *options : *HF_LOCK(.cancel = NULL);
    sim_thread_start(process, take, actor);
}

hf_lease *hft_must_take(struct sim_process *process, const char *name, const hf_lock_options *options)
{
    struct hft_actor actor;
    hft_take(&actor, process, name, options);
    HFT_UNTIL(actor.ended != 0);
    if (actor.status != HF_OK)
        fail_msg("%s", actor.error.message);
    return actor.lease;
}

static void give_back(void *arg)
{
    struct hft_actor *actor = arg;
    actor->status = hf_lease_release(actor->lease, &actor->error);
    actor->ended = sim.now;
}

void hft_give_back(struct hft_actor *actor, struct sim_process *process, hf_lease *lease)
{
    *actor = (struct hft_actor){.process = process, .lease = lease, .began = sim.now};
    sim_thread_start(process, give_back, actor);
}

hf_status hft_released(struct sim_process *process, hf_lease *lease)
{
    struct hft_actor actor;
    hft_give_back(&actor, process, lease);
    HFT_UNTIL(actor.ended != 0);
    return actor.status;
}

bool hft_is_valid(struct sim_process *process, hf_lease *lease)
{
    sim.self = process;
    bool valid = hf_lease_is_valid(lease);
    sim.self = NULL;
    return valid;
}

hf_stats hft_stats(struct sim_process *process)
{
    hf_stats stats;
    sim.self = process;
    hf_client_stats(process->client, &stats);
    sim.self = NULL;
    return stats;
}

/* ---- server and network ---- */

const char *hft_answered(const char *line)
{
    static char text[400];
    char copy[400], *rest;
    struct sim_words words = {.count = 0};
    struct hfi_buffer reply = {0};
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        words.text[words.count] = word;
        words.size[words.count++] = strlen(word);
    }
    sim_server->keys.now_us = sim_server_us();
    if (!sim_keyspace_run(&sim_server->keys, &words, &reply))
        fail_msg("%s: %s", line, hfi_buffer_data(&reply));
    const char *bulk = memchr(hfi_buffer_data(&reply), '\n', hfi_buffer_size(&reply)); /* behind its size */
    (void)snprintf(text, sizeof text, "%.*s", bulk != NULL ? (int)(hfi_buffer_data(&reply) + hfi_buffer_size(&reply) - bulk - 1) : 0,
                   bulk != NULL ? bulk + 1 : "");
    hfi_buffer_done(&reply);
    return text;
}

void hft_tell(const char *line)
{
    (void)hft_answered(line);
}

const char *hft_key(const char *key)
{
    sim_server->keys.now_us = sim_server_us();
    const char *value = sim_keyspace_string(&sim_server->keys, key);
    return value != NULL ? value : "";
}

void hft_revoked(const char *token, char last, char *out)
{
    memcpy(out, token, strlen(token) + 1);
    char *random = strchr(strchr(out + 4, ':') + 1, ':') + 1;
    memset(random, 'f', 8);
    random[15] = last;
}

void hft_publish(struct sim_process *process, const char *format, ...)
{
    char text[900];
    const char *channel = process->client->identity.channel;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    (void)publish(NULL, channel, strlen(channel), text, (size_t)size);
}

struct sim_wire *hft_lock_wire(struct sim_process *process)
{
    return process->client->pool->lanes[0].wire;
}

struct sim_wire *hft_value_wire(struct sim_process *process)
{
    return process->client->pool->lanes[process->client->pool->settings.lanes].wire;
}

struct sim_wire *hft_reserved_wire(struct sim_process *process)
{
    return process->client->pool->lanes[process->client->pool->lane_count - 1].wire;
}

struct sim_wire *hft_subscriber_wire(struct sim_process *process)
{
    return process->client->pool->subscriber.wire;
}

void hft_stall_up(struct sim_wire *wire, int64_t ms)
{
    wire->up_stalled_until = sim.now + ms * HFI_MS;
}

void hft_stall_down(struct sim_wire *wire, int64_t ms)
{
    wire->down_stalled_until = sim.now + ms * HFI_MS;
}

void hft_lose_last(struct sim_wire *wire)
{
    struct sim_packet **at = &wire->up;
    assert_non_null(*at);
    while ((*at)->next != NULL)
        at = &(*at)->next;
    free(*at);
    *at = NULL;
    wire->up_end = at;
}
