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
        c->taken = 0;
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
        http_conn_drop_current(c); /* some of MHD's ways out forget on_completed */
        http_conn_enter(c, HTTP_UNTIMED);
        LIST_REMOVE(c, all);
        if (--s->count == 0 && s->sweep)
                timer_stop(s->sweep);
        free(c);
        *context = NULL;
        s->closed = true;
}

/* MHD sees the hangup and cleans up as if the peer had gone. */
static void conn_cut(struct http_conn *c)
{
        http_conn_enter(c, HTTP_UNTIMED);
        shutdown(c->fd, SHUT_RDWR);
}

/*
 * Has the peer taken anything of the answer since the last look? A slow download is no stalled one.
 */
static bool peer_reads(struct http_conn *c)
{
        uint64_t before = c->taken, taken = tcp_acked(c->fd);

        http_conn_enter(c, HTTP_WRITING);
        c->taken = taken;
        return taken > before;
}

/*
 * MHD takes a short read for an empty socket. When the end of the stream came together with a
 * request it is therefore not seen afterwards, and epoll tells of it only once. So we look
 * ourselves, once per idle spell.
 */
static bool peer_has_left(const struct http_conn *c)
{
        char byte;

        return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void deadline_passed(struct http_conn *c)
{
        if (c->phase == HTTP_FRESH && !peer_has_left(c))
                http_conn_enter(c, HTTP_WAITING);
        else if (c->phase != HTTP_WRITING || !peer_reads(c))
                conn_cut(c);
}

void http_conn_sweep(struct http_server *s)
{
        struct http_conn *c;

        for (int phase = 0; phase < HTTP_PHASES; phase++) {
                while ((c = TAILQ_FIRST(&s->in[phase])) &&
                       loop_now_ms(s->loop) - c->since_ms >= s->allowed_ms[phase])
                        deadline_passed(c);
        }
}
