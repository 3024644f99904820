#include "agent/sandbox/egress.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/address.h"

/*
 * A connection from inside: its head is read, its host checked and resolved, then bytes are passed
 * both ways until one side ends. A request that is not a tunnel is sent on with "Connection:
 * close", so that each connection serves the one host that was checked.
 */

#define HEAD_MAX        16384
#define CONNECTIONS_MAX 64
#define HEAD_MS         30000  /* until the head is complete, and until a server answers */
#define SILENCE_MS      300000 /* on an open connection */
#define QUEUE_HIGH      (256u << 10)

enum side { INSIDE, OUTSIDE };

struct relay;

struct end {
        struct relay *relay;
        enum side side;
        uv_tcp_t tcp;
        bool open, ended; /* it has sent all it had */
        bool paused;      /* not read, because the other end is slow */
        uv_shutdown_t shutdown;
};

struct relay {
        struct egress *egress;
        LIST_ENTRY(relay) next;
        struct end ends[2];
        unsigned handles; /* not yet closed, and the lookup */
        struct buf head;
        struct egress_target to;
        bool literal, decided, connected, closing;
        uv_getaddrinfo_t lookup;
        uv_connect_t connect;
        struct timer *timer;
        uint64_t bytes[2]; /* that this side sent */
        char space[16384];
};

struct egress {
        struct loop *loop;
        const struct sandbox_conf *conf;
        egress_report_fn *report;
        void *arg;
        uv_poll_t channel;
        int channel_fd;
        uv_tcp_t listener;
        bool has_channel, listens, freed;
        unsigned handles, count;
        LIST_HEAD(, relay) relays;
};

struct output {
        uv_write_t uv;
        struct end *end;
        bool last; /* close the connection afterwards */
        char bytes[];
};

static void free_if_done(struct egress *e)
{
        if (e->freed && e->handles == 0 && e->count == 0)
                free(e);
}

/* ---- the end of a connection ---- */

static void free_relay_if_done(struct relay *r)
{
        struct egress *e = r->egress;

        if (!r->closing || r->handles > 0)
                return;
        buf_release(&r->head);
        free(r);
        e->count--;
        free_if_done(e);
}

static void on_end_closed(uv_handle_t *h)
{
        struct end *end = h->data;

        end->relay->handles--;
        free_relay_if_done(end->relay);
}

static void report(struct relay *r, bool allowed, const char *why)
{
        struct egress *e = r->egress;
        struct sandbox_request request = { .host = r->to.host,
                                           .port = r->to.port,
                                           .allowed = allowed,
                                           .why = why,
                                           .sent = r->bytes[INSIDE],
                                           .received = r->bytes[OUTSIDE] };

        if (e->report && r->to.host[0])
                e->report(e->arg, &request);
}

static void relay_close(struct relay *r)
{
        if (r->closing)
                return;
        r->closing = true;
        LIST_REMOVE(r, next);
        timer_free(r->timer);
        uv_cancel((uv_req_t *)&r->lookup); /* its callback comes all the same */
        if (r->connected)
                report(r, true, NULL);
        for (int i = 0; i < 2; i++)
                if (r->ends[i].open)
                        uv_close((uv_handle_t *)&r->ends[i].tcp, on_end_closed);
        free_relay_if_done(r);
}

static void on_timer(void *arg)
{
        relay_close(arg);
}

/* ---- passing bytes ---- */

static void read_from(struct end *end);

static void on_shutdown(uv_shutdown_t *s, int status)
{
        (void)s;
        (void)status;
}

static void on_written(uv_write_t *uv, int status)
{
        struct output *o = uv->data;
        struct end *end = o->end;
        struct relay *r = end->relay;
        struct end *other = &r->ends[!end->side];
        bool last = o->last;

        free(o);
        if (r->closing)
                return;
        if (status < 0 || last) {
                relay_close(r);
                return;
        }
        if (other->paused &&
            uv_stream_get_write_queue_size((uv_stream_t *)&end->tcp) < QUEUE_HIGH) {
                other->paused = false;
                read_from(other);
        }
}

