#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"
#include "platform/discord/dc_parse.h"

#define PAYLOAD_MAX ((size_t)32 << 20) /* inflated; the largest guilds are a few megabytes */
#define QUEUED_MAX  ((size_t)16 << 20) /* waiting behind a large one */

/* A payload that waits for the one before it. */
struct piece {
        char *text;
        size_t n;
        STAILQ_ENTRY(piece) next;
};

struct dc_frames {
        struct loop *loop;
        struct dc_frames_handlers on;
        void *arg;
        struct inflate *inflate;    /* NULL: nothing is compressed */
        struct buf out;             /* what a message becomes */
        struct dc_parsing *parsing; /* a large one */
        STAILQ_HEAD(, piece) queue; /* behind `parsing` */
        size_t queued;
        bool failed, freed;
        unsigned refs; /* the owner, callbacks on the stack */
};

static void piece_free(struct piece *p)
{
        free(p->text);
        free(p);
}

static void unref(struct dc_frames *f)
{
        struct piece *p;

        if (--f->refs > 0)
                return;
        while ((p = STAILQ_FIRST(&f->queue))) {
                STAILQ_REMOVE_HEAD(&f->queue, next);
                piece_free(p);
        }
        inflate_free(f->inflate);
        buf_release(&f->out);
        free(f);
}

struct dc_frames *dc_frames_new(struct loop *l, const char *compress,
                                const struct dc_frames_handlers *handlers, void *arg)
{
        struct dc_frames *f = mem_zalloc(sizeof(*f));

        f->loop = l;
        f->on = *handlers;
        f->arg = arg;
        f->refs = 1;
        STAILQ_INIT(&f->queue);
        buf_init(&f->out, PAYLOAD_MAX);
        if (compress && strcmp(compress, "zlib-stream") == 0)
                f->inflate = inflate_new(INFLATE_ZLIB);
        else if (compress && strcmp(compress, "zstd-stream") == 0)
                f->inflate = inflate_new(INFLATE_ZSTD);
        return f;
}

void dc_frames_free(struct dc_frames *f)
{
        if (!f)
                return;
        f->freed = true;
        dc_parse_drop(f->parsing);
        f->parsing = NULL;
        unref(f);
}

static void failed(struct dc_frames *f, const char *why)
{
        if (f->failed || f->freed)
                return;
        f->failed = true;
        f->on.failed(f->arg, why);
}

static void hand_over(struct dc_frames *f, json_t *payload)
{
        if (json_is_object(payload))
                f->on.payload(f->arg, payload);
        else
                failed(f, "Discord sent something that is no JSON object");
}

static void take(struct dc_frames *f, const char *text, size_t n);

/* ---- large ones ---- */

static void on_parsed(void *arg, json_t *payload)
{
        struct dc_frames *f = arg;
        struct piece *p;

        f->refs++;
        f->parsing = NULL;
        hand_over(f, payload);
        while (!f->freed && !f->failed && !f->parsing && (p = STAILQ_FIRST(&f->queue))) {
                STAILQ_REMOVE_HEAD(&f->queue, next);
                f->queued -= p->n;
                take(f, p->text, p->n);
                piece_free(p);
        }
        if (!f->freed && !f->failed && !f->parsing)
                f->on.busy(f->arg, false);
        unref(f);
}

static void parse_apart(struct dc_frames *f, const char *text, size_t n)
{
        f->parsing = dc_parse_apart(f->loop, text, n, on_parsed, f);
        f->on.busy(f->arg, true);
}

/* ---- in order ---- */

static void wait_behind(struct dc_frames *f, const char *text, size_t n)
{
        struct piece *p = mem_zalloc(sizeof(*p));

        p->text = mem_dup(text, n);
        p->n = n;
        STAILQ_INSERT_TAIL(&f->queue, p, next);
        f->queued += n;
        if (f->queued > QUEUED_MAX)
                failed(f, "Discord sends faster than we can read");
}

static void take(struct dc_frames *f, const char *text, size_t n)
{
        json_t *payload;

        if (f->parsing) {
                wait_behind(f, text, n);
                return;
        }
        if (n >= DC_LARGE) {
                parse_apart(f, text, n);
                return;
        }
        payload = dc_parse(text, n);
        hand_over(f, payload);
        json_decref(payload);
}

void dc_frames_feed(struct dc_frames *f, bool binary, const char *bytes, size_t n)
{
        struct error err = { 0 };
        int rc;

        if (f->failed)
                return;
        f->refs++;
        if (!f->inflate || !binary) {
                take(f, bytes, n);
                unref(f);
                return;
        }
        rc = inflate_feed(f->inflate, bytes, n, &f->out, &err);
        if (rc < 0) {
                failed(f, err.text);
        } else if (rc > 0) {
                take(f, f->out.data, f->out.len);
                if (f->out.cap > DC_LARGE) /* once in a while; not to be kept for it */
                        buf_release(&f->out);
                buf_clear(&f->out);
        }
        unref(f);
}
