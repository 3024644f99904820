/*
 * Connections and their deadlines; see enum http_phase.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/http_exchange.h"
#include "net/tcp_acked.h"

void http_conn_enter(struct http_conn *c, enum http_phase phase)
{
        struct http_server *s = c->server;

        if (c->phase != HTTP_UNTIMED)
                TAILQ_REMOVE(&s->in[c->phase], c, next);
        c->phase = phase;
        if (phase == HTTP_UNTIMED)
                return;
        c->since_ms = loop_now_ms(s->loop);
        c->acked = 0;
        TAILQ_INSERT_TAIL(&s->in[phase], c, next);
}

struct http_conn *http_conn_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_conn_opened(struct http_server *s, struct MHD_Connection *mhd, void **context)
{
        struct http_conn *c = mem_zalloc(sizeof(*c));

        c->server = s;
        c->mhd = mhd;
        c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        c->phase = HTTP_UNTIMED;
        http_conn_enter(c, HTTP_FRESH);
        LIST_INSERT_HEAD(&s->conns, c, all);
        if (s->count++ == 0 && s->sweep)
                timer_repeat(s->sweep, s->sweep_ms);
        *context = c;
}

void http_conn_drop_current(struct http_conn *c)
{
        struct http_exchange *x = c->current;

        c->current = NULL;
        if (x)
                http_exchange_detach(x);
}

void http_conn_closed(struct http_server *s, void **context)
{
        struct http_conn *c = *context;

        if (!c)
                return;
        http_conn_drop_current(c); /* MHD does not always call on_completed */
        http_conn_enter(c, HTTP_UNTIMED);
        LIST_REMOVE(c, all);
        if (--s->count == 0 && s->sweep)
                timer_stop(s->sweep);
        free(c);
        *context = NULL;
        s->closed = true;
}

static void on_deadline(struct http_conn *c)
{
        uint64_t before = c->acked, acked;
        char byte;

        /*
         * MHD takes a short read for an empty socket, so it misses an end of the stream that came
         * together with a request, and epoll reports it only once. Look here, once per idle spell.
         */
        if (c->phase == HTTP_FRESH && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
                http_conn_enter(c, HTTP_WAITING);
                return;
        }
        /* a slow download is not a stalled one */
        if (c->phase == HTTP_WRITING && (acked = tcp_acked(c->fd)) > before) {
                http_conn_enter(c, HTTP_WRITING);
                c->acked = acked;
                return;
        }
        http_conn_enter(c, HTTP_UNTIMED);
        shutdown(c->fd, SHUT_RDWR); /* MHD sees the hangup and cleans up */
}

void http_conn_sweep(struct http_server *s)
{
        struct http_conn *c;

        for (int phase = 0; phase < HTTP_PHASES; phase++) {
                while ((c = TAILQ_FIRST(&s->in[phase])) &&
                       loop_now_ms(s->loop) - c->since_ms >= s->allowed_ms[phase])
                        on_deadline(c);
        }
}
