#include "api/compat/chat_bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "rows/journal_row.h"
#include "store/store.h"

/* ---- resolving adapter, chat and agent ---- */

struct adapter *chat_bridge_adapter(struct http_exchange *x, const char *name)
{
        struct adapter *a = adapters_find(api_of(x)->env.adapters, name);

        if (!a) {
                reply_missing(x, "instance", name);
                return NULL;
        }
        if (strcmp(a->ops->name, "api") != 0 && strcmp(a->ops->name, "cli") != 0) {
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"not_fed_here\"",
                            "instance '%s' gets its messages from %s; only adapters of type api or "
                            "cli take messages here",
                            name, a->ops->name);
                return NULL;
        }
        if (!a->common->enabled) {
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"switched_off\"",
                            "instance '%s' is switched off: its 'enabled' is false", name);
                return NULL;
        }
        return a;
}

struct adapter_choice {
        struct adapters *adapters;
        const struct key *caller;
        struct adapter *found;
};

static void consider_api(void *arg, struct adapter *a)
{
        struct adapter_choice *c = arg;

        if (strcmp(a->ops->name, "api") == 0 && a->common->enabled &&
            key_reaches(c->caller, a->name) && (!c->found || strcmp(a->name, "api") == 0))
                c->found = a;
}

struct adapter *chat_bridge_choose(struct http_exchange *x)
{
        const char *name = http_header(x, "X-Dragoman-Instance");
        struct adapter_choice c = { api_of(x)->env.adapters, caller_of(x), NULL };

        if (name)
                return request_reaches(x, name) ? chat_bridge_adapter(x, name) : NULL;
        adapters_each(c.adapters, consider_api, &c);
        if (!c.found)
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"no_instance\"",
                            "there is no adapter of type api that this key reaches");
        return c.found;
}

static void consider_journaled(void *arg, struct adapter *a)
{
        struct adapter_choice *c = arg;

        if (!c->found && a->common->enabled && key_reaches(c->caller, a->name) && a->ops->trusted &&
            (adapters_abilities(c->adapters, a->name) & ADAPTER_JOURNALED))
                c->found = a;
}

struct adapter *chat_bridge_choose_journaled(struct http_exchange *x)
{
        struct adapter_choice c = { api_of(x)->env.adapters, caller_of(x), NULL };

        adapters_each(c.adapters, consider_journaled, &c);
        if (!c.found)
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"no_instance\"",
                            "there is no adapter of type cli, or api without callbackUrl, that "
                            "this key reaches");
        return c.found;
}

/* As made by a2a_chats: "a2a:3:agent:...". */
bool chat_bridge_is_owned(const char *chat)
{
        return strncmp(chat, "a2a:", 4) == 0;
}

bool chat_bridge_chat(struct http_exchange *x, const char *named, const char **chat)
{
        const char *header = http_header(x, "X-Dragoman-Chat");
        size_t n = header ? strlen(header) : 1;

        *chat = header ? header : named;
        if (n < 1 || n > CHAT_BRIDGE_CHAT_MAX)
                reply_error(x, 400, "VALIDATION_ERROR", NULL,
                            "X-Dragoman-Chat must have 1 to %d bytes", CHAT_BRIDGE_CHAT_MAX);
        else if (*chat && chat_bridge_is_owned(*chat))
                reply_error(x, 400, "VALIDATION_ERROR", NULL,
                            "the name of a conversation must not begin with 'a2a:'");
        else
                return true;
        return false;
}

bool chat_bridge_agent(struct http_exchange *x, const char **name)
{
        if (strcmp(*name, CHAT_BRIDGE_BY_RULES) == 0)
                *name = NULL;
        return !*name || agents_has(api_of(x)->env.agents, *name);
}

struct agent_choice {
        struct adapter_choice base;
        const struct dispatch *dispatch;
        const char *agent;
};

static void consider_choosing(void *arg, struct adapter *a)
{
        struct agent_choice *c = arg;

        if (key_reaches(c->base.caller, a->name) &&
            dispatch_may_choose(c->dispatch, a->name, c->agent))
                c->base.found = a;
}

