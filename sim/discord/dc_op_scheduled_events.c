#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

#define MAX_EVENTS 100

/* The event of the path; NULL after dc_call_fail. `changes`: the bot must be allowed to. */
static struct scheduled_event *find(struct call *c, bool changes)
{
        struct guild *g = dc_call_guild(c);
        struct scheduled_event *e =
                g ? dc_scheduled_event_find(g, dc_call_id(c, "guild_scheduled_event_id")) : NULL;
        uint64_t needed = e && e->creator == c->bot->user ? MAY_CREATE_EVENTS : MAY_MANAGE_EVENTS;

        if (!g)
                return NULL;
        if (!e) {
                dc_call_fail(c, 404, 10070, "Unknown Guild Scheduled Event");
        } else if (changes && (g->denied & needed)) {
                dc_call_fail(c, 403, 50013, "Missing Permissions");
                e = NULL;
        }
        return e;
}

static void set_text(char **to, const json_t *args, const char *key)
{
        const json_t *value = json_object_get(args, key);

        if (!value)
                return;
        free(*to);
        *to = mem_strdup(json_string_value(value));
}

/* -1 after dc_call_fail. */
static int set_time(struct call *c, int64_t *to, const char *key, bool future)
{
        const json_t *value = json_object_get(c->args, key);
        int64_t ms = 0;

        if (!value)
                return 0;
        if (!json_is_null(value) && clock_parse_iso(json_string_value(value), &ms) != 0)
                return dc_call_invalid(c, key, "DATE_TIME_TYPE_PARSE",
                                       "Could not parse. Should be ISO8601.");
        if (future && ms <= clock_wall_ms())
                return dc_call_invalid(c, key, "GUILD_SCHEDULED_EVENT_SCHEDULE_PAST",
                                       "Cannot schedule event in the past.");
        *to = ms;
        return 0;
}

/* Checks and sets everything but the texts, so that a refused change changes nothing. */
static int check(struct call *c, struct scheduled_event *e)
{
        const json_t *args = c->args, *place = json_object_get(args, "entity_metadata");
        enum event_entity entity = (enum event_entity)json_int(args, "entity_type", e->entity);
        const char *location = json_str(place, "location", NULL);
        uint64_t channel = dc_call_args_id(args, "channel_id");
        int64_t start = e->start_ms, end = e->end_ms, status = json_int(args, "status", e->status);

        if (e->status == EVENT_COMPLETED || e->status == EVENT_CANCELED)
                return dc_call_fail(c, 400, 180000, "Cannot update a finished event");
        if (set_time(c, &start, "scheduled_start_time", true) != 0 ||
            set_time(c, &end, "scheduled_end_time", false) != 0)
                return -1;
        if (entity == ENTITY_EXTERNAL && (!(location || e->location) || (location && !*location)))
                return dc_call_invalid(c, "entity_metadata", "BASE_TYPE_REQUIRED",
                                       "This field is required");
        if (entity != ENTITY_EXTERNAL && location)
                return dc_call_invalid(c, "entity_metadata", "GUILD_SCHEDULED_EVENT_LOCATION",
                                       "Only external events have a location");
        if (entity == ENTITY_EXTERNAL && end == 0)
                return dc_call_invalid(c, "scheduled_end_time", "BASE_TYPE_REQUIRED",
                                       "This field is required");
        if (end != 0 && end <= start)
                return dc_call_invalid(c, "scheduled_end_time",
                                       "GUILD_SCHEDULED_EVENT_END_DATE_BEFORE_START_DATE",
                                       "Cannot schedule event to end before start date");
        e->entity = entity;
        e->channel_id = entity == ENTITY_EXTERNAL ? 0 : channel ? channel : e->channel_id;
        e->start_ms = start;
        e->end_ms = end;
        e->status = (enum event_status)status;
        return 0;
}

static void set_texts(struct call *c, struct scheduled_event *e)
{
        set_text(&e->name, c->args, "name");
        set_text(&e->description, c->args, "description");
        set_text(&e->location, json_object_get(c->args, "entity_metadata"), "location");
}

static void record(const struct call *c, const char *op, const struct scheduled_event *e)
{
        struct buf *b = dc_call_record(c, "scheduled_event", NULL);

        jsonw_str(b, "op", op);
        dc_scheduled_event_render(b, "event", e, true);
        journal_close(c->world->base.sent);
}

