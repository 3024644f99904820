/*
 * POST /api/webhook/event: what a coding agent does, one event or a list. Answered after the
 * commit; the request is read by remote/session_event.h.
 */
#include <stdlib.h>

#include "api/core/request.h"
#include "api/resources/sessions.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define MAX_BODY ((size_t)4 * 1024 * 1024)

static void on_stored(void *arg, const struct session_receipt *receipt, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf json;

        free(j);
        if (!x)
                return;
        if (err) {
                reply_failed(x, err);
                return;
        }
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "status", "ok");
        jsonw_int(&json, "accepted", (int64_t)receipt->accepted);
        jsonw_int(&json, "duplicates", (int64_t)receipt->duplicates);
        jsonw_close(&json, '}');
        reply_json(x, 200, &json);
}

static void take_events(struct http_exchange *x)
{
        const struct json_parsed *parsed = request_parsed(x);
        struct session_caller by = session_caller_of(caller_of(x));
        struct error err = parsed ? parsed->error : (struct error){ 0 };
        json_t *root = parsed ? json_incref(parsed->root) : NULL;
        struct session_events events;
        struct api_job *j;
        size_t n = 0;
        const char *text = parsed ? NULL : http_body(x, &n);
        int rc;

        if (!parsed)
                root = json_read_lenient(text ? text : "", n, &err);
        if (!root) {
                reply_failed(x, &err);
                return;
        }
        rc = session_events_read(root, &events, &err);
        json_decref(root);
        if (rc < 0) {
                reply_failed(x, &err);
                session_events_release(&events);
                return;
        }
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        session_intake(api_of(x)->env.remote, &by, &events, on_stored, j);
}

/* clang-format off */
#define EVENT_ROUTE(where, what)                                                                  \
        { "POST", where, SCOPE_WRITE, take_events, REACH_SHARED, .resource = "sessions",          \
          .summary = (what), .reads_body = true, .lenient_body = true, .max_body = MAX_BODY,      \
          .status = 200,                                                                          \
          .answer = "{\"status\": \"ok\", \"accepted\", \"duplicates\"}",                         \
          .example = ROUTE_JSON({ "session_id": "0199c3f2", "event_type": "tool_call",            \
                                  "tool_name": "bash", "content": "make test",                    \
                                  "event_id": "1" }),                                             \
          .example_answer = ROUTE_JSON({ "status": "ok", "accepted": 1, "duplicates": 0 }) }

const struct route session_events_routes[] = {
        EVENT_ROUTE("/api/webhook/event",
                    "What a coding agent does: one event, or a list of up to 200. Answered once it "
                    "is stored. An event_id that the session has had counts as a duplicate. The "
                    "key that reports a session first owns it."),
        EVENT_ROUTE("/webhook/omp-event", "The same, under an older name."),
        ROUTE_END,
};
/* clang-format on */
