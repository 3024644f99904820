/*
 * model_rig: a model behind a scripted service, and what came of asking it.
 *
 * setup and teardown are for cmocka.
 */
#ifndef TESTS_AGENT_MODEL_RIG_H
#define TESTS_AGENT_MODEL_RIG_H

#include <stdlib.h>
#include <string.h>

#include "../lib/fake_server.h"
#include "agent/llm/model.h"
#include "base/json.h"
#include "base/mem.h"
#include "fake_turn.h"

struct model_rig {
        struct loop *loop;
        struct http_client *http;
        struct fake_server *server; /* NULL: none yet */
        struct agent agent;
        struct llm_conf conf;
        struct model_request q;
        /* what happened */
        struct model_call *call;
        int done, retries;
        int64_t wait_ms;
        struct buf text, thinking, calls, record, notice;
        json_t *message;
        struct model_answer answer;
        struct llm_failure failure;
};

static inline void model_rig_init(struct model_rig *r, struct loop *loop, struct http_client *http)
{
        r->loop = loop;
        r->http = http;
        r->conf = (struct llm_conf){ .stream = true,
                                     .temperature = -1,
                                     .timeout_ms = 60000,
                                     .first_byte_ms = 60000,
                                     .silence_ms = 60000,
                                     .retries = 2,
                                     .prices = { -1, -1, -1, -1, -1 } };
        r->agent = (struct agent){ .name = "m", .conf = &r->conf, .loop = loop, .http = http };
        buf_init(&r->text, 0);
        buf_init(&r->thinking, 0);
        buf_init(&r->calls, 0);
        buf_init(&r->record, 0);
        buf_init(&r->notice, 0);
}

static inline int setup(void **state)
{
        struct model_rig *r = mem_zalloc(sizeof(*r));
        struct loop *loop = loop_new();
        struct http_client *http = http_client_new(loop, &(struct http_client_options){ 0 }, NULL);

        assert_non_null(http);
        model_rig_init(r, loop, http);
        *state = r;
        return 0;
}

static inline void model_rig_stop(struct model_rig *r)
{
        if (r->agent.self)
                llm_close(&r->agent);
        r->agent.self = NULL;
        if (r->server)
                fake_server_free(r->server);
        r->server = NULL;
        free(r->conf.base_url);
        r->conf.base_url = NULL;
        json_decref(r->q.messages);
        json_decref(r->q.tools);
        r->q = (struct model_request){ 0 };
        json_decref(r->message);
        r->message = NULL;
}

static inline void model_rig_release(struct model_rig *r)
{
        model_rig_stop(r);
        buf_release(&r->text);
        buf_release(&r->thinking);
        buf_release(&r->calls);
        buf_release(&r->record);
        buf_release(&r->notice);
}

static inline int teardown(void **state)
{
        struct model_rig *r = *state;

        model_rig_release(r);
        http_client_free(r->http);
        loop_free(r->loop);
        free(r);
        return 0;
}

/* Opens the model at a server with this script. */
static inline struct llm *model_rig_serve(struct model_rig *r, const struct llm_wire *wire,
                                          const char *model, const struct fake_answer *script,
                                          size_t count)
{
        model_rig_stop(r);
        r->server = fake_server_new(r->loop, script, count);
        r->conf.base_url = fake_server_url(r->server, "/v1");
        llm_open(&r->agent, wire, model);
        return r->agent.self;
}

/* Single quotes stand for double ones, so that JSON can be read. */
static inline json_t *json_of(const char *text)
{
        char *copy = mem_strdup(text);
        json_t *value;

        for (char *p = copy; *p; p++) {
                if (*p == '\'')
                        *p = '"';
        }
        value = json_loads(copy, JSON_DECODE_ANY, NULL);
        if (!value)
                fail_msg("not JSON: %s", copy);
        free(copy);
        return value;
}

static inline void rig_text(void *arg, const char *text, size_t n)
{
        buf_add(&((struct model_rig *)arg)->text, text, n);
}

static inline void rig_thinking(void *arg, const char *text, size_t n)
{
        buf_add(&((struct model_rig *)arg)->thinking, text, n);
}

static inline void rig_call(void *arg, const char *name)
{
        buf_addf(&((struct model_rig *)arg)->calls, "%s ", name);
}

static inline void rig_retry(void *arg, int64_t wait_ms, const char *why)
{
        struct model_rig *r = arg;

        r->retries++;
        r->wait_ms = wait_ms;
        assert_true(*why);
}

static inline void rig_done(void *arg, const struct model_answer *a)
{
        struct model_rig *r = arg;

        r->done++;
        r->call = NULL;
        r->answer = *a;
        r->message = json_incref(a->message);
        if (a->failure) {
                r->failure = *a->failure;
                r->answer.failure = &r->failure;
                buf_addstr(&r->record, a->record);
                buf_addstr(&r->notice, a->notice);
        }
}

static inline void model_rig_start(struct model_rig *r)
{
        static const struct model_handlers handlers = { rig_text, rig_thinking, rig_call, rig_retry,
                                                        rig_done };

        r->done = r->retries = 0;
        json_decref(r->message);
        r->message = NULL;
        buf_clear(&r->text);
        buf_clear(&r->thinking);
        buf_clear(&r->calls);
        buf_clear(&r->record);
        buf_clear(&r->notice);
        if (!r->q.messages)
                r->q.messages = json_of("[{'role': 'user', 'content': 'hi'}]");
        r->call = model_ask(r->agent.self, &r->q, &handlers, r);
        assert_int_equal(r->done, 0);
}

static inline void model_rig_ask(struct model_rig *r)
{
        model_rig_start(r);
        for (int i = 0; i < ROUNDS && !r->done; i++)
                loop_step(r->loop, true);
        assert_int_equal(r->done, 1);
}

/* The body of the i-th request, yours to decref. */
static inline json_t *model_rig_sent(const struct model_rig *r, unsigned i)
{
        const char *request = fake_server_request(r->server, i);
        const char *body = request ? strstr(request, "\r\n\r\n") : NULL;
        json_t *value;

        assert_non_null(body);
        value = json_loads(body + 4, 0, NULL);
        assert_non_null(value);
        return value;
}

static inline void assert_json(const json_t *value, const char *expected)
{
        json_t *want = json_of(expected);

        if (!json_equal(value, want)) {
                char *text = json_text(value);

                fail_msg("%s is not %s", text, expected);
        }
        json_decref(want);
}

#endif
