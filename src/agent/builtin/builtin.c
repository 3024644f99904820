/*
 * builtin: Dragoman's own agent, put together from its parts: a model (llm/model.h), tools, custom
 * tools, a sandbox, a workspace, and the loop that uses them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop.h"
#include "agent/builtin/blobs.h"
#include "agent/builtin/check_run.h"
#include "agent/custom/custom.h"
#include "agent/custom/mcp.h"
#include "agent/llm/chat_server.h"
#include "agent/llm/model.h"
#include "agent/workspace/prompt.h"
#include "agent/workspace/skills.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

#define PEOPLE_MAX   40
#define TOOLS_MAX    200
#define SWEEP_FIRST  60000
#define SWEEP_EVERY  86400000
#define JOB_TEXT_MAX 60

struct builtin_conf {
        struct llm_conf llm; /* first: functions of llm.h read it */
        char *wire, *thinking;
        struct setting_list tools;
        char *platform_tools;
        struct setting_map policy, mcp;
        struct sandbox_conf sandbox;
        struct {
                bool enabled;
                int64_t reserve, keep;
        } compaction;
        struct spending_limits budget;
        struct {
                int64_t rounds, parallel;
                bool guard;
        } limits;
        bool usage_line;
};

static const char *const wires[] = { "auto", "anthropic", "openai", "responses", NULL };
static const char *const reaches[] = { "chat", "everywhere", NULL };
static const char *const thinking[] = { "default", "off", "low", "medium", "high", NULL };

#define AT(field) offsetof(struct builtin_conf, compaction.field)
static const struct setting compaction_settings[] = {
        { "enabled", SETTING_BOOL, "true",
          .at = offsetof(struct builtin_conf, compaction.enabled) -
                offsetof(struct builtin_conf, compaction),
          .help = "Summarise the older part of a conversation when the model's window is nearly "
                  "full." },
        { "reserveTokens", SETTING_INT, "16384", 1024, 1000000,
          .at = AT(reserve) - offsetof(struct builtin_conf, compaction),
          .help = "Tokens of the window that are kept free for the answer." },
        { "keepRecentTokens", SETTING_INT, "20000", 1000, 1000000,
          .at = AT(keep) - offsetof(struct builtin_conf, compaction),
          .help = "Tokens of recent messages that are not summarised." },
        SETTING_END
};
#undef AT

#define AT(field) offsetof(struct spending_limits, field)
static const struct setting budget_settings[] = {
        { "turnUsd", SETTING_NUMBER, "0", 0, 100000, .at = AT(turn_usd),
          .help = "US dollars one turn may cost; 0: no limit." },
        { "dayUsd", SETTING_NUMBER, "0", 0, 1000000, .at = AT(day_usd),
          .help = "US dollars the agent may cost in a day (UTC); 0: no limit." },
        { "personDayUsd", SETTING_NUMBER, "0", 0, 1000000, .at = AT(person_day_usd),
          .help = "US dollars one person may cause in a day (UTC); 0: no limit." },
        SETTING_END
};
#undef AT

#define AT(field) \
        (offsetof(struct builtin_conf, limits.field) - offsetof(struct builtin_conf, limits))
static const struct setting limit_settings[] = {
        { "rounds", SETTING_INT, "50", 1, 1000, .at = AT(rounds),
          .help = "How often the model is asked in one turn." },
        { "parallelTools", SETTING_INT, "8", 1, 64, .at = AT(parallel),
          .help = "How many tools of one answer run side by side." },
        { "loopGuard", SETTING_BOOL, "true", .at = AT(guard),
          .help = "Stop a turn that makes the same call with the same result, or gets the same "
                  "error, five times." },
        SETTING_END
};
#undef AT

