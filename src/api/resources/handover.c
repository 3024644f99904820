/* Chats that a human took over from the agent. */
#include <stdlib.h>
#include <string.h>

#include "api/core/page.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "platform/platform.h"
#include "road/report/row_json.h"
#include "rows/conversation_row.h"

#define KNOWN_CHATS 5 /* named in an error */

struct pause_ask {
        const char *thread, *by, *reason;
        int64_t until_ms;
        bool force;
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
        { "force", FIELD_BOOL, FIELD_AT(pause_ask, force),
          .help = "Pause it even if nothing has ever been said there." },
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

/* A pause that waits until its chat is looked up in the store. */
struct pause_job {
        struct api_job job;
        struct body body;
        struct pause_ask ask;
        char *adapter, *channel, *by;
        struct buf others;  /* chats that are known */
        struct buf details; /* the same for programs */
        bool known;
};

static void pause_job_free(struct pause_job *j)
{
        free(j->adapter);
        free(j->channel);
        free(j->by);
        buf_release(&j->others);
        buf_release(&j->details);
        body_release(&j->body);
        free(j);
}

static void pause_now(struct http_exchange *x, const struct pause_job *j)
{
        struct handover h = { .chat = { j->adapter, j->channel, j->ask.thread },
                              .by = j->ask.by,
                              .reason = j->ask.reason,
                              .since_ms = clock_wall_ms(),
                              .until_ms = j->ask.until_ms };
        struct write_job *w = write_job_new(x, 200);

        write_handover(&w->data, &h);
        handover_pause(handovers_of(x), &h, write_job_done, w);
}

static int find_chat(struct store_tx *tx, void *arg, struct error *err)
{
        struct pause_job *j = arg;
        int rc = conversation_row_knows(tx, j->adapter, j->channel, err);
        struct store_stmt *s;
        const char *channel;
        char *id;

        buf_clear(&j->others);
        j->known = rc == 1;
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        s = conversation_row_list_channels(tx, j->adapter, KNOWN_CHATS);
        buf_clear(&j->details);
        jsonw_open_member(&j->details, "candidates", '[');
        while ((rc = conversation_row_next_channel(s, &channel, err)) == 1) {
                buf_addf(&j->others, "%s%s/%.60s", j->others.len > 0 ? ", " : "; there is ",
                         j->adapter, channel);
                id = mem_printf("%s/%s", j->adapter, channel);
                jsonw_open(&j->details, '{');
                jsonw_str(&j->details, "id", id);
                jsonw_close(&j->details, '}');
                free(id);
        }
        jsonw_close(&j->details, ']');
        return rc;
}

static void on_chat(void *arg, const struct error *err)
{
        struct pause_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x && !j->known)
                reply_error(
                        x, 404, "NOT_FOUND", j->details.data,
                        "nothing has been said in '%s/%.100s'%s; with \"force\": true (--force) "
                        "it is paused anyway",
                        j->adapter, j->channel, j->others.data);
        else if (x)
                pause_now(x, j);
        pause_job_free(j);
}

static void pause_chat(struct http_exchange *x)
{
        struct pause_job *j = mem_zalloc(sizeof(*j));

        j->ask.by = j->by = mem_strdup(caller_name(x));
        if (request_body(x, &j->body, &j->ask) < 0) {
                free(j->by);
                free(j);
                return;
        }
        buf_init(&j->others, 0);
        buf_init(&j->details, 0);
        j->adapter = mem_strdup(http_param(x, "adapter"));
        j->channel = mem_strdup(http_param(x, "channel"));
        if (!adapters_find(api_of(x)->env.adapters, j->adapter)) {
                reply_missing(x, "instance", j->adapter);
        } else if (j->ask.until_ms != 0 && j->ask.until_ms <= clock_wall_ms()) {
                body_mistake(&j->body, "until", "is not in the future");
                reply_mistakes(x, &j->body);
        } else if (j->ask.force) {
                pause_now(x, j);
        } else {
                api_job_begin(&j->job, x);
                store_read(api_of(x)->env.store, find_chat, on_chat, j);
                return;
        }
        pause_job_free(j);
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
                     "resumed. 404 for a chat in which nothing has been said, with known ones in "
                     "`details.candidates`.",
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
