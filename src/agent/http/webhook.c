/*
 * webhook: any program that accepts a POST; docs/AGENTS-HOWTO.md has an example in ten lines.
 *
 * The format "openclaw" is that of OpenClaw's /hooks/agent, which never returns answers: it
 * requires fire-and-forget, and the prompt names the URL that takes an answer.
 * https://docs.openclaw.ai/automation/webhook
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/http/http_agent.h"
#include "agent/message_text.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define AT(field) offsetof(struct http_agent_conf, field)

static const char *const modes[] = { "round-trip", "fire-and-forget", NULL };
static const char *const lates[] = { "deliver", "discard", NULL };
static const char *const formats[] = { "dragoman", "openclaw", NULL };

static const struct setting settings[] = {
        { "url", SETTING_URL, NULL, 0, 0, .at = AT(url),
          .help = "Where each turn is posted; redirects are not followed." },
        { "mode", SETTING_CHOICE, "\"round-trip\"", .choices = modes, .at = AT(mode),
          .help = "`round-trip` reads the answer from the response; `fire-and-forget` ends the "
                  "turn when the request is accepted, and answers come through `replyUrl`." },
        { "format", SETTING_CHOICE, "\"dragoman\"", .choices = formats, .at = AT(format),
          .help = "The request: our payload, or that of OpenClaw's `/hooks/agent`." },
        { "secret", SETTING_SECRET, "null", SETTING_SECRET_SHORTEST, .at = AT(secret),
          .help = "Signs each request: `X-Dragoman-Signature: t=SECONDS,v1=HEX`, the HMAC-SHA256 "
                  "of `SECONDS.BODY`. At least 16 characters." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(key),
          .help = "Sent as `Authorization: Bearer`." },
        { "headers", SETTING_STRINGS, "[]", .at = AT(headers),
          .help = "Further header lines, each `Name: value`." },
        { "timeoutMs", SETTING_INT, "30000", 50, 3600000, .at = AT(timeout_ms),
          .help = "The longest time to a response, including the retry." },
        { "retries", SETTING_INT, "1", 0, 3, .at = AT(retries),
          .help = "How often a request is sent again, with the same key, after a 5xx or when no "
                  "connection was made; never after a 4xx or a timeout." },
        { "retryMs", SETTING_INT, "1000", 0, 30000, .at = AT(retry_ms),
          .help = "The pause before a retry." },
        { "late", SETTING_CHOICE, "\"deliver\"", .choices = lates, .at = AT(late),
          .help = "What to do with an answer to a turn that has failed; it is recorded either "
                  "way." },
        { "replySeconds", SETTING_INT, "900", 1, 604800, .at = AT(reply_seconds),
          .help = "How long a turn's `replyUrl` is valid, and how long a late response is waited "
                  "for." },
        { "maxReplies", SETTING_INT, "1", 1, 100, .at = AT(max_replies),
          .help = "How many answers one turn may have." },
        { "repeatable", SETTING_BOOL, "false", 0, 0, .at = AT(repeatable),
          .help = "The webhook honours the `Idempotency-Key`: a turn that a restart interrupted "
                  "is sent again." },
        { "history", SETTING_BOOL, "false", 0, 0, .at = AT(history),
          .help = "Send the conversation so far as well." },
        { "healthUrl", SETTING_URL, "null", 0, 0, .at = AT(health_url),
          .help = "Fetched by GET as the health check; `null`: HEAD of `url`." },
        { "agentId", SETTING_STRING, "null", 1, 100, .at = AT(agent_id),
          .help = "Which of OpenClaw's agents; `null`: its default." },
        { "sessionKeys", SETTING_BOOL, "false", 0, 0, .at = AT(session_keys),
          .help = "Name the session for OpenClaw, which then remembers it; its "
                  "`hooks.allowRequestSessionKey` must be on." },
        SETTING_END
};

/* ---- OpenClaw ---- */

