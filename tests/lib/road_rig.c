#include "road_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "patience.h"
#include "road/road_state.h"
#include "rows/meta_row.h"
#include "rows/schema.h"
#include "scratch.h"

#define QUIET_MS 10 /* more than the retry delay that rig_new_in sets */

/* ---- dispatch ---- */

/* Messages that join a turn are not counted. */
static bool admit(struct rig *g, const struct placement_query *query, struct decision *out)
{
        enum placement placement = query->ask(query->arg, out);

        if (placement == PLACEMENT_REFUSED)
                return false;
        if (!g->counts_turns || placement == PLACEMENT_JOINS_TURN)
                return true;
        if (g->turns_left > 0) {
                g->turns_left--;
                return true;
        }
        out->reason = "too many turns";
        out->notice = g->notice;
        return false;
}

static void decide(struct dispatch *ctx, const struct incoming *in,
                   const struct placement_query *query, struct decision *out)
{
        struct rig *g = (struct rig *)ctx;

        if (g->real.decide) {
                g->real.decide(g->real.dispatch, in, query, out);
                return;
        }
        out->agent = in->guild;
        out->rule = "test";
        out->debounce_ms = g->debounce_ms;
        out->debounce_max_ms = g->debounce_max_ms;
        out->trigger =
                (strcmp(in->type, EVENT_MESSAGE_RECEIVED) == 0 || incoming_is_scheduled(in)) &&
                strncmp(in->text, "skip", 4) != 0;
        if (!out->trigger)
                out->reason = "the test says so";
        out->policy = g->policy;
        if (g->decides)
                g->decides(g, in, out);
        out->trigger = out->trigger && admit(g, query, out);
}

static int write_ending(struct store_tx *tx, void *arg, struct error *err)
{
        return meta_row_put_new(tx, arg, "ended", err);
}

static void on_ending_stored(void *arg, const struct error *err)
{
        (void)err;
        free(arg);
}

static void ending(struct dispatch *ctx, const struct turn_run *run,
                   const struct turn_outcome *outcome, struct tx_extra *also)
{
        struct rig *g = (struct rig *)ctx;

        g->endings++;
        if (g->real.ending) {
                g->real.ending(g->real.dispatch, run, outcome, also);
                return;
        }
        *also = (struct tx_extra){ write_ending, on_ending_stored, mem_strdup(run->key) };
}

static void ended(struct dispatch *ctx, const struct turn_run *run,
                  const struct turn_outcome *outcome)
{
        struct rig *g = (struct rig *)ctx;

        g->ended++;
        if (g->real.ended)
                g->real.ended(g->real.dispatch, run, outcome);
        g->outcome = *outcome;
        snprintf(g->outcome_thread, sizeof(g->outcome_thread), "%s",
                 outcome->thread ? outcome->thread : "");
        g->outcome.thread = outcome->thread ? g->outcome_thread : NULL;
}

/* ---- agents ---- */

static unsigned agent_abilities(struct agents *ctx, const char *agent)
{
        (void)ctx;
        if (strcmp(agent, "echo") == 0)
                return AGENT_REPEATABLE;
        if (strcmp(agent, "batch") == 0)
                return AGENT_REPEATABLE | AGENT_BATCHES | AGENT_HISTORY;
        if (strcmp(agent, "steps") == 0)
                return AGENT_RECOVERS | AGENT_STEERS | AGENT_BATCHES;
        return 0;
}

static void on_auto_answer(void *arg)
{
        struct rig_run *r = arg;
        char text[300];
        struct turn_reply reply = { .text = text };
        struct turn_run *run = r->run;

        if (!run)
                return;
        r->run = NULL;
        snprintf(text, sizeof(text), "re:%s", r->text);
        turn_finish(run, &reply);
}

static void agent_start(struct agents *ctx, struct turn_run *run)
{
        struct rig *g = (struct rig *)ctx;
        struct rig_run *r = &g->runs[g->run_count++ % RIG_MAX];

        if (g->starts) {
                g->starts(g, run);
                return;
        }
        *r = (struct rig_run){ .run = run, .attempt = run->attempt };
        for (unsigned i = 0; i < run->input_count; i++) {
                size_t n = strlen(r->text);

                snprintf(r->text + n, sizeof(r->text) - n, "%s%s", i ? "+" : "",
                         run->inputs[i]->text);
        }
        run->agent_data = r;
        if (g->auto_answer)
                loop_defer(g->loop, on_auto_answer, r);
}

