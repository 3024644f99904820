/*
 * fake_gateway: Discord's gateway for tests, misbehaving on request.
 *
 * Include it in one file of a test program. It sends HELLO, answers IDENTIFY and RESUME as
 * `identify` and `resume` say, and acknowledges heartbeats unless no_ack is set.
 */
#ifndef TESTS_FAKE_GATEWAY_H
#define TESTS_FAKE_GATEWAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "../lib/fake_ws.h"
#include "base/json.h"
#include "base/mem.h"

#define FAKE_CONNS 16

/* How IDENTIFY and RESUME are answered; above zero: a close code. */
enum fake_say {
        SAY_YES = 0,
        SAY_NOTHING = -1,
        SAY_INVALID = -2,
        SAY_INVALID_RESUMABLE = -3,
        SAY_CUT = -4
};

struct fake_gateway {
        struct fake_ws *ws;
        int64_t interval;
        int identify, resume;
        unsigned bad_answers; /* > 0: after so many such answers the next are SAY_YES */
        bool no_ack, no_hello;
        const char *replay; /* sent between RESUME and RESUMED */
        /* the session whose RESUME is not answered, and the connection it came on */
        const char *unanswered;
        struct fake_ws_conn *unanswered_conn;
        const char *compress;

        unsigned opens, gone, identifies, resumes, beats;
        unsigned shard_order[FAKE_CONNS];
        int64_t resume_seq, beat_seq, seq;
        char resume_session[50], path[100], beat_d[50];
        json_t *identified;
        struct fake_peer {
                struct fake_ws_conn *conn;
                z_stream zlib;
                ZSTD_CStream *zstd;
        } peers[FAKE_CONNS];
        struct fake_ws_conn *last;
};

static inline struct fake_peer *fake_peer_of(struct fake_gateway *f, struct fake_ws_conn *c)
{
        for (size_t i = 0; i < FAKE_CONNS; i++)
                if (f->peers[i].conn == c)
                        return &f->peers[i];
        return NULL;
}

static inline void fake_say(struct fake_gateway *f, struct fake_ws_conn *c, const char *text)
{
        struct fake_peer *p = fake_peer_of(f, c);
        size_t n = strlen(text), room = n + n / 2 + 1000;
        char *out;

        if (!p)
                return;
        out = mem_alloc(room);
        if (f->compress && strcmp(f->compress, "zlib-stream") == 0) {
                p->zlib.next_in = (Bytef *)(uintptr_t)text;
                p->zlib.avail_in = (uInt)n;
                p->zlib.next_out = (Bytef *)out;
                p->zlib.avail_out = (uInt)room;
                deflate(&p->zlib, Z_SYNC_FLUSH);
                fake_ws_binary(c, out, room - p->zlib.avail_out);
        } else if (f->compress) {
                ZSTD_inBuffer in = { text, n, 0 };
                ZSTD_outBuffer o = { out, room, 0 };

                ZSTD_compressStream2(p->zstd, &o, &in, ZSTD_e_flush);
                fake_ws_binary(c, out, o.pos);
        } else {
                fake_ws_text(c, text);
        }
        free(out);
}

/* A dispatch with the next sequence. d: JSON text. */
static inline void fake_dispatch(struct fake_gateway *f, struct fake_ws_conn *c, const char *type,
                                 const char *d)
{
        char *text = mem_printf("{\"op\":0,\"s\":%lld,\"t\":\"%s\",\"d\":%s}", (long long)++f->seq,
                                type, d);

        fake_say(f, c, text);
        free(text);
}

static inline void fake_on_open(void *arg, struct fake_ws_conn *c)
{
        struct fake_gateway *f = arg;
        struct fake_peer *p = fake_peer_of(f, NULL);
        char hello[100];

        f->opens++;
        f->last = c;
        p->conn = c;
        deflateInit(&p->zlib, 6);
        p->zstd = ZSTD_createCStream();
        snprintf(f->path, sizeof(f->path), "%s", fake_ws_path(c));
        snprintf(hello, sizeof(hello),
                 "{\"op\":10,\"s\":null,\"t\":null,\"d\":{\"heartbeat_interval\":%lld}}",
                 (long long)f->interval);
        if (!f->no_hello)
                fake_say(f, c, hello);
}

