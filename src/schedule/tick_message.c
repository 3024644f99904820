/*
 * tick_message: the message of a tick, from its addresses to the one that got it.
 *
 *     plan (one write) ──► outbox ──► under way ──► sent: done
 *           ▲                             │
 *           └── pending, next address ◄───┘ certainly not sent
 *
 * What is under way is known by its delivery; the journal says how it ends, and after a restart its
 * row does. A message that waits for an adapter for too long is withdrawn when there is another
 * address. One that may have arrived goes nowhere else. The request key ("tick:12:1", its number
 * and how many addresses were tried before) makes a repetition harmless.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "rows/delivery_row.h"
#include "schedule/reach.h"
#include "schedule/schedule_private.h"

#define RESUME_MAX 500 /* rows per read */
#define KEY_SIZE   64

/* A message under way. A long text is several deliveries, numbered from the first one on. */
struct sending {
        int64_t tick, delivery;
        unsigned parts;
        int64_t look_ms; /* loop time: when another address is looked for */
        TAILQ_ENTRY(sending) next;
};

struct tick_messages {
        struct schedule *schedule;
        struct bus_listener *listener;
        struct map sending;                  /* by delivery, each part */
        TAILQ_HEAD(sendings, sending) queue; /* by look_ms */
        struct timer *timer;
};

static void request_key(int64_t tick, int64_t address, char out[KEY_SIZE])
{
        snprintf(out, KEY_SIZE, "tick:%lld:%lld", (long long)tick, (long long)address);
}

static const char *delivery_key(int64_t delivery, char out[KEY_SIZE])
{
        snprintf(out, KEY_SIZE, "%lld", (long long)delivery);
        return out;
}

/* ---- the plan ---- */

struct message_adapter {
        char *name;
        unsigned can;
};

/* Finds the next address of a tick. */
struct message_plan {
        struct schedule *schedule;
        const struct schedule_conf *conf;
        struct tick_run *run; /* NULL: only looks whether there is another address */
        int64_t tick, delivery;
        int64_t now_ms;
        struct message_adapter *adapters; /* as they are now */
        size_t adapter_count;
        char **admins;
        size_t admin_count;
        /* results */
        struct reach_plan reach; /* without addresses that were tried or cannot be used */
        char *name;              /* of the person; NULL: unknown */
        bool reported;           /* the operator gets a notice */
        char last_error[200];    /* of the address before; "": none */
};

static void forget_results(struct message_plan *p)
{
        reach_plan_release(&p->reach);
        free(p->name);
        p->name = NULL;
        p->reported = false;
        p->last_error[0] = '\0';
}

static void plan_free(struct message_plan *p)
{
        forget_results(p);
        for (size_t i = 0; i < p->adapter_count; i++)
                free(p->adapters[i].name);
        free(p->adapters);
        for (size_t i = 0; i < p->admin_count; i++)
                free(p->admins[i]);
        free(p->admins);
        free(p);
}

static void add_admins(struct message_plan *p, const char *adapter, const char *platform)
{
        const struct setting_list *admins = road_admins(p->schedule->env.road, adapter);

        for (size_t i = 0; admins && i < admins->count; i++) {
                const char *id = admins->items[i];

                p->admins = mem_realloc(p->admins, (p->admin_count + 1) * sizeof(char *));
                p->admins[p->admin_count++] = strncmp(id, "person:", 7) == 0
                                                      ? mem_strdup(id + 7)
                                                      : mem_printf("%s:%s", platform, id);
        }
}

static struct message_plan *plan_new(struct schedule *s, int64_t tick)
{
        struct message_plan *p = mem_zalloc(sizeof(*p));
        const char *name, *platform;

        p->schedule = s;
        p->conf = s->conf;
        p->tick = tick;
        p->now_ms = clock_wall_ms();
        for (size_t i = 0; s->env.adapter_at(s->env.arg, i, &name, &platform); i++) {
                p->adapters = mem_realloc(p->adapters, (i + 1) * sizeof(*p->adapters));
                p->adapters[p->adapter_count++] =
                        (struct message_adapter){ mem_strdup(name),
                                                  road_abilities(s->env.road, name) };
                add_admins(p, name, platform);
        }
        return p;
}

