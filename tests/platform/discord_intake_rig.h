/*
 * discord_intake_rig: the intake of a Discord adapter between a fake gateway and a road that
 * records. The test answers its REST calls.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_DISCORD_INTAKE_RIG_H
#define TESTS_DISCORD_INTAKE_RIG_H

#include <stdio.h>
#include <sys/stat.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "base/json.h"
#include "fake_gateway.h"
#include "fake_road.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_intake.h"

#define STEPS 50000
#define GETS  32

/* A REST call that the test answers. */
struct asked {
        char path[200];
        dc_answer_fn *done; /* NULL: answered */
        void *arg;
};

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct secret *token;
        struct fake_gateway fake;
        struct platform_ops ops;
        struct adapter adapter;
        struct dc_intake_options o;
        struct dc_intake *in;
        struct asked gets[GETS];
        /* the last lookup of a member; not counted among the others */
        struct asked member;
        const char *member_is; /* how page() answers it; NULL: not */
        unsigned member_count;
        struct asked opened; /* the last DM asked for */
        unsigned opened_count;
        unsigned get_count, ups, stops, stored, dms, owns;
        struct dc_gateway_stats stats;
        bool bad_token, had_events;
        char dm[100], interaction[100];
        uint64_t recent; /* an id after the beginning of every gap */
};

/* ---- hooks ---- */

/* "/channels/10/messages?limit=100" */
static inline void make_path(const struct dc_get *q, char *out, size_t size)
{
        const struct dc_request request = { .route = q->route,
                                            .args = { q->args[0], q->args[1] },
                                            .query = q->query };
        struct error err = { 0 };
        struct buf path, major;

        buf_init(&path, 0);
        buf_init(&major, 0);
        assert_int_equal(dc_call_path(&request, &path, &major, &err), 0);
        snprintf(out, size, "%s", path.data);
        buf_release(&path);
        buf_release(&major);
}

static inline void answer_bot(void *arg)
{
        struct asked *a = arg;
        json_t *body =
                json_pack("{s:i, s:{s:i, s:i, s:i, s:i}}", "shards", 1, "session_start_limit",
                          "total", 1000, "remaining", 900, "reset_after", 0, "max_concurrency", 1);

        if (a->done)
                a->done(a->arg, &(struct dc_answer){ .ok = true, .status = 200, .result = body });
        a->done = NULL;
        json_decref(body);
}

static inline void on_get(void *ctx, const struct dc_get *q, dc_answer_fn *done, void *arg)
{
        struct rig *g = ctx;
        bool of_member = strstr(q->route, "/members/") != NULL;
        struct asked *a = of_member ? &g->member : &g->gets[g->get_count++ % GETS];

        g->member_count += of_member;
        make_path(q, a->path, sizeof(a->path));
        a->done = done;
        a->arg = arg;
        if (strcmp(a->path, "/gateway/bot") == 0) {
                g->get_count--; /* not counted */
                struct asked *bot = &g->gets[GETS - 1];

                *bot = *a;
                loop_defer(g->loop, answer_bot, bot);
        }
}

static inline void on_open_dm(void *ctx, const char *user, dc_answer_fn *done, void *arg)
{
        struct rig *g = ctx;

        g->opened_count++;
        g->opened = (struct asked){ .done = done, .arg = arg };
        snprintf(g->opened.path, sizeof(g->opened.path), "%s", user);
}

static inline void on_ready(void *ctx, const struct dc_gateway_ready *ready)
{
        (void)ctx, (void)ready;
}

static inline void on_state(void *ctx, enum dc_gateway_state state, const char *why)
{
        struct rig *g = ctx;

        (void)why;
        g->ups += state == DC_GATEWAY_UP;
        g->stops += state == DC_GATEWAY_STOPPED || state == DC_GATEWAY_BAD_TOKEN;
        g->bad_token = state == DC_GATEWAY_BAD_TOKEN;
}

static inline void on_stored(void *ctx, const json_t *interaction)
{
        struct rig *g = ctx;

        g->stored++;
        snprintf(g->interaction, sizeof(g->interaction), "%s", json_str(interaction, "token", ""));
}

static inline void on_dm(void *ctx, const char *user, const char *channel)
{
        struct rig *g = ctx;

        g->dms++;
        snprintf(g->dm, sizeof(g->dm), "%s in %s", user, channel);
}

static inline void on_own(void *ctx, const json_t *message)
{
        struct rig *g = ctx;

        (void)message;
        g->owns++;
}

static inline void on_scheduled(void *ctx, const char *guild, bool any)
{
        struct rig *g = ctx;

        (void)guild;
        g->had_events = any;
}

static inline bool on_was_scheduled(void *ctx, const char *guild)
{
        (void)guild;
        return ((struct rig *)ctx)->had_events;
}

