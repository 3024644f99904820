/*
 * Deliveries of the calendar as calls of Discord's REST API.
 *
 * Changes and deletions may be repeated. A creation may not: if an earlier attempt may have
 * arrived, the server's events are listed first, and one of ours with the same content that is not
 * older than that attempt is the one.
 *
 * The gateway reports our own changes, too, perhaps before the answer, and does not say whose they
 * are. What was written is remembered for a minute: at first what was asked for, after the answer
 * the whole event, so that a change by a person is never taken for ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/adapter_file.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_scheduled_event.h"
#include "platform/discord/dc_window.h"
#include "platform/discord/discord.h"
#include "road/calendar_sync.h"

#define SEND_MS         20000
#define LOOK_MARGIN_MS  60000 /* clocks differ */
#define TITLE_MAX       100   /* Discord's limits */
#define DESCRIPTION_MAX 1000
#define PLACE_MAX       100
#define CUT             "…"
#define DEFAULT_MS      3600000 /* Discord needs an end */
#define WRITTEN_MS      60000
#define GUILDS_MAX      2000 /* remembered to have events */
#define GUILDS_TABLE    "scheduledEvents"

#define EVENTS_ROUTE    "/guilds/{guild_id}/scheduled-events"
#define EVENT_ROUTE     EVENTS_ROUTE "/{guild_scheduled_event_id}"

struct dc_event_send {
        struct adapter *adapter;
        struct discord *dc;
        int64_t delivery, fence;
        int attempt;
        bool has_window;
        struct dc_window window;
        json_t *payload, *body;
        struct calendar_sync s; /* of the payload */
        char *channel;
        char guild[DC_ID_SIZE]; /* "": not known yet */
        bool creates, looked;
        bool placeless;   /* the event is in a channel of the server */
        uint64_t written; /* what is remembered of it; 0: nothing */
        struct dc_call *call;
        struct timer *later; /* reports `early` */
        struct send_result early;
        char why[300];
        TAILQ_ENTRY(dc_event_send) next;
};

static void proceed(struct dc_event_send *s);

/* ---- what was written ---- */

static struct dc_written *find_written(struct discord *dc, uint64_t number)
{
        for (size_t i = 0; i < DC_WRITTEN_KEPT; i++)
                if (number > 0 && dc->written.items[i].number == number)
                        return &dc->written.items[i];
        return NULL;
}

static void forget(struct dc_written *w)
{
        if (!w)
                return;
        json_decref(w->body);
        *w = (struct dc_written){ 0 };
}

/* body NULL: it is deleted. */
static uint64_t remember(struct discord *dc, const char *event, json_t *body)
{
        struct dc_written *w = &dc->written.items[dc->written.last % DC_WRITTEN_KEPT];

        forget(w);
        w->number = ++dc->written.last;
        snprintf(w->event, sizeof(w->event), "%s", event);
        w->body = json_incref(body);
        w->boot_ms = clock_boot_ms();
        return w->number;
}

static const char *const compared[] = {
        "name",   "description", "entity_metadata", "scheduled_start_time", "scheduled_end_time",
        "status", "channel_id",  "image",           "recurrence_rule"
};

static bool is_same_value(const json_t *a, const json_t *b)
{
        const char *x = json_string_value(a), *y = json_string_value(b);
        int64_t a_ms, b_ms;

        if (json_is_object(a) && json_is_object(b)) /* entity_metadata */
                return strcmp(json_str(a, "location", ""), json_str(b, "location", "")) == 0;
        if (!x || !y)
                return json_equal(a ? a : json_null(), b ? b : json_null());
        if (strcmp(x, y) == 0)
                return true;
        return clock_parse_iso(x, &a_ms) == 0 && clock_parse_iso(y, &b_ms) == 0 &&
               a_ms / 1000 == b_ms / 1000; /* Discord shows seconds */
}

/* Is what the body says true of the event? */
static bool agrees(const json_t *body, const json_t *event)
{
        for (size_t i = 0; i < COUNT(compared); i++) {
                const json_t *said = json_object_get(body, compared[i]);

                if (said && !is_same_value(said, json_object_get(event, compared[i])))
                        return false;
        }
        return true;
}

bool dc_scheduled_event_wrote(void *discord, const char *type, const json_t *event)
{
        struct discord *dc = discord;
        bool deleted = strcmp(type, "GUILD_SCHEDULED_EVENT_DELETE") == 0;
        const char *id = json_str(event, "id", "");
        uint64_t found = 0;

        if (!deleted && strcmp(type, "GUILD_SCHEDULED_EVENT_UPDATE") != 0)
                return false;
        for (size_t i = 0; i < DC_WRITTEN_KEPT; i++) {
                const struct dc_written *w = &dc->written.items[i];

                if (w->number > found && strcmp(w->event, id) == 0 &&
                    clock_boot_ms() - w->boot_ms < WRITTEN_MS &&
                    (deleted ? !w->body : w->body && agrees(w->body, event)))
                        found = w->number;
        }
        for (size_t i = 0; found > 0 && i < DC_WRITTEN_KEPT; i++) { /* reported in order */
                struct dc_written *w = &dc->written.items[i];

                if (w->number > 0 && w->number <= found && strcmp(w->event, id) == 0)
                        forget(w);
        }
        return found > 0;
}

