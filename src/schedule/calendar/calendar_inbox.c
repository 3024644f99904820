/*
 * calendar_inbox: answers by reaction, and changes that people make in the platform's calendar.
 *
 * A durable consumer of the journal: each event becomes a request, a batch one transaction. An
 * event may come twice, so an answer counts only if it is later than the one that is stored.
 *
 * No echo: a change that comes from the platform is marked as shown there. One that comes while a
 * change of ours is under way is overwritten by ours, which is put there once more; PUTS_MAX ends
 * this where the platform never says what we wrote.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "road/calendar_sync.h"
#include "schedule/calendar/calendar_private.h"

struct inbox_item {
        struct incoming *in;
        int64_t time_ms;
        struct bus_batch batch;
        bool changed;
};

struct calendar_inbox {
        struct schedule *schedule;
        struct bus_consumer *consumer;
        struct inbox_item *items;
        size_t count;
        bool busy, freed;
};

static void release_items(struct calendar_inbox *b)
{
        for (size_t i = 0; i < b->count; i++) {
                incoming_free(b->items[i].in);
                bus_batch_release(&b->items[i].batch);
        }
        free(b->items);
        b->items = NULL;
        b->count = 0;
}

/* ---- reactions ---- */

static const struct {
        const char *emoji, *name; /* name: as Slack says it */
        enum calendar_answer answer;
} reactions[] = {
        { "✅", "white_check_mark", ANSWER_YES },
        { "👍", "+1", ANSWER_YES },
        { "❌", "x", ANSWER_NO },
        { "👎", "-1", ANSWER_NO },
        { "❔", "grey_question", ANSWER_MAYBE },
        { "❓", "question", ANSWER_MAYBE },
        { "🤔", "thinking_face", ANSWER_MAYBE },
};

static bool reaction_answer(const struct incoming *in, enum calendar_answer *out)
{
        for (size_t i = 0; i < COUNT(reactions); i++) {
                const char *emoji = reactions[i].emoji;

                /* a variation selector may follow */
                if ((in->emoji && strncmp(in->emoji, emoji, strlen(emoji)) == 0) ||
                    (in->emoji && strcmp(in->emoji, reactions[i].name) == 0) ||
                    (in->emoji_name && strcmp(in->emoji_name, reactions[i].name) == 0)) {
                        *out = reactions[i].answer;
                        return true;
                }
        }
        return false;
}

static bool is_reaction(const char *type)
{
        return strcmp(type, EVENT_REACTION_RECEIVED) == 0 ||
               strcmp(type, EVENT_REACTION_REMOVED) == 0;
}

/* ---- requests ---- */

static struct calendar_request *request_of(const struct calendar_inbox *b,
                                           const struct inbox_item *it, enum calendar_action action)
{
        struct calendar_request *q = calendar_request_new(action, b->schedule->conf);
        const struct incoming *in = it->in;

        calendar_request_set_by(q, &(struct chat_caller){ .adapter = in->adapter,
                                                          .platform = in->platform,
                                                          .channel = in->channel,
                                                          .guild = in->guild,
                                                          .sender_id = in->sender_id,
                                                          .sender_name = incoming_sender(in),
                                                          .trace = in->trace });
        q->by.username = arena_strdup(&q->arena, in->sender_username);
        q->answered_ms = it->time_ms;
        return q;
}

/* Runs it, keeps what it journaled, and frees it. */
static int run(struct store_tx *tx, struct inbox_item *it, struct calendar_request *q,
               struct error *err)
{
        int rc = calendar_request_run(tx, q, err);

        it->changed = it->changed || q->changed;
        for (unsigned i = 0; rc == 0 && i < q->batch.count; i++) {
                struct bus_batch *to = &it->batch;

                to->events = mem_realloc(to->events, (to->count + 1) * sizeof(*to->events));
                to->events[to->count++] = q->batch.events[i];
                to->cap = to->count;
        }
        if (rc == 0)
                q->batch.count = 0; /* moved */
        calendar_request_free(q);
        return rc;
}

static int apply_reaction(struct store_tx *tx, const struct calendar_inbox *b,
                          struct inbox_item *it, struct error *err)
{
        const struct incoming *in = it->in;
        struct calendar_event_row *row;
        struct calendar_request *q;
        int rc = calendar_row_get_message(tx, in->adapter, in->thread ? in->thread : in->channel,
                                          in->id, &row, err);