static void agent_cancel(struct agents *ctx, struct turn_run *run)
{
        struct rig *g = (struct rig *)ctx;
        struct rig_run *r = run->agent_data;

        if (g->cancels) {
                g->cancels(g, run);
                return;
        }
        r->run = NULL;
        r->cancelled = true;
}

static void agent_waiting(struct agents *ctx, struct turn_run *run)
{
        struct rig *g = (struct rig *)ctx;

        g->waitings++;
        if (g->waits)
                g->waits(g, run);
}

static bool agent_answer(struct agents *ctx, struct turn_run *run, const struct turn_reply *reply)
{
        agent_cancel(ctx, run);
        turn_finish(run, reply);
        return true;
}

static bool agent_late_replies(struct agents *ctx, const char *agent, struct late_reply_policy *out)
{
        (void)agent;
        *out = ((struct rig *)ctx)->late_replies;
        return out->max_replies > 0;
}

/* ---- adapters ---- */

static unsigned adapter_abilities(struct adapters *ctx, const char *adapter)
{
        (void)ctx;
        if (strcmp(adapter, "j") == 0)
                return ADAPTER_JOURNALED;
        if (strcmp(adapter, "nonce") == 0)
                return ADAPTER_IDEMPOTENT | ADAPTER_EDITS | ADAPTER_BUTTONS;
        if (strcmp(adapter, "form") == 0)
                return ADAPTER_BUTTONS | ADAPTER_FORMS;
        if (strcmp(adapter, "look") == 0)
                return ADAPTER_READBACK;
        if (strcmp(adapter, "sketch") == 0)
                return ADAPTER_READBACK | ADAPTER_EDITS | ADAPTER_STREAMS;
        if (strcmp(adapter, "grow") == 0)
                return ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_TYPING | ADAPTER_THREADS;
        if (strcmp(adapter, "work") == 0)
                return ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_THREADS | ADAPTER_APPENDS |
                       ADAPTER_DETAILS;
        if (strcmp(adapter, "react") == 0)
                return ADAPTER_EDITS | ADAPTER_REACTIONS | ADAPTER_THREADS | ADAPTER_TYPING |
                       ADAPTER_CHANNEL_HISTORY;
        if (strcmp(adapter, "cards") == 0)
                return ADAPTER_IDEMPOTENT | ADAPTER_EDITS | ADAPTER_BUTTONS | ADAPTER_THREADS |
                       ADAPTER_CARDS;
        if (strcmp(adapter, "tools") == 0)
                return ADAPTER_IDEMPOTENT | ADAPTER_FILES;
        if (strcmp(adapter, "hush") == 0)
                return ADAPTER_TYPING | ADAPTER_THREADS;
        if (strcmp(adapter, "whisper") == 0)
                return ADAPTER_EPHEMERAL;
        if (strcmp(adapter, "plans") == 0)
                return ADAPTER_IDEMPOTENT | ADAPTER_CALENDAR | ADAPTER_OPENS_DIRECT;
        return ADAPTER_EDITS;
}

static const char *prefix_of_commands(struct adapters *ctx, const char *adapter)
{
        (void)ctx;
        return strcmp(adapter, "named") == 0 ? "/dragoman " : NULL;
}

/* Typing of "hush" shows only in threads. */
static bool shows_typing(struct adapters *ctx, const char *adapter, const char *channel,
                         const char *thread)
{
        (void)ctx;
        (void)channel;
        return strcmp(adapter, "hush") != 0 || thread;
}

static int64_t upload_max(struct adapters *ctx, const char *adapter)
{
        (void)ctx;
        return strcmp(adapter, "tools") == 0 ? 1000 : 0;
}

static const struct road_tool *tool_at(struct adapters *ctx, const char *adapter, size_t i)
{
        static const char chat[] = "{\"properties\":{\"channel_id\":{\"type\":\"string\"}},"
                                   "\"required\":[\"channel_id\"],\"additionalProperties\":false}";
        static const struct road_tool tools[] = {
                { "test_send", "Sends a message, for a test.", chat, "channel_id", .writes = true },
                { "test_read", "Reads the messages, for a test.", chat, "channel_id" },
                { "test_dm", "Sends a direct message, for a test.", "{}", .everywhere = true },
        };

        (void)ctx;
        return strcmp(adapter, "tools") == 0 && i < COUNT(tools) ? &tools[i] : NULL;
}