/* ---- guilds with events ---- */

void dc_scheduled_event_set_guild(void *discord, const char *guild, bool any)
{
        struct discord *dc = discord;
        const char *known = adapter_file_get(dc->saved, GUILDS_TABLE, guild);

        if (!any && !known)
                return;
        if (!known && json_object_size(json_object_get(dc->saved, GUILDS_TABLE)) >= GUILDS_MAX)
                return;
        adapter_file_set(dc->adapter, dc->saved, GUILDS_TABLE, guild, any ? "yes" : "no");
}

bool dc_scheduled_event_had(void *discord, const char *guild)
{
        const struct discord *dc = discord;
        const char *known = adapter_file_get(dc->saved, GUILDS_TABLE, guild);

        return known && strcmp(known, "yes") == 0;
}

/* ---- the end of a delivery ---- */

static void end(struct dc_event_send *s, const struct send_result *result)
{
        char text[DC_WINDOW_SIZE];

        TAILQ_REMOVE(&s->dc->event_sends, s, next);
        if (result->outcome == SEND_RETRY && s->has_window) { /* this attempt did not arrive */
                s->window.claimed_ms = 0;
                delivery_set_read_from(s->adapter->road, s->delivery, s->fence,
                                       dc_window_write(&s->window, text));
        }
        if (result->outcome == SEND_RETRY || result->outcome == SEND_REJECTED)
                forget(find_written(s->dc, s->written));
        delivery_result(s->adapter->road, s->delivery, s->fence, result);
        timer_free(s->later);
        json_decref(s->payload);
        json_decref(s->body);
        free(s->channel);
        free(s);
}

static void on_later(void *arg)
{
        struct dc_event_send *s = arg;

        end(s, &s->early);
}

static void end_later(struct dc_event_send *s, enum send_outcome outcome, const char *why)
{
        snprintf(s->why, sizeof(s->why), "%s", why);
        s->early = (struct send_result){ .outcome = outcome,
                                         .platform_id = s->s.event,
                                         .kind = outcome == SEND_DONE ? ERR_NONE : ERR_INVALID,
                                         .why = s->why,
                                         .retry_after_ms = -1 };
        s->later = timer_new(s->adapter->loop, on_later, s);
        timer_start(s->later, 0);
}

static void end_done(struct dc_event_send *s, const char *id, const char *why)
{
        if (s->s.op == CALENDAR_PUT)
                dc_scheduled_event_set_guild(s->dc, s->guild, true);
        end(s, &(struct send_result){
                       .outcome = SEND_DONE, .platform_id = id, .why = why, .retry_after_ms = -1 });
}

/* sends: the answer is that to the creation itself. */
static void end_failed(struct dc_event_send *s, const struct dc_answer *a, bool sends)
{
        struct send_result result;
        char why[400];

        dc_outcome_read(DELIVER_CALENDAR, a, &result, why, sizeof(why));
        if (a->code == 50013 || a->code == 50001)
                snprintf(why, sizeof(why),
                         "the bot lacks the permission %s in this server; an admin can give it in "
                         "Server Settings, Roles",
                         s->creates ? "Create Events"
                                    : "Create Events (for events of others: Manage Events)");
        if (sends && s->creates && result.outcome == SEND_RETRY &&
            adapter_http_outcome(a->status, a->reach, false) == SEND_UNSURE)
                result.outcome = SEND_UNSURE;
        end(s, &result);
}

/* ---- the call ---- */

/* As json_string, at most `most` characters. */
static json_t *cut(const char *text, size_t most)
{
        size_t n = strlen(text);
        char *shorter;
        json_t *value;

        if (utf8_length(text, n, UTF8_CODE_POINTS) <= most)
                return json_string(text);
        shorter =
                mem_printf("%.*s" CUT, (int)utf8_prefix(text, n, UTF8_CODE_POINTS, most - 1), text);
        value = json_string(shorter);
        free(shorter);
        return value;
}

static void set_time(json_t *body, const char *key, int64_t ms)
{
        char text[CLOCK_ISO_SIZE];

        json_object_set_new(body, key, json_string(clock_iso(ms, text)));
}

