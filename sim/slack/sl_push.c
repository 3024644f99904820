#include "sim/slack/sl_push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_link.h"
#include "sim/slack/sl_people.h"

static void on_timer(void *arg);

struct slack_links *sl_push_new(struct slack_world *w)
{
        struct slack_links *links = mem_zalloc(sizeof(*links));

        links->world = w;
        LIST_INIT(&links->list);
        TAILQ_INIT(&links->deliveries);
        TAILQ_INIT(&links->probes);
        map_init(&links->tickets);
        map_init(&links->envelopes);
        map_init(&links->posting);
        return links;
}

/* ---- deliveries ---- */

static struct slack_delivery *delivery_new(struct slack_app *a, enum slack_delivery_kind kind,
                                           const char *what, const char *lane, json_t *payload)
{
        struct slack_delivery *d = mem_zalloc(sizeof(*d));

        d->world = a->world;
        d->app = a;
        d->kind = kind;
        d->payload = payload;
        d->reason = "";
        snprintf(d->what, sizeof(d->what), "%s", what);
        snprintf(d->lane, sizeof(d->lane), "%s", lane ? lane : "");
        d->timer = timer_new(a->world->base.loop, on_timer, d);
        TAILQ_INSERT_TAIL(&a->world->links->deliveries, d, next);
        return d;
}

static void delivery_free(struct slack_delivery *d)
{
        struct slack_links *links = d->world->links;

        if (links->held == d)
                links->held = NULL;
        for (int i = 0; i < d->envelope_count; i++)
                map_remove(&links->envelopes, d->envelopes[i]);
        TAILQ_REMOVE(&links->deliveries, d, next);
        sl_post_withdraw(d);
        timer_free(d->timer);
        json_decref(d->payload);
        free(d);
}

void sl_push_forget(struct slack_links *links, const struct slack_app *a)
{
        struct slack_delivery *d, *next;

        for (d = TAILQ_FIRST(&links->deliveries); d; d = next) {
                next = TAILQ_NEXT(d, next);
                if (!a || d->app == a)
                        delivery_free(d);
        }
}

void sl_push_free(struct slack_links *links)
{
        if (!links)
                return;
        sl_push_forget(links, NULL);
        sl_post_release(links);
        sl_socket_release(links);
        map_release(&links->tickets);
        map_release(&links->envelopes);
        map_release(&links->posting);
        free(links);
}

struct buf *sl_push_entry(const struct slack_delivery *d, const char *kind)
{
        static const char *const kinds[] = { "events_api", "interactive", "slash_commands" };
        struct buf *b = journal_open(d->world->link_log, kind, 0);

        jsonw_str(b, "app", d->app->id);
        jsonw_str(b, "type", kinds[d->kind]);
        jsonw_str(b, "what", d->what);
        jsonw_int(b, "attempt", d->attempt);
        jsonw_opt(b, "event_id", json_str(d->payload, "event_id", NULL));
        if (d->link)
                jsonw_int(b, "link", (int64_t)d->link->number);
        return b;
}

const char *sl_push_envelope(struct slack_delivery *d)
{
        char hex[ID_TRACE_SIZE], *out;

        /* the last one's is used again when there are more attempts than retries */
        if (d->envelope_count == COUNT(d->envelopes))
                return d->envelopes[d->envelope_count - 1];
        out = d->envelopes[d->envelope_count++];
        id_trace(hex);
        snprintf(out, SLACK_ENVELOPE_SIZE, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12,
                 hex + 16, hex + 20);
        map_put(&d->world->links->envelopes, out, d);
        return out;
}

/* ---- attempts ---- */

static void enter(struct slack_delivery *d, enum slack_delivery_state state, int64_t ms)
{
        d->state = state;
        if (ms >= 0)
                timer_start(d->timer, ms);
        else
                timer_stop(d->timer);
}

void sl_push_sent(struct slack_delivery *d)
{
        d->sent_ms = clock_mono_ms();
        enter(d, SLACK_SENT, d->world->settings.ack_ms);
}

void sl_push_queued(struct slack_delivery *d)
{
        enter(d, SLACK_QUEUED, -1);
}

void sl_push_posting(struct slack_delivery *d)
{
        d->sent_ms = clock_mono_ms();
        enter(d, SLACK_SENT, -1);
}

static void attempt(struct slack_delivery *d)
{
        struct slack_links *links = d->world->links;
        struct slack_delivery *held = links->held == d ? NULL : links->held;

        if (d->app->disabled)
                sl_push_failed(d, "disabled", true);
        else if (d->app->request_url)
                sl_post(d);
        else if (!sl_socket_send(d))
                sl_push_sent(d); /* to no one: Slack waits for the ack all the same */
        if (held) {
                links->held = NULL;
                attempt(held);
        }
}