static inline int set_up(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        char *folder, now[24];

        fake_road_reset();
        g->dir = scratch_new();
        folder = scratch_path(g->dir, "state");
        mkdir(folder, 0700);
        free(folder);
        g->loop = loop_new();
        g->http = http_client_new(g->loop, NULL, NULL);
        g->token = secret_new("a.secret.token", 14);
        fake_gateway_init(&g->fake, g->loop);
        dc_id_at(clock_wall_ms() + 600000, now);
        g->recent = strtoull(now, NULL, 10);
        g->member_is = "{\"roles\":[]}";
        g->ops.name = "discord";
        g->adapter = (struct adapter){ .ops = &g->ops,
                                       .name = "dc",
                                       .loop = g->loop,
                                       .http = g->http,
                                       .road = FAKE_ROAD,
                                       .dir = g->dir };
        g->o = (struct dc_intake_options){ .adapter = &g->adapter,
                                           .gateway = { .token = g->token,
                                                        .url = fake_ws_url(g->fake.ws, ""),
                                                        .intents = DC_INTENTS,
                                                        .times = { .backoff_ms = 2,
                                                                   .backoff_max_ms = 10,
                                                                   .identify_ms = 1,
                                                                   .invalid_ms = 5,
                                                                   .save_ms = 1 } },
                                           .catchup_seconds = 3600,
                                           .catchup_messages = 120 };
        *state = g;
        return 0;
}

static inline void close_it(struct rig *g)
{
        dc_intake_free(g->in);
        g->in = NULL;
        /* late commits are ignored */
        for (unsigned i = 0; i < COUNT(fake_road.arrivals); i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE);
        for (unsigned i = 0; i < GETS; i++)
                g->gets[i].done = NULL;
        g->member.done = g->opened.done = NULL;
}

static inline int tear_down(void **state)
{
        struct rig *g = *state;

        close_it(g);
        loop_step(g->loop, false);
        fake_gateway_release(&g->fake);
        http_client_free(g->http);
        secret_free(g->token);
        loop_free(g->loop);
        free((char *)(uintptr_t)g->o.gateway.url);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static inline void await(struct rig *g, const unsigned *what, unsigned n)
{
        for (int i = 0; i < STEPS && *what < n; i++)
                loop_step(g->loop, true);
        assert_true(*what >= n);
}

static inline void begin(struct rig *g)
{
        const struct dc_intake_hooks hooks = { .ctx = g,
                                               .get = on_get,
                                               .open_dm = on_open_dm,
                                               .ready = on_ready,
                                               .state = on_state,
                                               .stored = on_stored,
                                               .dm = on_dm,
                                               .own = on_own,
                                               .scheduled = on_scheduled,
                                               .was_scheduled = on_was_scheduled };

        g->in = dc_intake_new(&g->o, &hooks);
}

#define GUILD(last)                                                                 \
        "{\"id\":\"1\",\"name\":\"Home\",\"channels\":[{\"id\":\"10\",\"type\":0,"  \
        "\"name\":\"general\","                                                     \
        "\"last_message_id\":" last                                                 \
        "},{\"id\":\"12\",\"type\":0,\"name\":\"quiet\",\"last_message_id\":null}," \
        "{\"id\":\"15\",\"type\":15,\"name\":\"forum\",\"last_message_id\":" last   \
        "}],\"threads\":[]}"

static inline void connected(struct rig *g)
{
        begin(g);
        await(g, &g->ups, 1);
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", GUILD("\"5\""));
}

/* A message in a channel; guild "": a DM. */
static inline void write_in(struct rig *g, const char *channel, const char *guild, const char *id,
                            const char *more)
{
        char *d = mem_printf("{\"id\":\"%s\",\"channel_id\":\"%s\",\"type\":0,\"content\":\"text "
                             "%s\",\"author\":{\"id\":\"5\",\"username\":\"ann\"}%s%s%s%s}",
                             id, channel, id, *guild ? ",\"guild_id\":\"" : "", guild,
                             *guild ? "\",\"member\":{\"roles\":[]}" : "", more);

        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE", d);
        free(d);
}

static inline void answer_it(struct asked *a, int status, const char *text)
{
        json_t *body = text ? json_read(text, strlen(text), NULL) : NULL;
        const struct dc_answer answer = { .ok = status == 200,
                                          .status = status,
                                          .code = (int)json_int(body, "code", 0),
                                          .result = body,
                                          .why = "as scripted" };
        dc_answer_fn *done = a->done;

        assert_non_null(done);
        a->done = NULL;
        done(a->arg, &answer);
        json_decref(body);
}

/* Answers the i-th REST call. */
static inline void answer(struct rig *g, unsigned i, int status, const char *text)
{
        answer_it(&g->gets[i], status, text);
}

static inline void answer_member(struct rig *g, int status, const char *text)
{
        answer_it(&g->member, status, text);
}

static inline size_t uncommitted(struct rig *g)
{
        dc_gateway_stats(g->in->gateway, &g->stats);
        return g->stats.uncommitted;
}

static inline const char *key(unsigned i)
{
        return fake_road.arrivals[i].key;
}

/* The id of the n-th message since the beginning of the test; one of the last eight results. */
static inline const char *recent(const struct rig *g, unsigned n)
{
        static char ids[8][24];
        static unsigned at;
        char *id = ids[at++ % COUNT(ids)];

        snprintf(id, sizeof(ids[0]), "%llu", (unsigned long long)g->recent + n);
        return id;
}

/* Of the last event. */
static inline const char *metadata(void)
{
        return fake_road.arrivals[fake_road.received_count - 1].metadata;
}

#endif