#define AT(field) offsetof(struct llm_conf, field)
static const struct setting settings[] = {
#include "agent/llm/llm_settings.inc"
#undef AT
#define AT(field) offsetof(struct builtin_conf, field)
        { "wire", SETTING_CHOICE, "\"auto\"", .choices = wires, .at = AT(wire),
          .help = "The protocol of the model's service: Anthropic's Messages, OpenAI's chat "
                  "completions, or OpenAI's Responses; `auto` follows from `model`." },
        { "thinking", SETTING_CHOICE, "\"default\"", .choices = thinking, .at = AT(thinking),
          .help = "How much the model thinks before it answers, where it can." },
        { "tools", SETTING_STRINGS, "[]", .at = AT(tools),
          .help = "The tools it may use, by name; not set: all." },
        { "platformTools", SETTING_CHOICE, "\"chat\"", .choices = reaches, .at = AT(platform_tools),
          .help = "Where the platform's tools, such as `discord_read`, may read and write: in the "
                  "chat of the turn, or everywhere the bot can, for all who may talk to it." },
        { "mcp", SETTING_MAP, "{}", 0, sizeof(struct mcp_conf), .group = mcp_settings,
          .at = AT(mcp), .help = "MCP servers by name; the agent may call their tools." },
        POLICY_SETTING(AT(policy)),
        { "sandbox", SETTING_GROUP, "{}", .group = sandbox_settings, .at = AT(sandbox),
          .help = "Where its commands run." },
        { "compaction", SETTING_GROUP, "{}", .group = compaction_settings, .at = AT(compaction),
          .help = "How long conversations are shortened." },
        { "budget", SETTING_GROUP, "{}", .group = budget_settings, .at = AT(budget),
          .help = "What it may cost, checked before each call to the model." },
        { "limits", SETTING_GROUP, "{}", .group = limit_settings, .at = AT(limits),
          .help = "Limits of one turn." },
        { "usageLine", SETTING_BOOL, "false", .at = AT(usage_line),
          .help = "Post a line with the tokens and the cost of the turn below each answer." },
        SETTING_END
#undef AT
};

struct builtin {
        struct agent *agent;
        const struct builtin_conf *conf;
        struct llm *llm;
        struct loop_conf loop_conf;
        struct loop_env env;
        struct spending *spending;
        struct sandboxes *sandboxes; /* NULL: no commands */
        struct custom_tools *custom;
        struct skill_cache *skills;
        struct map chats; /* "conv-N" -> "adapter/channel", for those with background jobs */
        struct check_runs checks;
        struct timer *sweep;
};

/* What one turn works with. */
struct builtin_turn {
        struct builtin *b;
        struct turn_run *run;
        char *adapter, *channel;
        struct prompt_person people[PEOPLE_MAX];
        int people_count;
        struct workspace_view *view;
        struct tool_scope scope;
        struct tool_set *set;
        json_t *tools;
        struct prompt prompt;
        struct model_limits limits;
        struct custom_wait *wait;
        void (*opened)(void *arg, const struct error *err);
        void *arg;
};

/* ---- the model ---- */

static struct model_call *ask(void *agent, const struct model_request *q,
                              const struct model_handlers *h, void *arg)
{
        return model_ask(((struct builtin *)agent)->llm, q, h, arg);
}

static int64_t abort_call(struct model_call *c)
{
        struct model_answer spent = { 0 };

        model_spent(c, &spent);
        model_abort(c);
        return spent.cost_microusd;
}

static void limits(void *agent, struct model_limits *out)
{
        model_limits(((struct builtin *)agent)->llm, out);
}

static void finish(void *agent, struct turn_run *run, const struct turn_reply *reply,
                   enum agent_effect effect)
{
        agent_finish(((struct builtin *)agent)->agent, run, reply, effect);
}

/* ---- a turn ---- */

static void *turn_new_of(void *agent, struct turn_run *run)
{
        struct builtin_turn *t = mem_zalloc(sizeof(*t));

        t->b = agent;
        t->run = run;
        t->adapter = mem_strdup(run->adapter);
        t->channel = mem_strdup(run->channel);
        agent_hold(t->b->agent); /* steps may be stored after a cancel */
        return t;
}

