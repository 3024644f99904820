/*
 * agno: agents, teams and workflows of an Agno AgentOS, one run per turn.
 *
 * A run is a form posted to /agents/ID/runs (or /teams, /workflows) and answered by server-sent
 * events: increments, then one terminal event of the run's own family with the whole text. Events
 * of a team's members have the agent family's names and are not its answer. AgentOS remembers the
 * session, so no history is sent. https://docs.agno.com/agent-os
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "agent/llm/llm.h"
#include "agent/message_text.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/http_text.h"

#define CANCEL_MS 10000

struct agno_conf {
        struct llm_conf llm; /* first: llm.c sees only this */
        char *kind;
};

#define AT(field) offsetof(struct agno_conf, field)

static const char *const kinds[] = { "agent", "team", "workflow", NULL };

static const struct setting settings[] = {
        { "url", SETTING_URL, NULL, 0, 0, .at = AT(llm.base_url),
          .help = "Where the AgentOS is, such as `http://127.0.0.1:7777`." },
        { "id", SETTING_STRING, NULL, 1, 200, .at = AT(llm.model),
          .help = "The id of the agent, team or workflow there." },
        { "kind", SETTING_CHOICE, "\"agent\"", .choices = kinds, .at = AT(kind),
          .help = "Which of these it is." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(llm.key),
          .help = "Its security key or service token, sent as `Authorization: Bearer`." },
        { "stream", SETTING_BOOL, "true", 0, 0, .at = AT(llm.stream),
          .help = "Show the answer while it is being written." },
        { "timeoutMs", SETTING_INT, "300000", 100, 3600000, .at = AT(llm.timeout_ms),
          .help = "The longest time to the end of a run, including retries." },
        { "firstByteMs", SETTING_INT, "120000", 100, 3600000, .at = AT(llm.first_byte_ms),
          .help = "The longest time until a streamed run begins." },
        { "silenceMs", SETTING_INT, "120000", 100, 3600000, .at = AT(llm.silence_ms),
          .help = "The longest pause within a streamed run." },
        { "retries", SETTING_INT, "2", 0, 5, .at = AT(llm.retries),
          .help = "How often a request is retried that the AgentOS certainly did not work on." },
        SETTING_END
};

/* ---- request ---- */

static void add_field(struct buf *out, const char *name, const char *value)
{
        char *escaped = http_text_escape(value);

        buf_addf(out, "%s%s=%s", out->len ? "&" : "", name, escaped);
        free(escaped);
}

static void write_body(const struct llm *m, const struct turn_run *run, struct buf *out)
{
        const struct incoming *last = run->inputs[run->input_count - 1];
        char *session = agent_session(m->agent, run), *message = message_text_of_turn(run), *user;

        user = mem_printf("%s:%s", last->platform ? last->platform : run->adapter,
                          last->sender_id ? last->sender_id : "");
        add_field(out, "message", message);
        add_field(out, "stream", m->conf->stream ? "true" : "false");
        add_field(out, "session_id", session);
        add_field(out, "user_id", user);
        free(user);
        free(message);
        free(session);
}

/* ---- answer ---- */

/* Converts structured output to JSON. */
static void add_content(struct llm_reader *r, const json_t *object)
{
        const json_t *content = json_object_get(object, "content");
        char *text;

        if (json_is_string(content)) {
                llm_reader_text(r, json_string_value(content));
        } else if (content && !json_is_null(content)) {
                text = json_text(content);
                llm_reader_text(r, text);
                free(text);
        }
}

static void complete(struct llm_reader *r, const json_t *object)
{
        if (r->text.len == 0)
                add_content(r, object);
        r->stop = LLM_STOPPED;
        r->ended = true;
}

static void read_metrics(struct llm_reader *r, const json_t *object)
{
        usage_read(&r->usage, json_object_get(object, "metrics"));
}

static void fail_with(struct llm_reader *r, const json_t *object, const char *otherwise)
{
        static const char *const keys[] = { "error", "content", "reason" };

        for (size_t i = 0; i < COUNT(keys); i++) {
                const char *text = json_str(object, keys[i], NULL);

                if (text && *text) {
                        llm_reader_fail(r, ERR_NET, text);
                        return;
                }
        }
        llm_reader_fail(r, ERR_NET, otherwise);
}

static void fail_paused(struct llm_reader *r)
{
        llm_reader_fail(r, ERR_CONFLICT, "the run paused: it waits for an approval");
        r->failure.notice = "The agent has paused: it waits for an approval in its own console.";
}

