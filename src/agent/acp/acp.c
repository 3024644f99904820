#include "agent/acp/acp.h"

#include <stdlib.h>
#include <string.h>

#include "agent/usage.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define PROTOCOL    1
#define METHODS_MAX 5 /* ways to log in that are shown */
#define ERROR_BYTES 400

/* ---- JSON-RPC ---- */

static void send_message(struct acp *a, json_t *message)
{
        json_object_set_new(message, "jsonrpc", json_string("2.0"));
        child_send_json(a->child, message);
}

int64_t acp_request(struct acp *a, const char *method, json_t *params)
{
        int64_t id = ++a->last_id;

        send_message(a, json_pack("{s:I, s:s, s:o}", "id", (json_int_t)id, "method", method,
                                  "params", params));
        return id;
}

void acp_notify(struct acp *a, const char *method, json_t *params)
{
        send_message(a, json_pack("{s:s, s:o}", "method", method, "params", params));
}

void acp_answer(struct acp *a, const json_t *id, json_t *result)
{
        send_message(a, json_pack("{s:O, s:o}", "id", id, "result", result));
}

void acp_answer_error(struct acp *a, const json_t *id, enum acp_error code, const char *text)
{
        char *clean = utf8_clean(text, strlen(text)); /* it may name a part of what was sent */

        send_message(a, json_pack("{s:O, s:{s:i, s:s}}", "id", id, "error", "code", (int)code,
                                  "message", clean));
        free(clean);
}

static void add_cut(struct buf *out, const char *text)
{
        buf_add(out, text, utf8_prefix(text, strlen(text), UTF8_BYTES, ERROR_BYTES));
}

char *acp_error_text(const json_t *error)
{
        const char *message = json_str(error, "message", NULL);
        const json_t *data = json_object_get(error, "data");
        const char *details = json_is_string(data)
                                      ? json_string_value(data)
                                      : json_str(data, "details", json_str(data, "message", NULL));

        struct buf text;

        buf_init(&text, 0);
        add_cut(&text, message ? message : "it gave no reason");
        if (details && message && !strstr(message, details)) {
                buf_addstr(&text, " (");
                add_cut(&text, details);
                buf_addch(&text, ')');
        }
        return buf_take(&text);
}

/* ---- the handshake ---- */

static void enter(struct acp *a, enum acp_phase phase, int64_t awaited)
{
        static const char *const names[] = {
                [ACP_INITIALIZING] = "initializing", [ACP_AUTHENTICATING] = "authenticating",
                [ACP_RESUMING] = "resuming",         [ACP_BEGINNING] = "beginning",
                [ACP_CONFIGURING] = "configuring",   [ACP_READY] = "ready",
        };

        log_debug("ACP", LOG_S("from", names[a->phase]), LOG_S("to", names[phase]));
        a->phase = phase;
        a->awaited = awaited;
}

void acp_refuse(struct acp *a, const char *notice, const char *why)
{
        enter(a, a->phase, 0);
        child_refused(a->child, ERR_REFUSED, notice, why);
}

static void refuse_error(struct acp *a, const char *method, const json_t *error)
{
        char *text = acp_error_text(error), *notice, *why;

        if (json_int(error, "code", 0) == ACP_AUTH_REQUIRED) {
                notice = mem_strdup("The agent is not logged in. Please tell the operator.");
                why = mem_printf("%s: it is not logged in: %s. Give it a key (env), log it in as "
                                 "Dragoman's user, or set authMethod%s%s",
                                 method, text, a->auth_names ? " to one of " : "",
                                 a->auth_names ? a->auth_names : "");
        } else {
                notice = mem_printf("The agent could not be started: %s. Please tell the operator.",
                                    text);
                why = mem_printf("%s: %s", method, text);
        }
        log_redact(notice);
        acp_refuse(a, notice, why);
        free(notice);
        free(why);
        free(text);
}

static json_t *session_params(struct acp *a, const char *session)
{
        json_t *params = json_pack("{s:s, s:[]}", "cwd", child_folder(a->child), "mcpServers");

        if (session)
                json_object_set_new(params, "sessionId", json_string(session));
        return params;
}