static int turn_read(void *turn, struct store_tx *tx, struct error *err)
{
        struct builtin_turn *t = turn;

        if (t->people_count > 0) /* repeated */
                prompt_people_release(t->people, (size_t)t->people_count);
        t->people_count =
                prompt_people_read(tx, t->adapter, t->channel, t->people, PEOPLE_MAX, err);
        return t->people_count < 0 ? -1 : 0;
}

static void build_prompt(struct builtin_turn *t)
{
        const struct incoming *in = t->run->inputs[0];
        const char *names[TOOLS_MAX + 1] = { NULL };
        const json_t *tool;
        struct buf custom;
        size_t i;

        json_array_foreach(t->tools, i, tool)
                if (i < TOOLS_MAX)
                        names[i] = json_str(tool, "name", "");
        buf_init(&custom, 0);
        custom_prompt(t->b->custom, t->limits.window, &custom);
        prompt_build(&t->prompt, &(struct prompt_source){
                                         .agent = t->b->agent->name,
                                         .system = t->b->conf->llm.system,
                                         .rule_prompt = t->run->prompt,
                                         .tools = names,
                                         .custom_tools = custom.len ? custom.data : NULL,
                                         .sandbox = t->b->sandboxes ? &t->b->conf->sandbox : NULL,
                                         .platform = in->platform,
                                         .adapter = t->adapter,
                                         .channel = t->channel,
                                         .channel_name = in->chat_name,
                                         .thread = t->run->thread,
                                         .timezone = agent_timezone(t->b->agent),
                                         .chat = in->chat,
                                         .people = t->people,
                                         .people_count = (size_t)t->people_count,
                                         .view = t->view,
                                         .skill_cache = t->b->skills });
        if (t->prompt.problems.len)
                log_warn("problems in the agent's workspace", LOG_S("channel", t->channel),
                         LOG_S("what", t->prompt.problems.data));
        buf_release(&custom);
}

static void on_custom_ready(void *arg)
{
        struct builtin_turn *t = arg;
        struct builtin *b = t->b;
        struct error err = { 0 };

        t->wait = NULL;
        if (workspace_view_open(b->agent->dir, t->adapter, t->channel, &t->view, &err) < 0) {
                t->opened(t->arg, &err);
                return;
        }
        t->scope = (struct tool_scope){ .agent = b->agent,
                                        .run = t->run,
                                        .view = t->view,
                                        .sandboxes = b->sandboxes,
                                        .sandbox = { t->run->conversation, t->view },
                                        .loop = b->agent->loop,
                                        .road = agent_road(b->agent),
                                        .store = agent_store(b->agent),
                                        .custom = b->custom,
                                        .everywhere =
                                                strcmp(b->conf->platform_tools, "everywhere") == 0,
                                        .images = t->limits.images,
                                        .documents = t->limits.documents };
        t->set = tool_set_new(&t->scope, &b->conf->tools);
        t->tools = tool_set_describe(t->set);
        build_prompt(t);
        t->opened(t->arg, NULL);
}

static void turn_open(void *turn, const struct model_limits *l,
                      void (*done)(void *arg, const struct error *err), void *arg)
{
        struct builtin_turn *t = turn;

        t->limits = *l;
        t->opened = done;
        t->arg = arg;
        t->wait = custom_wait_start(t->b->custom, on_custom_ready, t);
}

static void note_job(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        (void)conversation;
        *(bool *)arg = *(bool *)arg || j->running;
}

/* Remembers where a conversation with background jobs is. */
static void note_chat(const struct builtin_turn *t)
{
        struct builtin *b = t->b;
        bool running = false;
        char key[40];

        if (!b->sandboxes)
                return;
        snprintf(key, sizeof(key), "conv-%lld", (long long)t->scope.sandbox.conversation);
        sandbox_jobs_each(b->sandboxes, t->scope.sandbox.conversation, note_job, &running);
        free(map_remove(&b->chats, key));
        if (running)
                map_put(&b->chats, key, mem_printf("%s/%s", t->adapter, t->channel));
}