static inline void fake_on_gone(void *arg, struct fake_ws_conn *c)
{
        struct fake_gateway *f = arg;
        struct fake_peer *p = fake_peer_of(f, c);

        f->gone++;
        deflateEnd(&p->zlib);
        ZSTD_freeCStream(p->zstd);
        p->conn = NULL;
        if (f->last == c)
                f->last = NULL;
}

static inline void fake_ready(struct fake_gateway *f, struct fake_ws_conn *c)
{
        char *d = mem_printf(
                "{\"v\":10,\"session_id\":\"session-%u\","
                "\"resume_gateway_url\":\"ws://127.0.0.1:%d/resume\",\"user\":{\"id\":\"42\","
                "\"username\":\"TestBot\",\"bot\":true},\"application\":{\"id\":\"43\","
                "\"flags\":0},\"guilds\":[]}",
                f->identifies, fake_ws_port(f->ws));

        f->seq = 0;
        fake_dispatch(f, c, "READY", d);
        free(d);
}

/* True: SAY_YES. */
static inline bool fake_answer(struct fake_gateway *f, struct fake_ws_conn *c, int say)
{
        if (f->bad_answers > 0 && --f->bad_answers == 0)
                f->identify = f->resume = SAY_YES; /* from the next one on */
        if (say > 0)
                fake_ws_close(c, say, "as scripted");
        else if (say == SAY_INVALID)
                fake_say(f, c, "{\"op\":9,\"d\":false}");
        else if (say == SAY_INVALID_RESUMABLE)
                fake_say(f, c, "{\"op\":9,\"d\":true}");
        else if (say == SAY_CUT)
                fake_ws_cut(c);
        return say == SAY_YES;
}

static inline void fake_on_resume(struct fake_gateway *f, struct fake_ws_conn *c, const json_t *d)
{
        f->resumes++;
        f->resume_seq = json_int(d, "seq", -1);
        snprintf(f->resume_session, sizeof(f->resume_session), "%s", json_str(d, "session_id", ""));
        if (f->unanswered && strcmp(f->unanswered, f->resume_session) == 0) {
                f->unanswered_conn = c;
                return;
        }
        if (!fake_answer(f, c, f->resume))
                return;
        if (f->replay)
                fake_dispatch(f, c, "REPLAYED", f->replay);
        fake_dispatch(f, c, "RESUMED", "{}");
}

static inline void fake_on_message(void *arg, struct fake_ws_conn *c, const char *bytes, size_t n)
{
        struct fake_gateway *f = arg;
        json_t *j = json_read(bytes, n, NULL), *d = json_object_get(j, "d");
        char *text = d ? json_dumps(d, JSON_ENCODE_ANY) : NULL;

        switch (json_int(j, "op", -1)) {
        case 1:
                f->beats++;
                snprintf(f->beat_d, sizeof(f->beat_d), "%s", text);
                if (!f->no_ack)
                        fake_say(f, c, "{\"op\":11}");
                break;
        case 2:
                f->shard_order[f->identifies++ % FAKE_CONNS] = (unsigned)json_integer_value(
                        json_array_get(json_object_get(d, "shard"), 0));
                json_decref(f->identified);
                f->identified = json_incref(d);
                if (fake_answer(f, c, f->identify))
                        fake_ready(f, c);
                break;
        case 6:
                fake_on_resume(f, c, d);
                break;
        default:
                break;
        }
        free(text);
        json_decref(j);
}

static inline void fake_gateway_init(struct fake_gateway *f, struct loop *l)
{
        static const struct fake_ws_handlers handlers = { .on_open = fake_on_open,
                                                          .on_message = fake_on_message,
                                                          .on_gone = fake_on_gone };

        memset(f, 0, sizeof(*f));
        f->interval = 60000;
        f->ws = fake_ws_new(l, &handlers, f);
}

static inline void fake_gateway_release(struct fake_gateway *f)
{
        for (size_t i = 0; i < FAKE_CONNS; i++)
                if (f->peers[i].conn)
                        fake_ws_cut(f->peers[i].conn);
        fake_ws_free(f->ws);
        json_decref(f->identified);
}

#endif