static void write_to(struct end *end, const char *bytes, size_t n, bool last)
{
        struct output *o = mem_alloc(sizeof(*o) + n);
        uv_buf_t b = uv_buf_init(o->bytes, (unsigned)n);

        memcpy(o->bytes, bytes, n);
        o->uv.data = o;
        o->end = end;
        o->last = last;
        if (uv_write(&o->uv, (uv_stream_t *)&end->tcp, &b, 1, on_written) != 0) {
                free(o);
                relay_close(end->relay);
        }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
        struct end *end = h->data;

        (void)suggested;
        *b = uv_buf_init(end->relay->space, sizeof(end->relay->space));
}

static void on_head_bytes(struct relay *r, const char *bytes, size_t n);

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
        struct end *end = stream->data;
        struct relay *r = end->relay;
        struct end *other = &r->ends[!end->side];

        if (n == 0 || r->closing)
                return;
        if (n < 0) {
                end->ended = true;
                if (n != UV_EOF || !r->connected || other->ended)
                        relay_close(r);
                else
                        uv_shutdown(&other->shutdown, (uv_stream_t *)&other->tcp, on_shutdown);
                return;
        }
        if (!r->decided || !r->connected) {
                on_head_bytes(r, b->base, (size_t)n);
                return;
        }
        timer_start(r->timer, SILENCE_MS);
        r->bytes[end->side] += (uint64_t)n;
        write_to(other, b->base, (size_t)n, false);
        if (!r->closing &&
            uv_stream_get_write_queue_size((uv_stream_t *)&other->tcp) >= QUEUE_HIGH) {
                end->paused = true;
                uv_read_stop(stream);
        }
}

static void read_from(struct end *end)
{
        if (!end->ended)
                uv_read_start((uv_stream_t *)&end->tcp, on_alloc, on_read);
}

/* ---- refusing ---- */

static void refuse(struct relay *r, const char *status, const char *why)
{
        struct end *inside = &r->ends[INSIDE];
        char text[1000];
        int n;

        n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
                     status, strlen(why) + 1, why);
        r->decided = true;
        report(r, false, why);
        uv_read_stop((uv_stream_t *)&inside->tcp);
        write_to(inside, text, (size_t)n, true);
}

static void refuse_host(struct relay *r, const char *reason)
{
        char why[600];

        snprintf(why, sizeof(why), "the sandbox may not reach %.255s:%d: %s", r->to.host,
                 r->to.port, reason);
        refuse(r, "403 Forbidden", why);
}

/* ---- connecting ---- */

