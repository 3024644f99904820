/* Whatever a server says, in the handshake or in frames, the client ends in an orderly way. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/websocket.h"
#include "net/ws_handshake.h"

#define ROUNDS 10000

static struct {
        struct loop *loop;
        struct http_client *http;
        int listener;
        char *url;
        struct websocket *ws;
        bool closed;
} fuzz;

static void on_message(void *arg, bool binary, const char *bytes, size_t n)
{
        volatile char last;

        (void)arg, (void)binary;
        if (n > 0)
                last = bytes[n - 1];
        (void)last;
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        (void)arg;
        if (!end->why || !end->reason)
                abort();
        websocket_free(fuzz.ws);
        fuzz.ws = NULL;
        fuzz.closed = true;
}

static void set_up(void)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t n = sizeof(at);

        log_setup(LOG_TEXT, LOG_ERROR);
        fuzz.loop = loop_new();
        fuzz.http = http_client_new(fuzz.loop, NULL, NULL);
        fuzz.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (bind(fuzz.listener, (struct sockaddr *)&at, n) || listen(fuzz.listener, 8) ||
            getsockname(fuzz.listener, (struct sockaddr *)&at, &n))
                abort();
        fuzz.url = mem_printf("ws://127.0.0.1:%d/", ntohs(at.sin_port));
}

static void say(int fd, const void *bytes, size_t n)
{
        if (send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                return; /* it has left already */
}

/* Reads the request; switches properly unless the input begins with a zero. */
static int answer(const uint8_t *data, size_t n)
{
        struct linger hard = { .l_onoff = 1 };
        char request[4096] = "", accept[WS_ACCEPT_SIZE], key[WS_KEY_SIZE] = "", *p;
        size_t have = 0;
        int fd = -1;

        for (int i = 0; i < ROUNDS && (fd = accept4(fuzz.listener, NULL, NULL, SOCK_NONBLOCK)) < 0;
             i++)
                loop_step(fuzz.loop, false);
        for (int i = 0; i < ROUNDS && fd >= 0 && !strstr(request, "\r\n\r\n"); i++) {
                ssize_t got = recv(fd, request + have, sizeof(request) - 1 - have, 0);

                have += got > 0 ? (size_t)got : 0;
                loop_step(fuzz.loop, false);
        }
        if (fd < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)); /* no port is left behind */
        if (n > 0 && data[0] != 0 && (p = strstr(request, "Sec-WebSocket-Key: "))) {
                char *head;

                memcpy(key, p + 19, WS_KEY_SIZE - 1);
                head = mem_printf("HTTP/1.1 101 S\r\n"
                                  "Upgrade: websocket\r\n"
                                  "Connection: Upgrade\r\n"
                                  "Sec-WebSocket-Accept: %s\r\n"
                                  "\r\n",
                                  ws_handshake_accept(key, accept));
                say(fd, head, strlen(head));
                free(head);
        }
        if (n > 1)
                say(fd, data + 1, n - 1);
        shutdown(fd, SHUT_WR);
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const struct websocket_handlers handlers = { .on_message = on_message,
                                                            .on_closed = on_closed };
        int fd;

        if (!fuzz.loop)
                set_up();
        fuzz.closed = false;
        fuzz.ws =
                websocket_open(fuzz.loop, fuzz.http,
                               &(struct websocket_options){ .url = fuzz.url, .max_message = 5000 },
                               &handlers, NULL);
        fd = answer(data, n);
        for (int i = 0; i < ROUNDS && !fuzz.closed; i++)
                loop_step(fuzz.loop, false);
        if (!fuzz.closed)
                abort();
        if (fd >= 0)
                close(fd);
        return 0;
}
