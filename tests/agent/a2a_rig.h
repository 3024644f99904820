/*
 * a2a_rig: a real road with an a2a agent named "steps", and the service that it calls, which says
 * what the test tells it to, one request after the other.
 */
#ifndef TESTS_AGENT_A2A_RIG_H
#define TESTS_AGENT_A2A_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fake_server.h"
#include "../lib/patience.h"
#include "../lib/road_rig.h"
#include "agent/a2a/a2a.h"
#include "agent/agents.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define CLOSE      "Connection: close\r\n\r\n"
#define OK(type)   "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\n" CLOSE
#define JSON(body) OK("application/json") body
#define SSE(...)   OK("text/event-stream") __VA_ARGS__
#define REPLY(r)   "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" r "}"
#define EVENT(r)   "data: " REPLY(r) "\n\n"
#define ERROR(code) \
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":" code ",\"message\":\"no way\"}}"

/* Objects of version 1.0, of task "t" in context "c". */
#define STATE(s) "\"status\":{\"state\":\"TASK_STATE_" s "\"}"
#define SAYS(s, m, t)                                                                      \
        "\"status\":{\"state\":\"TASK_STATE_" s "\",\"timestamp\":\"2026-01-01T00:00:0" m  \
        "Z\",\"message\":{\"messageId\":\"m" m "\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"" \
        "text\":\"" t "\"}]}}"
#define ARTIFACT(id, t) "{\"artifactId\":\"" id "\",\"parts\":[{\"text\":\"" t "\"}]}"
#define BARE(status, artifacts) \
        "{\"id\":\"t\",\"contextId\":\"c\"," status ",\"artifacts\":[" artifacts "]}"
#define IDS                     "\"taskId\":\"t\",\"contextId\":\"c\","
#define TASK(status, artifacts) "{\"task\":" BARE(status, artifacts) "}"
#define STATUS(status)          "{\"statusUpdate\":{" IDS status "}}"
#define PIECE(id, t, append) \
        "{\"artifactUpdate\":{" IDS "\"append\":" append ",\"artifact\":" ARTIFACT(id, t) "}}"
#define DONE(t) TASK(STATE("COMPLETED"), ARTIFACT("a", t))

#define CARD(streaming)                                                                       \
        JSON("{\"name\":\"Far\",\"version\":\"7\",\"capabilities\":{\"streaming\":" streaming \
             "},\"supportedInterfaces\":[{\"url\":\"http://card.invalid/rpc\","               \
             "\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}]}")
#define OLD_CARD(streaming)                                                                    \
        JSON("{\"name\":\"Far\",\"protocolVersion\":\"0.3.0\",\"url\":\"http://x.invalid/\", " \
             "\"capabilities\":{\"streaming\":" streaming "}}")

struct a2a_rig {
        struct rig *road;
        struct http_client *http;
        struct agents *agents;
        struct fake_server *server;
        const char *members;  /* of the agent's settings; "": none */
        bool own_urls;        /* those of the card count, not `endpoint` */
        struct turn_run *run; /* started last */
        unsigned seen;        /* requests */
};

static inline void a2a_rig_start(struct rig *g, struct turn_run *run)
{
        struct a2a_rig *r = g->test;

        r->run = run;
        agent_runs_start(r->agents, run);
}

static inline void a2a_rig_cancel(struct rig *g, struct turn_run *run)
{
        agent_runs_cancel(((struct a2a_rig *)g->test)->agents, run);
}

static inline void a2a_rig_decides(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        if (!in->text || strcmp(in->text, "/new") != 0)
                return;
        out->trigger = false;
        out->command = COMMAND_NEW;
}

static inline void a2a_rig_open(struct a2a_rig *r)
{
        struct agents_env env = { r->road->store, r->road->bus, r->road->road };
        char *url = fake_server_url(r->server, ""), *json, *endpoint;
        struct agent_conf *conf;
        struct error err = { 0 };

        endpoint = r->own_urls ? mem_strdup("") : mem_printf("\"endpoint\": \"%s/rpc\", ", url);
        json = mem_printf("{\"url\": \"%s/agent\", %s\"breakerFailures\": 0, \"apiKey\": "
                          "\"far-key\", \"pollMs\": 50%s%s}",
                          url, endpoint, *r->members ? ", " : "", r->members);
        r->agents = agents_new(r->road->loop, r->http, r->road->dir);
        if (agents_connect(r->agents, &env, &err) < 0)
                fail_msg("%s", err.text);
        conf = agent_conf_make("steps", "a2a", json, &err);
        if (!conf || agents_apply(r->agents, &conf, 1, &err) < 0)
                fail_msg("%s in %s", err.text, json);
        free(endpoint);
        free(json);
        free(url);
}

