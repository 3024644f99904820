/* A dry run of the rules for an event. */
#include <stdlib.h>

#include "api/core/request.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/dry_run.h"
#include "store/store.h"

struct route_test_ask {
        const json_t *event;
        int64_t id; /* 0: not given */
};

static const struct field route_test_fields[] = {
        { "event", FIELD_OBJECT, FIELD_AT(route_test_ask, event),
          .help = "An event as the journal shows it; `type`, `timestamp` and most of `payload` may "
                  "be absent." },
        { "eventId", FIELD_ID, .prefix = "evt-", FIELD_AT(route_test_ask, id),
          .help = "Instead of `event`: one of the journal." },
        FIELD_END,
};

/* Restricted keys do not see rules of other adapters. */
static void explain(struct http_exchange *x, const struct incoming *in)
{
        struct dispatch *d = api_of(x)->env.dispatch;
        struct buf json;

        buf_init(&json, 0);
        if (caller_of(x)->adapters)
                dry_run_explain(d, in, DRY_RUN_OWN_RULES, &json);
        else
                dry_run_explain(d, in, DRY_RUN_ALL_RULES, &json);
        reply_data(x, 200, &json);
}

struct route_test_job {
        struct api_job job;
        int64_t id;
        struct incoming *in;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct route_test_job *j = arg;

        incoming_free(j->in);
        j->in = dry_run_find(tx, j->id, err);
        return j->in ? 0 : -1;
}

static void on_found(void *arg, const struct error *err)
{
        struct route_test_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        char id[BUS_ID_SIZE];

        if (x && err)
                reply_failed(x, err);
        else if (x && !key_reaches(caller_of(x), j->in->adapter))
                reply_missing(x, "event", bus_event_id(j->id, id)); /* hide its existence */
        else if (x)
                explain(x, j->in);
        incoming_free(j->in);
        free(j);
}

static void explain_given(struct http_exchange *x, struct body *b, const json_t *event)
{
        struct error err = { 0 };
        struct incoming *in = dry_run_event(event, &err);

        if (!in) {
                body_mistake(b, "event", "%s", err.text);
                reply_mistakes(x, b);
        } else if (request_reaches(x, in->adapter)) {
                explain(x, in);
        }
        incoming_free(in);
}

static void test(struct http_exchange *x)
{
        struct route_test_ask ask = { 0 };
        struct route_test_job *j;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (!ask.event == (ask.id <= 0)) {
                body_mistake(&b, "", "give 'event' or 'eventId'");
                reply_mistakes(x, &b);
        } else if (ask.event) {
                explain_given(x, &b, ask.event);
        } else {
                j = mem_zalloc(sizeof(*j));
                j->id = ask.id;
                api_job_begin(&j->job, x);
                store_read(api_of(x)->env.store, find, on_found, j);
        }
        body_release(&b);
}

const struct route route_test_routes[] = {
        { "POST", "/api/v2/route-test", SCOPE_READ, test, REACH_HANDLER,
          .summary = "What the current rules would do with an event, and why each rule does or "
                     "does not match. Changes nothing.",
          .body = route_test_fields, .max_body = JSON_OFFLOAD_MIN, /* no event is larger */
          .status = 200,
          .answer = "{\"data\": {\"decision\", \"access\", \"rateLimit\", \"rules\": [{\"name\", "
                    "\"matched\", \"why\"}]}}",
          .example = ROUTE_JSON({
                  "event" : {
                          "instanceId" : "tg",
                          "channel" : "7",
                          "payload" :
                                  { "chatType" : "dm", "sender" : { "id" : "7" }, "text" : "hi" }
                  }
          }) },
        ROUTE_END,
};
