/* Chats in which a person has taken over from the agent. */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

struct pause_ask {
        const char *thread, *by, *reason;
        int64_t until_ms;
};

#define AT(member) .at = offsetof(struct pause_ask, member)

/* clang-format off */
const struct field pause_fields[] = {
        { "threadId", FIELD_STRING, .min = 1, .max = 512, AT(thread),
          .help = "Only this thread; absent: the chat with all its threads." },
        { "until", FIELD_TIME, AT(until_ms), .help = "When the agent comes back by itself; absent: when it is resumed." },
        { "reason", FIELD_STRING, .min = 1, .max = 200, AT(reason), .help = "Why, for whoever asks." },
        { "by", FIELD_STRING, .min = 1, .max = 100, AT(by), .help = "Who takes over; absent: the name of the key." },
        FIELD_END,
};
const struct field resume_fields[] = {
        { "threadId", FIELD_STRING, .min = 1, .max = 512, AT(thread),
          .help = "The thread that was paused; absent: the chat." },
        FIELD_END,
};
/* clang-format on */

static struct handovers *handover_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->handover;
}

static void show_pause(struct buf *b, const struct handover *p)
{
        jsonw_open(b, '{');
        jsonw_str(b, "instanceId", p->chat.adapter);
        jsonw_str(b, "channel", p->chat.channel);
        jsonw_str(b, "threadId", p->chat.thread);
        show_time(b, "since", p->since_ms);
        show_time(b, "until", p->until_ms);
        jsonw_str(b, "by", p->by);
        jsonw_str(b, "reason", p->reason);
        jsonw_close(b, '}');
}

void handover_show(struct http_exchange *x)
{
        size_t count;
        const struct handover **all = handover_list(handover_of(x), &count);
        struct buf json;

        buf_init(&json, 0);
        page_begin(&json);
        for (size_t i = 0; i < count; i++)
                if (key_reaches(caller_of(x), all[i]->chat.adapter))
                        show_pause(&json, all[i]);
        page_end(&json, false, NULL);
        free(all);
        reply_json(x, 200, &json);
}

void chats_pause(struct http_exchange *x)
{
        struct pause_ask ask = { .by = caller_name(x) };
        struct handover p = { 0 };
        struct write_job *c;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        p = (struct handover){ .chat = { http_param(x, "adapter"), http_param(x, "channel"),
                                         ask.thread },
                               .by = ask.by,
                               .reason = ask.reason,
                               .since_ms = clock_wall_ms(),
                               .until_ms = ask.until_ms };
        if (!adapters_find(api_of(x)->env.adapters, p.chat.adapter)) {
                reply_missing(x, "instance", p.chat.adapter);
        } else if (ask.until_ms != 0 && ask.until_ms <= p.since_ms) {
                body_mistake(&b, "until", "is not in the future");
                reply_mistakes(x, &b);
        } else {
                c = write_job_new(x, 200);
                show_pause(&c->data, &p);
                handover_pause(handover_of(x), &p, write_job_done, c);
        }
        body_release(&b);
}

void chats_resume(struct http_exchange *x)
{
        struct pause_ask ask = { 0 };
        struct chat_key chat;
        struct write_job *c;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        chat = (struct chat_key){ http_param(x, "adapter"), http_param(x, "channel"), ask.thread };
        c = write_job_new(x, 200);
        jsonw_open(&c->data, '{');
        jsonw_str(&c->data, "instanceId", chat.adapter);
        jsonw_str(&c->data, "channel", chat.channel);
        jsonw_str(&c->data, "threadId", chat.thread);
        jsonw_str(&c->data, "status", "resumed");
        jsonw_close(&c->data, '}');
        handover_resume(handover_of(x), &chat, write_job_done, c);
        body_release(&b);
}