/* Only what the calendar says. */
static json_t *make_body(const struct dc_event_send *s)
{
        const struct calendar_sync *c = &s->s;
        const char *place = c->place && *c->place ? c->place : DC_PLACE_UNKNOWN;
        int64_t ends_ms = c->ends_ms > c->starts_ms ? c->ends_ms : c->starts_ms + DEFAULT_MS;
        json_t *body = json_object();

        if (c->title)
                json_object_set_new(body, "name", cut(c->title, TITLE_MAX));
        if (c->description && *c->description)
                json_object_set_new(body, "description", cut(c->description, DESCRIPTION_MAX));
        else if (c->description && !s->creates)
                json_object_set_new(body, "description", json_null());
        if ((c->place || s->creates) && !s->placeless)
                json_object_set_new(body, "entity_metadata",
                                    json_pack("{s:o}", "location", cut(place, PLACE_MAX)));
        /* Discord refuses a begin in the past, also that of an event under way */
        if (c->starts_ms > dc_rest_now_ms(s->dc->rest))
                set_time(body, "scheduled_start_time", c->starts_ms);
        if (c->ends_ms > 0 || s->creates)
                set_time(body, "scheduled_end_time", s->creates ? ends_ms : c->ends_ms);
        if (s->creates) {
                json_object_set_new(body, "privacy_level", json_integer(2)); /* of the server */
                json_object_set_new(body, "entity_type", json_integer(3));   /* anywhere */
        }
        return body;
}

/* The event is in a voice or stage channel: its place is not a text. */
static bool refuses_place(const struct dc_event_send *s, const struct dc_answer *a)
{
        const json_t *errors = json_object_get(a->result, "errors");

        return !s->creates && !s->placeless && a->status == 400 &&
               json_object_get(s->body, "entity_metadata") &&
               (json_object_get(errors, "entity_metadata") ||
                json_object_get(errors, "entity_type") || json_object_get(errors, "channel_id"));
}

static void on_sent(void *arg, const struct dc_answer *a)
{
        struct dc_event_send *s = arg;
        const char *id = s->creates ? json_str(a->result, "id", NULL) : s->s.event;
        struct dc_written *w = find_written(s->dc, s->written);

        s->call = NULL;
        if (a->ok && dc_id_valid(id)) {
                if (w && w->body) { /* from now on only exactly this is ours */
                        json_decref(w->body);
                        w->body = json_incref((json_t *)(uintptr_t)a->result);
                }
                end_done(s, id, "");
        } else if (s->s.op == CALENDAR_DELETE && a->status == 404 && a->code == 10070) {
                end_done(s, id, "it was deleted already");
        } else if (refuses_place(s, a)) {
                forget(w);
                s->placeless = true;
                proceed(s);
        } else {
                end_failed(s, a, true);
        }
}

static void send_call(struct dc_event_send *s)
{
        bool deletes = s->s.op == CALENDAR_DELETE;
        struct dc_request q = { .method = deletes      ? "DELETE"
                                          : s->creates ? "POST"
                                                       : "PATCH",
                                .route = s->creates ? EVENTS_ROUTE : EVENT_ROUTE,
                                .args = { s->guild, s->s.event },
                                .priority = DC_NORMAL,
                                .repeatable = !s->creates,
                                .total_ms = SEND_MS };

        json_decref(s->body);
        s->body = deletes ? NULL : make_body(s);
        q.body = s->body;
        if (!deletes && json_object_size(s->body) == 0) {
                end_later(s, SEND_DONE, "nothing of it changes");
                return;
        }
        if (!s->creates)
                s->written = remember(s->dc, s->s.event, s->body);
        s->call = dc_rest_call(s->dc->rest, &q, on_sent, s);
}

/* ---- an earlier attempt to create it ---- */

/* May one have arrived? */
static bool must_look(const struct dc_event_send *s)
{
        return s->creates && !s->looked && s->attempt > 1 &&
               (!s->has_window || s->window.first_ms > 0);
}

static bool is_this(const struct dc_event_send *s, const json_t *event, const json_t *body)
{
        const char *id = json_str(event, "id", NULL), *creator = json_str(event, "creator_id", "");

        return dc_id_valid(id) && s->dc->self.id && strcmp(creator, s->dc->self.id) == 0 &&
               agrees(body, event) &&
               (!s->has_window || dc_id_time_ms(id) >= s->window.first_ms - LOOK_MARGIN_MS);
}

static void on_listed(void *arg, const struct dc_answer *a)
{
        struct dc_event_send *s = arg;
        json_t *body = make_body(s), *event;
        const char *found = NULL;
        size_t i;

        s->call = NULL;
        json_array_foreach(a->ok ? a->result : NULL, i, event)
                if (is_this(s, event, body))
                        found = json_str(event, "id", NULL);
        json_decref(body);
        if (found) {
                end_done(s, found, "an earlier attempt had arrived");
        } else if (a->ok) {
                s->looked = true;
                proceed(s);
        } else if (dc_rest_is_unavailable(a)) { /* it stays unsure */
                end(s, &(struct send_result){ .outcome = SEND_UNSURE,
                                              .kind = ERR_NET,
                                              .why = a->why,
                                              .retry_after_ms = a->retry_after_ms });
        } else {
                end_failed(s, a, false);
        }
}