struct tool_answer {
        struct rig *rig;
        platform_tool_fn *done;
        void *arg;
};

static void on_tool_due(void *arg)
{
        struct tool_answer *a = arg;

        if (a->rig->tool_error.kind != ERR_NONE)
                a->done(a->arg, NULL, &a->rig->tool_error);
        else
                a->done(a->arg, "{\"ok\":true}", NULL);
        free(a);
}

static void call_tool(struct adapters *ctx, const char *adapter, const char *tool,
                      const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        struct rig *g = (struct rig *)ctx;
        struct tool_answer *a = mem_zalloc(sizeof(*a));
        char *arguments = json_text(q->arguments);

        (void)adapter;
        *a = (struct tool_answer){ g, done, arg };
        g->tool_calls++;
        snprintf(g->tool_name, sizeof(g->tool_name), "%s", tool);
        snprintf(g->tool_arguments, sizeof(g->tool_arguments), "%s", arguments);
        snprintf(g->tool_key, sizeof(g->tool_key), "%s", q->request_key ? q->request_key : "");
        free(arguments);
        loop_defer(g->loop, on_tool_due, a);
}

static bool adapter_is_ready(struct adapters *ctx, const char *adapter)
{
        struct rig *g = (struct rig *)ctx;
        bool ready = !g->adapters_down && !(g->down && strcmp(g->down, adapter) == 0);

        g->unready += !ready;
        return ready;
}

static void adapter_limits(struct adapters *ctx, const char *adapter, struct pace_limits *out)
{
        (void)adapter;
        *out = ((struct rig *)ctx)->pace;
}

static bool channel_is_group(struct adapters *ctx, const char *adapter, const char *channel)
{
        (void)ctx;
        (void)adapter;
        (void)channel;
        return false;
}

static int render(struct adapters *ctx, const char *adapter, const char *text, bool caption,
                  struct rendered *out, struct error *err)
{
        char *copy = mem_strdup(text), *rest = copy, *part;

        (void)ctx;
        (void)adapter;
        (void)caption;
        (void)err;
        while ((part = strsep(&rest, "|"))) {
                out->parts = mem_realloc(out->parts, (out->count + 1) * sizeof(*out->parts));
                out->parts[out->count++] = (struct rendered_part){ .text = mem_strdup(part) };
        }
        free(copy);
        return 0;
}

struct threads_answer {
        enum chat_threads threads;
        struct error error;
        chat_threads_fn *done;
        void *arg;
};

static void on_threads_due(void *arg)
{
        struct threads_answer *a = arg;

        a->done(a->arg, a->threads, a->error.kind ? &a->error : NULL);
        free(a);
}

static void ask_threads(struct adapters *ctx, const char *adapter, const char *channel,
                        chat_threads_fn *done, void *arg)
{
        struct rig *g = (struct rig *)ctx;
        struct threads_answer *a = mem_alloc(sizeof(*a));

        (void)adapter;
        (void)channel;
        *a = (struct threads_answer){ .threads = g->threads, .done = done, .arg = arg };
        g->threads_asked++;
        if (g->threads_error)
                error_set(&a->error, g->threads_error, "the test says so");
        loop_defer(g->loop, on_threads_due, a);
}

/* "TEXT/TITLE" */
static int render_card(struct adapters *ctx, const char *adapter, const char *text,
                       const struct card *card, struct rendered *out, struct error *err)
{
        (void)ctx;
        (void)adapter;
        (void)err;
        out->parts = mem_array(1, sizeof(*out->parts));
        out->parts[out->count++].text = mem_printf("%s/%s", text ? text : "", card->title);
        return 0;
}

struct auto_send {
        struct rig *rig;
        unsigned sent;
};

static void on_auto_send(void *arg)
{
        struct auto_send *a = arg;

        rig_result(a->rig, a->sent, SEND_DONE, ERR_NONE, -1);
        free(a);
}

