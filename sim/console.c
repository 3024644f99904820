#include "sim/console.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#define ADA 42

struct console {
        struct world *world;
        control_fn *send;
        uv_tty_t tty;
        struct buf line;
        char chunk[1024];
};

static void send_line(struct console *c, const char *line, size_t n)
{
        char *text = utf8_clean(line, n);
        json_t *request = json_pack("{s:i,s:s}", "from", ADA, "text", text);
        struct error err = { 0 };
        struct buf out;

        buf_init(&out, 0);
        if (c->send(c->world, request, &out, &err) != 0)
                printf("%s\n", err.text);
        buf_release(&out);
        json_decref(request);
        free(text);
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
        struct console *c = handle->data;

        (void)wanted;
        *room = uv_buf_init(c->chunk, sizeof(c->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
        struct console *c = stream->data;
        const char *end;

        if (n < 0) {
                uv_read_stop(stream); /* end of input; the simulator goes on */
                return;
        }
        buf_add(&c->line, bytes->base, (size_t)n);
        while ((end = memchr(c->line.data, '\n', c->line.len))) {
                size_t length = (size_t)(end - c->line.data);

                if (length > 0)
                        send_line(c, c->line.data, length);
                buf_consume(&c->line, length + 1);
        }
}

struct console *console_new(struct loop *l, struct world *w, control_fn *send)
{
        struct console *c;

        if (!isatty(STDIN_FILENO))
                return NULL;
        c = mem_zalloc(sizeof(*c));
        c->world = w;
        c->send = send;
        buf_init(&c->line, 65536);
        if (uv_tty_init(loop_uv(l), &c->tty, STDIN_FILENO, 1) != 0) {
                free(c);
                return NULL;
        }
        c->tty.data = c;
        uv_read_start((uv_stream_t *)&c->tty, on_alloc, on_read);
        return c;
}

static void on_closed(uv_handle_t *handle)
{
        struct console *c = handle->data;

        buf_release(&c->line);
        free(c);
}

void console_free(struct console *c)
{
        if (c)
                uv_close((uv_handle_t *)&c->tty, on_closed);
}
