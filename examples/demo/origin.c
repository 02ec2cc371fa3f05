/* SPDX-License-Identifier: MIT */
/* origin.c - the slow origin of the demo: every page takes its time, and every load is logged. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096

struct load { /* on the stack of its thread; listed in `under_way` from start to end */
    char page[65];
    long loader;
    int64_t fence, start_ns;
    struct load *next, **back;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct load *under_way;
static atomic_long loads;
static int log_fd;
static long page_ms;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void begin(struct load *load)
{
    pthread_mutex_lock(&mutex);
    load->start_ns = now_ns();
    load->next = under_way;
    load->back = &under_way;
    if (under_way != NULL)
        under_way->back = &load->next;
    under_way = load;
    pthread_mutex_unlock(&mutex);
}

/* Returns when that was: before the answer can leave, so the next load of the page never seems to overlap this one. */
static int64_t end(struct load *load, bool gone)
{
    char line[256];
    pthread_mutex_lock(&mutex);
    int64_t end_ns = now_ns();
    int size = snprintf(line, sizeof line, "%s %ld %" PRId64 " %" PRId64 " %" PRId64 " %s\n", load->page, load->loader, load->fence,
                        load->start_ns, end_ns, gone ? "gone" : "sent");
    *load->back = load->next;
    if (load->next != NULL)
        load->next->back = load->back;
    if (write(log_fd, line, (size_t)size) != size)
        abort(); /* a log with holes would prove nothing */
    pthread_mutex_unlock(&mutex);
    return end_ns;
}

static bool has_gone(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

static void say(int fd, const char *status, const char *body, size_t size)
{
    char head[128];
    int n = snprintf(head, sizeof head, "HTTP/1.0 %s\r\nContent-Length: %zu\r\n\r\n", status, size);
    if (send(fd, head, (size_t)n, MSG_NOSIGNAL | MSG_MORE) == n)
        (void)send(fd, body, size, MSG_NOSIGNAL);
}

static void say_page(int fd, struct load *load)
{
    char body[PAGE_BYTES];
    struct timespec work = {page_ms / 1000, page_ms % 1000 * 1000000};
    begin(load);
    long number = atomic_fetch_add(&loads, 1) + 1;
    while (clock_nanosleep(CLOCK_BOOTTIME, 0, &work, &work) == EINTR)
        ;
    int64_t end_ns = end(load, has_gone(fd));
    memset(body, ' ', sizeof body);
    int n = snprintf(body, sizeof body,
                     "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head>\n"
                     "<body><h1>%s</h1><p>Load number %ld of this origin, %ld ms of hard work.</p></body></html>\n"
                     "<!-- stamp %" PRId64 " %" PRId64 " -->\n",
                     load->page, load->page, number, page_ms, load->start_ns, end_ns);
    body[n] = '\n'; /* where snprintf put its NUL; the rest is the white of the page */
    say(fd, "200 OK", body, sizeof body);
}

/* What is under way, a line each: page, loader, start. */
static void say_now(int fd)
{
    char body[65536];
    size_t size = 0;
    pthread_mutex_lock(&mutex);
    for (struct load *load = under_way; load != NULL && size + 256 < sizeof body; load = load->next)
        size += (size_t)snprintf(body + size, 256, "%s %ld %" PRId64 "\n", load->page, load->loader, load->start_ns);
    pthread_mutex_unlock(&mutex);
    say(fd, "200 OK", body, size);
}

/* Who asks, and under which fence: it says so itself, or it is Apache's process at the other end of our unix socket. */
static bool find_loader(int fd, const char *head, struct load *load)
{
    const char *loader = strstr(head, "X-Loader: "), *fence = strstr(head, "X-Fence: ");
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    if (loader == NULL && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
        fence = strcasestr(head, "Holdfast-Fence: ");
    load->loader = loader != NULL ? strtol(loader + strlen("X-Loader: "), NULL, 10) : peer.pid;
    load->fence = fence != NULL ? strtoll(strchr(fence, ' '), NULL, 10) : 0;
    return load->loader != 0;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char head[2048] = "";
    size_t size = 0;
    ssize_t n;
    while (strstr(head, "\r\n\r\n") == NULL && (n = recv(fd, head + size, sizeof head - 1 - size, 0)) > 0)
        size += (size_t)n;
    struct load load = {.page = ""};
    if (sscanf(head, "GET /page/%64[a-z0-9-] ", load.page) == 1 && find_loader(fd, head, &load)) {
        say_page(fd, &load);
    } else if (strncmp(head, "GET /now ", 9) == 0) {
        say_now(fd);
    } else {
        say(fd, "404 Not Found", "no such page\n", 13);
    }
    (void)close(fd);
    return NULL;
}

static int listen_on(const char *port)
{
    struct sockaddr_in here = {AF_INET, htons((uint16_t)atoi(port)), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        perror(port);
        exit(1);
    }
    return fd;
}

static int listen_at(const char *path)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(here.sun_path, sizeof here.sun_path, "%s", path);
    umask(0); /* Apache's children are other users */
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, SOMAXCONN) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void *serve_all(void *listener)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t thread;
        int fd = accept4((int)(intptr_t)listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && pthread_create(&thread, &small, serve, (void *)(intptr_t)fd) != 0)
            (void)close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5 || (page_ms = atol(argv[3])) < 0) {
        fprintf(stderr, "usage: origin PORT LOG_FILE PAGE_MS [SOCKET]\n"
                        "A line of the log: page, loader's pid, its fence (0: none), start and end in ns of\n"
                        "CLOCK_BOOTTIME, and `sent`, or `gone` if nobody was left to take the page.\n");
        return 64;
    }
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0) {
        perror(argv[2]);
        return 1;
    }
    pthread_t thread;
    if (argc == 5 && pthread_create(&thread, NULL, serve_all, (void *)(intptr_t)listen_at(argv[4])) != 0)
        return 1;
    serve_all((void *)(intptr_t)listen_on(argv[1]));
}
