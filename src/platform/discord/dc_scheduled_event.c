#include "platform/discord/dc_scheduled_event.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/discord/dc_id.h"
#include "road/calendar_sync.h"

/* generous: Discord permits 100, 1000 and 100 */
#define TITLE_MAX       300
#define DESCRIPTION_MAX 4000
#define PLACE_MAX       300

enum { STATUS_SCHEDULED = 1, STATUS_ACTIVE = 2, STATUS_COMPLETED = 3, STATUS_CANCELLED = 4 };

static const char *id_of(const json_t *object, const char *key)
{
        const char *id = json_str(object, key, NULL);

        return dc_id_valid(id) ? id : NULL;
}

bool dc_scheduled_event_is_open(const json_t *event)
{
        int64_t status = json_int(event, "status", STATUS_SCHEDULED);

        return status == STATUS_SCHEDULED || status == STATUS_ACTIVE;
}

/* NULL: it names no guild, and is ignored. */
static struct incoming *add_events(struct dc_event_reader *r, const json_t *d, size_t n)
{
        struct intake_content *content = r->content;
        const char *guild = id_of(d, "guild_id");

        if (!guild) {
                content->ignored = "names no server";
                return NULL;
        }
        content->events = arena_alloc(&content->arena, n * sizeof(*content->events));
        content->event_count = n;
        for (size_t i = 0; i < n; i++)
                content->events[i] = (struct incoming){
                        .type = EVENT_CALENDAR,
                        .channel = arena_printf(&content->arena, DC_GUILD "%s", guild),
                        .chat = CHAT_GROUP,
                        .chat_name = arena_strdup(&content->arena,
                                                  dc_cache_guild_name(r->context->cache, guild)),
                        .guild = guild
                };
        return content->events;
}

static void ignore(struct dc_event_reader *r, const char *why)
{
        r->content->ignored = why;
        r->content->event_count = 0;
}

static void set_metadata(struct dc_event_reader *r, struct incoming *in,
                         const struct calendar_sync *s)
{
        struct buf text;

        buf_init(&text, 0);
        calendar_sync_write(s, &text);
        in->metadata = arena_strdup(&r->content->arena, text.data);
        buf_release(&text);
}

static const char *cut(struct dc_event_reader *r, const char *text, size_t most)
{
        size_t n = text ? utf8_prefix(text, strlen(text), UTF8_CODE_POINTS, most) : 0;

        return n > 0 ? arena_printf(&r->content->arena, "%.*s", (int)n, text) : NULL;
}

/* Where it is: a text, or a channel of the guild. */
static const char *place_of(struct dc_event_reader *r, const json_t *d)
{
        const char *place = json_str(json_object_get(d, "entity_metadata"), "location", NULL);
        struct dc_channel_info info = { .type = -1 };

        if (place)
                return strcmp(place, DC_PLACE_UNKNOWN) == 0 ? NULL : cut(r, place, PLACE_MAX);
        dc_cache_channel(r->context->cache, id_of(d, "channel_id"), &info);
        return info.name ? arena_printf(&r->content->arena, "#%s", info.name) : NULL;
}

static bool read_time(const json_t *d, const char *key, int64_t *ms)
{
        const char *text = json_str(d, key, NULL);

        *ms = 0;
        return text && clock_parse_iso(text, ms) == 0 && *ms > 0;
}

/* The whole event. False: it lacks what an event needs. */
static bool read_put(struct dc_event_reader *r, const json_t *d, struct calendar_sync *s)
{
        static const char *const states[] = { [STATUS_SCHEDULED] = "scheduled",
                                              [STATUS_ACTIVE] = "active",
                                              [STATUS_COMPLETED] = "completed" };
        int64_t status = json_int(d, "status", STATUS_SCHEDULED);
        const char *creator = json_str(d, "creator_id", NULL);

        *s = (struct calendar_sync){
                .op = status == STATUS_CANCELLED ? CALENDAR_DELETE : CALENDAR_PUT,
                .guild = id_of(d, "guild_id"),
                .event = id_of(d, "id"),
                .by_us = creator && r->context->self && strcmp(creator, r->context->self) == 0,
        };
        if (!s->event || !s->guild)
                return false;
        if (s->op == CALENDAR_DELETE)
                return true;
        s->title = cut(r, json_str(d, "name", NULL), TITLE_MAX);
        s->description = cut(r, json_str(d, "description", NULL), DESCRIPTION_MAX);
        s->place = place_of(r, d);
        s->state = status >= STATUS_SCHEDULED && status <= STATUS_COMPLETED ? states[status] : NULL;
        s->recurs = json_is_object(json_object_get(d, "recurrence_rule"));
        read_time(d, "scheduled_end_time", &s->ends_ms);
        return read_time(d, "scheduled_start_time", &s->starts_ms) && s->title;
}

static const char *key_of(struct dc_event_reader *r, const char *id, const char *what)
{
        const struct dc_dispatch *e = r->dispatch;

        return arena_printf(&r->content->arena, "scheduled:%s:%s%s:%" PRId64, id, what,
                            e->session ? e->session : "", e->seq);
}

static void set_sender(struct incoming *in, const json_t *user, const char *nick)
{
        in->sender_id = id_of(user, "id");
        in->sender_username = json_str(user, "username", NULL);
        in->sender_name = nick ? nick : json_str(user, "global_name", in->sender_username);
        in->sender_is_bot = json_flag(user, "bot", false);
}