static void record_send(struct rig *g, const struct delivery *d, bool reconcile)
{
        struct rig_sent *s = &g->sent[g->sent_count++ % RIG_MAX];
        json_t *payload = json_read(d->payload, strlen(d->payload), NULL);
        char *buttons;

        *s = (struct rig_sent){ .delivery = d->id,
                                .fence = d->fence,
                                .read_seq = d->read_seq,
                                .reconcile = reconcile };
        snprintf(s->read_from, sizeof(s->read_from), "%s", d->read_from ? d->read_from : "");
        snprintf(s->adapter, sizeof(s->adapter), "%s", d->adapter);
        snprintf(s->channel, sizeof(s->channel), "%s", d->channel);
        snprintf(s->kind, sizeof(s->kind), "%s", delivery_kind_name(d->kind));
        snprintf(s->target, sizeof(s->target), "%s", d->target ? d->target : "");
        snprintf(s->text, sizeof(s->text), "%s", json_str(payload, "text", ""));
        snprintf(s->thread, sizeof(s->thread), "%s", d->thread ? d->thread : "");
        snprintf(s->message, sizeof(s->message), "%s", json_str(payload, "messageId", ""));
        snprintf(s->emoji, sizeof(s->emoji), "%s", json_str(payload, "emoji", ""));
        snprintf(s->name, sizeof(s->name), "%s", json_str(payload, "name", ""));
        snprintf(s->reply_to, sizeof(s->reply_to), "%s", json_str(payload, "replyTo", ""));
        snprintf(s->title, sizeof(s->title), "%s",
                 json_str(json_object_get(payload, "card"), "title", ""));
        s->silent = json_flag(payload, "silent", false);
        buttons = json_object_get(payload, "buttons")
                          ? json_text(json_object_get(payload, "buttons"))
                          : NULL;
        snprintf(s->buttons, sizeof(s->buttons), "%s", buttons ? buttons : "");
        free(buttons);
        json_decref(payload);
        if (g->auto_send) {
                struct auto_send *a = mem_zalloc(sizeof(*a));

                a->rig = g;
                a->sent = g->sent_count - 1;
                loop_defer(g->loop, on_auto_send, a);
        }
}

static void send_hook(struct adapters *ctx, const struct delivery *d)
{
        record_send((struct rig *)ctx, d, false);
}

static void reconcile_hook(struct adapters *ctx, const struct delivery *d)
{
        record_send((struct rig *)ctx, d, true);
}

/* What is known before a send: how many there were; with "nonce" also what was known before. */
static void read_from_hook(struct adapters *ctx, const struct delivery *d, char *out, size_t size)
{
        bool adds = d->read_from && strcmp(d->adapter, "nonce") == 0;

        snprintf(out, size, "%s%safter %u", adds ? d->read_from : "", adds ? ", " : "",
                 ((struct rig *)ctx)->sent_count);
}

static enum unsure_policy when_unsure(struct adapters *ctx, const char *adapter,
                                      const struct setting_list **admins)
{
        static char admin[] = "admin";
        static char *items[] = { admin };
        static const struct setting_list list = { .items = items, .count = 1 };

        (void)adapter;
        *admins = &list;
        return ((struct rig *)ctx)->asks_admins ? UNSURE_ASK : UNSURE_REPORT;
}

void rig_send_history(struct rig *g)
{
        struct channel_message lines[COUNT(g->history)] = { 0 };
        struct error err;
        channel_history_fn *done = g->history_done;

        if (!done)
                return;
        g->history_done = NULL;
        if (g->history_fails) {
                error_set(&err, ERR_NET, "the platform is away");
                done(g->history_arg, NULL, 0, &err);
                return;
        }
        for (unsigned i = 0; i < g->history_count; i++)
                lines[i] = (struct channel_message){ .id = g->history[i].id,
                                                     .sender_id = g->history[i].sender,
                                                     .sender_name = g->history[i].name,
                                                     .is_own = g->history[i].own,
                                                     .text = g->history[i].text,
                                                     .time_ms = 1000 + i };
        done(g->history_arg, lines, g->history_count, NULL);
}

static void on_history_due(void *arg)
{
        rig_send_history(arg);
}

static void fetch_history(struct adapters *ctx, const char *adapter, const char *channel,
                          const char *thread, unsigned limit, channel_history_fn *done, void *arg)
{
        struct rig *g = (struct rig *)ctx;

        (void)adapter;
        (void)channel;
        (void)thread;
        (void)limit;
        g->history_fetches++;
        g->history_done = done;
        g->history_arg = arg;
        if (!g->history_hangs)
                loop_defer(g->loop, on_history_due, g);
}

