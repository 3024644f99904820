#include "sim/discord/dc_gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_route.h"
#include "sim/discord/dc_session.h"

#define MAX_FRAME         4096
#define FRAMES_PER_MINUTE 120
#define START_WINDOW_MS   5000

static const struct {
        int code;
        const char *reason;
} reasons[] = {
        { 4000, "Unknown error." },
        { 4001, "Unknown opcode." },
        { 4002, "Error while decoding payload." },
        { 4003, "Not authenticated." },
        { 4004, "Authentication failed." },
        { 4005, "Already authenticated." },
        { 4007, "Invalid seq." },
        { 4008, "You are being rate limited." },
        { 4009, "Session timed out." },
        { 4010, "Invalid shard." },
        { 4011, "Sharding required." },
        { 4012, "Invalid API version." },
        { 4013, "Invalid intent(s)." },
        { 4014, "Disallowed intent(s)." },
};

/* ---- sending ---- */

void dc_gateway_send(struct link *l, const char *text, size_t n)
{
        struct buf b;

        if (!l->compressor && !l->compress) {
                ws_send(l->ws, text, n, false);
                return;
        }
        buf_init(&b, 0);
        if (l->compressor)
                dc_compress_add(l->compressor, text, n, &b);
        else
                dc_compress_alone(text, n, &b);
        ws_send(l->ws, b.data, b.len, true);
        buf_release(&b);
}

void dc_gateway_send_op(struct link *l, enum op op, const char *d)
{
        char *text = mem_printf("{\"t\":null,\"s\":null,\"op\":%d,\"d\":%s}", op, d);

        dc_gateway_send(l, text, strlen(text));
        free(text);
}

/* ---- GET /sim/links ---- */

static struct buf *open_entry(struct link *l, const char *kind)
{
        struct buf *b = journal_open(l->gateway->world->links, kind, 0);

        jsonw_str(b, "path", l->path);
        if (l->session) {
                jsonw_str(b, "session", l->session->id);
                jsonw_int(b, "shard", l->session->shard);
                dc_render_id(b, "bot", l->session->bot->user->id);
        }
        return b;
}

void dc_gateway_close(struct link *l, int code)
{
        const char *reason = "";

        for (size_t i = 0; i < COUNT(reasons); i++)
                reason = reasons[i].code == code ? reasons[i].reason : reason;
        jsonw_int(open_entry(l, "closed"), "code", code);
        journal_close(l->gateway->world->links);
        l->closing = true;
        if (l->session && (code == 4003 || code == 4007 || code == 4009))
                dc_session_free(l->session);
        ws_close(l->ws, code, reason);
}

/* ---- heartbeats ---- */

static void on_silence(void *arg)
{
        dc_gateway_close(arg, 4000);
}

static void await_heartbeat(struct link *l)
{
        timer_start(l->silence, l->gateway->world->settings.heartbeat_ms * 2 + 1000);
}

static void on_heartbeat(struct link *l, const json_t *d)
{
        struct world *w = l->gateway->world;

        dc_render_json(open_entry(l, "heartbeat"), "s", d);
        journal_close(w->links);
        await_heartbeat(l);
        if (w->settings.acks && !faults_fire(&w->base.faults, FAULT_MUTE, "heartbeat"))
                dc_gateway_send_op(l, OP_ACK, "null");
}

/* ---- identify ---- */

static void attach(struct link *l, struct session *s)
{
        l->session = s;
        s->link = l;
}

/* Both return a close code, or 0. */
static int check_shard(const struct world *w, const json_t *shard, int *id, int *count)
{
        *id = 0;
        *count = 1;
        if (json_is_array(shard)) {
                *id = (int)json_integer_value(json_array_get(shard, 0));
                *count = (int)json_integer_value(json_array_get(shard, 1));
                if (json_array_size(shard) != 2 || *id < 0 || *count < 1 || *id >= *count)
                        return 4010;
        }
        return *count < w->settings.min_shards ? 4011 : 0;
}

static int check_intents(const struct bot *b, const json_t *intents)
{
        uint64_t wanted = (uint64_t)json_integer_value(intents);

        if (!json_is_integer(intents) || (wanted & ~INTENTS_ALL))
                return 4013;
        return wanted & INTENTS_PRIVILEGED & ~b->intents ? 4014 : 0;
}

/* Takes a start: one per five seconds and bucket. */
static bool take_start(struct gateway *g, int shard)
{
        struct world *w = g->world;
        int64_t now = clock_mono_ms(),
                *last = &g->started_ms[shard % w->settings.max_concurrency % MAX_BUCKETS];

        if (w->base.limits && *last && now - *last < START_WINDOW_MS)
                return false;
        *last = now;
        return true;
}