bool chat_bridge_may_ask(struct http_exchange *x, const struct adapter *a, const char *agent)
{
        struct agent_choice c = { { api_of(x)->env.adapters, caller_of(x), NULL },
                                  api_of(x)->env.dispatch,
                                  agent };
        int listed = agent ? key_asks(caller_of(x), agent) : 1;

        if (listed >= 0)
                return listed;
        if (a)
                return dispatch_may_choose(c.dispatch, a->name, agent);
        adapters_each(c.base.adapters, consider_choosing, &c);
        return c.base.found;
}

bool chat_bridge_check_agent(struct http_exchange *x, const struct adapter *a, const char *agent)
{
        if (chat_bridge_may_ask(x, a, agent))
                return true;
        reply_error(x, 403, "FORBIDDEN", NULL,
                    caller_of(x)->agents
                            ? "agent '%.100s' is not among the agents of this key"
                            : "agent '%.100s' is not one that instance '%.100s' or its rules can "
                              "choose, and this key has no agents of its own",
                    agent, a->name);
        return false;
}

/* ---- building the text ---- */

static void add_line(struct buf *out, const struct chat_bridge_line *l, bool with_role)
{
        static const char *const roles[] = { [CHAT_BRIDGE_SYSTEM] = "system",
                                             [CHAT_BRIDGE_USER] = "user",
                                             [CHAT_BRIDGE_AGENT] = "assistant" };

        if (out->len > 0)
                buf_addstr(out, "\n\n");
        if (with_role)
                buf_addf(out, "%s%s%s: ", roles[l->role], l->name ? " " : "",
                         l->name ? l->name : "");
        else if (l->name)
                buf_addf(out, "%s: ", l->name);
        buf_addstr(out, l->text);
}

bool chat_bridge_text(const struct chat_bridge_line *lines, size_t count, bool whole,
                      struct buf *out)
{
        size_t from = whole ? 0 : count, users = 0;

        if (count == 0 || lines[count - 1].role != CHAT_BRIDGE_USER)
                return false;
        /* new lines follow the agent's last one */
        while (from > 0 && lines[from - 1].role != CHAT_BRIDGE_AGENT)
                from--;
        if (count - from == 1) {
                buf_addstr(out, lines[from].text);
                return true;
        }
        for (size_t i = from; i < count; i++)
                users += lines[i].role == CHAT_BRIDGE_USER;
        for (size_t i = from; i < count; i++) {
                if (!whole && lines[i].role != CHAT_BRIDGE_USER)
                        continue;
                if (!whole && users == 1)
                        buf_addstr(out, lines[i].text);
                else
                        add_line(out, &lines[i], whole);
        }
        return true;
}

/* As made by chat_bridge_submit: "openai:3:...". */
bool chat_bridge_is_key(const char *external_id)
{
        static const char *const protocols[] = { "openai:", "agent-chat:", "a2a:" };

        for (size_t i = 0; i < COUNT(protocols); i++)
                if (strncmp(external_id, protocols[i], strlen(protocols[i])) == 0)
                        return true;
        return false;
}

/* ---- storing ---- */

/* A message with the client's key: a stored one with the same key must be equal. */
struct keyed_message {
        inbox_ack_fn *ack;
        void *arg;
        struct store *store;
        char asked[SHA256_HEX_SIZE];
        int64_t event; /* the stored one */
        char trace[ID_TRACE_SIZE];
        bool differs; /* result */
};

/* What makes two messages the same. */
static void add_parts(struct buf *whole, const char *agent, const char *channel, const char *text)
{
        buf_addf(whole, "%s\n%s\n%s", agent ? agent : "", channel, text ? text : "");
}

static void add_file(struct buf *whole, const char *name, const char *url, const char *source)
{
        buf_addf(whole, "\n%s\n%s\n%s", name ? name : "", url ? url : "", source ? source : "");
}

static void digest_incoming(const struct incoming *in, char out[SHA256_HEX_SIZE])
{
        struct buf whole;

        buf_init(&whole, 0);
        add_parts(&whole, in->agent, in->channel, in->text);
        for (size_t i = 0; i < in->attachment_count; i++)
                add_file(&whole, in->attachments[i].name, in->attachments[i].url,
                         in->attachments[i].source);
        crypto_sha256_hex(whole.data, whole.len, out);
        buf_release(&whole);
}