static void on_message_due(void *arg)
{
        struct rig *g = arg;
        const struct channel_message m = { .sender_name = "Eve",
                                           .text = g->message_text,
                                           .is_own = g->message_is_own };
        channel_history_fn *done = g->message_done;
        struct error err = { 0 };

        g->message_done = NULL;
        if (!g->message_text)
                error_set(&err, g->message_is_gone ? ERR_MISSING : ERR_NET, "no answer");
        if (done)
                done(g->message_arg, &m, g->message_text ? 1 : 0, g->message_text ? NULL : &err);
}

static void fetch_message(struct adapters *ctx, const char *adapter, const char *channel,
                          const char *thread, const char *id, channel_history_fn *done, void *arg)
{
        struct rig *g = (struct rig *)ctx;

        (void)adapter;
        (void)channel;
        (void)thread;
        (void)id;
        g->message_fetches++;
        g->message_done = done;
        g->message_arg = arg;
        if (!g->message_hangs)
                loop_defer(g->loop, on_message_due, g);
}

void rig_send_message(struct rig *g)
{
        on_message_due(g);
}

static struct held_files *hold_files(struct adapters *ctx, const struct incoming *in,
                                     files_ready_fn *done, void *arg)
{
        struct rig *g = (struct rig *)ctx;
        struct rig_held *h = &g->held[g->held_count++ % COUNT(g->held)];

        *h = (struct rig_held){ .done = done, .arg = arg };
        snprintf(h->source, sizeof(h->source), "%s", in->attachments[0].source);
        h->item = (struct attachment){ .kind = "document", .source = h->source };
        h->base.items = &h->item;
        h->base.count = 1;
        return &h->base;
}

void rig_file(struct rig *g, unsigned i, const char *path, const char *why)
{
        struct rig_held *h = &g->held[i];

        assert_false(h->released || h->base.ready);
        h->item.path = path;
        h->item.error = why;
        h->base.ready = true;
        h->done(h->arg);
}

static void stop_files(struct held_files *held, const char *why)
{
        struct rig_held *h = (struct rig_held *)held;

        snprintf(h->why, sizeof(h->why), "%s", why);
        h->item.error = h->why;
        held->ready = true;
}

static void release_files(struct held_files *held)
{
        struct rig_held *h = (struct rig_held *)held;

        assert_false(h->released);
        h->released = true;
}

static const char *thread_at(struct adapters *ctx, const struct incoming *in)
{
        static char id[64];

        snprintf(id, sizeof(id), "t-%s", in->id);
        return ((struct rig *)ctx)->no_thread || in->thread || in->chat != CHAT_GROUP ? NULL : id;
}

/* ---- opening and closing ---- */

static void open_all(struct rig *g)
{
        struct store_options store = { .url = "sqlite", .dir = g->dir, .migrations = schema_steps };
        struct bus_options bus = { .url = "local" };
        struct road_env env = {
                .loop = g->loop,
                .dispatch = { .dispatch = (struct dispatch *)g,
                              .decide = decide,
                              .ending = ending,
                              .ended = ended },
                .agents = { .agents = (struct agents *)g,
                            .abilities = agent_abilities,
                            .start = agent_start,
                            .cancel = agent_cancel,
                            .waiting = agent_waiting,
                            .answer = agent_answer,
                            .late_replies = agent_late_replies },
                .platforms = { .adapters = (struct adapters *)g,
                               .abilities = adapter_abilities,
                               .ready = adapter_is_ready,
                               .limits = adapter_limits,
                               .channel_is_group = channel_is_group,
                               .render = render,
                               .render_card = render_card,
                               .threads = ask_threads,
                               .send = send_hook,
                               .reconcile = reconcile_hook,
                               .read_from = read_from_hook,
                               .when_unsure = when_unsure,
                               .channel_history = fetch_history,
                               .message = fetch_message,
                               .hold_files = hold_files,
                               .stop_files = stop_files,
                               .release_files = release_files,
                               .thread_at = thread_at,
                               .tool_at = tool_at,
                               .call_tool = call_tool,
                               .upload_max = upload_max,
                               .command_prefix = prefix_of_commands,
                               .shows_typing = shows_typing },
        };
        struct error err = { 0 };

        g->store = store_open(g->loop, &store, &err);
        if (!g->store)
                fail_msg("store: %s", err.text);
        g->bus = bus_open(g->loop, g->store, &bus, &err);
        if (!g->bus)
                fail_msg("bus: %s", err.text);
        env.store = g->store;
        env.bus = g->bus;
        g->road = road_open(&env, &g->limits, &err);
        if (!g->road)
                fail_msg("road: %s", err.text);
}