static void turn_free_of(void *turn)
{
        struct builtin_turn *t = turn;
        struct agent *a = t->b->agent;

        if (t->wait)
                custom_wait_cancel(t->wait);
        if (t->view)
                note_chat(t);
        if (t->people_count > 0)
                prompt_people_release(t->people, (size_t)t->people_count);
        prompt_release(&t->prompt);
        json_decref(t->tools);
        tool_set_free(t->set);
        workspace_view_free(t->view);
        free(t->adapter);
        free(t->channel);
        free(t);
        agent_unhold(a);
}

/* After /new its commands and background jobs end. */
static void begins(void *turn)
{
        struct builtin_turn *t = turn;

        if (t->b->sandboxes)
                sandbox_end(t->b->sandboxes, t->run->conversation);
}

static const char *system_of(void *turn)
{
        return ((struct builtin_turn *)turn)->prompt.text;
}

static json_t *tools_of(void *turn)
{
        return ((struct builtin_turn *)turn)->tools;
}

static const struct tool_scope *scope_of(void *turn)
{
        return &((struct builtin_turn *)turn)->scope;
}

static const struct tool *find_tool(void *turn, const char *name)
{
        return tool_set_find(((struct builtin_turn *)turn)->set, name);
}

static enum policy_decision gate(void *turn, const struct tool *tool, const json_t *arguments,
                                 const char *call, bool untrusted, char **why, policy_gate_fn *done,
                                 void *arg, struct policy_gate **out)
{
        struct builtin_turn *t = turn;
        struct policy_question q = {
                .rules = &t->b->conf->policy,
                .tool = tool->name,
                .risky = tool_flags(tool, &t->scope, arguments) & TOOL_RISKY,
                .arguments = arguments,
                .adapter = t->adapter,
                .channel = t->channel,
                .cwd = t->view->folder,
                .sandbox = t->b->conf->sandbox.kind,
                .untrusted = untrusted,
                .view = t->view,
        };

        q.stored = turn_approval_rules(t->run, &q.stored_count);
        return policy_gate(t->run, &q, call, why, done, arg, out);
}

static char *payer(void *agent, const struct turn_run *run)
{
        const struct incoming *in = run->inputs[0];
        int64_t person = agent_person(((struct builtin *)agent)->agent, in);

        if (person > 0)
                return mem_printf("person-%lld", (long long)person);
        return in->sender_id ? mem_printf("%s:%s", in->adapter, in->sender_id) : NULL;
}

static const struct loop_parts parts = { .ask = ask,
                                         .abort = abort_call,
                                         .limits = limits,
                                         .finish = finish,
                                         .turn_new = turn_new_of,
                                         .turn_read = turn_read,
                                         .turn_open = turn_open,
                                         .turn_free = turn_free_of,
                                         .begins = begins,
                                         .system = system_of,
                                         .tools = tools_of,
                                         .scope = scope_of,
                                         .find_tool = find_tool,
                                         .gate = gate,
                                         .gate_free = policy_gate_free,
                                         .payer = payer };

/* ---- the agent ---- */

static int check(struct settings_source *src, const char *path, const void *conf, struct error *err)
{
        const struct builtin_conf *c = conf;
        const char *model, *wrong;
        struct error why;
        char *at;
        int rc;

        if (!llm_wire_find(c->wire, c->llm.model, c->llm.base_url, &model))
                return settings_member_error(
                        src, path, "model", err,
                        "'%s' names no service (\"anthropic/MODEL\" or \"openai/MODEL\"; with "
                        "`baseUrl` any name)",
                        c->llm.model);
        if (sandbox_conf_check(&c->sandbox, &wrong, &why) < 0) {
                at = mem_printf("%s.sandbox", path);
                rc = settings_member_error(src, at, wrong, err, "%s", why.text);
                free(at);
                return rc;
        }
        at = mem_printf("%s.mcp", path);
        rc = mcp_check(src, at, &c->mcp, err);
        free(at);
        return rc < 0 ? -1 : llm_check_conf(src, path, conf, err);
}