static void on_identify(struct link *l, const json_t *d)
{
        struct gateway *g = l->gateway;
        struct bot *b = dc_world_bot_by_token(g->world, json_str(d, "token", NULL));
        const struct fault *fault = faults_fire(&g->world->base.faults, FAULT_CLOSE, "identify");
        int shard = 0, shards = 1, code;
        struct buf *e;

        if (l->session)
                code = 4005;
        else if (fault)
                code = fault->code;
        else if (!b || b->token_reset)
                code = 4004;
        else if (!(code = check_shard(g->world, json_object_get(d, "shard"), &shard, &shards)))
                code = check_intents(b, json_object_get(d, "intents"));
        if (code) {
                dc_gateway_close(l, code);
                return;
        }
        if (b->starts_left-- <= 0) {
                b->token_reset = true; /* Discord resets tokens that exceed the daily limit */
                dc_gateway_close(l, 4004);
                return;
        }
        if (!take_start(g, shard) ||
            faults_fire(&g->world->base.faults, FAULT_REFUSE, "identify")) {
                dc_gateway_send_op(l, OP_INVALID, "false");
                return;
        }
        l->compress = !l->compressor && json_flag(d, "compress", false);
        attach(l, dc_session_new(g, b, (uint64_t)json_int(d, "intents", 0), shard, shards));
        e = open_entry(l, "identify");
        jsonw_int(e, "intents", json_int(d, "intents", -1));
        dc_render_json(e, "properties", json_object_get(d, "properties"));
        dc_render_json(e, "presence", json_object_get(d, "presence"));
        jsonw_int(e, "starts_left", b->starts_left);
        journal_close(g->world->links);
        dc_session_ready(l->session);
}

/* ---- resume ---- */

static void on_resume(struct link *l, const json_t *d)
{
        struct gateway *g = l->gateway;
        struct bot *b = dc_world_bot_by_token(g->world, json_str(d, "token", NULL));
        struct session *s = dc_session_find(g, json_str(d, "session_id", ""));
        const struct fault *fault = faults_fire(&g->world->base.faults, FAULT_CLOSE, "resume");
        int64_t seq = json_int(d, "seq", -1);
        struct buf *e = open_entry(l, "resume");

        jsonw_str(e, "wanted", json_str(d, "session_id", NULL));
        jsonw_int(e, "s", seq);
        jsonw_bool(e, "known", s != NULL);
        journal_close(g->world->links);
        if (l->session)
                dc_gateway_close(l, 4005);
        else if (fault)
                dc_gateway_close(l, fault->code);
        else if (!b || b->token_reset)
                dc_gateway_close(l, 4004);
        else if (!s || s->bot != b || faults_fire(&g->world->base.faults, FAULT_REFUSE, "resume"))
                dc_gateway_send_op(l, OP_INVALID, "false");
        else if (seq < 0 || seq > s->seq)
                dc_gateway_close(l, 4007);
        else {
                if (s->link) {
                        s->link->session = NULL;
                        ws_cut(s->link->ws);
                }
                attach(l, s);
                if (dc_session_replay(s, seq) != 0) {
                        dc_session_free(s);
                        dc_gateway_send_op(l, OP_INVALID, "false");
                }
        }
}

/* ---- other frames ---- */

static void on_presence(struct link *l, const json_t *d)
{
        dc_render_json(open_entry(l, "presence"), "presence", d);
        journal_close(l->gateway->world->links);
}

static bool matches(const json_t *d, const struct member *m)
{
        const json_t *ids = json_object_get(d, "user_ids"), *at;
        const char *query = json_str(d, "query", NULL);
        char id[DC_ID_SIZE];
        size_t i;

        dc_id_text(m->user->id, id);
        if (query)
                return strncmp(m->user->username, query, strlen(query)) == 0;
        if (json_is_string(ids))
                return strcmp(json_string_value(ids), id) == 0;
        json_array_foreach(ids, i, at) {
                if (json_is_string(at) && strcmp(json_string_value(at), id) == 0)
                        return true;
        }
        return false;
}

static void on_members(struct link *l, const json_t *d)
{
        const struct guild *g =
                dc_guild_find(l->gateway->world, dc_id_parse(json_str(d, "guild_id", NULL)));
        struct buf b;

        if (!g)
                return;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        dc_render_id(&b, "guild_id", g->id);
        jsonw_open_member(&b, "members", '[');
        for (const struct member *m = g->members; m; m = m->next) {
                if (matches(d, m))
                        dc_render_member(&b, NULL, m, true);
        }
        jsonw_close(&b, ']');
        jsonw_int(&b, "chunk_index", 0);
        jsonw_int(&b, "chunk_count", 1);
        jsonw_opt(&b, "nonce", json_str(d, "nonce", NULL));
        jsonw_close(&b, '}');
        dc_session_dispatch(l->session, "GUILD_MEMBERS_CHUNK", b.data);
        buf_release(&b);
}

static void on_ignored(struct link *l, const json_t *d)
{
        (void)l;
        (void)d;
}

static const struct {
        enum op op;
        bool needs_session;
        void (*run)(struct link *l, const json_t *d);
} ops[] = {
        { OP_HEARTBEAT, false, on_heartbeat }, { OP_IDENTIFY, false, on_identify },
        { OP_RESUME, false, on_resume },       { OP_PRESENCE, true, on_presence },
        { OP_VOICE, true, on_ignored },        { OP_MEMBERS, true, on_members },
        { OP_SOUNDS, true, on_ignored },       { OP_CHANNEL_INFO, true, on_ignored },
};