static void close_all(struct rig *g)
{
        road_close(g->road);
        bus_close(g->bus);
        store_close(g->store);
}

static void default_limits(struct road_limits *limits)
{
        const struct setting *const tables[] = { road_settings, NULL };
        struct error err;
        struct settings_source *src = settings_source_new("defaults", NULL, "{}", 2, &err);

        if (!src ||
            settings_read(src, "limits", settings_source_root(src), tables, NULL, limits, &err) < 0)
                fail_msg("limits: %s", err.text);
        settings_source_free(src);
}

struct rig *rig_new(void)
{
        char *dir = scratch_new();
        struct rig *g = rig_new_in(dir);

        free(dir);
        return g;
}

struct rig *rig_new_in(const char *dir)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        g->dir = mem_strdup(dir);
        default_limits(&g->limits);
        g->limits.retry_base_ms = 1;
        g->limits.retry_cap_ms = 4;
        g->loop = loop_new();
        open_all(g);
        return g;
}

void rig_free(struct rig *g)
{
        close_all(g);
        loop_free(g->loop);
        scratch_free(g->dir);
        free(g);
}

void rig_restart(struct rig *g)
{
        close_all(g);
        for (unsigned i = 0; i < RIG_MAX; i++)
                g->runs[i].run = NULL;
        g->received = g->acks + g->refusals;
        open_all(g);
}

/* ---- events and waiting ---- */

static void on_ack(void *arg, const struct inbox_receipt *receipt)
{
        struct rig *g = arg;

        if (receipt->outcome == INBOX_FAILED) {
                g->refusals++;
                g->last_error = receipt->error;
                return;
        }
        g->acks++;
        if (receipt->outcome == INBOX_DUPLICATE)
                g->duplicates++;
        g->last_event = receipt->event;
        snprintf(g->last_trace, sizeof(g->last_trace), "%s", receipt->trace);
}

void rig_say(struct rig *g, const char *adapter, const char *channel, const char *agent,
             const char *text, const char *key)
{
        struct incoming in = {
                .adapter = adapter, .channel = channel, .guild = agent, .text = text, .key = key
        };

        rig_receive(g, &in);
}

void rig_queue_delivery(struct rig *g)
{
        g->adapters_down = g->auto_answer = true;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until_count(g, "deliveries WHERE state = 'queued'", 1);
        rig_settle(g);
}

void rig_receive(struct rig *g, const struct incoming *given)
{
        struct incoming in = *given;
        char made[32];

        snprintf(made, sizeof(made), "k%u", g->next_key++);
        in.key = in.key ? in.key : made;
        in.id = in.id ? in.id : in.key;
        in.adapter = in.adapter ? in.adapter : "j";
        in.channel = in.channel ? in.channel : "c";
        in.guild = in.guild ? in.guild : "echo";
        in.platform = in.platform ? in.platform : "test";
        if (!in.sender_id && !in.type) {
                in.sender_id = "7";
                in.sender_name = "Ann";
        }
        g->received++;
        inbox_receive(g->road, &in, on_ack, g);
}

static void on_tick(void *arg)
{
        (void)arg;
}

/* Runs the loop until *done; `what` is for the message when it takes too long. */
static void run_until(struct rig *g, bool (*done)(struct rig *, const void *), const void *arg,
                      const char *what)
{
        struct timer *tick = timer_new(g->loop, on_tick, NULL);
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        timer_repeat(tick, 5);
        while (!done(g, arg)) {
                if (clock_mono_ms() > deadline)
                        fail_msg("waited too long for %s", what);
                loop_step(g->loop, true);
        }
        timer_free(tick);
}

struct counter {
        const unsigned *now;
        unsigned n;
};

static bool counter_is_reached(struct rig *g, const void *arg)
{
        const struct counter *c = arg;

        (void)g;
        return *c->now >= c->n;
}