static enum model_thinking thinking_of(const char *name)
{
        for (int i = 0; thinking[i]; i++)
                if (strcmp(thinking[i], name) == 0)
                        return (enum model_thinking)i;
        return THINKING_DEFAULT;
}

struct sweep {
        char *dir;
        int64_t before_ms;
};

static void sweep_blobs(void *arg)
{
        const struct sweep *s = arg;

        blobs_sweep(s->dir, s->before_ms);
}

static void on_swept(void *arg)
{
        struct sweep *s = arg;

        free(s->dir);
        free(s);
}

static void on_sweep(void *arg)
{
        struct builtin *b = arg;
        int64_t days = agent_transcript_days(b->agent);
        struct sweep *s;

        timer_start(b->sweep, SWEEP_EVERY);
        if (days <= 0)
                return;
        s = mem_zalloc(sizeof(*s));
        s->dir = mem_strdup(b->agent->dir);
        s->before_ms = clock_wall_ms() - (days + 1) * 86400000LL;
        loop_work(b->agent->loop, sweep_blobs, on_swept, s);
}

static int builtin_open(struct agent *a, struct error *err)
{
        const struct builtin_conf *conf = a->conf;
        struct builtin *b = mem_zalloc(sizeof(*b));
        const char *model = NULL;
        const struct llm_wire *wire =
                llm_wire_find(conf->wire, conf->llm.model, conf->llm.base_url, &model);

        (void)err;
        b->agent = a;
        b->conf = conf;
        b->llm = llm_new(a, wire, model);
        model_learn(b->llm);
        b->loop_conf = (struct loop_conf){ .thinking = thinking_of(conf->thinking),
                                           .max_tokens = conf->llm.max_tokens,
                                           .rounds = conf->limits.rounds,
                                           .parallel = conf->limits.parallel,
                                           .guard = conf->limits.guard,
                                           .usage_line = conf->usage_line,
                                           .compacts = conf->compaction.enabled,
                                           .reserve_tokens = conf->compaction.reserve,
                                           .keep_tokens = conf->compaction.keep,
                                           .budget = conf->budget };
        b->spending = spending_new();
        b->env = (struct loop_env){ .parts = &parts,
                                    .agent = b,
                                    .name = a->name,
                                    .dir = a->dir,
                                    .loop = a->loop,
                                    .conf = &b->loop_conf,
                                    .spending = b->spending };
        if (strcmp(conf->sandbox.kind, "none") != 0)
                b->sandboxes = sandboxes_new(a->loop, &conf->sandbox, a->dir);
        if (b->sandboxes) {
                sandboxes_on_request(b->sandboxes, agent_journal_request, a);
                sandboxes_probe(b->sandboxes);
        }
        b->custom = custom_new(&(struct custom_options){ .loop = a->loop,
                                                         .http = a->http,
                                                         .dir = a->dir,
                                                         .agent = a->name,
                                                         .mcp = &conf->mcp });
        b->skills = skill_cache_new();
        LIST_INIT(&b->checks);
        map_init(&b->chats);
        b->sweep = timer_new(a->loop, on_sweep, b);
        timer_start(b->sweep, SWEEP_FIRST);
        timer_unref(b->sweep);
        a->self = b;
        return 0;
}

static void builtin_close(struct agent *a)
{
        struct builtin *b = a->self;
        void *chat;

        timer_free(b->sweep);
        custom_free(b->custom);
        if (b->sandboxes)
                sandboxes_free(b->sandboxes);
        check_runs_drop(&b->checks);
        skill_cache_free(b->skills);
        spending_free(b->spending);
        for (size_t i = 0; map_each(&b->chats, &i, NULL, &chat);)
                free(chat);
        map_release(&b->chats);
        llm_free(b->llm);
        free(b);
}

