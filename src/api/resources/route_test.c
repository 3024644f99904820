/* What the rules would do with an event: nothing happens, everything is told. */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/dry_run.h"

struct question {
        const json_t *event;
        int64_t id; /* 0: not given */
};

/* clang-format off */
const struct field route_test_fields[] = {
        { "event", FIELD_OBJECT, .at = offsetof(struct question, event),
          .help = "An event as the journal shows it; `type`, `timestamp` and most of `payload` may be absent." },
        { "eventId", FIELD_ID, .prefix = "evt-", .at = offsetof(struct question, id),
          .help = "Instead of `event`: one of the journal." },
        FIELD_END,
};
/* clang-format on */

/* Keys for some adapters do not learn of the rules of others. */
static void explain(struct http_exchange *x, const struct incoming *in)
{
        struct dispatch *d = api_of(x)->env.dispatch;
        struct buf json;

        buf_init(&json, 0);
        if (caller_of(x)->adapters)
                dispatch_explain_own(d, in, &json);
        else
                dispatch_explain(d, in, &json);
        reply_data(x, 200, &json);
}

/* ---- an event of the journal ---- */

struct finding {
        struct api_job job;
        int64_t id;
        struct incoming *in;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct finding *f = arg;

        incoming_free(f->in);
        f->in = dry_run_find(tx, f->id, err);
        return f->in ? 0 : -1;
}

static void on_found(void *arg, const struct error *err)
{
        struct finding *f = arg;
        struct http_exchange *x = api_job_end(&f->job);
        char id[BUS_ID_SIZE];

        if (x && err)
                reply_failed(x, err);
        /* that it exists is nobody's business either */
        else if (x && !key_reaches(caller_of(x), f->in->adapter))
                reply_missing(x, "event", bus_event_id(f->id, id));
        else if (x)
                explain(x, f->in);
        incoming_free(f->in);
        free(f);
}

static void explain_stored(struct http_exchange *x, int64_t id)
{
        struct finding *f = mem_zalloc(sizeof(*f));

        f->id = id;
        api_job_begin(&f->job, x);
        store_read(api_of(x)->env.store, find, on_found, f);
}

/* ---- the route ---- */

static void explain_given(struct http_exchange *x, struct body *b, const json_t *event)
{
        struct error err = { 0 };
        struct incoming *in = dry_run_event(event, &err);

        if (in && request_reaches(x, in->adapter)) {
                explain(x, in);
        } else if (!in) {
                body_mistake(b, "event", "%s", err.text);
                reply_mistakes(x, b);
        }
        incoming_free(in);
}

void route_test(struct http_exchange *x)
{
        struct question q = { 0 };
        struct body b;

        if (request_body(x, &b, &q) < 0)
                return;
        if (!q.event == (q.id <= 0)) {
                body_mistake(&b, "", "one of 'event' and 'eventId' is needed");
                reply_mistakes(x, &b);
        } else if (q.event) {
                explain_given(x, &b, q.event);
        } else {
                explain_stored(x, q.id);
        }
        body_release(&b);
}