void dc_scheduled_event_read(struct dc_event_reader *r, json_t *d)
{
        const char *type = r->dispatch->type;
        bool created = strcmp(type, "GUILD_SCHEDULED_EVENT_CREATE") == 0,
             deleted = strcmp(type, "GUILD_SCHEDULED_EVENT_DELETE") == 0;
        struct calendar_sync s;
        struct incoming *in;

        if (!read_put(r, d, &s) && !(deleted && s.event && s.guild)) {
                ignore(r, "a scheduled event without id, name or time");
                return;
        }
        in = add_events(r, d, 1);
        if (!in)
                return;
        in->id = s.event;
        if (created || deleted) /* once in its life */
                in->key = arena_printf(&r->content->arena, "scheduled:%s:%s", s.event,
                                       created ? "create" : "delete");
        else
                in->key = key_of(r, s.event, "");
        if (created) {
                set_sender(in, json_object_get(d, "creator"), NULL);
                in->sender_id = id_of(d, "creator_id");
                in->is_own = s.by_us; /* its delivery says so */
                in->time_ms = dc_id_time_ms(s.event);
        }
        if (deleted)
                s = (struct calendar_sync){
                        .op = CALENDAR_DELETE, .guild = s.guild, .event = s.event, .by_us = s.by_us
                };
        set_metadata(r, in, &s);
}

void dc_scheduled_event_read_interest(struct dc_event_reader *r, json_t *d)
{
        bool joins = strcmp(r->dispatch->type, "GUILD_SCHEDULED_EVENT_USER_ADD") == 0;
        const json_t *member = json_object_get(d, "member");
        struct calendar_sync s = { .op = joins ? CALENDAR_JOIN : CALENDAR_LEAVE,
                                   .guild = id_of(d, "guild_id"),
                                   .event = id_of(d, "guild_scheduled_event_id"),
                                   .user_id = id_of(d, "user_id") };
        struct incoming *in = s.event && s.user_id ? add_events(r, d, 1) : NULL;

        if (!in) {
                ignore(r, "names no scheduled event or person");
                return;
        }
        in->id = s.event;
        in->key = key_of(r, s.event,
                         arena_printf(&r->content->arena, "%s:%c:", s.user_id, joins ? '+' : '-'));
        set_sender(in, json_object_get(member, "user"), json_str(member, "nick", NULL));
        in->sender_id = s.user_id; /* all there is if they left the server */
        in->is_own = r->context->self && strcmp(s.user_id, r->context->self) == 0;
        s.user_name = in->sender_name;
        set_metadata(r, in, &s);
}

json_t *dc_scheduled_event_list_of(const json_t *guild)
{
        json_t *events = json_object_get(guild, "guild_scheduled_events");
        const char *id = id_of(guild, "id");

        if (!id || !json_is_array(events))
                return NULL;
        return json_pack("{s:s, s:O}", "guild_id", id, "guild_scheduled_events", events);
}

/* Each event, then the list of them: what is missing there is gone. */
void dc_scheduled_event_read_list(struct dc_event_reader *r, json_t *d)
{
        const json_t *list = json_object_get(d, "guild_scheduled_events"), *event;
        size_t n = json_array_size(list), i;
        bool whole = n <= DC_EVENTS_MAX;
        struct intake_content *content = r->content;
        struct incoming *in = add_events(r, d, (whole ? n : DC_EVENTS_MAX) + 1);
        struct calendar_sync s;
        struct buf ids;

        if (!in)
                return;
        content->event_count = 0;
        buf_init(&ids, 0);
        jsonw_open(&ids, '{');
        jsonw_str(&ids, "op", "list");
        jsonw_str(&ids, "guildId", in->guild);
        jsonw_open_member(&ids, "events", '[');
        json_array_foreach(list, i, event) {
                if (content->event_count == DC_EVENTS_MAX || !read_put(r, event, &s) ||
                    s.op != CALENDAR_PUT)
                        continue;
                in[content->event_count].id = s.event;
                in[content->event_count].key = key_of(r, s.event, "");
                if (!s.by_us) {
                        set_sender(&in[content->event_count], json_object_get(event, "creator"),
                                   NULL);
                        in[content->event_count].sender_id = id_of(event, "creator_id");
                }
                set_metadata(r, &in[content->event_count++], &s);
                jsonw_str(&ids, NULL, s.event);
        }
        jsonw_close(&ids, ']');
        jsonw_close(&ids, '}');
        if (whole) {
                in[content->event_count].key = key_of(r, in->guild, "list:");
                in[content->event_count++].metadata = arena_strdup(&content->arena, ids.data);
        }
        buf_release(&ids);
        if (content->event_count == 0)
                content->ignored = "lists no event that can be read";
}

void dc_scheduled_event_read_members(struct dc_event_reader *r, json_t *d)
{
        const char *event = id_of(d, "event_id");
        struct incoming *in = event ? add_events(r, d, 1) : NULL;
        char *users = json_text(json_object_get(d, "users"));
        struct buf text;

        if (!event)
                ignore(r, "names no scheduled event");
        if (in) {
                in->id = event;
                in->key = arena_printf(&r->content->arena, "scheduled:%s:members:%s", event,
                                       json_str(d, "stamp", ""));
                buf_init(&text, 0);
                jsonw_open(&text, '{');
                jsonw_str(&text, "op", "members");
                jsonw_str(&text, "guildId", in->guild);
                jsonw_str(&text, "eventId", event);
                jsonw_raw(&text, "users", users);
                jsonw_bool(&text, "complete", json_flag(d, "complete", false));
                jsonw_close(&text, '}');
                in->metadata = arena_strdup(&r->content->arena, text.data);
                buf_release(&text);
        }
        free(users);
}