static void builtin_start(struct agent *a, struct turn_run *run)
{
        run->agent_data = agent_loop_start(&((struct builtin *)a->self)->env, run);
}

static void builtin_cancel(struct agent *a, struct turn_run *run)
{
        (void)a;
        if (run->agent_data)
                agent_loop_cancel(run->agent_data);
        run->agent_data = NULL;
}

static void builtin_check_health(struct agent *a, void *token)
{
        llm_probe(((struct builtin *)a->self)->llm, token);
}

/* ---- /status ---- */

struct job_list {
        const struct builtin *b;
        const char *chat;
        struct buf *out;
};

static void describe_job(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        const struct job_list *l = arg;
        const char *chat;
        char key[40];

        snprintf(key, sizeof(key), "conv-%lld", (long long)conversation);
        chat = map_get(&l->b->chats, key);
        if (!j->running || !chat || strcmp(chat, l->chat) != 0)
                return;
        buf_addf(l->out, "%sBackground job %d runs since %lld s: `%.*s`.", l->out->len ? " " : "",
                 j->id, (long long)((clock_wall_ms() - j->started_ms) / 1000),
                 (int)strcspn(j->command, "`\n") > JOB_TEXT_MAX ? JOB_TEXT_MAX
                                                                : (int)strcspn(j->command, "`\n"),
                 j->command);
}

static void builtin_status(const struct agent *a, struct buf *out)
{
        const struct builtin *b = a->self;
        struct model_limits l = { 0 };
        bool deferred;

        model_limits(b->llm, &l);
        jsonw_open_member(out, "customTools", '{');
        jsonw_int(out, "count", (int64_t)custom_count(b->custom));
        jsonw_int(out, "tokens", custom_prompt_tokens(b->custom, l.window, &deferred));
        jsonw_bool(out, "deferred", deferred);
        jsonw_open_member(out, "sources", '[');
        custom_status(b->custom, out);
        jsonw_close(out, ']');
        jsonw_close(out, '}');
}

static void builtin_describe(const struct agent *a, const char *adapter, const char *channel,
                             struct buf *out)
{
        const struct builtin *b = a->self;
        char *chat = mem_printf("%s/%s", adapter, channel);
        struct job_list l = { b, chat, out };

        if (b->sandboxes)
                sandbox_jobs_each(b->sandboxes, 0, describe_job, &l);
        free(chat);
}

static void builtin_sandbox(const struct agent *a, struct agent_sandbox *out)
{
        const struct builtin *b = a->self;

        out->kind = b->conf->sandbox.kind;
        out->problem = b->sandboxes ? sandboxes_problem(b->sandboxes)
                                    : "commands are switched off: sandbox.kind is \"none\"";
}

static int builtin_run_check(struct agent *a, const struct agent_check *check, agent_check_fn *done,
                             void *arg, struct error *err)
{
        struct builtin *b = a->self;
        struct check_place place = { .agent = a,
                                     .sandboxes = b->sandboxes,
                                     .conf = &b->conf->sandbox,
                                     .policy = &b->conf->policy };

        return check_run_start(&b->checks, &place, check, done, arg, err);
}

const struct agent_ops builtin_agent = {
        .type = "builtin",
        .help = "Dragoman's own agent, with tools, a sandbox and memory, on a model written as "
                "`anthropic/MODEL` or `openai/MODEL`.",
        .can = AGENT_BATCHES | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS | AGENT_RESUMES |
               AGENT_STEERS,
        .settings = settings,
        .conf_size = sizeof(struct builtin_conf),
        .check = check,
        .open = builtin_open,
        .close = builtin_close,
        .start = builtin_start,
        .cancel = builtin_cancel,
        .check_health = builtin_check_health,
        .status = builtin_status,
        .describe = builtin_describe,
        .sandbox = builtin_sandbox,
        .run_check = builtin_run_check,
};
