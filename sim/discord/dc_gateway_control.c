/*
 * POST /sim/gateway: acts on connections at once; and GET /sim/state.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_session.h"

enum action { CUT, RECONNECT, INVALID_SESSION, CLOSE, HEARTBEAT, RAW, EVENT, EXPIRE };

static const char *const names[] = {
        [CUT] = "cut",     [RECONNECT] = "reconnect", [INVALID_SESSION] = "invalid_session",
        [CLOSE] = "close", [HEARTBEAT] = "heartbeat", [RAW] = "raw",
        [EVENT] = "event", [EXPIRE] = "expire",
};

static void run(struct link *l, enum action action, const json_t *request)
{
        bool resumable = json_flag(request, "resumable", false);
        const char *raw = json_str(request, "text", "");
        const json_t *d = json_object_get(request, "d");
        char *text;

        switch (action) {
        case EXPIRE: /* the next resume fails */
                dc_session_free(l->session);
                ws_cut(l->ws);
                break;
        case CUT:
                ws_cut(l->ws);
                break;
        case RECONNECT:
                dc_gateway_send_op(l, OP_RECONNECT, "null");
                break;
        case INVALID_SESSION:
                dc_gateway_send_op(l, OP_INVALID, resumable ? "true" : "false");
                if (!resumable)
                        dc_session_free(l->session);
                break;
        case CLOSE:
                dc_gateway_close(l, (int)json_int(request, "code", 4000));
                break;
        case HEARTBEAT:
                dc_gateway_send_op(l, OP_HEARTBEAT, "null");
                break;
        case RAW:
                dc_gateway_send(l, raw, strlen(raw));
                break;
        case EVENT:
                text = d ? json_text(d) : mem_strdup("{}");
                dc_session_dispatch(l->session, json_str(request, "event", "UNKNOWN"), text);
                free(text);
                break;
        }
}

int dc_gateway_control(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *name = json_str(request, "action", "");
        int64_t shard = json_int(request, "shard", -1), count = 0;
        struct session *s, *following;
        struct link *l, *next;
        size_t i = 0;

        while (i < COUNT(names) && strcmp(names[i], name) != 0)
                i++;
        if (i == COUNT(names))
                return error_set(err, ERR_INVALID,
                                 "'action' must be one of cut, reconnect, invalid_session, "
                                 "close, heartbeat, raw, event, expire");
        for (l = LIST_FIRST(&w->gateway->links); l; l = next) {
                next = LIST_NEXT(l, next);
                if (!l->session || (shard >= 0 && l->session->shard != shard))
                        continue;
                run(l, (enum action)i, request);
                count++;
        }
        for (s = LIST_FIRST(&w->gateway->sessions); i == EXPIRE && s; s = following) {
                following = LIST_NEXT(s, next);
                if (!s->link)
                        dc_session_free(s);
        }
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