static void begin_session(struct acp *a)
{
        enter(a, ACP_BEGINNING, acp_request(a, "session/new", session_params(a, NULL)));
}

static void open_session(struct acp *a)
{
        const char *session = child_session(a->child);

        if (*session && (a->resume || a->load))
                enter(a, ACP_RESUMING,
                      acp_request(a, a->resume ? "session/resume" : "session/load",
                                  session_params(a, session)));
        else
                begin_session(a);
}

static void note_login(struct acp *a, const json_t *methods)
{
        const json_t *m;
        struct buf names;
        size_t i;

        buf_init(&names, 0);
        json_array_foreach(methods, i, m)
                if (i < METHODS_MAX)
                        buf_addf(&names, "%s\"%.100s\"", i ? ", " : "", json_str(m, "id", "?"));
        a->auth_names = names.len > 0 ? buf_take(&names) : NULL;
        buf_release(&names);
}

static void on_initialized(struct acp *a, const json_t *result)
{
        const struct acp_conf *conf = child_conf(a->child);
        const json_t *can = json_object_get(result, "agentCapabilities");
        const json_t *session = json_object_get(can, "sessionCapabilities");
        int64_t version = json_int(result, "protocolVersion", 0);
        char *why;

        if (version != PROTOCOL) {
                why = mem_printf("it speaks version %lld of the Agent Client Protocol, and "
                                 "Dragoman version %d",
                                 (long long)version, PROTOCOL);
                acp_refuse(a, "The agent could not be started. Please tell the operator.", why);
                free(why);
                return;
        }
        a->load = json_flag(can, "loadSession", false);
        a->resume = json_is_object(json_object_get(session, "resume"));
        a->images = json_flag(json_object_get(can, "promptCapabilities"), "image", false);
        note_login(a, json_object_get(result, "authMethods"));
        if (conf->auth_method)
                enter(a, ACP_AUTHENTICATING,
                      acp_request(a, "authenticate",
                                  json_pack("{s:s}", "methodId", conf->auth_method)));
        else
                open_session(a);
}

static void on_session(struct acp *a, const char *session, const json_t *result, bool resumed)
{
        if (!session) {
                acp_refuse(a, "The agent could not be started. Please tell the operator.",
                           "session/new: the answer has no sessionId");
                return;
        }
        free(a->session);
        a->session = mem_strdup(session);
        a->resumed = resumed;
        a->opened = json_incref((json_t *)result);
        enter(a, ACP_CONFIGURING, 0);
        acp_configure(a);
}

void acp_ready(struct acp *a)
{
        json_decref(a->opened);
        a->opened = NULL;
        enter(a, ACP_READY, 0);
        child_ready(a->child, a->session, a->resumed);
}

/* The session cannot be resumed: the agent begins one, and is told what was said. */
static void on_not_resumed(struct acp *a, const json_t *error)
{
        char *text = acp_error_text(error);

        if (json_int(error, "code", 0) == ACP_AUTH_REQUIRED) {
                refuse_error(a, "session/load", error);
        } else {
                log_warn("agent cannot resume a session; it begins another one",
                         LOG_S("agent", child_agent(a->child)->name), LOG_S("why", text));
                begin_session(a);
        }
        free(text);
}

static void on_handshake(struct acp *a, const json_t *result, const json_t *error)
{
        switch (a->phase) {
        case ACP_INITIALIZING:
                if (error)
                        refuse_error(a, "initialize", error);
                else
                        on_initialized(a, result);
                break;
        case ACP_AUTHENTICATING:
                if (error)
                        refuse_error(a, "authenticate", error);
                else
                        open_session(a);
                break;
        case ACP_RESUMING:
                if (error)
                        on_not_resumed(a, error);
                else
                        on_session(a, child_session(a->child), result, true);
                break;
        case ACP_BEGINNING:
                if (error)
                        refuse_error(a, "session/new", error);
                else
                        on_session(a, json_str(result, "sessionId", NULL), result, false);
                break;
        case ACP_CONFIGURING:
                acp_configured(a, error);
                break;
        case ACP_READY:
                break;
        }
}