static void run_frame(struct link *l, const json_t *frame)
{
        const json_t *op = json_object_get(frame, "op");

        for (size_t i = 0; i < COUNT(ops); i++) {
                if (!json_is_integer(op) || (int)json_integer_value(op) != (int)ops[i].op)
                        continue;
                if (ops[i].needs_session && !l->session)
                        dc_gateway_close(l, 4003);
                else
                        ops[i].run(l, json_object_get(frame, "d"));
                return;
        }
        dc_gateway_close(l, 4001);
}

static void on_message(void *owner, const char *bytes, size_t n, bool binary)
{
        struct link *l = owner;
        int64_t now = clock_mono_ms();
        json_t *frame;

        (void)binary;
        if (now - l->minute_ms >= 60000) {
                l->minute_ms = now;
                l->frames = 0;
        }
        if (++l->frames > FRAMES_PER_MINUTE && l->gateway->world->base.limits) {
                dc_gateway_close(l, 4008);
                return;
        }
        frame = n <= MAX_FRAME ? json_read(bytes, n, NULL) : NULL;
        if (json_is_object(frame))
                run_frame(l, frame);
        else
                dc_gateway_close(l, 4002);
        json_decref(frame);
}

/* ---- connections ---- */

/* Reads version and compression from the address; returns a close code, or 0. */
static int read_target(struct link *l, const char *target)
{
        char *text = mem_strdup(target), *query = strchr(text, '?');
        struct http_pair *pairs = NULL;
        size_t count = 0;
        int code = 0;

        if (query)
                *query++ = '\0';
        snprintf(l->path, sizeof(l->path), "%s", text);
        l->version = 10;
        if (query)
                http_route_parse_query(query, &pairs, &count);
        for (size_t i = 0; i < count; i++) {
                if (strcmp(pairs[i].name, "v") == 0)
                        l->version = (int)strtol(pairs[i].value, NULL, 10);
                else if (strcmp(pairs[i].name, "encoding") == 0 &&
                         strcmp(pairs[i].value, "json") != 0)
                        code = 4002;
                else if (strcmp(pairs[i].name, "compress") == 0 && !l->compressor &&
                         !(l->compressor = dc_compress_new(pairs[i].value)))
                        code = 4002;
        }
        free(pairs);
        free(text);
        return l->version == 9 || l->version == 10 ? code : 4012;
}

static void on_open(void *arg, struct ws *ws, const char *target)
{
        struct gateway *g = arg;
        struct link *l = mem_zalloc(sizeof(*l));
        const struct fault *fault;
        char hello[96];
        int code;

        l->gateway = g;
        l->ws = ws;
        l->silence = timer_new(g->world->base.loop, on_silence, l);
        LIST_INSERT_HEAD(&g->links, l, next);
        ws_set_owner(ws, l);
        code = read_target(l, target);
        jsonw_str(open_entry(l, "connect"), "target", target);
        journal_close(g->world->links);
        if ((fault = faults_fire(&g->world->base.faults, FAULT_CLOSE, "connect")))
                code = fault->code;
        if (code) {
                dc_gateway_close(l, code);
                return;
        }
        snprintf(hello, sizeof(hello),
                 "{\"heartbeat_interval\":%lld,\"_trace\":[\"dragoman-sim\"]}",
                 (long long)g->world->settings.heartbeat_ms);
        dc_gateway_send_op(l, OP_HELLO, hello);
        await_heartbeat(l);
}

static void on_gone(void *owner, int code)
{
        struct link *l = owner;

        jsonw_int(open_entry(l, "gone"), "code", code);
        journal_close(l->gateway->world->links);
        if (l->session && !l->closing && (code == 1000 || code == 1001))
                dc_session_free(l->session); /* a clean close ends the session */
        else if (l->session)
                dc_session_lost(l->session);
        LIST_REMOVE(l, next);
        dc_compress_free(l->compressor);
        timer_free(l->silence);
        free(l);
}

struct gateway *dc_gateway_new(struct world *w)
{
        struct gateway *g = mem_zalloc(sizeof(*g));

        g->world = w;
        LIST_INIT(&g->links);
        LIST_INIT(&g->sessions);
        return g;
}

int dc_gateway_listen(struct gateway *g, const struct ws_options *o, struct error *err)
{
        static const struct ws_hooks hooks = { on_open, on_message, on_gone };

        g->server = ws_server_new(g->world->base.loop, o, &hooks, g, err);
        if (!g->server)
                return -1;
        g->url = mem_printf("%s://%s", o->tls_cert_file ? "wss" : "ws",
                            ws_server_address(g->server));
        return 0;
}

void dc_gateway_free(struct gateway *g)
{
        if (!g)
                return;
        ws_server_free(g->server);
        while (!LIST_EMPTY(&g->sessions))
                dc_session_free(LIST_FIRST(&g->sessions));
        free(g->url);
        free(g);
}

const char *dc_gateway_url(const struct gateway *g)
{
        return g->url ? g->url : "";
}
