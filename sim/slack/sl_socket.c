/*
 * Socket Mode: apps.connections.open gives a ticket, a connection with it gets hello, then
 * envelopes, and sends acks. Payloads go to any one of an app's connections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_route.h"
#include "sim/slack/sl_link.h"

#define MAX_ACK          (1 << 20)
#define POLICY_VIOLATION 1008
#define WARNING_MS       10000
#define DEBUG_LIFE_MS    360000
#define APPROXIMATE_LIFE 18060 /* seconds, as Slack says */
#define TICKET_TEXT_SIZE 33

/* ---- GET /sim/links ---- */

static struct buf *open_entry(const struct slack_link *l, const char *kind)
{
        struct buf *b = journal_open(l->links->world->link_log, kind, 0);

        jsonw_int(b, "link", (int64_t)l->number);
        jsonw_opt(b, "app", l->app ? l->app->id : NULL);
        return b;
}

static void close_entry(const struct slack_link *l)
{
        journal_close(l->links->world->link_log);
}

/* ---- sending ---- */

static void send_json(struct slack_link *l, json_t *frame)
{
        char *text = json_text(frame);

        ws_send(l->ws, text, strlen(text), false);
        free(text);
        json_decref(frame);
}

static void close_link(struct slack_link *l, int code, const char *reason)
{
        if (l->closing)
                return;
        l->closing = true;
        jsonw_int(open_entry(l, "closed"), "code", code);
        close_entry(l);
        ws_close(l->ws, code, reason);
}

void sl_socket_disconnect(struct slack_link *l, const char *reason, int64_t ms)
{
        jsonw_str(open_entry(l, "disconnect"), "reason", reason);
        close_entry(l);
        send_json(l, json_pack("{s:s,s:s,s:{s:s}}", "type", "disconnect", "reason", reason,
                               "debug_info", "host", "applink-sim"));
        if (ms > 0) {
                l->warned = true;
                timer_start(l->life, ms);
        } else {
                close_link(l, 1000, reason);
        }
}

/* The end of its life: a warning first. */
static void on_life(void *arg)
{
        struct slack_link *l = arg;
        int64_t ms = l->life_ms;

        if (l->muted)
                ws_cut(l->ws);
        else if (l->warned)
                sl_socket_disconnect(l, "refresh_requested", 0);
        else
                sl_socket_disconnect(l, "warning", ms < 2 * WARNING_MS ? ms / 2 : WARNING_MS);
}

static void on_ping(void *arg)
{
        struct slack_link *l = arg;

        if (!faults_fire(&l->links->world->base.faults, FAULT_MUTE, "ping"))
                ws_ping(l->ws, "Ping from applink-sim");
}

size_t sl_socket_count(const struct slack_app *a)
{
        const struct slack_link *l;
        size_t count = 0;

        LIST_FOREACH(l, &a->world->links->list, next) {
                count += l->app == a && l->greeted && !l->closing;
        }
        return count;
}

/* One after the other. */
static struct slack_link *choose(const struct slack_app *a)
{
        struct slack_links *links = a->world->links;
        size_t count = sl_socket_count(a), at = count ? links->turn++ % count : 0;
        struct slack_link *l;

        LIST_FOREACH(l, &links->list, next) {
                if (l->app == a && l->greeted && !l->closing && at-- == 0)
                        return l;
        }
        return NULL;
}

bool sl_socket_send(struct slack_delivery *d)
{
        static const char *const types[] = { "events_api", "interactive", "slash_commands" };
        struct slack_link *l = choose(d->app);
        json_t *frame;

        if (!l)
                return false;
        frame = json_pack("{s:s,s:O,s:s,s:b}", "envelope_id", sl_push_envelope(d), "payload",
                          d->payload, "type", types[d->kind], "accepts_response_payload",
                          d->kind != SLACK_EVENT);
        if (d->kind == SLACK_EVENT) {
                json_object_set_new(frame, "retry_attempt", json_integer(d->attempt));
                json_object_set_new(frame, "retry_reason", json_string(d->reason));
        }
        d->link = l;
        if (d->world->base.record_calls) {
                sl_push_entry(d, "sent");
                close_entry(l);
        }
        sl_push_sent(d);
        send_json(l, frame);
        return true;
}

/* ---- receiving ---- */

static void on_ack(struct slack_link *l, const json_t *frame)
{
        struct slack_world *w = l->links->world;
        struct slack_delivery *d =
                map_get(&l->links->envelopes, json_str(frame, "envelope_id", ""));
        const json_t *response = json_object_get(frame, "payload");

        if (!json_str(frame, "envelope_id", NULL)) {
                jsonw_str(open_entry(l, "bad_frame"), "why", "no envelope_id");
                close_entry(l);
                return;
        }
        if (d && d->kind == SLACK_EVENT && json_object_size(response) > 0) {
                jsonw_str(open_entry(l, "bad_frame"), "why", "events take no response payload");
                close_entry(l);
        }
        if (!d || d->state != SLACK_SENT) { /* late, or twice */
                jsonw_opt(open_entry(l, "late_ack"), "envelope_id",
                          json_str(frame, "envelope_id", NULL));
                close_entry(l);
        }
        if (!d || faults_fire(&w->base.faults, FAULT_DROP, "ack"))
                return;
        sl_push_acked(d, json_object_size(response) > 0 ? response : NULL);
}