static void write_prompt(const struct turn_run *run, const char *reply_url, struct buf *out)
{
        const struct incoming *in = run->inputs[run->input_count - 1];

        if (run->prompt)
                buf_addf(out, "%s\n\n", run->prompt);
        for (unsigned i = 0; i < run->input_count; i++) {
                buf_addstr(out, i > 0 ? "\n" : "");
                message_text_add(out, run->inputs[i]);
        }
        buf_addf(out, "\n\n(From %s on %s, chat %s.",
                 in->sender_name ? in->sender_name
                 : in->sender_id ? in->sender_id
                                 : "an unknown sender",
                 in->platform ? in->platform : run->adapter, run->channel);
        if (reply_url)
                buf_addf(out, " To answer, POST the JSON {\"reply\": \"...\"} to %s", reply_url);
        buf_addch(out, ')');
}

static void openclaw_write(const struct http_agent *h, const struct turn_run *run,
                           const char *reply_url, struct buf *out)
{
        char key[CALL_HEADERS_KEY_SIZE], *session = agent_session(h->agent, run);
        char *session_key = mem_printf("hook:%s", session); /* a prefix that its policy can allow */
        struct buf prompt;

        buf_init(&prompt, 0);
        write_prompt(run, reply_url, &prompt);
        jsonw_open(out, '{');
        jsonw_strn(out, "message", prompt.data, prompt.len);
        jsonw_str(out, "name", "Dragoman");
        jsonw_opt(out, "agentId", h->conf->agent_id);
        if (h->conf->session_keys) {
                jsonw_str(out, "sessionKey", session_key);
                jsonw_str(out, "sessionMode", "persistent");
        }
        jsonw_str(out, "idempotencyKey", call_headers_key(run, key));
        jsonw_bool(out, "deliver", false);
        jsonw_close(out, '}');
        buf_release(&prompt);
        free(session_key);
        free(session);
}

/* {"ok": true, "runId": ...}: a receipt, never an answer. */
static int openclaw_read(struct http_agent_reply *r, const json_t *object, struct error *err)
{
        (void)r;
        (void)object;
        (void)err;
        return 0;
}

const struct http_agent_wire webhook_wire = {
        .name = "webhook",
        .key_header = "Authorization: Bearer ",
        /* for receivers written for Omni */
        .header = "X-Omni-Provider: webhook",
        .replies = true,
        .read = http_agent_reply_members,
        .body = webhook_payload_write,
};

const struct http_agent_wire openclaw_wire = {
        .name = "openclaw",
        .key_header = "Authorization: Bearer ",
        .replies = true,
        .read = openclaw_read,
        .body = openclaw_write,
};

/* ---- agent_ops ---- */

static bool is_openclaw(const struct http_agent_conf *conf)
{
        return strcmp(conf->format, "openclaw") == 0;
}

static int check(struct settings_source *src, const char *path, const void *given,
                 struct error *err)
{
        const struct http_agent_conf *conf = given;

        if (is_openclaw(conf) && strcmp(conf->mode, "fire-and-forget") != 0)
                return settings_member_error(
                        src, path, "mode", err,
                        "OpenClaw's hooks return no answers: use \"fire-and-forget\", or an agent "
                        "of type \"openai\" on its /v1/chat/completions");
        return http_agent_check_conf(src, path, given, err);
}

static int webhook_open(struct agent *a, struct error *err)
{
        (void)err;
        return http_agent_open(a, is_openclaw(a->conf) ? &openclaw_wire : &webhook_wire);
}

const struct agent_ops webhook_agent = {
        .type = "webhook",
        .help = "Any program that accepts a POST and answers it, now or later; see "
                "`docs/AGENTS-HOWTO.md`.",
        .can = AGENT_BATCHES | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct http_agent_conf),
        .check = check,
        .open = webhook_open,
        .close = http_agent_close,
        .start = http_agent_start,
        .cancel = http_agent_cancel,
        .check_health = http_agent_check_health,
        .abilities = http_agent_abilities,
        .late_replies = http_agent_late_replies,
};