        if (rc == 0 && in->thread)
                rc = calendar_row_get_message(tx, in->adapter, in->channel, in->id, &row, err);
        if (rc != 1)
                return rc;
        q = request_of(b, it, CALENDAR_ANSWER);
        reaction_answer(in, &q->answer);
        q->event = row->id;
        q->by.channel = arena_strdup(&q->arena, row->channel);
        q->withdraws = strcmp(in->type, EVENT_REACTION_REMOVED) == 0;
        free(row);
        return run(tx, it, q, err);
}

/* ---- the platform's calendar ---- */

static struct calendar_sync sync_of(const struct calendar_event_row *row)
{
        return (struct calendar_sync){ .op = CALENDAR_PUT,
                                       .title = row->title,
                                       .description = row->description ? row->description : "",
                                       .place = row->place ? row->place : "",
                                       .starts_ms = row->starts_ms,
                                       .ends_ms = row->ends_ms };
}

/* Somebody made an event there: it becomes one of ours, without an announcement of its own. */
static int adopt(struct store_tx *tx, const struct calendar_inbox *b, struct inbox_item *it,
                 const struct calendar_sync *sync, struct error *err)
{
        struct calendar_request *q = request_of(b, it, CALENDAR_CREATE);

        q->quiet = true;
        q->by.channel = q->by.thread = NULL;
        q->by.guild = arena_strdup(&q->arena, sync->guild);
        q->platform_event = arena_strdup(&q->arena, sync->event);
        q->request_key = arena_printf(&q->arena, "platform:%s:%s", it->in->adapter, sync->event);
        q->fields.title = arena_strdup(&q->arena, sync->title);
        q->fields.description = arena_strdup(&q->arena, sync->description);
        q->fields.place = arena_strdup(&q->arena, sync->place);
        q->fields.starts_ms = sync->starts_ms;
        q->fields.ends_ms = sync->ends_ms;
        return run(tx, it, q, err);
}

static int apply_put(struct store_tx *tx, const struct calendar_inbox *b, struct inbox_item *it,
                     const struct calendar_sync *sync, struct error *err)
{
        struct calendar_event_row *row;
        struct calendar_sync ours;
        struct calendar_request *q;
        unsigned diff;
        int rc = calendar_row_get_platform(tx, it->in->adapter, sync->event, &row, err);

        if (rc == 0 && !sync->by_us && sync->title && sync->starts_ms > 0 &&
            (!sync->state || strcmp(sync->state, "scheduled") == 0))
                return adopt(tx, b, it, sync, err);
        if (rc != 1)
                return rc;
        ours = sync_of(row);
        diff = row->state == CALENDAR_PLANNED ? calendar_sync_diff(&ours, sync) : 0;
        if (diff == 0) {
                rc = 0;
        } else if (row->put > 0 || row->synced < row->sequence) {
                rc = calendar_row_set_put(tx, row->id, row->put, -1, row->puts, err);
                it->changed = true; /* the announcer puts it there again */
        } else {
                q = request_of(b, it, CALENDAR_CHANGE);
                q->event = row->id;
                q->by.trusted = q->from_platform = true;
                if (diff & CALENDAR_TITLE)
                        q->fields.title = arena_strdup(&q->arena, sync->title);
                if (diff & CALENDAR_DESCRIPTION)
                        q->fields.description =
                                arena_strdup(&q->arena, sync->description ? sync->description : "");
                if (diff & CALENDAR_PLACE)
                        q->fields.place = arena_strdup(&q->arena, sync->place ? sync->place : "");
                if (diff & (CALENDAR_STARTS | CALENDAR_ENDS)) {
                        q->fields.starts_ms = sync->starts_ms;
                        q->fields.ends_ms = sync->ends_ms;
                }
                rc = run(tx, it, q, err);
        }
        free(row);
        return rc < 0 ? -1 : 0;
}

static int apply_delete(struct store_tx *tx, const struct calendar_inbox *b, struct inbox_item *it,
                        const char *event, struct error *err)
{
        struct calendar_event_row *row;
        struct calendar_request *q;
        int rc = calendar_row_get_platform(tx, it->in->adapter, event, &row, err);

        if (rc != 1)
                return rc;
        rc = calendar_row_set_platform(tx, row->id, NULL, err);
        if (rc == 0 && row->state == CALENDAR_PLANNED) {
                q = request_of(b, it, CALENDAR_CANCEL);
                q->event = row->id;
                q->by.trusted = q->from_platform = true;
                rc = run(tx, it, q, err);
        }
        free(row);
        return rc;
}

