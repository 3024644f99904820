/* Chats that a human took over from the agent. */
#include <stdlib.h>

#include "api/core/page.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "dispatch/dispatch.h"
#include "platform/platform.h"
#include "road/report/row_json.h"

struct pause_ask {
        const char *thread, *by, *reason;
        int64_t until_ms;
};

static const struct field pause_fields[] = {
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(pause_ask, thread),
          .help = "Only this thread; absent: the chat with all its threads." },
        { "until", FIELD_TIME, FIELD_AT(pause_ask, until_ms),
          .help = "When the agent resumes by itself; absent: only on request." },
        { "reason", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(pause_ask, reason),
          .help = "Why, for the record." },
        { "by", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(pause_ask, by),
          .help = "Who takes over; absent: the name of the key." },
        FIELD_END,
};
static const struct field resume_fields[] = {
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(pause_ask, thread),
          .help = "The thread that was paused; absent: the chat." },
        FIELD_END,
};

static struct handovers *handovers_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->handovers;
}

static void write_handover(struct buf *b, const struct handover *h)
{
        jsonw_open(b, '{');
        jsonw_str(b, "instanceId", h->chat.adapter);
        jsonw_str(b, "channel", h->chat.channel);
        jsonw_str(b, "threadId", h->chat.thread);
        row_json_time(b, "since", h->since_ms);
        row_json_time(b, "until", h->until_ms);
        jsonw_str(b, "by", h->by);
        jsonw_str(b, "reason", h->reason);
        jsonw_close(b, '}');
}

static void list(struct http_exchange *x)
{
        size_t count;
        const struct handover **all = handover_list(handovers_of(x), &count);
        struct buf json;

        buf_init(&json, 0);
        page_open(&json);
        for (size_t i = 0; i < count; i++)
                if (key_reaches(caller_of(x), all[i]->chat.adapter))
                        write_handover(&json, all[i]);
        page_close(&json, false, NULL);
        free(all);
        reply_json(x, 200, &json);
}

static void pause_chat(struct http_exchange *x)
{
        struct pause_ask ask = { .by = caller_name(x) };
        struct handover h;
        struct write_job *j;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        h = (struct handover){ .chat = { http_param(x, "adapter"), http_param(x, "channel"),
                                         ask.thread },
                               .by = ask.by,
                               .reason = ask.reason,
                               .since_ms = clock_wall_ms(),
                               .until_ms = ask.until_ms };
        if (!adapters_find(api_of(x)->env.adapters, h.chat.adapter)) {
                reply_missing(x, "instance", h.chat.adapter);
        } else if (ask.until_ms != 0 && ask.until_ms <= h.since_ms) {
                body_mistake(&b, "until", "is not in the future");
                reply_mistakes(x, &b);
        } else {
                j = write_job_new(x, 200);
                write_handover(&j->data, &h);
                handover_pause(handovers_of(x), &h, write_job_done, j);
        }
        body_release(&b);
}

static void resume_chat(struct http_exchange *x)
{
        struct pause_ask ask = { 0 };
        struct chat_key chat;
        struct write_job *j;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        chat = (struct chat_key){ http_param(x, "adapter"), http_param(x, "channel"), ask.thread };
        j = write_job_new(x, 200);
        jsonw_open(&j->data, '{');
        jsonw_str(&j->data, "instanceId", chat.adapter);
        jsonw_str(&j->data, "channel", chat.channel);
        jsonw_str(&j->data, "threadId", chat.thread);
        jsonw_str(&j->data, "status", "resumed");
        jsonw_close(&j->data, '}');
        handover_resume(handovers_of(x), &chat, write_job_done, j);
        body_release(&b);
}

const struct route handover_routes[] = {
        { "GET", "/api/v2/handover", SCOPE_READ, list, REACH_LIST,
          .summary = "The chats in which a human took over from the agent, oldest first.",
          .status = 200,
          .answer = ROUTE_PAGE " of {\"instanceId\", \"channel\", \"threadId\", \"since\", "
                               "\"until\", \"by\", \"reason\"}." },
        { "POST", "/api/v2/chats/:adapter/:channel/pause", SCOPE_WRITE, pause_chat, REACH_PATH,
          .summary = "Take over a chat: messages are stored, but no agent is asked until it is "
                     "resumed.",
          .body = pause_fields, .status = 200, .answer = "{\"data\": pause}",
          .example = ROUTE_JSON({ "reason" : "a refund", "by" : "Ann" }) },
        { "POST", "/api/v2/chats/:adapter/:channel/resume", SCOPE_WRITE, resume_chat, REACH_PATH,
          .summary = "Give a chat back to the agent, which knows what was said meanwhile.",
          .body = resume_fields, .status = 200,
          .answer = "{\"data\": {\"instanceId\", \"channel\", \"threadId\", \"status\": "
                    "\"resumed\"}}",
          .example = "{}" },
        ROUTE_END,
};