static int create(struct call *c)
{
        struct guild *g = dc_call_guild(c);
        struct scheduled_event *e;
        size_t count = 0;

        if (!g)
                return -1;
        for (e = g->events; e; e = e->next)
                count += e->status == EVENT_SCHEDULED || e->status == EVENT_ACTIVE;
        if (g->denied & MAY_CREATE_EVENTS)
                return dc_call_fail(c, 403, 50013, "Missing Permissions");
        if (count >= MAX_EVENTS)
                return dc_call_fail(
                        c, 400, 30038,
                        "Maximum number of uncompleted guild scheduled events reached (100)");
        e = dc_scheduled_event_new(c->world, g, c->bot->user);
        if (check(c, e) != 0) {
                dc_scheduled_event_remove(e);
                return -1;
        }
        set_texts(c, e);
        record(c, "create", e);
        dc_scheduled_event_publish(c->world, e, "CREATE");
        dc_scheduled_event_render(&c->out, NULL, e, false);
        return 0;
}

static int update(struct call *c)
{
        struct scheduled_event *e = find(c, true);

        if (!e || check(c, e) != 0)
                return -1;
        set_texts(c, e);
        record(c, "update", e);
        dc_scheduled_event_publish(c->world, e, "UPDATE");
        dc_scheduled_event_render(&c->out, NULL, e, false);
        return 0;
}

static int delete_event(struct call *c)
{
        struct scheduled_event *e = find(c, true);

        if (!e)
                return -1;
        record(c, "delete", e);
        dc_scheduled_event_publish(c->world, e, "DELETE");
        dc_scheduled_event_remove(e);
        return dc_call_no_content(c);
}

static bool wants_count(const struct call *c)
{
        return strcmp(json_str(c->query, "with_user_count", "false"), "true") == 0;
}

static int get(struct call *c)
{
        const struct scheduled_event *e = find(c, false);

        if (!e)
                return -1;
        dc_scheduled_event_render(&c->out, NULL, e, wants_count(c));
        return 0;
}

static int list(struct call *c)
{
        const struct guild *g = dc_call_guild(c);

        if (!g)
                return -1;
        jsonw_open(&c->out, '[');
        for (const struct scheduled_event *e = g->events; e; e = e->next)
                dc_scheduled_event_render(&c->out, NULL, e, wants_count(c));
        jsonw_close(&c->out, ']');
        return 0;
}

static int by_id(const void *a, const void *b)
{
        const struct user *const *x = a, *const *y = b;

        return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

static int list_users(struct call *c)
{
        struct scheduled_event *e = find(c, false);
        bool with_member = strcmp(json_str(c->query, "with_member", "false"), "true") == 0;
        uint64_t after = dc_call_query_id(c, "after"), before = dc_call_query_id(c, "before");
        int64_t left = dc_call_query_int(c, "limit", 100);

        if (!e)
                return -1;
        qsort(e->users, e->count, sizeof(*e->users), by_id);
        jsonw_open(&c->out, '[');
        for (size_t i = 0; i < e->count && left > 0; i++) {
                const struct user *u = e->users[i];
                const struct member *m = dc_guild_member(e->guild, u->id);

                if (u->id <= after || (before && u->id >= before))
                        continue;
                left--;
                jsonw_open(&c->out, '{');
                dc_render_id(&c->out, "guild_scheduled_event_id", e->id);
                dc_render_id(&c->out, "user_id", u->id);
                dc_render_user(&c->out, "user", u);
                if (with_member && m)
                        dc_render_member(&c->out, "member", m, true);
                jsonw_int(&c->out, "response", 1);
                jsonw_close(&c->out, '}');
        }
        jsonw_close(&c->out, ']');
        return 0;
}

const struct dc_op_row dc_op_scheduled_events[] = {
        { "create_guild_scheduled_event", create },
        { "update_guild_scheduled_event", update },
        { "delete_guild_scheduled_event", delete_event },
        { "get_guild_scheduled_event", get },
        { "list_guild_scheduled_events", list },
        { "list_guild_scheduled_event_users", list_users },
        { 0 },
};
