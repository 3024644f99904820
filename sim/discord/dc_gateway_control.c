/*
 * The gateway misbehaves at once, because somebody asks for it; and what it looks like from
 * outside.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_session.h"

/* ---- misbehaving at once ---- */

static void act_cut(struct link *l, const json_t *request)
{
        (void)request;
        ws_cut(l->ws);
}

static void act_reconnect(struct link *l, const json_t *request)
{
        (void)request;
        dc_gateway_send_op(l, OP_RECONNECT, "null");
}

static void act_invalid(struct link *l, const json_t *request)
{
        bool resumable = json_flag(request, "resumable", false);

        dc_gateway_send_op(l, OP_INVALID, resumable ? "true" : "false");
        if (!resumable)
                dc_session_free(l->session);
}

static void act_close(struct link *l, const json_t *request)
{
        dc_gateway_close(l, (int)json_int(request, "code", 4000));
}

static void act_heartbeat(struct link *l, const json_t *request)
{
        (void)request;
        dc_gateway_send_op(l, OP_HEARTBEAT, "null");
}

static void act_raw(struct link *l, const json_t *request)
{
        const char *text = json_str(request, "text", "");

        dc_gateway_send(l, text, strlen(text));
}

/* Any event, properly numbered. */
static void act_event(struct link *l, const json_t *request)
{
        const json_t *d = json_object_get(request, "d");
        char *text = d ? json_text(d) : mem_strdup("{}");

        dc_session_dispatch(l->session, json_str(request, "event", "UNKNOWN"), text);
        free(text);
}

/* The connection ends and what it stood for is forgotten: the next resume fails. */
static void act_expire(struct link *l, const json_t *request)
{
        (void)request;
        dc_session_free(l->session);
        ws_cut(l->ws);
}

static const struct {
        const char *name;
        void (*run)(struct link *l, const json_t *request);
} acts[] = {
        { "cut", act_cut },
        { "reconnect", act_reconnect },
        { "invalid_session", act_invalid },
        { "close", act_close },
        { "heartbeat", act_heartbeat },
        { "raw", act_raw },
        { "expire", act_expire },
        { "event", act_event },
};

/* Sessions without a connection are forgotten, too. */
static void expire_lost(struct gateway *g)
{
        for (struct session *s = LIST_FIRST(&g->sessions), *next; s; s = next) {
                next = LIST_NEXT(s, next);
                if (!s->link)
                        dc_session_free(s);
        }
}

int dc_gateway_control(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *name = json_str(request, "action", "");
        int64_t shard = json_int(request, "shard", -1), count = 0;
        struct link *l, *next;
        size_t i = 0;

        while (i < COUNT(acts) && strcmp(acts[i].name, name) != 0)
                i++;
        if (i == COUNT(acts))
                return error_set(err, ERR_INVALID,
                                 "'action' must be one of cut, reconnect, invalid_session, "
                                 "close, heartbeat, raw, event, expire");
        for (l = LIST_FIRST(&w->gateway->links); l; l = next) {
                next = LIST_NEXT(l, next);
                if (!l->session || (shard >= 0 && l->session->shard != shard))
                        continue;
                acts[i].run(l, request);
                count++;
        }
        if (strcmp(name, "expire") == 0)
                expire_lost(w->gateway);
        jsonw_int(out, "links", count);
        return 0;
}

void dc_gateway_control_write(const struct gateway *g, struct buf *b)
{
        const struct session *s;

        jsonw_open_member(b, "sessions", '[');
        LIST_FOREACH(s, &g->sessions, next) {
                jsonw_open(b, '{');
                jsonw_str(b, "id", s->id);
                dc_render_id(b, "bot", s->bot->user->id);
                jsonw_int(b, "intents", (int64_t)s->intents);
                jsonw_int(b, "shard", s->shard);
                jsonw_int(b, "shards", s->shards);
                jsonw_int(b, "seq", s->seq);
                jsonw_bool(b, "connected", s->link != NULL);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}
