/*
 * agent-chat: an agent behind POST {url}/api/agent/chat with an X-API-Key.
 *
 * Each request carries the last messages: people as "human", named by platform and id
 * ("discord:80351110224678912") for the agent's tools, the bot as "ai". An ambient turn starts with
 * the rule's prompt as "system".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/http_agent.h"
#include "agent/message_text.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define AT(field) offsetof(struct http_agent_conf, field)

static const struct setting settings[] = {
        { "url", SETTING_URL, NULL, 0, 0, .at = AT(url),
          .help = "Where the service is; `/api/agent/chat` is appended." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(key), .help = "Sent as `X-API-Key`." },
        { "headers", SETTING_STRINGS, "[]", .at = AT(headers),
          .help = "Further header lines, each `Name: value`." },
        { "historyLimit", SETTING_INT, "25", 1, 1000, .at = AT(history_messages),
          .help = "How many messages each request carries." },
        { "timeoutMs", SETTING_INT, "60000", 50, 3600000, .at = AT(timeout_ms),
          .help = "The longest time to an answer, including the retry." },
        { "retries", SETTING_INT, "1", 0, 3, .at = AT(retries),
          .help = "How often a request is sent again, with the same key, after a 5xx or when no "
                  "connection was made." },
        { "retryMs", SETTING_INT, "1000", 0, 30000, .at = AT(retry_ms),
          .help = "The pause before a retry." },
        { "repeatable", SETTING_BOOL, "false", 0, 0, .at = AT(repeatable),
          .help = "Asking twice does no harm: a turn that a restart interrupted is sent again." },
        { "healthUrl", SETTING_URL, "null", 0, 0, .at = AT(health_url),
          .help = "Fetched by GET as the health check; `null`: HEAD of the endpoint." },
        SETTING_END
};

/* ---- request ---- */

static void write_message(struct buf *b, const char *type, const char *name, const char *text)
{
        jsonw_open(b, '{');
        jsonw_str(b, "type", type);
        jsonw_str(b, "content", text);
        jsonw_opt(b, "name", name);
        jsonw_close(b, '}');
}

static void write_messages(struct buf *b, const struct http_agent *h, const struct turn_run *run)
{
        unsigned room = (unsigned)h->conf->history_messages;
        unsigned lines = room > run->input_count ? room - run->input_count : 0;
        unsigned from = run->history_count > lines ? run->history_count - lines : 0;

        jsonw_open_member(b, "messages", '[');
        if (run->prompt)
                write_message(b, "system", NULL, run->prompt);
        for (unsigned i = from; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];
                bool own = strcmp(l->role, "assistant") == 0;
                /* channel history names people by id; stored lines name them in the text */
                bool by_id = l->name && strchr(l->name, ':');
                char *named =
                        own || by_id || !l->name ? NULL : mem_printf("[%s]: %s", l->name, l->text);

                write_message(b, own ? "ai" : "human", !own && by_id ? l->name : NULL,
                              named ? named : l->text);
                free(named);
        }
        for (unsigned i = 0; i < run->input_count; i++) {
                const struct incoming *in = run->inputs[i];
                char *name = in->sender_id ? mem_printf("%s:%s",
                                                        in->platform ? in->platform : run->adapter,
                                                        in->sender_id)
                                           : NULL;
                struct buf text;

                buf_init(&text, 0);
                message_text_add(&text, in);
                write_message(b, "human", name, text.data);
                buf_release(&text);
                free(name);
        }
        jsonw_close(b, ']');
}

static void chat_write(const struct http_agent *h, const struct turn_run *run,
                       const char *reply_url, struct buf *out)
{
        const char *platform = run->inputs[0]->platform;
        char *session = agent_session(h->agent, run);

        (void)reply_url;
        jsonw_open(out, '{');
        write_messages(out, h, run);
        jsonw_str(out, "source", platform ? platform : run->adapter);
        jsonw_str(out, "conversationId", session);
        jsonw_close(out, '}');
        free(session);
}

/* ---- reply ---- */

/*
 * Members of a webhook reply, or other common names. Agent graphs return the whole conversation:
 * its last message is the answer, unless a person wrote it.
 */
static int chat_read(struct http_agent_reply *r, const json_t *object, struct error *err)
{
        static const char *const names[] = { "content", "response", "message", "output" };
        const json_t *messages = json_object_get(object, "messages"), *last;
        const char *text;

        if (http_agent_reply_members(r, object, err) < 0)
                return -1;
        for (size_t i = 0; i < COUNT(names) && !r->given; i++) {
                text = json_str(object, names[i], NULL);
                if (text && http_agent_reply_set_text(r, text, err) < 0)
                        return -1;
        }
        if (r->given || json_array_size(messages) == 0)
                return 0;
        last = json_array_get(messages, json_array_size(messages) - 1);
        text = json_str(last, "content", NULL);
        if (!text || strcmp(json_str(last, "type", "ai"), "human") == 0)
                return error_set(err, ERR_PROTOCOL,
                                 "the last of the answer's messages is not the agent's");
        return http_agent_reply_set_text(r, text, err);
}

const struct http_agent_wire agent_chat_wire = {
        .name = "agent-chat",
        .path = "/api/agent/chat",
        .key_header = "X-API-Key: ",
        .read = chat_read,
        .body = chat_write,
};

static int chat_open(struct agent *a, struct error *err)
{
        (void)err;
        return http_agent_open(a, &agent_chat_wire);
}

static unsigned chat_abilities(const struct agent *a)
{
        return http_agent_abilities(a) | AGENT_HISTORY;
}

const struct agent_ops agent_chat_agent = {
        .type = "agent-chat",
        .help = "An agent behind `POST {url}/api/agent/chat` with `X-API-Key`; each request "
                "carries the last messages.",
        .can = AGENT_BATCHES | AGENT_CANCELS | AGENT_HISTORY,
        .settings = settings,
        .conf_size = sizeof(struct http_agent_conf),
        .check = http_agent_check_conf,
        .open = chat_open,
        .close = http_agent_close,
        .start = http_agent_start,
        .cancel = http_agent_cancel,
        .check_health = http_agent_check_health,
        .abilities = chat_abilities,
};