void rig_until(struct rig *g, const unsigned *counter, unsigned n)
{
        run_until(g, counter_is_reached, &(struct counter){ counter, n }, "a counter");
}

static bool is_idle(struct rig *g, const void *arg)
{
        struct road_stats s;

        (void)arg;
        road_stats(g->road, &s);
        return s.events_waiting + s.turns_queued + s.turns_running + s.deliveries_open == 0 &&
               g->acks > 0 && g->acks + g->refusals >= g->received &&
               rig_count(g, "journal WHERE key IS NOT NULL AND seq >"
                            " (SELECT coalesce(max(seq), 0) FROM cursors"
                            " WHERE name = 'dispatch')") == 0;
}

void rig_until_idle(struct rig *g)
{
        loop_step(g->loop, false);
        run_until(g, is_idle, NULL, "the road to be idle");
}

/* Counters that change with any activity of the road. */
struct activity {
        unsigned counters[7];
        struct road_stats road;
};

static struct activity activity(struct rig *g)
{
        struct activity a;

        memset(&a, 0, sizeof(a)); /* compared as bytes */
        a.counters[0] = g->acks;
        a.counters[1] = g->refusals;
        a.counters[2] = g->run_count;
        a.counters[3] = g->sent_count;
        a.counters[4] = g->endings;
        a.counters[5] = g->ended;
        a.counters[6] = g->history_fetches;
        road_stats(g->road, &a.road);
        return a;
}

void rig_settle(struct rig *g)
{
        struct timer *tick = timer_new(g->loop, on_tick, NULL);
        int64_t deadline = clock_mono_ms() + PATIENCE_MS, quiet_since = clock_mono_ms();
        struct activity before = activity(g), now;

        timer_repeat(tick, 2);
        while (clock_mono_ms() - quiet_since < QUIET_MS) {
                if (clock_mono_ms() > deadline)
                        fail_msg("waited too long for the road to settle");
                loop_step(g->loop, true);
                now = activity(g);
                if (g->road->writes > 0 || g->acks + g->refusals < g->received ||
                    memcmp(&now, &before, sizeof(now)) != 0)
                        quiet_since = clock_mono_ms();
                before = now;
        }
        timer_free(tick);
}

void rig_run_for(struct rig *g, int64_t ms)
{
        struct timer *tick = timer_new(g->loop, on_tick, NULL);
        int64_t until = clock_mono_ms() + ms;

        timer_repeat(tick, 5);
        while (clock_mono_ms() < until)
                loop_step(g->loop, true);
        timer_free(tick);
}

void rig_answer(struct rig *g, unsigned run, const char *text)
{
        struct turn_reply reply = { .text = text };
        struct turn_run *r = g->runs[run].run;

        assert_non_null(r);
        g->runs[run].run = NULL;
        turn_finish(r, &reply);
}

void rig_fail(struct rig *g, unsigned run, enum error_kind kind, const char *notice)
{
        struct turn_reply reply = { .kind = kind,
                                    .text = notice,
                                    .error = "the test made it fail" };
        struct turn_run *r = g->runs[run].run;

        assert_non_null(r);
        g->runs[run].run = NULL;
        turn_finish(r, &reply);
}

void rig_result(struct rig *g, unsigned sent, enum send_outcome outcome, enum error_kind kind,
                int64_t retry_after_ms)
{
        struct rig_sent *s = &g->sent[sent % RIG_MAX];
        char id[32];
        struct send_result result = {
                .outcome = outcome,
                .platform_id = outcome == SEND_DONE ? id : NULL,
                .kind = kind,
                .why = kind ? "the test says so" : NULL,
                .retry_after_ms = retry_after_ms,
        };

        snprintf(id, sizeof(id), "p%lld", (long long)s->delivery);
        s->answered = true;
        delivery_result(g->road, s->delivery, s->fence, &result);
}

/* ---- rows ---- */

struct wanted {
        const char *sql;
        int64_t count;
};

static bool count_is_reached(struct rig *g, const void *arg)
{
        const struct wanted *w = arg;

        return rows_sql_number(g->store, w->sql) >= w->count;
}

void rig_sql_until(struct rig *g, const char *sql, int64_t count)
{
        run_until(g, count_is_reached, &(struct wanted){ sql, count }, sql);
}