/* ---- the server of a channel ---- */

static bool find_guild(struct dc_event_send *s)
{
        struct dc_channel_info info = { .type = -1 };
        size_t n = strlen(DC_GUILD);
        const char *guild = s->s.guild;

        if (!guild && strncmp(s->channel, DC_GUILD, n) == 0)
                guild = s->channel + n;
        if (!guild && s->dc->intake && dc_intake_channel(s->dc->intake, s->channel, &info))
                guild = info.guild;
        if (!dc_id_valid(guild))
                return false;
        snprintf(s->guild, sizeof(s->guild), "%s", guild);
        return true;
}

static void on_channel(void *arg, const struct dc_answer *a)
{
        struct dc_event_send *s = arg;
        const char *guild = json_str(a->result, "guild_id", NULL);

        s->call = NULL;
        if (a->ok && dc_id_valid(guild)) {
                snprintf(s->guild, sizeof(s->guild), "%s", guild);
                proceed(s);
        } else if (a->ok) {
                end_later(s, SEND_REJECTED,
                          "a direct chat has no scheduled events; name a channel of a server");
        } else {
                end_failed(s, a, false);
        }
}

/* ---- a delivery ---- */

/* The next step: find the server, look, send. */
static void proceed(struct dc_event_send *s)
{
        struct dc_request q = { .method = "GET", .priority = DC_NORMAL, .repeatable = true };

        if (s->guild[0] == '\0' && !find_guild(s)) {
                q.route = "/channels/{channel_id}";
                q.args[0] = s->channel;
                s->call = dc_rest_call(s->dc->rest, &q, on_channel, s);
        } else if (must_look(s)) {
                q.route = EVENTS_ROUTE;
                q.args[0] = s->guild;
                s->call = dc_rest_call(s->dc->rest, &q, on_listed, s);
        } else {
                send_call(s);
        }
}

/* NULL: it can be sent. */
static const char *check(const struct dc_event_send *s)
{
        const struct calendar_sync *c = &s->s;

        if (c->op != CALENDAR_PUT && c->op != CALENDAR_DELETE)
                return "a calendar event can be put or deleted";
        if (c->op == CALENDAR_DELETE && !c->event)
                return "a deletion names the event";
        if (c->event && !dc_id_valid(c->event))
                return "the event's id is not one of Discord's";
        if (c->guild && !dc_id_valid(c->guild))
                return "the server's id is not one of Discord's";
        if (!c->guild && !dc_id_valid(s->channel) &&
            strncmp(s->channel, DC_GUILD, strlen(DC_GUILD)) != 0)
                return "the event belongs to no server: name one of its channels";
        if (s->creates && (!c->title || !*c->title || c->starts_ms == 0))
                return "an event needs a title and a time";
        if (s->creates && c->starts_ms <= dc_rest_now_ms(s->dc->rest))
                return "Discord takes only events that begin in the future";
        return NULL;
}

void dc_scheduled_event_send(struct adapter *a, const struct delivery *d)
{
        struct dc_event_send *s = mem_zalloc(sizeof(*s));
        struct error err = { 0 };
        const char *wrong;

        s->adapter = a;
        s->dc = a->self;
        s->delivery = d->id;
        s->fence = d->fence;
        s->attempt = d->attempt;
        s->has_window = dc_window_parse(d->read_from, &s->window);
        s->channel = mem_strdup(d->channel);
        s->payload = json_read(d->payload, strlen(d->payload), NULL);
        TAILQ_INSERT_TAIL(&s->dc->event_sends, s, next);
        if (calendar_sync_read(json_object_get(s->payload, "calendar"), &s->s, &err) < 0) {
                end_later(s, SEND_REJECTED, err.text);
                return;
        }
        s->creates = s->s.op == CALENDAR_PUT && !s->s.event;
        wrong = check(s);
        if (wrong)
                end_later(s, SEND_REJECTED, wrong);
        else
                proceed(s);
}

void dc_scheduled_events_release(struct discord *dc)
{
        struct dc_event_send *s;

        while ((s = TAILQ_FIRST(&dc->event_sends))) {
                bool harmless = s->later || !s->creates || !s->call || !dc_rest_begun(s->call);

                dc_rest_abort(s->call);
                end(s, &(struct send_result){ .outcome = harmless ? SEND_RETRY : SEND_UNSURE,
                                              .kind = ERR_CANCELLED,
                                              .why = "the adapter was stopped",
                                              .retry_after_ms = -1 });
        }
        for (size_t i = 0; i < DC_WRITTEN_KEPT; i++)
                forget(&dc->written.items[i]);
}