static void on_timer(void *arg)
{
        struct slack_delivery *d = arg;

        if (d->state == SLACK_SENT) {
                sl_push_failed(d, "timeout", false);
                return;
        }
        if (d->world->links->held == d)
                d->world->links->held = NULL;
        attempt(d);
}

void sl_push_acked(struct slack_delivery *d, const json_t *response)
{
        if (d->world->base.record_calls) {
                jsonw_int(sl_push_entry(d, "ack"), "ms", clock_mono_ms() - d->sent_ms);
                journal_close(d->world->link_log);
        }
        if (d->again) { /* as when Slack did not see the ack */
                d->again = false;
                d->attempt = 1;
                d->reason = d->app->request_url ? "http_timeout" : "timeout";
                enter(d, SLACK_RETRYING, 0);
                return;
        }
        if (d->kind != SLACK_EVENT)
                sl_people_answered(d->app, d->payload, response);
        delivery_free(d);
}

void sl_push_failed(struct slack_delivery *d, const char *reason, bool final)
{
        const struct slack_settings *s = &d->world->settings;
        const int64_t waits[SLACK_RETRIES] = { s->retry_1_ms, s->retry_2_ms, s->retry_3_ms };

        /* people see an error at once instead */
        final = final || d->kind != SLACK_EVENT || d->attempt == SLACK_RETRIES;
        jsonw_str(sl_push_entry(d, final ? "dropped" : "retry"), "reason", reason);
        journal_close(d->world->link_log);
        if (final) {
                delivery_free(d);
                return;
        }
        d->reason = reason;
        d->link = NULL;
        enter(d, SLACK_RETRYING, waits[d->attempt++]);
}

/* Faults may drop, delay, duplicate or reorder it. */
static void offer(struct slack_delivery *d)
{
        struct slack_links *links = d->world->links;
        struct faults *f = &d->world->base.faults;
        const struct fault *fault;

        if (faults_fire(f, FAULT_DROP, d->what)) {
                delivery_free(d);
                return;
        }
        d->again = faults_fire(f, FAULT_DUPLICATE, d->what) != NULL;
        if ((fault = faults_fire(f, FAULT_SLOW, d->what))) {
                enter(d, SLACK_HELD, fault->ms);
        } else if (!links->held && (fault = faults_fire(f, FAULT_REORDER, d->what))) {
                links->held = d;
                enter(d, SLACK_HELD, fault->ms);
        } else {
                attempt(d);
        }
}

/* ---- events ---- */

/* The conversation an event is about; NULL: none. */
static const char *channel_of(const json_t *event)
{
        const json_t *channel = json_object_get(event, "channel");
        const char *id = json_str(channel, "id", NULL);

        if (json_is_string(channel) || id)
                return id ? id : json_string_value(channel);
        if ((id = json_str(event, "channel_id", NULL)) ||
            (id = json_str(json_object_get(event, "item"), "channel", NULL)))
                return id;
        return json_str(json_object_get(event, "assistant_thread"), "channel_id", NULL);
}

static bool is_concerned(const struct slack_app *a, const json_t *event,
                         const struct slack_channel *c)
{
        const char *type = json_str(event, "type", "");

        if (!c || strcmp(type, "app_mention") == 0)
                return true;
        if (sl_channel_has(c, a->user) || c->app == a ||
            strcmp(json_str(event, "user", ""), a->user->id) == 0)
                return true;
        /* events of public channels themselves reach apps outside of them */
        return c->kind == SLACK_PUBLIC && c->team == a->team && strncmp(type, "channel_", 8) == 0;
}

/* The scope an event needs; "*:read" is that of the conversation's kind. Others need none. */
static const struct {
        const char *event, *scope;
} needs[] = {
        { "app_mention", "app_mentions:read" },
        { "channel_", "channels:read" },
        { "file_", "files:read" },
        { "group_", "groups:read" },
        { "member_", "*:read" },
        { "message", "*:history" },
        { "pin_", "pins:read" },
        { "reaction_", "reactions:read" },
        { "team_", "users:read" },
        { "user_", "users:read" },
};