static void digest_stored(const char *channel, const json_t *payload, char out[SHA256_HEX_SIZE])
{
        const json_t *file;
        struct buf whole;
        size_t i;

        buf_init(&whole, 0);
        add_parts(&whole, json_str(payload, "agent", NULL), channel,
                  json_str(payload, "text", NULL));
        json_array_foreach(json_object_get(payload, "attachments"), i, file)
                add_file(&whole, json_str(file, "name", NULL), json_str(file, "url", NULL),
                         json_str(file, "source", NULL));
        crypto_sha256_hex(whole.data, whole.len, out);
        buf_release(&whole);
}

static int compare(struct store_tx *tx, void *arg, struct error *err)
{
        struct keyed_message *m = arg;
        char stored[SHA256_HEX_SIZE];
        struct journal_row *e;
        json_t *payload;
        int rc = journal_row_get(tx, m->event, &e, err);

        m->differs = false; /* a pruned one cannot be compared */
        if (rc != 1)
                return rc;
        if (strcmp(e->payload, "{}") != 0) {
                payload = json_loads(e->payload, 0, NULL);
                digest_stored(e->channel, payload, stored);
                m->differs = strcmp(stored, m->asked) != 0;
                json_decref(payload);
        }
        free(e);
        return 0;
}

static void on_compared(void *arg, const struct error *err)
{
        struct keyed_message *m = arg;
        struct inbox_receipt r = { .outcome = INBOX_DUPLICATE,
                                   .event = m->event,
                                   .trace = m->trace };

        if (err || m->differs)
                r.outcome = INBOX_FAILED;
        if (err)
                r.error = *err;
        else if (m->differs)
                error_set(&r.error, ERR_CONFLICT, "this id was already used for another message");
        m->ack(m->arg, &r);
        free(m);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct keyed_message *m = arg;

        if (r->outcome != INBOX_DUPLICATE) {
                m->ack(m->arg, r);
                free(m);
                return;
        }
        m->event = r->event;
        snprintf(m->trace, sizeof(m->trace), "%s", r->trace);
        store_read(m->store, compare, on_compared, m);
}

void chat_bridge_receive(struct api *api, struct adapter *a, struct incoming *in, inbox_ack_fn *ack,
                         void *arg)
{
        struct keyed_message *m = mem_zalloc(sizeof(*m));

        m->ack = ack;
        m->arg = arg;
        m->store = api->env.store;
        digest_incoming(in, m->asked);
        adapter_received(a, in, on_receipt, m);
}

const char *chat_bridge_caller(int64_t key, char out[CHAT_BRIDGE_CALLER_SIZE])
{
        if (key > 0)
                snprintf(out, CHAT_BRIDGE_CALLER_SIZE, "key-%lld", (long long)key);
        else
                snprintf(out, CHAT_BRIDGE_CALLER_SIZE, INCOMING_OPERATOR);
        return out;
}

void chat_bridge_submit(struct api *api, struct adapter *a, const struct chat_bridge_ask *ask,
                        inbox_ack_fn *ack, void *arg)
{
        char random[ID_TRACE_SIZE], caller[CHAT_BRIDGE_CALLER_SIZE];
        char *key = ask->external_id ? mem_printf("%s:%lld:%s", ask->protocol,
                                                  (long long)ask->caller, ask->external_id)
                                     : mem_printf("%s-%s", ask->protocol, id_trace(random));
        struct incoming in = {
                .key = key,
                .id = key,
                .channel = ask->conversation ? ask->conversation : key,
                .chat = CHAT_DM,
                .sender_id = ask->sender,
                .agent = ask->agent,
                .caller = chat_bridge_caller(ask->caller, caller),
                .traceparent = ask->traceparent,
                .attachments = ask->attachments,
                .attachment_count = ask->attachment_count,
        };
        struct buf text;

        buf_init(&text, 0);
        chat_bridge_text(ask->lines, ask->line_count, !ask->conversation, &text);
        in.text = text.data;
        if (ask->external_id)
                chat_bridge_receive(api, a, &in, ack, arg);
        else
                adapter_received(a, &in, ack, arg);
        free(key);
        buf_release(&text);
}