/* A header that is for the proxy, or that the proxy writes itself. */
static bool is_dropped(const char *line, size_t n)
{
        static const char *const names[] = { "host:", "connection:", "proxy-",
                                             "keep-alive:", "upgrade:" };

        for (size_t i = 0; i < COUNT(names); i++)
                if (n >= strlen(names[i]) && strncasecmp(line, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

/* The head as the server expects it, and what followed it. */
static void send_request(struct relay *r)
{
        const char *head = r->head.data, *line = head + r->to.line + 2;
        const char *end = head + r->to.head - 2;
        size_t method = strcspn(head, " ");
        struct buf b;

        buf_init(&b, 0);
        buf_add(&b, head, method + 1);
        if (!r->to.path)
                buf_addstr(&b, "/ HTTP/1.1");
        else
                buf_add(&b, head + r->to.path, r->to.line - r->to.path);
        buf_addf(&b, strchr(r->to.host, ':') ? "\r\nHost: [%s]" : "\r\nHost: %s", r->to.host);
        if (r->to.port != 80)
                buf_addf(&b, ":%d", r->to.port);
        buf_addstr(&b, "\r\n");
        while (line < end) {
                size_t n =
                        (size_t)((const char *)memmem(line, (size_t)(end - line) + 2, "\r\n", 2) -
                                 line);

                if (n > 0 && !is_dropped(line, n)) {
                        buf_add(&b, line, n);
                        buf_addstr(&b, "\r\n");
                }
                line += n + 2;
        }
        buf_addstr(&b, "Connection: close\r\n\r\n");
        buf_add(&b, head + r->to.head, r->head.len - r->to.head);
        r->bytes[INSIDE] += b.len;
        write_to(&r->ends[OUTSIDE], b.data, b.len, false);
        buf_release(&b);
}

static void on_connected(uv_connect_t *c, int status)
{
        struct relay *r = c->data;

        if (r->closing)
                return;
        if (status < 0) {
                char why[600];

                snprintf(why, sizeof(why), "cannot reach %.255s:%d: %s", r->to.host, r->to.port,
                         uv_strerror(status));
                refuse(r, "502 Bad Gateway", why);
                return;
        }
        r->connected = true;
        timer_start(r->timer, SILENCE_MS);
        if (r->to.tunnel) {
                static const char done[] = "HTTP/1.1 200 Connection established\r\n\r\n";

                write_to(&r->ends[INSIDE], done, strlen(done), false);
                if (!r->closing && r->head.len > r->to.head) {
                        r->bytes[INSIDE] += r->head.len - r->to.head;
                        write_to(&r->ends[OUTSIDE], r->head.data + r->to.head,
                                 r->head.len - r->to.head, false);
                }
        } else {
                send_request(r);
        }
        buf_release(&r->head);
        if (r->closing)
                return;
        read_from(&r->ends[INSIDE]);
        read_from(&r->ends[OUTSIDE]);
}

static void open_end(struct relay *r, enum side side)
{
        struct end *end = &r->ends[side];

        end->relay = r;
        end->side = side;
        uv_tcp_init(loop_uv(r->egress->loop), &end->tcp);
        end->tcp.data = end;
        end->open = true;
        r->handles++;
}

static void on_resolved(uv_getaddrinfo_t *lookup, int status, struct addrinfo *list)
{
        struct relay *r = lookup->data;
        const struct addrinfo *a = list;

        r->handles--;
        if (r->closing) {
                uv_freeaddrinfo(list);
                free_relay_if_done(r);
                return;
        }
        /* the address is checked, and that address is connected to: no second look-up */
        while (a && !r->literal && !address_is_public(a->ai_addr))
                a = a->ai_next;
        if (status < 0) {
                refuse_host(r, uv_strerror(status));
        } else if (!a) {
                refuse_host(r, "it is an address of this machine or of a private network");
        } else {
                open_end(r, OUTSIDE);
                r->connect.data = r;
                if (uv_tcp_connect(&r->connect, &r->ends[OUTSIDE].tcp, a->ai_addr, on_connected))
                        refuse_host(r, "no way there");
        }
        uv_freeaddrinfo(list);
}

static void begin_lookup(struct relay *r)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
        char port[16];

        if (r->literal)
                hints.ai_flags = AI_NUMERICHOST;
        snprintf(port, sizeof(port), "%d", r->to.port);
        r->lookup.data = r;
        if (uv_getaddrinfo(loop_uv(r->egress->loop), &r->lookup, on_resolved, r->to.host, port,
                           &hints) != 0)
                refuse_host(r, "its name cannot be resolved");
        else
                r->handles++;
}

static void on_head_bytes(struct relay *r, const char *bytes, size_t n)
{
        int rc;

        if (buf_add(&r->head, bytes, n) < 0) {
                refuse(r, "431 Request Header Fields Too Large", "the request's head is too large");
                return;
        }
        if (r->decided)
                return; /* it is being connected */
        rc = egress_read(r->head.data, r->head.len, &r->to);
        if (rc < 0) {
                r->to.host[0] = '\0';
                refuse(r, "400 Bad Request",
                       "this is a proxy: send CONNECT host:port, or a URL with http://");
        } else if (rc > 0) {
                r->decided = true;
                uv_read_stop((uv_stream_t *)&r->ends[INSIDE].tcp);
                if (!egress_lists(&r->egress->conf->hosts, r->to.host, r->to.port, &r->literal))
                        refuse_host(r, "it is not in the agent's setting sandbox.hosts");
                else
                        begin_lookup(r);
        }
}

/* ---- listening ---- */

static void on_connection(uv_stream_t *listener, int status)
{
        struct egress *e = listener->data;
        struct relay *r;

        if (status < 0)
                return;
        r = mem_zalloc(sizeof(*r));
        r->egress = e;
        e->count++;
        LIST_INSERT_HEAD(&e->relays, r, next);
        buf_init(&r->head, HEAD_MAX);
        r->timer = timer_new(e->loop, on_timer, r);
        timer_start(r->timer, HEAD_MS);
        open_end(r, INSIDE);
        if (uv_accept(listener, (uv_stream_t *)&r->ends[INSIDE].tcp) != 0 ||
            e->count > CONNECTIONS_MAX)
                relay_close(r);
        else
                read_from(&r->ends[INSIDE]);
}

static void on_handle_closed(uv_handle_t *h)
{
        struct egress *e = h->data;

        e->handles--;
        free_if_done(e);
}

static void on_channel_closed(uv_handle_t *h)
{
        struct egress *e = h->data;

        close(e->channel_fd);
        on_handle_closed(h);
}

static void close_channel(struct egress *e)
{
        if (e->has_channel)
                uv_close((uv_handle_t *)&e->channel, on_channel_closed);
        e->has_channel = false;
}

/* The socket that the box sent; -1: none. */
static int receive_socket(int channel)
{
        _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))];
        char byte;
        struct iovec io = { &byte, 1 };
        struct msghdr m = { .msg_iov = &io,
                            .msg_iovlen = 1,
                            .msg_control = space,
                            .msg_controllen = sizeof(space) };
        struct cmsghdr *c;
        int fd = -1;

        if (recvmsg(channel, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0)
                return -1;
        c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

static bool option_is(int fd, int option, int expected)
{
        socklen_t n = sizeof(int);
        int value = -1;

        return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 && value == expected;
}

static void on_channel(uv_poll_t *p, int status, int events)
{
        struct egress *e = p->data;
        int fd = receive_socket(e->channel_fd);

        (void)status;
        (void)events;
        close_channel(e);
        if (fd < 0)
                return;
        if (!option_is(fd, SO_DOMAIN, AF_INET) || !option_is(fd, SO_TYPE, SOCK_STREAM) ||
            !option_is(fd, SO_ACCEPTCONN, 1)) {
                log_warn("sandbox sent no listening socket");
                close(fd);
                return;
        }
        uv_tcp_init(loop_uv(e->loop), &e->listener);
        e->listener.data = e;
        e->handles++;
        e->listens = true;
        if (uv_tcp_open(&e->listener, fd) != 0)
                close(fd);
        else
                uv_listen((uv_stream_t *)&e->listener, 64, on_connection);
}

struct egress *egress_new(struct loop *l, const struct sandbox_conf *conf, int channel,
                          egress_report_fn *report_fn, void *arg)
{
        struct egress *e = mem_zalloc(sizeof(*e));

        e->loop = l;
        e->conf = conf;
        e->report = report_fn;
        e->arg = arg;
        e->channel_fd = channel;
        LIST_INIT(&e->relays);
        uv_poll_init(loop_uv(l), &e->channel, channel);
        e->channel.data = e;
        e->has_channel = true;
        e->handles++;
        uv_poll_start(&e->channel, UV_READABLE, on_channel);
        return e;
}

void egress_free(struct egress *e)
{
        struct relay *r;

        if (!e)
                return;
        e->report = NULL;
        close_channel(e);
        if (e->listens)
                uv_close((uv_handle_t *)&e->listener, on_handle_closed);
        while ((r = LIST_FIRST(&e->relays)))
                relay_close(r); /* NOLINT(clang-analyzer-unix.Malloc): it has left the list */
        e->freed = true;
        free_if_done(e);
}