/*
 * Somebody follows the platform's event, or no longer does. That is kept besides the answer, which
 * they may change here without changing it there.
 */
static int apply_interest(struct store_tx *tx, const struct calendar_inbox *b,
                          struct inbox_item *it, const struct calendar_sync *sync, bool leaves,
                          const char *user, const char *name, struct error *err)
{
        struct calendar_event_row *row;
        struct calendar_member_row *m;
        struct calendar_request *q;
        int64_t event, person;
        int rc = calendar_row_get_platform(tx, it->in->adapter, sync->event, &row, err);

        event = rc == 1 ? row->id : 0;
        free(row);
        if (rc != 1 || !user)
                return rc < 0 ? -1 : 0;
        q = request_of(b, it, CALENDAR_ANSWER);
        q->event = event;
        q->by.trusted = true;
        q->by.user = arena_strdup(&q->arena, user);
        q->by.name = arena_strdup(&q->arena, name);
        q->answer = ANSWER_YES;
        q->withdraws = leaves;
        if (run(tx, it, q, err) < 0 ||
            calendar_request_person(tx, it->in->platform, user, &person, err) < 0)
                return -1;
        rc = calendar_member_row_find(tx, event, person, it->in->platform, user, &m, err);
        if (rc == 1)
                rc = calendar_member_row_set_interest(tx, m->id, leaves ? NULL : user, err);
        free(m);
        return rc;
}

/* After a time without connection: events of this server that are not in the list are gone. */
static int apply_list(struct store_tx *tx, const struct calendar_inbox *b, struct inbox_item *it,
                      const struct calendar_sync *sync, struct error *err)
{
        enum calendar_state planned = CALENDAR_PLANNED;
        struct calendar_filter filter = { .adapter = it->in->adapter,
                                          .state = &planned,
                                          .ends_after_ms = it->time_ms,
                                          .limit = 500 };
        struct store_stmt *s = calendar_row_list(tx, &filter);
        struct calendar_event_row row;
        char *gone[100];
        size_t count = 0, i;
        const json_t *id;
        int rc;

        while ((rc = calendar_row_next(s, &row, err)) == 1) {
                bool listed = false;

                if (!row.platform_event || !row.guild || !sync->guild ||
                    strcmp(row.guild, sync->guild) != 0 || row.starts_ms <= it->time_ms)
                        continue;
                json_array_foreach(sync->list, i, id)
                        listed = listed || (json_is_string(id) &&
                                            strcmp(json_string_value(id), row.platform_event) == 0);
                if (!listed && count < COUNT(gone))
                        gone[count++] = mem_strdup(row.platform_event);
        }
        for (i = 0; i < count; i++) {
                if (rc >= 0)
                        rc = apply_delete(tx, b, it, gone[i], err);
                free(gone[i]);
        }
        return rc < 0 ? -1 : 0;
}

static bool is_listed(const json_t *users, const char *id)
{
        const json_t *user;
        size_t i;

        json_array_foreach(users, i, user)
                if (strcmp(json_str(user, "id", ""), id) == 0)
                        return true;
        return false;
}

/*
 * After a time without connection: who is interested now. Only what is new counts, so that an
 * answer given here stands.
 */
static int apply_members(struct store_tx *tx, const struct calendar_inbox *b, struct inbox_item *it,
                         const struct calendar_sync *sync, struct error *err)
{
        struct calendar_event_row *row;
        struct calendar_view v = { 0 };
        const json_t *user;
        size_t i;
        int rc = calendar_row_get_platform(tx, it->in->adapter, sync->event, &row, err);

        if (rc == 1)
                rc = calendar_view_load(tx, row->id, &v, err);
        free(row);
        json_array_foreach(v.row ? sync->list : NULL, i, user) {
                const char *id = json_str(user, "id", NULL);
                bool known = false;

                for (size_t m = 0; id && m < v.count; m++)
                        known = known ||
                                (v.members[m]->interest && strcmp(v.members[m]->interest, id) == 0);
                if (rc >= 0 && !known)
                        rc = apply_interest(tx, b, it, sync, false, id,
                                            json_str(user, "name", NULL), err);
        }
        for (i = 0; rc >= 0 && sync->complete && i < v.count; i++) {
                const struct calendar_member_row *m = v.members[i];

                if (m->interest && !is_listed(sync->list, m->interest))
                        rc = apply_interest(tx, b, it, sync, true, m->interest, m->display_name,
                                            err);
        }
        calendar_view_release(&v);
        return rc < 0 ? -1 : 0;
}