static void started(struct child *c)
{
        const struct acp_conf *conf = child_conf(c);
        struct acp *a = child_state(c);

        a->child = c;
        LIST_INIT(&a->permissions);
        LIST_INIT(&a->file_requests);
        LIST_INIT(&a->terminals);
        enter(a, ACP_INITIALIZING,
              acp_request(a, "initialize",
                          json_pack("{s:i, s:{s:{s:b, s:b}, s:b}, s:{s:s, s:s, s:s}}",
                                    "protocolVersion", PROTOCOL, "clientCapabilities", "fs",
                                    "readTextFile", conf->files, "writeTextFile", conf->files,
                                    "terminal", conf->terminals, "clientInfo", "name", "dragoman",
                                    "title", "Dragoman", "version", DRAGOMAN_VERSION)));
}

/* ---- prompts ---- */

static const struct {
        const char *reason, *remark;
} stops[] = {
        { "end_turn", NULL },
        { "cancelled", "The agent says that this was cancelled." },
        { "max_tokens", "The agent stopped: the model's answer reached its length limit." },
        { "max_turn_requests", "The agent stopped: it asked the model as often as it may in one "
                               "turn." },
        { "refusal", "The agent refused to go on with this." },
};

static void read_usage(struct acp *a, const json_t *reported)
{
        struct usage u = { .beside = true };
        double cost = a->cost - a->cost_before;

        usage_read(&u, reported);
        child_set_usage(
                a->child,
                &(struct child_usage){
                        .tokens_in = usage_tokens_in(&u),
                        .tokens_cached = u.cached,
                        .tokens_out = u.out,
                        .cost_microusd = a->costs && cost > 0 ? (int64_t)(cost * 1e6 + 0.5) : 0 });
}

/*
 * An error ends the process: agents are adapters of a program that may have died behind them, and
 * then fail every further prompt. The next process loads the session.
 */
static void on_prompt_end(struct acp *a, const json_t *result, const json_t *error)
{
        const char *reason = json_str(result, "stopReason", "end_turn");
        struct child_end end = { 0 };
        char *text = NULL, *remark = NULL;

        a->prompt_id = 0;
        acp_permissions_cancel(a); /* none should be open; an open one would block the agent */
        read_usage(a, json_object_get(result, "usage"));
        for (size_t i = 0; i < COUNT(stops); i++)
                if (strcmp(stops[i].reason, reason) == 0)
                        end.remark = stops[i].remark;
        if (error) {
                text = acp_error_text(error);
                remark = mem_printf("The agent reported an error: %s", text);
                end = (struct child_end){ .kind = ERR_PROTOCOL,
                                          .remark = remark,
                                          .error = text,
                                          .unusable = json_int(error, "code", 0) !=
                                                      ACP_REQUEST_CANCELLED };
        }
        child_over(a->child, &end);
        free(remark);
        free(text);
}

static void send_prompt(struct child *c, const struct child_file *files, size_t count)
{
        struct acp *a = child_state(c);

        a->files = NULL;
        a->prompt_id = acp_request(a, "session/prompt",
                                   json_pack("{s:s, s:o}", "sessionId", a->session, "prompt",
                                             acp_prompt_content(a, files, count)));
}

static void prompt(struct child *c)
{
        struct acp *a = child_state(c);

        free(a->message);
        a->message = NULL;
        a->cost_before = a->cost;
        a->files = child_files_read(c, a->images, send_prompt);
}

static void cancel(struct child *c)
{
        struct acp *a = child_state(c);

        if (a->files) { /* it was not sent yet */
                child_files_drop(a->files);
                a->files = NULL;
                child_over(c, &(struct child_end){ 0 });
                return;
        }
        acp_permissions_cancel(a); /* first: an agent that waits for one may never end */
        acp_notify(a, "session/cancel", json_pack("{s:s}", "sessionId", a->session));
}

