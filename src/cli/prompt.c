/* Prints the system prompt of a built-in agent for a channel, with the size of its parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom.h"
#include "agent/tools/tool.h"
#include "agent/workspace/prompt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "cli/command.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "rows/journal_row.h"

#define WINDOW        200000 /* tokens, when only the daemon knows the model's */
#define MESSAGES_READ 50

/* ---- the channel, from the journal ---- */

struct prompt_chat {
        const char *adapter, *channel;
        struct incoming *last; /* NULL: nothing is known */
        struct prompt_person people[PROMPT_PEOPLE_MAX];
        int count;
};

static int read_chat(struct store_tx *tx, void *arg, struct error *err)
{
        struct prompt_chat *c = arg;
        struct journal_range range = { .before = INT64_MAX,
                                       .adapter = c->adapter,
                                       .channel = c->channel };
        struct store_stmt *s = journal_row_scan(tx, &range);
        struct journal_row row;
        int rc = 1;

        for (int i = 0; i < MESSAGES_READ && !c->last; i++) {
                rc = journal_row_next(s, &row, err);
                if (rc != 1)
                        break;
                if (strcmp(row.type, EVENT_MESSAGE_RECEIVED) != 0)
                        continue;
                journal_row_read_payload(s, &row);
                c->last = incoming_from_row(&row, NULL);
        }
        if (rc == 1)
                rows_end(s);
        if (rc >= 0)
                c->count = prompt_people_read(tx, c->adapter, c->channel, c->people,
                                              PROMPT_PEOPLE_MAX, err);
        if (rc < 0 || c->count < 0) {
                c->count = 0;
                return -1;
        }
        return 0;
}

/* ---- the agent, from the configuration ---- */

static const struct agent_conf *find_agent(const struct config *c, const char *name,
                                           struct error *err)
{
        const struct agent_conf *found = NULL;

        if (!name)
                name = c->default_agent;
        for (size_t i = 0; i < c->agent_count; i++)
                if (name ? strcmp(c->agents[i]->name, name) == 0
                         : strcmp(c->agents[i]->ops->type, "builtin") == 0) {
                        found = c->agents[i];
                        break;
                }
        if (!found)
                error_set(err, ERR_MISSING,
                          name ? "there is no agent '%s' in the configuration"
                               : "there is no agent of type builtin%s",
                          name ? name : "");
        else if (strcmp(found->ops->type, "builtin") != 0) {
                error_set(err, ERR_INVALID,
                          "agent '%s' is of type %s; only agents of type builtin have a prompt of "
                          "ours (--agent NAME)",
                          found->name, found->ops->type);
                found = NULL;
        }
        return found;
}

static int read_sandbox(const json_t *agent, struct sandbox_conf *out, struct error *err)
{
        static const struct setting *const tables[] = { sandbox_settings, NULL };
        json_t *given = json_object_get(agent, "sandbox");
        char *text = given ? json_text(given) : mem_strdup("{}");
        struct settings_source *src = settings_source_new(NULL, NULL, text, strlen(text), err);
        int rc = src ? settings_read(src, "", settings_source_root(src), tables, NULL, out, err)
                     : -1;

        settings_source_free(src);
        free(text);
        return rc;
}

static void release_sandbox(struct sandbox_conf *conf)
{
        static const struct setting *const tables[] = { sandbox_settings, NULL };

        settings_release(tables, conf);
}

struct offer {
        bool commands, files, custom;
};

static bool is_offered(const struct offer *o, const char *name)
{
        if (strcmp(name, "bash") == 0 || strcmp(name, "job") == 0)
                return o->commands;
        if (strcmp(name, "attach") == 0)
                return o->files;
        if (strcmp(name, "invoke_tool") == 0 || strcmp(name, "tool_search") == 0)
                return o->custom;
        return true;
}

static bool is_wanted(const json_t *agent, const char *name)
{
        const json_t *wanted = json_object_get(agent, "tools"), *one;
        bool counts = !wanted;
        size_t i;

        json_array_foreach(wanted, i, one)
                counts = counts ||
                         (json_is_string(one) && strcmp(json_string_value(one), name) == 0);
        return counts;
}

/* As each tool's `offered` decides in a turn. Free the array. */
static const char **tool_names(const json_t *agent, const struct offer *offer)
{
        const char **names;
        size_t count = 0, n = 0;

        while (tools[count])
                count++;
        names = mem_array(count + 2, sizeof(*names));
        for (size_t k = 0; k < count; k++)
                if (is_wanted(agent, tools[k]->name) && is_offered(offer, tools[k]->name))
                        names[n++] = tools[k]->name;
        if (is_wanted(agent, "remind")) /* of the schedule's tools the prompt names this one */
                names[n++] = "remind";
        return names;
}

/* Does the adapter's platform take files? Of an unknown one it is assumed. */
static bool takes_files(const struct config *c, const char *adapter)
{
        for (size_t i = 0; i < c->adapter_count; i++)
                if (strcmp(c->adapters[i]->name, adapter) == 0)
                        return c->adapters[i]->ops->upload_max > 0;
        return true;
}

/* ---- tools of the host: programs only, because MCP servers would have to be started ---- */

static void on_custom(void *arg)
{
        *(bool *)arg = true;
}

