#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_world.h"

struct scheduled_event *dc_scheduled_event_new(struct world *w, struct guild *g,
                                               struct user *creator)
{
        struct scheduled_event *e = mem_zalloc(sizeof(*e)), **end = &g->events;

        e->id = dc_id_new(w);
        e->guild = g;
        e->creator = creator;
        e->status = EVENT_SCHEDULED;
        e->entity = ENTITY_EXTERNAL;
        while (*end)
                end = &(*end)->next;
        *end = e;
        return e;
}

struct scheduled_event *dc_scheduled_event_find(const struct guild *g, uint64_t id)
{
        struct scheduled_event *e = g->events;

        while (e && e->id != id)
                e = e->next;
        return e;
}

void dc_scheduled_event_remove(struct scheduled_event *e)
{
        struct scheduled_event **at = &e->guild->events;

        while (*at != e)
                at = &(*at)->next;
        *at = e->next;
        free(e->name);
        free(e->description);
        free(e->location);
        free(e->users);
        free(e);
}

bool dc_scheduled_event_set_interest(struct scheduled_event *e, struct user *u, bool interested)
{
        size_t i = 0;

        while (i < e->count && e->users[i] != u)
                i++;
        if (interested == (i < e->count))
                return false;
        if (interested) {
                e->users = mem_realloc(e->users, (e->count + 1) * sizeof(*e->users));
                e->users[e->count++] = u;
        } else {
                e->users[i] = e->users[--e->count];
        }
        return true;
}

/* "2030-01-01T18:00:00+00:00", as Discord writes it; 0 writes null. */
static void write_time(struct buf *b, const char *key, int64_t ms)
{
        char text[CLOCK_ISO_SIZE], shown[40];

        if (ms == 0) {
                jsonw_null(b, key);
                return;
        }
        snprintf(shown, sizeof(shown), "%.19s+00:00", clock_iso(ms, text));
        jsonw_str(b, key, shown);
}

void dc_scheduled_event_render(struct buf *b, const char *key, const struct scheduled_event *e,
                               bool with_count)
{
        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        dc_render_id(b, "id", e->id);
        dc_render_id(b, "guild_id", e->guild->id);
        jsonw_str(b, "name", e->name);
        jsonw_str(b, "description", e->description);
        dc_render_id(b, "channel_id", e->channel_id);
        dc_render_id(b, "creator_id", e->creator->id);
        dc_render_user(b, "creator", e->creator);
        jsonw_null(b, "image");
        write_time(b, "scheduled_start_time", e->start_ms);
        write_time(b, "scheduled_end_time", e->end_ms);
        jsonw_int(b, "status", e->status);
        jsonw_int(b, "entity_type", e->entity);
        jsonw_null(b, "entity_id");
        jsonw_null(b, "recurrence_rule");
        jsonw_int(b, "privacy_level", 2);
        jsonw_raw(b, "guild_scheduled_event_exceptions", "[]");
        if (with_count)
                jsonw_int(b, "user_count", (int64_t)e->count);
        if (e->entity == ENTITY_EXTERNAL) {
                jsonw_open_member(b, "entity_metadata", '{');
                jsonw_str(b, "location", e->location ? e->location : "");
                jsonw_close(b, '}');
        } else {
                jsonw_null(b, "entity_metadata");
        }
        jsonw_close(b, '}');
}

static unsigned publish(struct world *w, const struct scheduled_event *e, const char *what,
                        const char *d)
{
        char name[60];
        struct gateway_event t = { .event = name,
                                   .guild = e->guild,
                                   .guild_intent = INTENT_EVENTS };

        snprintf(name, sizeof(name), "GUILD_SCHEDULED_EVENT_%s", what);
        return dc_session_publish(w, &t, d);
}

unsigned dc_scheduled_event_publish(struct world *w, const struct scheduled_event *e,
                                    const char *what)
{
        struct buf b;
        unsigned count;

        buf_init(&b, 0);
        dc_scheduled_event_render(&b, NULL, e, false);
        count = publish(w, e, what, b.data);
        buf_release(&b);
        return count;
}

unsigned dc_scheduled_event_publish_interest(struct world *w, const struct scheduled_event *e,
                                             const struct user *u, const char *what)
{
        struct buf b;
        unsigned count;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        dc_render_id(&b, "guild_scheduled_event_id", e->id);
        dc_render_id(&b, "user_id", u->id);
        dc_render_id(&b, "guild_id", e->guild->id);
        jsonw_close(&b, '}');
        count = publish(w, e, what, b.data);
        buf_release(&b);
        return count;
}