/* ---- messages ---- */

static void on_answer(struct acp *a, const json_t *message)
{
        const json_t *id = json_object_get(message, "id");
        const json_t *error = json_object_get(message, "error");
        const json_t *result = json_object_get(message, "result");
        int64_t number = json_is_integer(id) ? json_integer_value(id) : 0;

        if (error && !json_is_object(error))
                error = NULL;
        if (number > 0 && number == a->prompt_id) {
                on_prompt_end(a, result, error);
        } else if (number > 0 && number == a->awaited) {
                a->awaited = 0;
                on_handshake(a, result, error);
        }
}

static void received(struct child *c, json_t *message)
{
        struct acp *a = child_state(c);
        const char *method = json_str(message, "method", NULL);
        const json_t *id = json_object_get(message, "id");
        const json_t *params = json_object_get(message, "params");

        if (!method)
                on_answer(a, message);
        else if (id && !json_is_null(id))
                acp_requested(a, method, id, params);
        else if (strcmp(method, "session/update") == 0)
                acp_update(a, params);
        else if (strcmp(method, "$/cancel_request") == 0)
                acp_permission_withdraw(a, json_object_get(params, "requestId"));
}

static void ended(struct child *c)
{
        struct acp *a = child_state(c);

        child_files_drop(a->files);
        acp_permissions_release(a);
        acp_files_release(a);
        acp_terminals_release(a);
        json_decref(a->opened);
        free(a->session);
        free(a->auth_names);
        free(a->message);
}

/* ---- agent_ops ---- */

const struct child_dialect acp_dialect = {
        .name = "ACP agent",
        .state_size = sizeof(struct acp),
        .started = started,
        .received = received,
        .prompt = prompt,
        .cancel = cancel,
        .ended = ended,
};

#define CHILD_COMMAND   NULL
#define CHILD_AT(field) (offsetof(struct acp_conf, child) + offsetof(struct child_conf, field))
#define AT(field)       offsetof(struct acp_conf, field)
/* clang-format off */
static const struct setting settings[] = {
#include "agent/child/child_settings.inc"
        { "mode", SETTING_STRING, "null", 1, 200, .at = AT(mode),
          .help = "The session's mode, by the agent's name of it, such as `plan`; `null`: the "
                  "agent's own." },
        { "model", SETTING_STRING, "null", 1, 200, .at = AT(model),
          .help = "The model, by the agent's name of it; `null`: the agent's own." },
        { "authMethod", SETTING_STRING, "null", 1, 200, .at = AT(auth_method),
          .help = "How the agent logs in, by its own name of the way, such as `openai-api-key`; "
                  "`null`: it is logged in, or a variable of `env` is enough." },
        { "files", SETTING_BOOL, "false", .at = AT(files),
          .help = "Read and write files for it when it requests that, in its sandbox; most agents "
                  "do so themselves." },
        { "terminals", SETTING_BOOL, "false", .at = AT(terminals),
          .help = "Run commands for it when it requests that, in its sandbox; most agents do so "
                  "themselves." },
        SETTING_END
};
/* clang-format on */

static int check(struct settings_source *src, const char *path, const void *given,
                 struct error *err)
{
        const struct acp_conf *conf = given;

        if (conf->files && strcmp(conf->child.sandbox.kind, "bwrap") != 0)
                return settings_member_error(src, path, "files", err,
                                             "works in a sandbox only: on the host the agent reads "
                                             "and writes by itself");
        return child_check_conf(src, path, given, err);
}

static int acp_open(struct agent *a, struct error *err)
{
        return child_open(a, &acp_dialect, err);
}

const struct agent_ops acp_agent = {
        .type = "acp",
        .help = "A coding agent that speaks the Agent Client Protocol, started by Dragoman: Claude "
                "Code, opencode, Codex and others; see `docs/CODING-AGENTS.md`.",
        .can = CHILD_CAN,
        .settings = settings,
        .conf_size = sizeof(struct acp_conf),
        .check = check,
        .open = acp_open,
        CHILD_OPS,
};
