/*
 * A question to an agent, to see whether and how it answers. It is on the road like any other, in a
 * chat nobody reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define TEST_WAIT_MS 120000

struct test_ask {
        const char *text;
};

/* clang-format off */
const struct field agent_test_fields[] = {
        { "text", FIELD_STRING, .min = 1, .max = 4096, .at = offsetof(struct test_ask, text),
          .fallback = "\"Are you there?\"", .help = "What it is asked." },
        FIELD_END,
};
/* clang-format on */

struct test {
        struct api_job job;
        char *name;
        char trace[ID_TRACE_SIZE];
        int64_t began_ms;
};

static void test_free(struct test *t)
{
        free(t->name);
        free(t);
}

static void write_result(struct buf *b, const struct test *t, const struct awaited_reply *o)
{
        jsonw_open(b, '{');
        jsonw_str(b, "name", t->name);
        jsonw_bool(b, "ok", o && strcmp(o->status, "done") == 0);
        jsonw_str(b, "status", o ? o->status : "running");
        jsonw_str(b, "text", o ? o->text : NULL);
        jsonw_str(b, "reason", o ? o->reason : "it has not answered in time");
        if (o && o->turn > 0)
                show_id(b, "turnId", "trn-", o->turn);
        else
                jsonw_null(b, "turnId");
        jsonw_str(b, "traceId", t->trace);
        jsonw_int(b, "durationMs", clock_mono_ms() - t->began_ms);
        jsonw_int(b, "tokensIn", o ? o->tokens_in : 0);
        jsonw_int(b, "tokensOut", o ? o->tokens_out : 0);
        jsonw_close(b, '}');
}

static void on_outcome(void *arg, const struct awaited_reply *o)
{
        struct test *t = arg;
        struct http_exchange *x = api_job_end(&t->job);
        struct buf data;

        if (x) {
                buf_init(&data, 0);
                write_result(&data, t, o);
                reply_data(x, 200, &data);
        }
        test_free(t);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct test *t = arg;
        struct http_exchange *x;

        if (t->job.api && r->outcome != INBOX_FAILED) {
                snprintf(t->trace, sizeof(t->trace), "%s", r->trace);
                reply_waiters_add(t->job.api->waiters, r->event, false, TEST_WAIT_MS, on_outcome,
                                  t);
                return;
        }
        x = api_job_end(&t->job);
        if (x)
                reply_failed(x, &r->error);
        test_free(t);
}

static void begin(struct http_exchange *x, struct adapter *adapter, const char *agent,
                  const char *text)
{
        struct chat_bridge_line line = { CHAT_BRIDGE_USER, NULL, text };
        struct chat_bridge_ask ask = { .protocol = "test",
                                       .agent = agent,
                                       .sender = caller_of(x)->name,
                                       .lines = &line,
                                       .line_count = 1 };
        struct test *t = mem_zalloc(sizeof(*t));

        t->name = mem_strdup(agent);
        t->began_ms = clock_mono_ms();
        api_job_begin(&t->job, x);
        chat_bridge_submit(api_of(x), adapter, &ask, on_receipt, t);
}

void agent_test(struct http_exchange *x)
{
        struct test_ask ask = { .text = "Are you there?" };
        const char *name = http_param(x, "name"), *agent = name;
        struct adapter *adapter;
        struct body b;

        if (!reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        if (!chat_bridge_agent(x, &agent) || !agent)
                reply_missing(x, "agent", name);
        else if ((adapter = chat_bridge_choose_journaled(x)))
                begin(x, adapter, agent, ask.text);
        body_release(&b);
}