static bool has_scope(const struct slack_app *a, const char *type, const struct slack_channel *c)
{
        static const char *const kinds[] = { [SLACK_PUBLIC] = "channels",
                                             [SLACK_PRIVATE] = "groups",
                                             [SLACK_IM] = "im",
                                             [SLACK_MPIM] = "mpim" };
        char scope[32];

        for (size_t i = 0; i < COUNT(needs); i++) {
                if (strncmp(type, needs[i].event, strlen(needs[i].event)) != 0)
                        continue;
                if (needs[i].scope[0] != '*')
                        return sl_app_has_scope(a, needs[i].scope);
                snprintf(scope, sizeof(scope), "%s%s", kinds[c ? c->kind : SLACK_PUBLIC],
                         needs[i].scope + 1);
                return sl_app_has_scope(a, scope);
        }
        return true;
}

/* As in the manifest: "message.channels", or the event's type. */
static bool is_subscribed(const struct slack_app *a, const json_t *event,
                          const struct slack_channel *c)
{
        static const char *const names[] = { [SLACK_PUBLIC] = "message.channels",
                                             [SLACK_PRIVATE] = "message.groups",
                                             [SLACK_IM] = "message.im",
                                             [SLACK_MPIM] = "message.mpim" };
        const char *type = json_str(event, "type", "");

        if (!has_scope(a, type, c))
                return false;
        if (strcmp(type, "message") == 0 && c && sl_app_subscribes(a, names[c->kind]))
                return true;
        return sl_app_subscribes(a, type);
}

/* The event with what Slack puts around it. */
static json_t *wrap(struct slack_app *a, json_t *event, const struct slack_channel *c)
{
        struct slack_links *links = a->world->links;
        char id[24];

        snprintf(id, sizeof(id), "Ev0SIM%06llu", (unsigned long long)++links->event_count);
        return json_pack("{s:s,s:s,s:s,s:n,s:s,s:O,s:s,s:s,s:I,s:[{s:n,s:s,s:s,s:b,s:b}],s:b,s:s}",
                         "token", SL_PUSH_TOKEN, "team_id", a->team->id, "context_team_id",
                         a->team->id, "context_enterprise_id", "api_app_id", a->id, "event", event,
                         "type", "event_callback", "event_id", id, "event_time",
                         (json_int_t)(clock_wall_ms() / 1000), "authorizations", "enterprise_id",
                         "team_id", a->team->id, "user_id", a->user->id, "is_bot", 1,
                         "is_enterprise_install", 0, "is_ext_shared_channel", c && c->shared,
                         "event_context", "4-simulated");
}

static void stamp(json_t *event)
{
        int64_t now = clock_wall_ms();
        char ts[2 * SL_TS_SIZE];

        if (json_object_get(event, "event_ts"))
                return;
        snprintf(ts, sizeof(ts), "%lld.%06lld", (long long)(now / 1000),
                 (long long)(now % 1000) * 1000);
        json_object_set_new(event, "event_ts", json_string(ts));
}

static void push(struct slack_app *a, json_t *event, const struct slack_channel *c)
{
        offer(delivery_new(a, SLACK_EVENT, json_str(event, "type", ""), c ? c->id : NULL,
                           wrap(a, event, c)));
}

unsigned sl_push_event(struct slack_world *w, json_t *event)
{
        const struct slack_channel *c = sl_channel_find(w, channel_of(event));
        char *only = mem_strdup(json_str(event, "app", NULL));
        unsigned count = 0;

        json_object_del(event, "app");
        stamp(event);
        for (struct slack_app *a = w->apps; a; a = a->next) {
                if ((only && strcmp(a->id, only) != 0) || a->token_error ||
                    !is_concerned(a, event, c) || !is_subscribed(a, event, c))
                        continue;
                push(a, event, c);
                count++;
        }
        free(only);
        json_decref(event);
        return count;
}

void sl_push_to(struct slack_app *a, json_t *event)
{
        stamp(event);
        push(a, event, sl_channel_find(a->world, channel_of(event)));
        json_decref(event);
}

void sl_push_raw(struct slack_app *a, enum slack_delivery_kind kind, json_t *payload)
{
        offer(delivery_new(a, kind, json_str(payload, "type", ""), NULL, payload));
}

/* ---- interactions ---- */

static unsigned push_to_app(struct slack_world *w, enum slack_delivery_kind kind, const char *what,
                            json_t *payload)
{
        struct slack_app *a = sl_app_find(w, json_str(payload, "api_app_id", NULL));

        if (!a || a->token_error) {
                json_decref(payload);
                return 0;
        }
        offer(delivery_new(a, kind, what, NULL, payload));
        return 1;
}

unsigned sl_push_interactive(struct slack_world *w, json_t *payload)
{
        return push_to_app(w, SLACK_INTERACTIVE, json_str(payload, "type", ""), payload);
}

unsigned sl_push_command(struct slack_world *w, json_t *payload)
{
        return push_to_app(w, SLACK_COMMAND, json_str(payload, "command", ""), payload);
}
