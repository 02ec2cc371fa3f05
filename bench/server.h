/* SPDX-License-Identifier: MIT */
/* server.h - a private redis-server on a port of 127.0.0.1, which ends with the program, and a proxy in front of it
 * that adds a round trip. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdint.h>
#include <sys/types.h>

struct bench_server {
    pid_t pid, proxy_pid;
    int port, proxy_port;
    char url[64], proxy_url[64];
};

/* From the main thread: the kernel ends the server with the thread that started it. cpu -1: any CPU. */
void bench_server_start(struct bench_server *server, int cpu);
void bench_server_pin(const struct bench_server *server, int cpu);
double bench_server_cpu_seconds(const struct bench_server *server);
void bench_server_stop(struct bench_server *server);

/* proxy_url leads to the server, `round_trip_ms` further away. */
void bench_proxy_start(struct bench_server *server, double round_trip_ms);
void bench_proxy_stop(struct bench_server *server);

int bench_listen(int *port); /* on a free port of 127.0.0.1 */

#endif