static void on_message(void *owner, const char *bytes, size_t n, bool binary)
{
        struct slack_link *l = owner;
        json_t *frame = binary ? NULL : json_read(bytes, n, NULL);

        if (faults_fire(&l->links->world->base.faults, FAULT_CUT_BEFORE, "ack")) {
                ws_cut(l->ws);
        } else if (json_is_object(frame)) {
                on_ack(l, frame);
        } else {
                jsonw_str(open_entry(l, "bad_frame"), "why", "no JSON object");
                close_entry(l);
        }
        json_decref(frame);
}

/* ---- connections ---- */

char *sl_push_ticket(struct slack_links *links, const char *app_id)
{
        struct slack_app *a = sl_app_find(links->world, app_id);
        char ticket[TICKET_TEXT_SIZE];

        id_random_text(ticket, sizeof(ticket) - 1);
        map_put(&links->tickets, ticket, a);
        return mem_printf("%s/link/?ticket=%s&app_id=%s", links->url ? links->url : "", ticket,
                          app_id);
}

/* Redeems the ticket of the address; the app is NULL if it is not valid. */
static void read_target(struct slack_link *l, const char *target, bool *debug)
{
        const char *at = strchr(target, '?');
        char *query = at ? mem_strdup(at + 1) : NULL;
        struct http_pair *pairs = NULL;
        size_t count = 0;

        if (query)
                http_route_parse_query(query, &pairs, &count);
        for (size_t i = 0; i < count; i++) {
                if (strcmp(pairs[i].name, "ticket") == 0)
                        l->app = map_remove(&l->links->tickets, pairs[i].value);
                else if (strcmp(pairs[i].name, "debug_reconnects") == 0)
                        *debug = strcmp(pairs[i].value, "true") == 0;
        }
        free(pairs);
        free(query);
}

static void greet(struct slack_link *l)
{
        struct slack_world *w = l->links->world;
        int64_t life_ms = l->life_ms;

        if (faults_fire(&w->base.faults, FAULT_MUTE, "hello"))
                return;
        l->greeted = true;
        jsonw_int(open_entry(l, "hello"), "connections", (int64_t)sl_socket_count(l->app));
        close_entry(l);
        send_json(l, json_pack("{s:s,s:I,s:{s:s,s:s,s:i,s:I},s:{s:s}}", "type", "hello",
                               "num_connections", (json_int_t)sl_socket_count(l->app), "debug_info",
                               "host", "applink-sim", "started", "2026-01-01 00:00:00.000",
                               "build_number", 1, "approximate_connection_time",
                               (json_int_t)(life_ms ? life_ms / 1000 : APPROXIMATE_LIFE),
                               "connection_info", "app_id", l->app->id));
        timer_repeat(l->ping, w->settings.ping_ms);
        if (faults_fire(&w->base.faults, FAULT_CLOSE, "hello"))
                sl_socket_disconnect(l, "refresh_requested", 0);
        else if (life_ms > 0)
                timer_start(l->life, life_ms > 2 * WARNING_MS ? life_ms - WARNING_MS : life_ms / 2);
}

static void on_open(void *arg, struct ws *ws, const char *target)
{
        struct slack_links *links = arg;
        struct slack_world *w = links->world;
        struct slack_link *l = mem_zalloc(sizeof(*l));
        const struct fault *fault;
        bool debug = false;

        l->links = links;
        l->ws = ws;
        l->number = ++links->link_count;
        l->ping = timer_new(w->base.loop, on_ping, l);
        l->life = timer_new(w->base.loop, on_life, l);
        LIST_INSERT_HEAD(&links->list, l, next);
        ws_set_owner(ws, l);
        read_target(l, target, &debug);
        l->life_ms = w->settings.connection_ms;
        if (debug && !l->life_ms)
                l->life_ms = DEBUG_LIFE_MS;
        open_entry(l, "connect");
        close_entry(l);
        if ((fault = faults_fire(&w->base.faults, FAULT_CLOSE, "connect")))
                close_link(l, fault->code, "");
        else if (!l->app)
                close_link(l, POLICY_VIOLATION, "invalid ticket");
        else if (l->app->socket_off || l->app->request_url)
                sl_socket_disconnect(l, "link_disabled", 0);
        else if ((int64_t)sl_socket_count(l->app) >= w->settings.max_connections)
                sl_socket_disconnect(l, "too_many_websockets", 0);
        else
                greet(l);
}

static void on_gone(void *owner, int code)
{
        struct slack_link *l = owner;
        struct slack_delivery *d;

        jsonw_int(open_entry(l, "gone"), "code", code);
        close_entry(l);
        TAILQ_FOREACH(d, &l->links->deliveries, next) {
                if (d->link == l)
                        d->link = NULL; /* Slack waits for the ack all the same */
        }
        LIST_REMOVE(l, next);
        timer_free(l->ping);
        timer_free(l->life);
        free(l);
}

int sl_push_listen(struct slack_links *links, const struct ws_options *o, struct error *err)
{
        static const struct ws_hooks hooks = { on_open, on_message, on_gone };
        struct ws_options options = *o;

        options.max_message = MAX_ACK;
        links->server = ws_server_new(links->world->base.loop, &options, &hooks, links, err);
        if (!links->server)
                return -1;
        links->url = mem_printf("%s://%s", o->tls_cert_file ? "wss" : "ws",
                                ws_server_address(links->server));
        return 0;
}

void sl_socket_release(struct slack_links *links)
{
        ws_server_free(links->server);
        free(links->url);
}