static const struct message_adapter *adapter_named(const struct message_plan *p, const char *name)
{
        for (size_t i = 0; i < p->adapter_count; i++)
                if (strcmp(p->adapters[i].name, name) == 0)
                        return &p->adapters[i];
        return NULL;
}

static void drop_address(struct reach_plan *r, size_t at)
{
        struct reach_address *a = &r->items[at];

        free(a->adapter);
        free(a->channel);
        free(a->thread);
        memmove(a, a + 1, (--r->count - at) * sizeof(*a));
}

static bool is_same(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

/*
 * Drops addresses of adapters that are gone, or that do not know chats by a person's id; others of
 * a person are written as the adapter knows them.
 */
static void drop_unusable(struct message_plan *p)
{
        struct reach_plan *r = &p->reach;

        for (size_t i = r->count; i > 0; i--) {
                struct reach_address *a = &r->items[i - 1];
                const struct message_adapter *adapter = adapter_named(p, a->adapter);

                if (adapter && (!a->by_user || (adapter->can & ADAPTER_DIRECT)))
                        continue;
                if (adapter && (adapter->can & ADAPTER_OPENS_DIRECT)) {
                        char *user = a->channel;

                        a->channel = mem_printf("user:%s", user);
                        free(user);
                        continue;
                }
                if (!adapter)
                        snprintf(p->last_error, sizeof(p->last_error),
                                 "there is no adapter '%.80s'", a->adapter);
                else if (r->count == 1)
                        snprintf(p->last_error, sizeof(p->last_error),
                                 "they have not written to the bot directly on '%.80s'",
                                 a->adapter);
                drop_address(r, i - 1);
        }
}

static int drop_tried(struct store_tx *tx, struct message_plan *p, int64_t tried, struct error *err)
{
        struct reach_plan *r = &p->reach;
        struct delivery_row *d;
        char key[KEY_SIZE];

        for (int64_t n = 0; n < tried; n++) {
                request_key(p->tick, n, key);
                switch (delivery_row_get_request(tx, key, &d, err)) {
                case -1:
                        return -1;
                case 0: /* pruned */
                        continue;
                }
                for (size_t i = r->count; i > 0; i--) {
                        const struct reach_address *a = &r->items[i - 1];

                        if (is_same(a->adapter, d->adapter) && is_same(a->channel, d->channel) &&
                            is_same(a->thread, d->thread))
                                drop_address(r, i - 1);
                }
                snprintf(p->last_error, sizeof(p->last_error), "%.40s/%.40s: %.100s", d->adapter,
                         d->channel, d->error ? d->error : delivery_state_name(d->state));
                free(d);
        }
        return 0;
}

/* A notice to the operator: nothing reached the person. The text is theirs, and left out. */
static int report(struct store_tx *tx, struct message_plan *p, const struct schedule_row *row,
                  struct error *err)
{
        struct reach_query nobody = { .now_ms = p->now_ms,
                                      .admins = p->admins,
                                      .admin_count = p->admin_count };
        struct reach_plan operator;
        struct schedule_row notice = { .source = "notice",
                                       .name = "unreached",
                                       .kind = SCHEDULE_IMMEDIATE,
                                       .action = SCHEDULE_MESSAGE,
                                       .missed = MISSED_ONCE,
                                       .state = SCHEDULE_ACTIVE,
                                       .at_ms = p->now_ms,
                                       .next_ms = p->now_ms,
                                       .created_ms = p->now_ms,
                                       .created_by = "schedule",
                                       .trace = row->trace };
        char key[KEY_SIZE];
        char *text;
        int64_t id;
        int rc = reach_plan_make(tx, p->conf, &nobody, &operator, err);

        if (rc == 0 && operator.count> 0 && operator.person != p->reach.person) {
                snprintf(key, sizeof(key), "unreached:%lld", (long long)p->tick);
                text = mem_printf("I could not reach %s (per-%lld) with `sch-%lld`: %s.",
                                  p->name ? p->name : "somebody", (long long)p->reach.person,
                                  (long long)row->id,
                                  p->last_error[0] ? p->last_error : p->reach.why);
                notice.person = operator.person;
                notice.request_key = key;
                notice.text = text;
                rc = schedule_row_insert(tx, &notice, &id, err);
                p->reported = rc == 1;
                free(text);
        }
        reach_plan_release(&operator);
        return rc < 0 ? -1 : 0;
}

static int make_plan(struct store_tx *tx, struct message_plan *p, const struct schedule_row *row,
                     const struct tick_row *tick, struct error *err)
{
        json_t *options = row->options ? json_loads(row->options, 0, NULL) : NULL;
        struct reach_query q = { .person = row->person,
                                 .adapter = row->adapter,
                                 .channel = row->channel,
                                 .thread = row->thread,
                                 .chat_last = json_is_true(json_object_get(options, "chatLast")),
                                 .asked = json_is_true(json_object_get(options, "askedBySelf")) ||
                                          tick->address > 0,
                                 .now_ms = p->now_ms,
                                 .admins = p->admins,
                                 .admin_count = p->admin_count };
        bool counts = row->person > 0 && !q.asked && strcmp(row->source, "notice") != 0;
        struct person_row person = { 0 };
        int rc = reach_plan_make(tx, p->conf, &q, &p->reach, err);

        json_decref(options);
        if (rc == 0 && p->reach.person > 0) {
                rc = person_row_get(tx, p->reach.person, &person, err);
                p->name = person.name;
        }
        if (rc < 0)
                return -1;
        if (p->reach.count > 0) {
                drop_unusable(p);
                if (drop_tried(tx, p, tick->address, err) < 0)
                        return -1;
        }
        if (p->reach.count == 0)
                p->reach.verdict = REACH_NEVER;
        if (!p->run)
                return 0;
        if (p->reach.verdict == REACH_NOW && counts && !p->run->counted) {
                rc = reach_count(tx, p->conf, p->reach.person, p->now_ms, p->reach.why, err);
                if (rc == 0)
                        p->reach.verdict = REACH_NEVER;
        } else if (p->reach.verdict == REACH_NEVER && row->person > 0) {
                rc = report(tx, p, row, err);
        }
        return rc < 0 ? -1 : 0;
}

static int write_plan(struct store_tx *tx, void *arg, struct error *err)
{
        struct message_plan *p = arg;
        struct schedule_row *row = NULL;
        struct tick_row *tick = NULL;
        int rc;

        forget_results(p);
        rc = tick_row_get(tx, p->tick, &tick, err);
        if (rc == 1)
                rc = schedule_row_get(tx, tick->schedule, &row, err);
        if (rc == 1)
                rc = make_plan(tx, p, row, tick, err);
        else if (rc == 0)
                p->reach.verdict = REACH_NEVER;
        free(row);
        free(tick);
        return rc;
}

/* ---- the outcome ---- */

struct settling {
        struct schedule *schedule;
        int64_t tick, delivery;
        /* results */
        enum tick_state state; /* TICK_RUNNING: still under way */
        unsigned parts;
        struct bus_batch batch;
};

static int write_end(struct store_tx *tx, struct settling *m, const struct schedule_row *row,
                     struct tick_row *tick, enum tick_state state, const char *note,
                     struct error *err)
{
        int rc;

        tick->state = state;
        tick->note = note;
        tick->delivery = m->delivery;
        tick->ended_ms = clock_wall_ms();
        rc = tick_row_end(tx, tick, err);
        if (rc == 1 && state == TICK_FAILED)
                rc = schedule_journal(tx, &m->batch, "schedule.failed", row, tick, note, NULL, err);
        m->state = state;
        return rc < 0 ? -1 : 0;
}

/* The first part that has not arrived says how the message ended; part is its index. */
static int settle_by(struct store_tx *tx, struct settling *m, const struct schedule_row *row,
                     struct tick_row *tick, const struct delivery_row *d, unsigned part,
                     struct error *err)
{
        bool elsewhere = part == 0 && (row->person > 0 || !row->adapter);
        char note[360], which[40] = "";

        if (part > 0)
                snprintf(which, sizeof(which), "part %u of %u: ", part + 1, m->parts);
        switch (d ? d->state : DELIVERY_UNKNOWN) {
        case DELIVERY_QUEUED:
        case DELIVERY_SENDING:
                return 0;
        case DELIVERY_SENT:
                snprintf(note, sizeof(note), "sent to %.100s/%.100s", d->adapter, d->channel);
                return write_end(tx, m, row, tick, TICK_DONE, note, err);
        case DELIVERY_UNKNOWN:
                snprintf(note, sizeof(note), "%sit may have arrived at %.60s/%.60s: %.100s", which,
                         d ? d->adapter : "?", d ? d->channel : "?",
                         d && d->error ? d->error : "unknown");
                return write_end(tx, m, row, tick, TICK_FAILED, note, err);
        case DELIVERY_FAILED:
        case DELIVERY_EXPIRED:
        case DELIVERY_SUPERSEDED:
                break;
        }
        snprintf(note, sizeof(note), "%s%.80s/%.80s: %.110s", which, d->adapter, d->channel,
                 d->error ? d->error : delivery_state_name(d->state));
        if (!elsewhere)
                return write_end(tx, m, row, tick, TICK_FAILED, note, err);
        m->state = TICK_PENDING;
        if (delivery_row_move_on(tx, d->id, err) < 0)
                return -1;
        return tick_row_defer(tx, tick->id, tick->not_before_ms, note, err) < 0 ? -1 : 0;
}

/* 1: *out, yours to free, is the next part of the same message; 0: there is none; -1. */
static int get_next_part(struct store_tx *tx, const struct delivery_row *d,
                         struct delivery_row **out, struct error *err)
{
        int rc = delivery_row_get(tx, d->id + 1, out, err);
        const struct delivery_row *n = *out;

        if (rc != 1 || (n->turn == 0 && n->kind == DELIVER_SEND && !n->request_key &&
                        is_same(n->trace, d->trace) && is_same(n->adapter, d->adapter) &&
                        is_same(n->channel, d->channel) && is_same(n->thread, d->thread)))
                return rc;
        free(*out);
        *out = NULL;
        return 0;
}

/* Counts the parts. *out: the first that has not arrived, else the last; *at is its index. */
static int find_part(struct store_tx *tx, struct settling *m, struct delivery_row **out,
                     unsigned *at, struct error *err)
{
        struct delivery_row *next;
        int rc = delivery_row_get(tx, m->delivery, out, err);

        *at = 0;
        m->parts = 1;
        for (struct delivery_row *d = *out; rc == 1; d = next) {
                rc = get_next_part(tx, d, &next, err);
                if (d != *out)
                        free(d);
                if (rc == 1 && (*out)->state == DELIVERY_SENT) {
                        free(*out);
                        *out = next;
                        *at = m->parts;
                }
                m->parts += rc == 1;
        }
        return rc;
}

static int write_settling(struct store_tx *tx, void *arg, struct error *err)
{
        struct settling *m = arg;
        struct schedule_row *row = NULL;
        struct tick_row *tick = NULL;
        struct delivery_row *d = NULL;
        unsigned part;
        int rc = tick_row_get(tx, m->tick, &tick, err);

        bus_batch_reset(&m->batch);
        m->state = TICK_RUNNING;
        if (rc == 1 && tick->state != TICK_RUNNING) {
                m->state = tick->state;
                rc = 0;
        }
        if (rc == 1)
                rc = schedule_row_get(tx, tick->schedule, &row, err);
        if (rc == 1 && find_part(tx, m, &d, &part, err) < 0)
                rc = -1;
        if (rc == 1)
                rc = settle_by(tx, m, row, tick, d, part, err);
        fault_point("schedule.settling");
        free(row);
        free(tick);
        free(d);
        return rc < 0 ? -1 : 0;
}

static struct sending *find_sending(const struct tick_messages *ms, int64_t delivery)
{
        char key[KEY_SIZE];

        return map_get(&ms->sending, delivery_key(delivery, key));
}

static void forget(struct tick_messages *ms, int64_t delivery)
{
        struct sending *g = find_sending(ms, delivery);
        char key[KEY_SIZE];

        for (unsigned i = 0; g && i < g->parts; i++)
                map_remove(&ms->sending, delivery_key(g->delivery + i, key));
        if (g)
                TAILQ_REMOVE(&ms->queue, g, next);
        free(g);
}

static void add_parts(struct tick_messages *ms, struct sending *g, unsigned parts)
{
        char key[KEY_SIZE];

        for (; g->parts < parts; g->parts++)
                map_put(&ms->sending, delivery_key(g->delivery + g->parts, key), g);
}

static void settle(struct schedule *s, int64_t tick, int64_t delivery);

static void on_settled(void *arg, const struct error *err)
{
        struct settling *m = arg;
        struct schedule *s = m->schedule;
        struct sending *g = err ? NULL : find_sending(s->messages, m->delivery);

        fault_point("schedule.settled");
        if (!err) {
                bus_publish(s->env.bus, &m->batch);
                s->stats.failed += m->state == TICK_FAILED;
                if (m->state == TICK_PENDING)
                        schedule_wake(s);
        }
        if (g && m->state != TICK_RUNNING) {
                forget(s->messages, m->delivery);
        } else if (g && g->parts < m->parts && !s->closing) {
                /* after a restart; what they reported before they were known is read again */
                add_parts(s->messages, g, m->parts);
                settle(s, m->tick, m->delivery);
        }
        bus_batch_release(&m->batch);
        free(m);
}

static void settle(struct schedule *s, int64_t tick, int64_t delivery)
{
        struct settling *m = mem_zalloc(sizeof(*m));

        m->schedule = s;
        m->tick = tick;
        m->delivery = delivery;
        schedule_write(s, "outcome of a message", write_settling, on_settled, m);
}

/* ---- under way ---- */

static void wait_for_next(struct tick_messages *ms)
{
        const struct sending *first = TAILQ_FIRST(&ms->queue);
        int64_t wait_ms = first ? first->look_ms - loop_now_ms(ms->schedule->env.loop) : 0;

        if (first)
                timer_start(ms->timer, wait_ms < 0 ? 0 : wait_ms);
        else
                timer_stop(ms->timer);
}

static void watch(struct tick_messages *ms, int64_t tick, int64_t delivery, unsigned parts)
{
        const struct schedule *s = ms->schedule;
        struct sending *g = mem_zalloc(sizeof(*g));

        forget(ms, delivery);
        g->tick = tick;
        g->delivery = delivery;
        add_parts(ms, g, parts);
        g->look_ms = loop_now_ms(s->env.loop) + s->conf->fallback_seconds * 1000;
        TAILQ_INSERT_TAIL(&ms->queue, g, next);
        wait_for_next(ms);
}

static void withdraw_rest(struct tick_messages *ms, const struct sending *g, const char *why)
{
        for (unsigned i = 1; i < g->parts; i++)
                (void)outbox_withdraw(ms->schedule->env.road, g->delivery + i, why);
}

static void on_looked(void *arg, const struct error *err)
{
        static const char why[] = "it could not be sent for too long; it goes to another chat "
                                  "(schedule.fallbackSeconds)";
        struct message_plan *p = arg;
        struct tick_messages *ms = p->schedule->messages;
        const struct sending *g;

        p->schedule->writes--;
        g = ms ? find_sending(ms, p->delivery) : NULL;
        /* a message of which a part has been sent waits where it is */
        if (!err && g && p->reach.count > 0 && !p->schedule->closing &&
            outbox_withdraw(p->schedule->env.road, g->delivery, why))
                withdraw_rest(ms, g, why);
        plan_free(p);
}

/* Is there another address for a message that waits? */
static void on_timer(void *arg)
{
        struct tick_messages *ms = arg;
        struct schedule *s = ms->schedule;
        int64_t now = loop_now_ms(s->env.loop);
        struct sending *g;

        while ((g = TAILQ_FIRST(&ms->queue)) && g->look_ms <= now && !s->quiet) {
                struct message_plan *p = plan_new(s, g->tick);

                p->delivery = g->delivery;
                TAILQ_REMOVE(&ms->queue, g, next);
                g->look_ms = now + s->conf->fallback_seconds * 1000;
                TAILQ_INSERT_TAIL(&ms->queue, g, next);
                s->writes++;
                store_read(s->env.store, write_plan, on_looked, p);
        }
        if (!s->quiet)
                wait_for_next(ms);
}

/* The number in {"deliveryId":"dlv-12",...; 0: none. */
static int64_t delivery_of(const struct bus_event *e)
{
        static const char start[] = "{\"deliveryId\":\"dlv-";

        if (strncmp(e->payload, start, sizeof(start) - 1) != 0)
                return 0;
        return strtoll(e->payload + sizeof(start) - 1, NULL, 10);
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct tick_messages *ms = arg;
        bool sent = strcmp(e->type, EVENT_MESSAGE_SENT) == 0;
        const struct sending *g;

        if (ms->sending.count == 0 || (!sent && strcmp(e->type, EVENT_MESSAGE_FAILED) != 0))
                return;
        g = find_sending(ms, delivery_of(e));
        if (!g)
                return;
        if (!sent) /* its further parts would make no sense, or arrive twice */
                withdraw_rest(ms, g, "the part before it could not be sent");
        settle(ms->schedule, g->tick, g->delivery);
}

/* ---- sending ---- */

static void add_text(const struct message_plan *p, const struct reach_address *to, struct buf *out)
{
        const struct tick_run *t = p->run;
        const struct schedule_row *row = t->row;
        const char *mention = json_string_value(json_object_get(t->options, "mention"));
        bool there = row->adapter && is_same(row->adapter, to->adapter) &&
                     is_same(row->channel, to->channel);

        if (strcmp(row->source, "reminder") == 0)
                buf_addstr(out, "⏰ ");
        if (mention && there) { /* others read along */
                road_mention(p->schedule->env.road, to->adapter, mention, p->name ? p->name : "you",
                             out);
                buf_addstr(out, ": ");
        }
        if (strcmp(row->source, "calendar") == 0) { /* words of ours, which may name commands */
                char *text = command_spell(p->schedule->env.road, to->adapter, row->text);

                buf_addstr(out, text);
                free(text);
        } else {
                buf_addstr(out, row->text);
        }
        if (t->late_ms > 0) {
                buf_addch(out, '\n');
                tick_describe_lateness(t, out);
        }
}

static void on_submitted(void *arg, const struct outbox_receipt *r)
{
        struct message_plan *p = arg;
        struct schedule *s = p->schedule;
        struct tick_run *t = p->run;
        const struct reach_address *to = &p->reach.items[0];
        bool ended = r->duplicate || (road_abilities(s->env.road, to->adapter) & ADAPTER_JOURNALED);
        char note[300];

        fault_point("schedule.submitted");
        if (r->error.kind == ERR_INVALID) {
                tick_end(t, TICK_FAILED, r->error.text);
        } else if (r->error.kind != ERR_NONE) {
                tick_retry(t, r->error.text);
        } else {
                snprintf(note, sizeof(note), "to %.100s/%.100s%s%.80s", to->adapter, to->channel,
                         p->last_error[0] ? ", after " : "", p->last_error);
                watch(s->messages, p->tick, r->delivery, r->count);
                tick_handed_over(t, r->delivery, t->tick->address + 1, note, r->trace);
                if (ended)
                        settle(s, p->tick, r->delivery);
        }
        plan_free(p);
}

static void submit(struct message_plan *p)
{
        const struct tick_run *t = p->run;
        const struct reach_address *to = &p->reach.items[0];
        const json_t *rows = json_object_get(t->options, "buttons");
        char *buttons = json_is_array(rows) ? json_dumps(rows, JSON_COMPACT) : NULL;
        char key[KEY_SIZE];
        struct buf text;

        buf_init(&text, 0);
        add_text(p, to, &text);
        request_key(p->tick, t->tick->address, key);
        fault_point("schedule.submit");
        outbox_submit(p->schedule->env.road,
                      &(struct outgoing){
                              .adapter = to->adapter,
                              .channel = to->channel,
                              .thread = to->thread,
                              .kind = DELIVER_SEND,
                              .text = text.data,
                              .buttons = buttons,
                              .trace = t->row->kind == SCHEDULE_PERIODIC ? NULL : t->row->trace,
                              .request_key = key,
                              .class = PACE_FINAL },
                      on_submitted, p);
        buf_release(&text);
        free(buttons);
}

static void on_planned(void *arg, const struct error *err)
{
        struct message_plan *p = arg;
        struct tick_run *t = p->run;
        char note[440];

        if (err) { /* only when the schedule closes: the next run resumes it */
                tick_retry(t, err->text);
        } else if (p->reach.verdict == REACH_NOW) {
                t->counted = true;
                submit(p);
                return;
        } else if (p->reach.verdict == REACH_LATER) {
                tick_defer(t, p->reach.not_before_ms, p->reach.why);
        } else {
                snprintf(note, sizeof(note), "nobody was reached: %s%s%s",
                         p->last_error[0] ? p->last_error : "",
                         p->last_error[0] && p->reach.why[0] ? "; " : "", p->reach.why);
                if (p->reported)
                        schedule_wake(p->schedule);
                tick_end(t, TICK_FAILED, note);
        }
        plan_free(p);
}

void tick_message_start(struct tick_run *t)
{
        struct message_plan *p = plan_new(t->schedule, t->tick->id);

        p->run = t;
        schedule_write(t->schedule, "addresses of a message", write_plan, on_planned, p);
}

/* ---- messages under way at the start ---- */

struct resumption {
        struct schedule *schedule;
        int64_t after;
        struct {
                int64_t tick, delivery;
        } found[RESUME_MAX];
        size_t count;
};

static int read_sending(struct store_tx *tx, void *arg, struct error *err)
{
        struct resumption *m = arg;
        struct store_stmt *s = tick_row_list_sending(tx, m->after, RESUME_MAX);
        struct tick_row tick;
        int rc;

        m->count = 0;
        while ((rc = tick_row_next(s, &tick, err)) == 1) {
                m->found[m->count].tick = tick.id;
                m->found[m->count++].delivery = tick.delivery;
        }
        return rc;
}

static void on_resumed(void *arg, const struct error *err)
{
        struct resumption *m = arg;
        struct schedule *s = m->schedule;

        s->writes--;
        if (err)
                log_error("cannot read which messages are under way", LOG_S("why", err->text));
        for (size_t i = 0; !err && i < m->count && !s->closing; i++) {
                watch(s->messages, m->found[i].tick, m->found[i].delivery, 1);
                settle(s, m->found[i].tick, m->found[i].delivery);
        }
        if (!err && m->count == RESUME_MAX && !s->closing) {
                m->after = m->found[m->count - 1].tick;
                s->writes++;
                store_read(s->env.store, read_sending, on_resumed, m);
                return;
        }
        free(m);
}

/* ---- life ---- */

struct tick_messages *tick_messages_open(struct schedule *s)
{
        struct tick_messages *ms = mem_zalloc(sizeof(*ms));

        ms->schedule = s;
        map_init(&ms->sending);
        TAILQ_INIT(&ms->queue);
        ms->timer = timer_new(s->env.loop, on_timer, ms);
        ms->listener = bus_listen(s->env.bus, 1u << STREAM_MESSAGE, on_event, ms);
        return ms;
}

void tick_messages_start(struct schedule *s)
{
        struct resumption *m = mem_zalloc(sizeof(*m));

        m->schedule = s;
        s->writes++;
        store_read(s->env.store, read_sending, on_resumed, m);
}

void tick_messages_close(struct schedule *s)
{
        struct tick_messages *ms = s->messages;
        struct sending *g;

        s->messages = NULL;
        if (!ms)
                return;
        while ((g = TAILQ_FIRST(&ms->queue))) {
                TAILQ_REMOVE(&ms->queue, g, next);
                free(g);
        }
        map_release(&ms->sending);
        timer_free(ms->timer);
        bus_unlisten(s->env.bus, ms->listener);
        free(ms);
}