static inline struct a2a_rig *a2a_rig_new_with(const char *members, bool own_urls)
{
        struct a2a_rig *r = mem_zalloc(sizeof(*r));

        r->members = members;
        r->own_urls = own_urls;
        r->road = rig_new();
        r->road->auto_send = true;
        r->road->test = r;
        r->road->starts = a2a_rig_start;
        r->road->cancels = a2a_rig_cancel;
        r->road->decides = a2a_rig_decides;
        r->http = http_client_new(r->road->loop, NULL, NULL);
        r->server = fake_server_new(r->road->loop, NULL, 0);
        a2a_rig_open(r);
        return r;
}

static inline struct a2a_rig *a2a_rig_new(const char *members)
{
        return a2a_rig_new_with(members, false);
}

/* As after a crash. The service stays. */
static inline void a2a_rig_restart(struct a2a_rig *r)
{
        struct agents *before = r->agents;

        rig_restart(r->road);
        agents_free(before);
        a2a_rig_open(r);
}

static inline void a2a_rig_free(struct a2a_rig *r)
{
        struct rig *g = r->road;

        road_close(g->road);
        g->road = NULL;
        agents_free(r->agents);
        http_client_free(r->http);
        fake_server_free(r->server);
        free(r);
        rig_free(g);
}

/* ---- the service ---- */

/* Waits for the next request, which has this part. Borrowed. */
static inline const char *a2a_rig_expect(struct a2a_rig *r, const char *part)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        const char *request;

        while (fake_server_requests(r->server) <= r->seen) {
                if (clock_mono_ms() > deadline)
                        fail_msg("no request with '%s'", part);
                rig_run_for(r->road, 1);
        }
        request = fake_server_request(r->server, r->seen++);
        if (!strstr(request, part))
                fail_msg("'%s' is not in '%s'", part, request);
        return request;
}

/* Answers it, in pieces of this size (0: at once). The text must be constant. */
static inline void a2a_rig_answer_so(struct a2a_rig *r, const char *bytes, size_t piece,
                                     enum fake_end end)
{
        static struct fake_answer answers[64];
        static unsigned used;
        struct fake_answer *a = &answers[used++ % COUNT(answers)];

        *a = (struct fake_answer){ bytes, .piece = piece, .end = end };
        fake_server_answer(r->server, a);
}

static inline void a2a_rig_answer(struct a2a_rig *r, const char *bytes)
{
        a2a_rig_answer_so(r, bytes, 0, FAKE_CLOSE);
}

static inline void a2a_rig_serve(struct a2a_rig *r, const char *part, const char *bytes)
{
        a2a_rig_expect(r, part);
        a2a_rig_answer(r, bytes);
}

/* The member of the last request's message; yours to free. */
static inline char *a2a_rig_sent(struct a2a_rig *r, const char *key)
{
        const char *body = strstr(fake_server_request(r->server, r->seen - 1), "\r\n\r\n");
        json_t *root = json_loads(body, 0, NULL);
        json_t *message = json_object_get(json_object_get(root, "params"), "message");
        char *text = mem_strdup(json_str(message, key, NULL));

        json_decref(root);
        return text;
}

/* The time for the turn that runs is over. */
static inline void a2a_rig_time_is_up(struct a2a_rig *r)
{
        a2a_out_of_time(r->run->agent_data);
}

/* ---- the chat ---- */

static inline void a2a_rig_say(struct a2a_rig *r, const char *text)
{
        rig_say(r->road, "nonce", "c", "steps", text, NULL);
}

/* Answers and notices, oldest first, with ", " between. */
#define a2a_rig_answers(r) \
        rig_list((r)->road, "text FROM transcript WHERE role = 'assistant' ORDER BY id")
/* Of the last turn. */
#define a2a_rig_error(r) rig_text((r)->road, "error FROM turns ORDER BY id DESC LIMIT 1")
#define a2a_rig_state(r) rig_text((r)->road, "state FROM turns ORDER BY id DESC LIMIT 1")

/* The last text that was sent to the chat. */
static inline const char *a2a_rig_said(struct a2a_rig *r)
{
        rig_until_idle(r->road);
        return r->road->sent_count ? r->road->sent[(r->road->sent_count - 1) % RIG_MAX].text : "";
}

static inline void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
        if (strstr(text, part))
                fail_msg("'%s' is in '%s'", part, text);
}

#define AGENT_CARD "GET /agent/.well-known/agent-card.json "

#endif