/* Ignores other families, tools, reasoning and memory. */
static void on_event(struct llm_reader *r, const char *event, const char *data, size_t n)
{
        json_t *object = llm_reader_json(r, data, n);
        const char *name = json_str(object, "event", event);
        size_t prefix = strlen(r->wire->events);

        if (object && strncmp(name, r->wire->events, prefix) == 0) {
                name += prefix;
                if (strcmp(name, "Started") == 0) {
                        snprintf(r->run_id, sizeof(r->run_id), "%s",
                                 json_str(object, "run_id", ""));
                } else if (strcmp(name, "Content") == 0) {
                        add_content(r, object);
                } else if (strcmp(name, "Completed") == 0) {
                        read_metrics(r, object);
                        complete(r, object);
                } else if (strcmp(name, "Error") == 0) {
                        fail_with(r, object, "the run failed");
                } else if (strcmp(name, "Cancelled") == 0) {
                        fail_with(r, object, "the run was cancelled at the AgentOS");
                } else if (strcmp(name, "Paused") == 0) {
                        fail_paused(r);
                }
        }
        json_decref(object);
}

static void on_answer(struct llm_reader *r, const json_t *answer)
{
        const char *status = json_str(answer, "status", "COMPLETED");

        read_metrics(r, answer);
        if (strcmp(status, "COMPLETED") == 0)
                complete(r, answer);
        else if (strcmp(status, "PAUSED") == 0)
                fail_paused(r);
        else
                fail_with(r, answer, status);
}

/* ---- cancelling ---- */

static void on_cancelled(void *arg, const struct http_result *result)
{
        (void)arg;
        (void)result;
}

/* Closing the connection should stop a run; make sure. */
static void cancel_run(const struct llm *m, const struct llm_reader *r, const struct turn_run *run)
{
        static const struct http_handlers handlers = { .on_done = on_cancelled };
        struct call_headers h;
        char *id, *url;

        if (!*r->run_id)
                return;
        id = http_text_escape(r->run_id);
        url = mem_printf("%s%s/%s/cancel%s", m->base, m->path, id, m->query);
        call_headers_init(&h);
        call_headers_secret(&h, "Authorization: Bearer ", m->conf->key);
        call_headers_run(&h, run);
        http_call_start(
                m->agent->http,
                &(struct http_request){
                        .method = "POST", .url = url, .headers = h.list, .total_ms = CANCEL_MS },
                &handlers, NULL);
        call_headers_release(&h);
        free(url);
        free(id);
}

#define AGNO_WIRE(name_, events_)                                                        \
        {                                                                                \
                .name = (name_), .events = (events_), .subject = "agent", .acts = true,  \
                .health = "/health", .key_header = "Authorization: Bearer ",             \
                .content_type = "application/x-www-form-urlencoded", .body = write_body, \
                .event = on_event, .answer = on_answer, .cancel = cancel_run,            \
        }
const struct llm_wire agno_agent_wire = AGNO_WIRE("agno agent", "Run");
const struct llm_wire agno_team_wire = AGNO_WIRE("agno team", "TeamRun");
const struct llm_wire agno_workflow_wire = AGNO_WIRE("agno workflow", "Workflow");

/* ---- agent_ops ---- */

static int agno_open(struct agent *a, struct error *err)
{
        static const struct llm_wire *const wires[] = { &agno_agent_wire, &agno_team_wire,
                                                        &agno_workflow_wire };
        const struct agno_conf *conf = a->conf;
        char *id = http_text_escape(conf->llm.model);
        struct llm *m;

        (void)err;
        for (size_t i = 0; kinds[i]; i++) {
                if (strcmp(conf->kind, kinds[i]) == 0)
                        llm_open(a, wires[i], conf->llm.model);
        }
        m = a->self;
        free(m->path);
        m->path = mem_printf("/%ss/%s/runs", conf->kind, id);
        free(id);
        return 0;
}

const struct agent_ops agno_agent = {
        .type = "agno",
        .help = "An agent, team or workflow of an Agno AgentOS.",
        .can = AGENT_BATCHES | AGENT_STREAMS | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct agno_conf),
        .check = llm_check_conf,
        .open = agno_open,
        .close = llm_close,
        .start = llm_start,
        .cancel = llm_cancel,
        .check_health = llm_check_health,
};
