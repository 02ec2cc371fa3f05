/* SPDX-License-Identifier: MIT */
/* server.c - see server.h. */
#include "bench/server.h"

#include "bench/harness.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int bench_listen(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        bench_die("no free port");
    *port = ntohs(address.sin_port);
    return fd;
}

static bool answers(int port)
{
    redisContext *context = redisConnect("127.0.0.1", port);
    redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, "PING") : NULL;
    bool ready = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL)
        freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return ready;
}

/* Each of its threads: Redis frees and closes in some of its own. */
void bench_server_pin(const struct bench_server *server, int cpu)
{
    char line[96];
    long last = sysconf(_SC_NPROCESSORS_CONF) - 1;
    if (cpu >= 0)
        (void)snprintf(line, sizeof line, "taskset -acp %d %d >/dev/null", cpu, (int)server->pid);
    else
        (void)snprintf(line, sizeof line, "taskset -acp 0-%ld %d >/dev/null", last, (int)server->pid);
    FILE *run = popen(line, "re");
    if (run == NULL || pclose(run) != 0)
        bench_die("cannot pin the server");
}

void bench_server_start(struct bench_server *server, int cpu)
{
    char port[16];
    *server = (struct bench_server){0};
    int fd = bench_listen(&server->port);
    (void)close(fd);
    (void)snprintf(port, sizeof port, "%d", server->port);
    (void)snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
    server->pid = fork();
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setsid(); /* services are scheduled in groups of their own; beside our threads in one it would be one of many */
        (void)unsetenv("LD_PRELOAD"); /* its wake-ups are as they are, whatever the client's are */
        (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                     "--appendonly", "no", "--logfile", "/dev/null", "--dir", "/tmp", "--maxclients", "4000",
                     (char *)0);
        _exit(127);
    }
    for (int i = 0; i < 2000 && !answers(server->port); i++)
        bench_sleep(0.005);
    if (!answers(server->port))
        bench_die("redis-server does not start");
    if (cpu >= 0)
        bench_server_pin(server, cpu);
}

double bench_server_cpu_seconds(const struct bench_server *server)
{
    char path[64];
    long user = 0, system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)server->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL ||
        fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
        bench_die("cannot read %s", path);
    (void)fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void end(pid_t *child)
{
    if (*child > 0) {
        (void)kill(*child, SIGKILL);
        (void)waitpid(*child, NULL, 0);
    }
    *child = 0;
}

void bench_server_stop(struct bench_server *server)
{
    bench_proxy_stop(server);
    end(&server->pid);
}

void bench_proxy_stop(struct bench_server *server)
{
    end(&server->proxy_pid);
}