static char *custom_text(const char *dir, const char *agent)
{
        struct loop *l = loop_new();
        struct custom_options options = { .loop = l, .dir = dir, .agent = agent };
        struct custom_tools *all = custom_new(&options);
        bool done = false;
        struct buf out;

        buf_init(&out, 0);
        custom_wait_start(all, on_custom, &done);
        while (!done && loop_step(l, true))
                continue;
        custom_prompt(all, WINDOW, &out);
        custom_free(all);
        loop_free(l);
        return buf_take(&out);
}

/* ---- printing ---- */

static void print_sizes(const struct prompt *p)
{
        fprintf(stderr, "\n%-14s %8s %8s\n", "part", "bytes", "tokens");
        for (int i = 0; i < PROMPT_PARTS; i++)
                if (p->bytes[i] > 0)
                        fprintf(stderr, "%-14s %8zu %8lld\n", prompt_part_name((enum prompt_part)i),
                                p->bytes[i], (long long)prompt_tokens(p->bytes[i]));
        fprintf(stderr, "%-14s %8zu %8lld  (estimated; definitions of tools are sent besides)\n",
                "all", p->n, (long long)prompt_tokens(p->n));
        if (p->problems.len > 0) {
                fputs("\nproblems:\n", stderr);
                print_text(stderr, p->problems.data, p->problems.len);
        }
}

static void print_prompt(const struct args *a, const struct prompt *p, const char *agent)
{
        json_t *parts = json_array(), *all;

        for (int i = 0; i < PROMPT_PARTS; i++)
                json_array_append_new(parts, json_pack("{s:s, s:I, s:I}", "name",
                                                       prompt_part_name((enum prompt_part)i),
                                                       "bytes", (json_int_t)p->bytes[i], "tokens",
                                                       (json_int_t)prompt_tokens(p->bytes[i])));
        if (a->json) {
                all = json_pack("{s:s, s:s, s:I, s:I, s:O, s:s}", "agent", agent, "prompt", p->text,
                                "bytes", (json_int_t)p->n, "tokens",
                                (json_int_t)prompt_tokens(p->n), "parts", parts, "problems",
                                p->problems.data);
                print_json(all);
                json_decref(all);
        } else {
                print_text(stdout, p->text, p->n);
                fflush(stdout);
                print_sizes(p);
        }
        json_decref(parts);
}

static int build(const struct args *a, const struct config *c, const struct agent_conf *agent,
                 const struct prompt_chat *chat, struct error *err)
{
        struct sandbox_conf sandbox = { 0 };
        struct workspace_view *view;
        struct prompt_source from;
        struct prompt prompt;
        const char **names;
        char *custom, *zone;

        if (read_sandbox(agent->raw, &sandbox, err) < 0) {
                release_sandbox(&sandbox);
                return -1;
        }
        view = workspace_view_peek(a->dir, chat->adapter, chat->channel);
        custom = custom_text(a->dir, agent->name);
        zone = c->schedule.timezone ? mem_strdup(c->schedule.timezone) : timezone_system_name();
        names = tool_names(agent->raw,
                           &(struct offer){ strcmp(sandbox.kind, "none") != 0,
                                            takes_files(c, chat->adapter), custom[0] != '\0' });
        from = (struct prompt_source){ .agent = agent->name,
                                       .system = json_str(agent->raw, "system", NULL),
                                       .tools = names,
                                       .custom_tools = custom,
                                       .sandbox = &sandbox,
                                       .adapter = chat->adapter,
                                       .channel = chat->channel,
                                       .timezone = zone,
                                       .people = chat->people,
                                       .people_count = (size_t)chat->count,
                                       .view = view };
        if (chat->last) {
                from.platform = chat->last->platform;
                from.channel_name = chat->last->chat_name;
                from.chat = chat->last->chat;
        }
        prompt_build(&prompt, &from);
        print_prompt(a, &prompt, agent->name);
        prompt_release(&prompt);
        workspace_view_free(view);
        release_sandbox(&sandbox);
        free(zone);
        free(names);
        free(custom);
        return 0;
}

int prompt_command(struct args *a)
{
        const char *name = args_operand(a, "CHANNEL"),
                   *channel = name ? args_channel(a, name) : NULL;
        const struct agent_conf *agent;
        struct prompt_chat chat = { .channel = channel };
        struct config *c = NULL;
        struct error err = { 0 };
        char *adapter;
        int rc = -1;

        if (!channel || args_end(a) < 0)
                return CLI_USAGE;
        adapter = mem_strndup(name, (size_t)(channel - name - 1));
        chat.adapter = adapter;
        if (config_load(a->dir, &c, &err) == 0) {
                agent = find_agent(c, args_value(a, "agent"), &err);
                /* without a database there is no journal: the prompt says less */
                if (agent && local_store_read(a->dir, read_chat, &chat, &err) < 0 &&
                    err.kind != ERR_MISSING)
                        agent = NULL;
                if (agent)
                        rc = build(a, c, agent, &chat, &err);
        }
        prompt_people_release(chat.people, (size_t)chat.count);
        incoming_free(chat.last);
        config_free(c);
        free(adapter);
        return rc < 0 ? command_failed(a, &err) : CLI_OK;
}
