/*
 * Who is interested in scheduled events: the gateway tells each change, but not what happened while
 * there was no session. One event after the other is asked for, when nothing else is to be done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_scheduled_event.h"

#define WANTED_MAX 1000
#define PAGE       100 /* Discord's maximum */
#define USERS_MAX  1000
#define ROUNDS_MAX 5 /* people join and leave all the time */

struct wanted_event {
        char guild[DC_ID_SIZE], event[DC_ID_SIZE], after[DC_ID_SIZE];
        json_t *users; /* so far */
        bool touched;  /* ask again */
        unsigned tries, rounds;
        STAILQ_ENTRY(wanted_event) next;
};

struct dc_event_list {
        struct dc_intake *in;
        STAILQ_HEAD(, wanted_event) wanted; /* the first is being asked for */
        size_t count;
        struct timer *retry;
        bool failed;
};

static void on_users(void *arg, const struct dc_answer *a);

static void ask(void *arg)
{
        struct dc_event_list *l = arg;
        struct wanted_event *w = STAILQ_FIRST(&l->wanted);
        char query[80];

        if (!w)
                return;
        snprintf(query, sizeof(query), "limit=%d&with_member=true%s%s", PAGE,
                 w->after[0] ? "&after=" : "", w->after);
        l->in->hooks.get(l->in->hooks.ctx,
                         &(struct dc_get){ "/guilds/{guild_id}/scheduled-events/"
                                           "{guild_scheduled_event_id}/users",
                                           { w->guild, w->event },
                                           query,
                                           .idle = true },
                         on_users, l);
}

static void next(struct dc_event_list *l)
{
        struct wanted_event *w = STAILQ_FIRST(&l->wanted);

        STAILQ_REMOVE_HEAD(&l->wanted, next);
        l->count--;
        json_decref(w->users);
        free(w);
        ask(l);
}

static void add_users(struct wanted_event *w, const json_t *page)
{
        const json_t *one;
        size_t i;

        json_array_foreach(page, i, one) {
                const json_t *member = json_object_get(one, "member"),
                             *user = json_object_get(one, "user");
                const char *id = json_str(one, "user_id", json_str(user, "id", NULL)), *name;

                name = json_str(member, "nick",
                                json_str(user, "global_name", json_str(user, "username", NULL)));
                if (!dc_id_valid(id))
                        continue;
                snprintf(w->after, sizeof(w->after), "%s", id);
                if (json_int(one, "response", 1) == 0) /* not to this one of a series */
                        continue;
                json_array_append_new(w->users,
                                      name ? json_pack("{s:s, s:s}", "id", id, "name", name)
                                           : json_pack("{s:s}", "id", id));
        }
}

static void store(struct dc_event_list *l, struct wanted_event *w, bool complete)
{
        char stamp[32];
        json_t *d;

        snprintf(stamp, sizeof(stamp), "%lld", (long long)clock_wall_ms());
        d = json_pack("{s:s, s:s, s:s, s:O, s:b}", "guild_id", w->guild, "event_id", w->event,
                      "stamp", stamp, "users", w->users, "complete", complete);
        dc_intake_members(l->in, d);
        json_decref(d);
}

static void on_users(void *arg, const struct dc_answer *a)
{
        struct dc_event_list *l = arg;
        struct wanted_event *w = STAILQ_FIRST(&l->wanted);
        bool unavailable = dc_rest_is_unavailable(a);
        int64_t wait = unavailable ? dc_readback_wait_ms(l->in, w->tries++) : -1;
        size_t n = a->status == 200 ? json_array_size(a->result) : 0;

        if (wait >= 0) {
                timer_start(l->retry, wait);
                return;
        }
        if (a->status != 200) {
                l->failed = l->failed || unavailable;
                log_info("cannot read who is interested in a scheduled event",
                         LOG_S("adapter", l->in->o.adapter->name), LOG_S("event", w->event),
                         LOG_S("why", a->why));
                next(l);
                return;
        }
        w->tries = 0;
        add_users(w, a->result);
        if (w->touched && w->rounds++ < ROUNDS_MAX) {
                json_array_clear(w->users);
                w->after[0] = '\0';
                w->touched = false;
                ask(l);
        } else if (n >= PAGE && json_array_size(w->users) < USERS_MAX) {
                ask(l);
        } else {
                store(l, w, n < PAGE);
                next(l);
        }
}

static bool is_wanted(const struct dc_event_list *l, const char *event)
{
        const struct wanted_event *w;

        STAILQ_FOREACH(w, &l->wanted, next)
                if (strcmp(w->event, event) == 0)
                        return true;
        return false;
}

void dc_event_list_want(struct dc_event_list *l, const char *guild, const json_t *events)
{
        bool idle = STAILQ_EMPTY(&l->wanted);
        const json_t *event;
        size_t i;

        json_array_foreach(events, i, event) {
                const char *id = json_str(event, "id", NULL);
                struct wanted_event *w;

                if (!dc_id_valid(guild) || !dc_id_valid(id) || !dc_scheduled_event_is_open(event) ||
                    l->count >= WANTED_MAX || is_wanted(l, id))
                        continue;
                w = mem_zalloc(sizeof(*w));
                snprintf(w->guild, sizeof(w->guild), "%s", guild);
                snprintf(w->event, sizeof(w->event), "%s", id);
                w->users = json_array();
                STAILQ_INSERT_TAIL(&l->wanted, w, next);
                l->count++;
        }
        if (idle)
                ask(l);
}

void dc_event_list_touch(struct dc_event_list *l, const char *event)
{
        struct wanted_event *w = STAILQ_FIRST(&l->wanted);

        if (w && strcmp(w->event, event) == 0)
                w->touched = true;
}

bool dc_event_list_is_idle(const struct dc_event_list *l)
{
        return STAILQ_EMPTY(&l->wanted);
}

bool dc_event_list_take_failed(struct dc_event_list *l)
{
        bool failed = l->failed;

        l->failed = false;
        return failed;
}

struct dc_event_list *dc_event_list_new(struct dc_intake *in)
{
        struct dc_event_list *l = mem_zalloc(sizeof(*l));

        l->in = in;
        STAILQ_INIT(&l->wanted);
        l->retry = timer_new(in->o.adapter->loop, ask, l);
        return l;
}

void dc_event_list_free(struct dc_event_list *l)
{
        struct wanted_event *w;

        if (!l)
                return;
        while ((w = STAILQ_FIRST(&l->wanted))) {
                STAILQ_REMOVE_HEAD(&l->wanted, next);
                json_decref(w->users);
                free(w);
        }
        timer_free(l->retry);
        free(l);
}
