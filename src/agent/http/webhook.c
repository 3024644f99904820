/*
 * webhook: any program that takes a POST. What it is sent is in webhook_payload.c, what it may
 * answer in http_agent_reply.c, and docs/AGENTS-HOWTO.md shows one in ten lines.
 *
 * With "format": "openclaw" the request is the one OpenClaw's /hooks/agent takes. That endpoint
 * never gives the answer's text back, so it is for fire-and-forget: the prompt says where its agent
 * may post an answer. https://docs.openclaw.ai/automation/webhook
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/http/http_agent.h"
#include "agent/kinds.h"
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
          .help = "`round-trip` takes the answer from the response; `fire-and-forget` ends the "
                  "turn when the request is taken, and answers come through `replyUrl`." },
        { "format", SETTING_CHOICE, "\"dragoman\"", .choices = formats, .at = AT(format),
          .help = "What is posted: our payload, or what OpenClaw's `/hooks/agent` takes." },
        { "secret", SETTING_SECRET, "null", 0, 0, .at = AT(secret),
          .help = "Signs each request: `X-Dragoman-Signature: t=SECONDS,v1=HEX`, an HMAC-SHA256 "
                  "over `SECONDS.BODY`." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(key),
          .help = "Sent as `Authorization: Bearer`." },
        { "headers", SETTING_STRINGS, "[]", .at = AT(headers),
          .help = "Further header lines, each `Name: value`." },
        { "timeoutMs", SETTING_INT, "30000", 50, 3600000, .at = AT(timeout_ms),
          .help = "The longest the response may take, with the retry." },
        { "retries", SETTING_INT, "1", 0, 3, .at = AT(retries),
          .help = "How often a request is sent again, with the same key, after a 5xx or when no "
                  "connection was made; never after a 4xx or a timeout." },
        { "retryMs", SETTING_INT, "1000", 0, 30000, .at = AT(retry_ms),
          .help = "The pause before that." },
        { "late", SETTING_CHOICE, "\"deliver\"", .choices = lates, .at = AT(late),
          .help = "What becomes of an answer that comes after the turn has failed; it is "
                  "recorded either way." },
        { "replySeconds", SETTING_INT, "900", 1, 604800, .at = AT(reply_seconds),
          .help = "For how long a turn can be answered through its `replyUrl`, and a late "
                  "response is waited for." },
        { "maxReplies", SETTING_INT, "1", 1, 100, .at = AT(max_replies),
          .help = "How many answers one turn may have." },
        { "repeatable", SETTING_BOOL, "false", 0, 0, .at = AT(repeatable),
          .help = "The webhook knows the `Idempotency-Key`: a turn that Dragoman's own end "
                  "interrupted is sent again." },
        { "history", SETTING_BOOL, "false", 0, 0, .at = AT(history),
          .help = "Send the conversation so far, too." },
        { "healthUrl", SETTING_URL, "null", 0, 0, .at = AT(health_url),
          .help = "Asked by GET how the agent is; `null`: HEAD of `url`." },
        { "agentId", SETTING_STRING, "null", 1, 100, .at = AT(agent_id),
          .help = "Which of OpenClaw's agents; `null`: its own choice." },
        { "sessionKeys", SETTING_BOOL, "false", 0, 0, .at = AT(session_keys),
          .help = "Name the session for OpenClaw, which remembers it then; its "
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
                                 : "somebody",
                 in->platform ? in->platform : run->adapter, run->channel);
        if (reply_url)
                buf_addf(out, " To answer, POST the JSON {\"reply\": \"...\"} to %s", reply_url);
        buf_addch(out, ')');
}

/* A key of its own prefix, which OpenClaw's policy can allow. */
static void write_session(const struct http_agent *k, const struct turn_run *run, struct buf *out)
{
        char *session = agent_session(k->agent, run), *key = mem_printf("hook:%s", session);

        jsonw_str(out, "sessionKey", key);
        jsonw_str(out, "sessionMode", "persistent");
        free(key);
        free(session);
}

static void openclaw_write(const struct http_agent *k, const struct turn_run *run,
                           const char *reply_url, struct buf *out)
{
        char key[CALL_HEADERS_KEY_SIZE];
        struct buf prompt;

        buf_init(&prompt, 0);
        write_prompt(run, reply_url, &prompt);
        jsonw_open(out, '{');
        jsonw_strn(out, "message", prompt.data, prompt.len);
        jsonw_str(out, "name", "Dragoman");
        jsonw_opt(out, "agentId", k->conf->agent_id);
        if (k->conf->session_keys)
                write_session(k, run, out);
        jsonw_str(out, "idempotencyKey", call_headers_key(run, key));
        jsonw_bool(out, "deliver", false);
        jsonw_close(out, '}');
        buf_release(&prompt);
}

/* {"ok": true, "runId": ...}: a receipt, never an answer. */
static int openclaw_read(struct http_agent_reply *a, const json_t *object, struct error *err)
{
        (void)a;
        (void)object;
        (void)err;
        return 0;
}

const struct http_agent_wire webhook_wire = {
        .name = "webhook",
        .key_header = "Authorization: Bearer ",
        /* webhooks written for other platforms of this kind may look for it */
        .mark = "X-Omni-Provider: webhook",
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

/* ---- the agent ---- */

static bool is_openclaw(const struct http_agent_conf *conf)
{
        return strcmp(conf->format, "openclaw") == 0;
}

static int check(struct settings_source *src, const char *path, const void *given,
                 struct error *err)
{
        const struct http_agent_conf *conf = given;
        char *at;
        int rc;

        if (!is_openclaw(conf) || strcmp(conf->mode, "fire-and-forget") == 0)
                return http_agent_check_conf(src, path, given, err);
        at = *path ? mem_printf("%s.mode", path) : mem_strdup("mode");
        rc = settings_error(
                src, at, err,
                "OpenClaw's hooks give no answers back: use \"fire-and-forget\", or an agent of "
                "type \"openai\" on its /v1/chat/completions");
        free(at);
        return rc;
}

static int webhook_open(struct agent *a, struct error *err)
{
        (void)err;
        return http_agent_open(a, is_openclaw(a->conf) ? &openclaw_wire : &webhook_wire);
}

const struct agent_ops webhook_agent = {
        .type = "webhook",
        .help = "Any program that takes a POST and answers it, now or later; see `docs/AGENTS-HOWTO.md`.",
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
        .reply_terms = http_agent_reply_terms,
};
