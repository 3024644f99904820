#include "fake_server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/mem.h"

#define MAX_REQUESTS 256

struct peer {
        uv_tcp_t tcp;
        struct fake_server *server;
        struct buf in;
        const struct fake_answer *answer; /* being written */
        size_t written;
        struct timer *next_piece;
        LIST_ENTRY(peer) next;
        char space[4096];
};

struct fake_server {
        struct loop *loop;
        uv_tcp_t tcp;
        const struct fake_answer *script;
        size_t count, used;
        char *requests[MAX_REQUESTS];
        unsigned request_count, accepted, open;
        int port;
        LIST_HEAD(, peer) peers;
};

static void on_peer_closed(uv_handle_t *h)
{
        struct peer *p = h->data;

        buf_release(&p->in);
        free(p);
}

static void peer_close(struct peer *p, bool reset)
{
        LIST_REMOVE(p, next);
        p->server->open--;
        timer_free(p->next_piece);
        if (reset && uv_tcp_close_reset(&p->tcp, on_peer_closed) == 0)
                return;
        uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
}

static void on_written(uv_write_t *w, int status)
{
        (void)status;
        free(w);
}

static void peer_write(struct peer *p, const char *bytes, size_t n)
{
        uv_write_t *w = mem_zalloc(sizeof(*w));
        uv_buf_t b = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)n);

        if (uv_write(w, (uv_stream_t *)&p->tcp, &b, 1, on_written))
                free(w);
}

static void on_last_written(uv_write_t *w, int status)
{
        struct peer *p = w->data;
        enum fake_end end = p->answer->end;

        (void)status;
        free(w);
        p->answer = NULL;
        if (end != FAKE_KEEP && !uv_is_closing((uv_handle_t *)&p->tcp))
                peer_close(p, end == FAKE_RESET);
}

/* Ends the connection as scripted, once the answer's bytes have left. */
static void peer_end(struct peer *p)
{
        uv_write_t *w = mem_zalloc(sizeof(*w));
        uv_buf_t none = uv_buf_init(NULL, 0);

        w->data = p;
        if (uv_write(w, (uv_stream_t *)&p->tcp, &none, 1, on_last_written))
                free(w);
}

static void write_piece(void *arg)
{
        struct peer *p = arg;
        size_t n = p->answer->bytes ? p->answer->n : 0;
        size_t left, piece;

        if (p->answer->bytes && n == 0)
                n = strlen(p->answer->bytes);
        left = n - p->written;
        piece = p->answer->piece && p->answer->piece < left ? p->answer->piece : left;
        if (piece > 0)
                peer_write(p, p->answer->bytes + p->written, piece);
        p->written += piece;
        if (p->written < n)
                timer_start(p->next_piece, 0);
        else
                peer_end(p);
}

static size_t body_length(const char *head, const char *head_end)
{
        const char *field = strcasestr(head, "\r\nContent-Length:");

        return field && field < head_end ? strtoul(field + 17, NULL, 10) : 0;
}

/* Takes one whole request off the input; false when there is none yet. */
static bool take_request(struct peer *p)
{
        struct fake_server *s = p->server;
        char *end = strstr(p->in.data, "\r\n\r\n");
        size_t n;

        if (!end)
                return false;
        n = (size_t)(end + 4 - p->in.data) + body_length(p->in.data, end);
        if (p->in.len < n)
                return false;
        assert(s->request_count < MAX_REQUESTS);
        s->requests[s->request_count++] = mem_strndup(p->in.data, n);
        buf_consume(&p->in, n);
        return true;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
        struct peer *p = stream->data;
        struct fake_server *s = p->server;

        if (n < 0) {
                peer_close(p, false);
                return;
        }
        buf_add(&p->in, b->base, (size_t)n);
        if (!take_request(p) || s->used == s->count)
                return;
        p->answer = &s->script[s->used++];
        p->written = 0;
        write_piece(p);
}

void fake_server_answer(struct fake_server *s, const struct fake_answer *answer)
{
        struct peer *p = LIST_FIRST(&s->peers);

        assert(p && !p->answer);
        p->answer = answer;
        p->written = 0;
        write_piece(p);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
        struct peer *p = h->data;

        (void)suggested;
        *b = uv_buf_init(p->space, sizeof(p->space));
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct fake_server *s = listener->data;
        struct peer *p = mem_zalloc(sizeof(*p));

        assert(status == 0);
        p->server = s;
        p->tcp.data = p;
        buf_init(&p->in, 0);
        p->next_piece = timer_new(s->loop, write_piece, p);
        uv_tcp_init(loop_uv(s->loop), &p->tcp);
        LIST_INSERT_HEAD(&s->peers, p, next);
        s->accepted++;
        s->open++;
        assert(uv_accept(listener, (uv_stream_t *)&p->tcp) == 0);
        uv_tcp_nodelay(&p->tcp, 1);
        uv_read_start((uv_stream_t *)&p->tcp, on_alloc, on_read);
}

struct fake_server *fake_server_new(struct loop *l, const struct fake_answer *script, size_t count)
{
        struct fake_server *s = mem_zalloc(sizeof(*s));
        struct sockaddr_in at;
        int n = sizeof(at);

        s->loop = l;
        s->script = script;
        s->count = count;
        LIST_INIT(&s->peers);
        uv_tcp_init(loop_uv(l), &s->tcp);
        s->tcp.data = s;
        uv_ip4_addr("127.0.0.1", 0, &at);
        assert(uv_tcp_bind(&s->tcp, (struct sockaddr *)&at, 0) == 0);
        assert(uv_listen((uv_stream_t *)&s->tcp, 16, on_connection) == 0);
        assert(uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&at, &n) == 0);
        s->port = ntohs(at.sin_port);
        return s;
}

static void on_server_closed(uv_handle_t *h)
{
        free(h->data);
}

void fake_server_free(struct fake_server *s)
{
        struct peer *p;

        while ((p = LIST_FIRST(&s->peers)))
                peer_close(p, false);
        for (unsigned i = 0; i < s->request_count; i++)
                free(s->requests[i]);
        uv_close((uv_handle_t *)&s->tcp, on_server_closed);
}

int fake_server_port(const struct fake_server *s)
{
        return s->port;
}

char *fake_server_url(const struct fake_server *s, const char *path)
{
        return mem_printf("http://127.0.0.1:%d%s", s->port, path);
}

unsigned fake_server_accepted(const struct fake_server *s)
{
        return s->accepted;
}

unsigned fake_server_open(const struct fake_server *s)
{
        return s->open;
}

unsigned fake_server_requests(const struct fake_server *s)
{
        return s->request_count;
}

const char *fake_server_request(const struct fake_server *s, unsigned i)
{
        return i < s->request_count ? s->requests[i] : NULL;
}