static int apply_calendar(struct store_tx *tx, const struct calendar_inbox *b,
                          struct inbox_item *it, struct error *err)
{
        json_t *metadata = json_loads(it->in->metadata ? it->in->metadata : "{}", 0, NULL);
        struct calendar_sync sync;
        struct error wrong;
        int rc = 0;

        if (!metadata || calendar_sync_read(metadata, &sync, &wrong) < 0) {
                json_decref(metadata);
                return 0; /* its adapter wrote it: there is nobody to tell */
        }
        switch (sync.op) {
        case CALENDAR_PUT:
                rc = apply_put(tx, b, it, &sync, err);
                break;
        case CALENDAR_DELETE:
                rc = apply_delete(tx, b, it, sync.event, err);
                break;
        case CALENDAR_JOIN:
        case CALENDAR_LEAVE:
                rc = apply_interest(tx, b, it, &sync, sync.op == CALENDAR_LEAVE, sync.user_id,
                                    sync.user_name, err);
                break;
        case CALENDAR_LIST:
                rc = apply_list(tx, b, it, &sync, err);
                break;
        case CALENDAR_MEMBERS:
                rc = apply_members(tx, b, it, &sync, err);
                break;
        }
        json_decref(metadata);
        return rc;
}

/* ---- the consumer ---- */

static int write_items(struct store_tx *tx, void *arg, struct error *err)
{
        struct calendar_inbox *b = arg;
        int rc = 0;

        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                struct inbox_item *it = &b->items[i];

                bus_batch_reset(&it->batch);
                it->changed = false;
                rc = is_reaction(it->in->type) ? apply_reaction(tx, b, it, err)
                                               : apply_calendar(tx, b, it, err);
        }
        return rc;
}

static void on_written(void *arg, const struct error *err)
{
        struct calendar_inbox *b = arg;
        bool changed = false;

        b->busy = false;
        for (size_t i = 0; !err && i < b->count; i++) {
                bus_publish(b->schedule->env.bus, &b->items[i].batch);
                changed = changed || b->items[i].changed;
        }
        release_items(b);
        if (b->freed) {
                free(b);
                return;
        }
        if (err) /* the schedule closes; the next run gets them again */
                return;
        if (changed) {
                schedule_wake(b->schedule);
                calendar_announcer_wake(b->schedule->calendar->announcer);
        }
        bus_consumer_ack(b->consumer);
}

static bool concerns_us(const struct incoming *in)
{
        enum calendar_answer answer;

        if (is_reaction(in->type))
                return !in->is_own && !in->sender_is_bot && in->id && in->sender_id &&
                       reaction_answer(in, &answer);
        return true;
}

static void on_events(void *arg, const struct bus_event *const *events, unsigned count)
{
        struct calendar_inbox *b = arg;
        struct error err;

        b->items = mem_array(count, sizeof(*b->items));
        for (unsigned i = 0; i < count; i++) {
                struct incoming *in;

                if (!is_reaction(events[i]->type) && strcmp(events[i]->type, EVENT_CALENDAR) != 0)
                        continue;
                in = incoming_parse(events[i], &err);
                if (in && concerns_us(in))
                        b->items[b->count++] =
                                (struct inbox_item){ .in = in, .time_ms = events[i]->time_ms };
                else
                        incoming_free(in);
        }
        if (b->count == 0) {
                release_items(b);
                bus_consumer_ack(b->consumer);
                return;
        }
        b->busy = true;
        schedule_write(b->schedule, "answers to events", write_items, on_written, b);
}

struct calendar_inbox *calendar_inbox_new(struct schedule *s)
{
        struct calendar_inbox *b = mem_zalloc(sizeof(*b));

        b->schedule = s;
        b->consumer = bus_consume(s->env.bus, "calendar",
                                  1u << STREAM_REACTION | 1u << STREAM_SCHEDULE, -1, on_events, b);
        return b;
}

void calendar_inbox_free(struct calendar_inbox *b)
{
        if (!b)
                return;
        bus_consumer_stop(b->consumer);
        b->consumer = NULL;
        b->freed = true;
        if (!b->busy) {
                release_items(b);
                free(b);
        }
}
