/* What people do with scheduled events. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_people.h"

#define HOUR_MS 3600000

static const struct {
        const char *name;
        enum event_status status;
} statuses[] = {
        { "scheduled", EVENT_SCHEDULED },
        { "active", EVENT_ACTIVE },
        { "completed", EVENT_COMPLETED },
        { "canceled", EVENT_CANCELED },
};

/* "event_id" in any guild, by id or name. NULL with an error. */
static struct scheduled_event *find(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *text = dc_people_text(request, "event_id", room);
        struct scheduled_event *e = NULL;

        for (const struct guild *g = w->first_guild; g && !e; g = g->next)
                for (e = g->events;
                     e && e->id != dc_id_parse(text) && !(text && strcmp(e->name, text) == 0);)
                        e = e->next;
        if (!e)
                error_set(err, ERR_MISSING, "no scheduled event '%s'", text ? text : "");
        return e;
}

static void set_text(char **to, const json_t *request, const char *key)
{
        const json_t *value = json_object_get(request, key);

        if (!value)
                return;
        free(*to);
        *to = mem_strdup(json_string_value(value));
}

static int set_time(int64_t *to, const json_t *request, const char *key, struct error *err)
{
        const char *text = json_str(request, key, NULL);

        if (text && clock_parse_iso(text, to) != 0)
                return error_set(err, ERR_INVALID, "'%s' must be like 2030-01-01T18:00:00Z", key);
        return 0;
}

static int set_status(struct scheduled_event *e, const json_t *request, struct error *err)
{
        const char *name = json_str(request, "status", NULL);

        for (size_t i = 0; name && i < COUNT(statuses); i++) {
                if (strcmp(statuses[i].name, name) != 0)
                        continue;
                e->status = statuses[i].status;
                return 0;
        }
        return name ? error_set(err, ERR_INVALID,
                                "'status' must be scheduled, active, completed or canceled")
                    : 0;
}

/* Makes one, or changes that of "event_id"; "channel" is a voice channel, "place" any text. */
int dc_people_event(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        bool makes = !json_object_get(request, "event_id");
        struct guild *g = makes ? dc_people_find_guild(w, request, err) : NULL;
        struct scheduled_event *e = NULL;
        struct channel *c = NULL;

        if (json_object_get(request, "channel") && !(c = dc_people_find_channel(w, request, err)))
                return -1;
        if (g) {
                e = dc_scheduled_event_new(w, g, dc_people_find_user(w, request));
                dc_guild_add_member(g, e->creator);
                e->name = mem_strdup("an event");
                e->location = mem_strdup("somewhere");
                e->start_ms = clock_wall_ms() + HOUR_MS;
                e->end_ms = e->start_ms + HOUR_MS;
        } else if (!makes) {
                e = find(w, request, err);
        }
        if (!e || set_time(&e->start_ms, request, "start", err) != 0 ||
            set_time(&e->end_ms, request, "end", err) != 0 || set_status(e, request, err) != 0)
                return -1;
        set_text(&e->name, request, "name");
        set_text(&e->description, request, "description");
        set_text(&e->location, request, "place");
        if (c) {
                e->entity = ENTITY_VOICE;
                e->channel_id = c->id;
        }
        dc_render_id(out, "event_id", e->id);
        if (json_flag(request, "delete", false)) {
                jsonw_int(out, "sessions", dc_scheduled_event_publish(w, e, "DELETE"));
                dc_scheduled_event_remove(e);
                return 0;
        }
        jsonw_int(out, "sessions", dc_scheduled_event_publish(w, e, makes ? "CREATE" : "UPDATE"));
        return 0;
}

int dc_people_interest(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct scheduled_event *e = find(w, request, err);
        struct user *u = dc_people_find_user(w, request);
        bool interested = json_flag(request, "interested", true);
        unsigned sessions = 0;

        if (!e)
                return -1;
        dc_guild_add_member(e->guild, u);
        if (dc_scheduled_event_set_interest(e, u, interested))
                sessions = dc_scheduled_event_publish_interest(
                        w, e, u, interested ? "USER_ADD" : "USER_REMOVE");
        jsonw_int(out, "sessions", sessions);
        return 0;
}
