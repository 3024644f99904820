#include "remote/session_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define BURST_MS    250    /* what happens together is shown together */
#define URGENT_MS   500    /* after a round */
#define RETRY_MS    5000   /* after an error */
#define AWAY_MS     300000 /* while the adapter is not connected; its return comes first */
#define SENDING_MS  60000  /* the end of a delivery is an event; this is for one that was missed */
#define RECENT_MS   ((int64_t)7 * 86400000)
#define RECENT_MAX  1000 /* sessions */
#define SLOW_FACTOR 3    /* rounds that take so much longer than they should: see `slow` */
#define SLOW_MS     5000

/* Asked of the platform, which may answer after the view is gone. */
struct view_question {
        struct session_view *view; /* NULL: it is */
};

static void look(struct session_view *v);
static void go_on(struct session_view *v);
static void submit_next(struct session_view *v);

/* ---- life ---- */

static void enter(struct session_view *v, enum view_state state)
{
        v->state = state;
        timer_stop(v->timer);
}

static void rest(struct session_view *v, int64_t ms)
{
        enter(v, VIEW_RESTING);
        timer_start(v->timer, ms);
}

static void end_round(struct session_view *v)
{
        view_round_free(v->round);
        v->round = NULL;
}

static void view_free(struct session_view *v)
{
        map_remove(&v->remote->views, v->trace);
        if (v->question)
                v->question->view = NULL;
        timer_free(v->timer);
        end_round(v);
        free(v->trace);
        free(v);
}

static void on_timer(void *arg)
{
        struct session_view *v = arg;

        if (v->remote->quiet)
                return;
        if (v->state == VIEW_SENDING || v->again)
                look(v);
        else
                view_free(v);
}

static struct session_view *view_new(struct remote *r, int64_t session, const char *trace)
{
        struct session_view *v = mem_zalloc(sizeof(*v));

        v->remote = r;
        v->session = session;
        v->trace = mem_strdup(trace);
        v->timer = timer_new(r->env.loop, on_timer, v);
        v->submitted_ms = -1;
        map_put(&r->views, trace, v);
        return v;
}

/* Is there something to show it in? */
static bool is_shown(const struct remote *r, const struct session_row *row)
{
        return r->env.road && !r->quiet && r->started && (row->adapter || r->conf.channel);
}

static struct session_view *wake(struct remote *r, int64_t session, const char *trace, bool urgent,
                                 bool fresh)
{
        struct session_view *v = map_get(&r->views, trace);
        bool is_new = !v;

        if (!v)
                v = view_new(r, session, trace);
        v->again = true;
        v->urgent = v->urgent || urgent;
        v->fresh = v->fresh || fresh;
        if (is_new || (v->state == VIEW_RESTING && urgent))
                rest(v, urgent ? 0 : BURST_MS);
        return v;
}

bool session_view_wake(struct remote *r, const struct session_row *row, bool urgent, bool fresh)
{
        if (!is_shown(r, row))
                return false;
        wake(r, row->id, row->trace, urgent, fresh);
        return true;
}

/* ---- a round ---- */

/* Nothing is under way any more: when to look again. */
static void settle_down(struct session_view *v)
{
        int64_t since = loop_now_ms(v->remote->env.loop) - v->submitted_ms;
        int64_t pause = v->submitted_ms < 0 ? 0 : v->remote->conf.update_ms - since;

        if (v->urgent && pause > URGENT_MS)
                pause = URGENT_MS;
        if (pause < BURST_MS)
                pause = v->again && !v->urgent ? BURST_MS : 0;
        if (v->failed)
                pause = RETRY_MS;
        v->again = v->again || v->failed;
        end_round(v);
        rest(v, pause);
}

static void fail(struct session_view *v, const char *what, const char *why)
{
        log_warn(what, LOG_I("session", v->session), LOG_S("why", why));
        v->failed = true;
        settle_down(v);
}

static void await_end(struct session_view *v)
{
        end_round(v);
        enter(v, VIEW_SENDING);
        timer_start(v->timer, SENDING_MS);
        if (v->heard) /* perhaps it came before we waited for it */
                look(v);
}

/* The round is over. */
static void finish(struct session_view *v)
{
        v->again = v->again || v->round->more_settled;
        if (v->sent_count == 0 || v->failed)
                settle_down(v);
        else
                await_end(v);
}

static void publish(struct session_view *v)
{
        struct remote *r = v->remote;
        struct view_round *round = v->round;
        const struct chat_key chat = { round->row.adapter, round->row.channel, NULL };

        bus_publish(r->env.bus, &round->batch);
        if (round->linked) {
                round->session->adapter = round->row.adapter;
                round->session->channel = round->row.channel;
                round->session->thread = round->links ? round->row.own_thread : NULL;
                session_index_put(r, round->session);
        }
        for (size_t i = 0; i < round->message_count; i++) {
                session_index_add_message(r, round->session, &chat, round->messages[i].id,
                                          round->messages[i].is_root);
                free(round->messages[i].id);
        }
        round->message_count = 0;
        round->changed = round->links = round->claims = round->linked = round->settles = false;
}

static void on_written(void *arg, const struct error *err)
{
        struct view_round *round = arg;
        struct session_view *v = round->view;
        struct remote *r = v->remote;

        r->writes--;
        if (r->quiet) {
                view_free(v);
        } else if (err) {
                fail(v, "cannot store what is shown of a session; retrying", err->text);
        } else {
                publish(v);
                if (round->planned)
                        finish(v);
                else
                        go_on(v);
        }
}

static void store(struct session_view *v)
{
        enter(v, VIEW_STORING);
        v->round->row.used_ms = v->round->now_ms;
        v->remote->writes++;
        store_write(v->remote->env.store, view_write, on_written, v->round);
}

static bool is_passing(const struct error *err)
{
        return err->kind == ERR_LIMIT || err->kind == ERR_BUSY || err->kind == ERR_CANCELLED ||
               err->kind == ERR_IO || err->kind == ERR_FULL;
}

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        struct session_view *v = arg;
        struct remote *r = v->remote;
        struct view_round *round = v->round;
        struct view_step *step = &round->steps[round->at];

        r->writes--;
        if (r->quiet) {
                view_free(v);
                return;
        }
        if (is_passing(&receipt->error)) {
                fail(v, "a session cannot be shown now; retrying", receipt->error.text);
                return;
        }
        if (receipt->error.kind == ERR_NONE) {
                view_step_done(step, receipt->delivery, &round->row);
                round->changed = false; /* its transaction wrote the row */
                if (view_step_is_awaited(step))
                        v->sent[v->sent_count++] = receipt->delivery;
                r->stats.shown += step->kind == STEP_PAGE || step->kind == STEP_ASK;
                r->stats.edited += step->kind == STEP_PAGE_EDIT;
        } else {
                view_step_refused(step, &receipt->error);
        }
        round->at++;
        submit_next(v);
}

static void submit_next(struct session_view *v)
{
        struct view_round *round = v->round;
        struct outgoing out;

        enter(v, VIEW_SUBMITTING);
        if (round->at < round->step_count && !round->row.error) {
                view_outgoing(round, &round->steps[round->at], &out);
                v->remote->writes++;
                outbox_submit(v->remote->env.road, &out, on_submitted, v);
        } else if (round->changed || round->settles || round->claims) {
                store(v);
        } else {
                finish(v);
        }
}

/* Its messages are known and stored. */
static void forget_sent(struct session_view *v)
{
        v->sent_count = 0;
        v->inherits = false;
}

/* It was linked to a chat in which no thread begins for it. */
static bool is_in_chat_itself(const struct view_round *round)
{
        return round->session->adapter && !round->session->thread && !round->row.own_thread &&
               round->row.place <= 0 && round->threads == CHAT_NO_THREADS;
}

static void plan(struct session_view *v)
{
        view_plan(v->round);
        v->round->claims =
                is_in_chat_itself(v->round) && !session_index_has(v->remote, v->round->session);
        forget_sent(v);
        if (v->round->step_count > 0)
                v->submitted_ms = loop_now_ms(v->remote->env.loop);
        submit_next(v);
}

static void warn_of_end(const struct session_view *v)
{
        const struct session_view_row *row = &v->round->row;

        log_warn("a session is not shown any further; link it again", LOG_I("session", v->session),
                 LOG_S("adapter", row->adapter), LOG_S("channel", row->channel),
                 LOG_S("why", row->error));
}

/* The chat is not there, or not for us: asking again would not help. */
static void give_up(struct session_view *v, const struct error *err)
{
        struct view_round *round = v->round;

        round->row.error = arena_strdup(&round->arena, err->text);
        round->changed = true;
        warn_of_end(v);
        store(v);
}

static void on_threads(void *arg, enum chat_threads threads, const struct error *err)
{
        struct view_question *q = arg;
        struct session_view *v = q->view;

        free(q);
        if (!v)
                return;
        v->question = NULL;
        if (err && (err->kind == ERR_MISSING || err->kind == ERR_REFUSED)) {
                give_up(v, err);
                return;
        }
        if (err) {
                fail(v, "cannot find out whether a chat has threads; retrying", err->text);
                return;
        }
        v->round->threads = threads;
        plan(v);
}

static void ask_threads(struct session_view *v)
{
        const struct session_view_row *row = &v->round->row;

        enter(v, VIEW_ASKING);
        v->question = mem_zalloc(sizeof(*v->question));
        v->question->view = v;
        road_ask_threads(v->remote->env.road, row->adapter, row->channel, on_threads, v->question);
}

static const char *platform_of(const struct remote *r, const char *adapter)
{
        const char *name, *platform;

        for (size_t i = 0; r->env.adapter_at && r->env.adapter_at(r->env.arg, i, &name, &platform);
             i++)
                if (strcmp(name, adapter) == 0)
                        return platform;
        return NULL;
}

static void find_account(struct session_view *v)
{
        struct view_round *round = v->round;
        const char *platform = platform_of(v->remote, round->row.adapter);

        for (size_t i = 0; platform && !round->person.id && i < round->account_count; i++)
                if (strcmp(round->accounts[i].platform, platform) == 0)
                        round->person.id = round->accounts[i].user;
}

/* The last round has ended: did it take long? */
static void measure(struct session_view *v)
{
        int64_t took = loop_now_ms(v->remote->env.loop) - v->submitted_ms;

        if (v->sent_count > 0 && v->submitted_ms >= 0)
                v->slow = took > SLOW_MS + SLOW_FACTOR * v->remote->conf.update_ms;
}

/* What was learned is stored. */
static void go_on(struct session_view *v)
{
        struct remote *r = v->remote;
        struct view_round *round = v->round;

        if (round->row.error) {
                forget_sent(v);
                settle_down(v);
        } else if (!road_is_ready(r->env.road, round->row.adapter)) {
                v->again = true;
                forget_sent(v); /* the chat is not slow because its adapter was away */
                end_round(v);
                rest(v, AWAY_MS);
        } else {
                measure(v);
                round->can = road_abilities(r->env.road, round->row.adapter);
                find_account(v);
                if (round->row.root == 0 && round->row.place == 0 && !round->row.thread &&
                    r->conf.threads)
                        ask_threads(v);
                else
                        plan(v);
        }
}

static void on_read(void *arg, const struct error *err)
{
        struct view_round *round = arg;
        struct session_view *v = round->view;
        struct remote *r = v->remote;

        r->writes--;
        if (r->quiet) {
                view_free(v);
        } else if (err) {
                fail(v, "cannot read what a session did; retrying", err->text);
        } else if (round->more) {
                r->writes++;
                store_read(r->env.store, view_read, on_read, round);
        } else if (!round->session || round->shown_nowhere ||
                   (round->row.error && !round->changed)) {
                v->again = false;
                settle_down(v);
        } else if (round->under_way) {
                await_end(v);
        } else if (round->changed) {
                if (round->row.error)
                        warn_of_end(v);
                store(v);
        } else {
                go_on(v);
        }
}

static void look(struct session_view *v)
{
        struct remote *r = v->remote;
        struct view_round *round = mem_zalloc(sizeof(*round));

        enter(v, VIEW_READING);
        round->view = v;
        arena_init(&round->arena);
        round->now_ms = clock_wall_ms();
        round->room = v->slow ? 1 : DIGEST_ROOM;
        round->fresh = v->fresh;
        round->default_adapter = arena_strdup(&round->arena, r->conf.adapter);
        round->default_channel = arena_strdup(&round->arena, r->conf.channel);
        memcpy(round->sent, v->sent, sizeof(v->sent));
        round->sent_count = v->sent_count;
        round->inherits = v->inherits;
        v->again = v->heard = v->urgent = v->fresh = v->failed = false;
        v->round = round;
        r->writes++;
        store_read(r->env.store, view_read, on_read, round);
}

/* ---- what wakes it ---- */

static bool ends_delivery(const char *type)
{
        return strcmp(type, EVENT_MESSAGE_SENT) == 0 || strcmp(type, EVENT_MESSAGE_FAILED) == 0 ||
               strcmp(type, EVENT_DELIVERY_SENT) == 0 || strcmp(type, EVENT_DELIVERY_FAILED) == 0;
}

static void on_delivery(struct remote *r, const struct bus_event *e)
{
        struct session_view *v = e->trace ? map_get(&r->views, e->trace) : NULL;

        if (!v || !ends_delivery(e->type))
                return;
        v->heard = true;
        if (v->state == VIEW_SENDING)
                look(v);
}

/* Those that wait for the adapter, or for better times. */
static void on_adapter(struct remote *r, const struct bus_event *e)
{
        const char *key;
        void *value;

        if (!e->adapter || strcmp(e->type, "adapter.connected") != 0)
                return;
        for (size_t i = 0; map_each(&r->views, &i, &key, &value);) {
                struct session_view *v = value;

                if (v->state == VIEW_RESTING && v->again)
                        timer_start(v->timer, BURST_MS);
        }
}

/* Commands, decisions, and what our timer did. Events of programs come by session_view_wake. */
static void on_session(struct remote *r, const struct bus_event *e)
{
        const char *dot = strchr(e->type, '.');
        long long session = 0;
        json_t *payload;

        if (!dot || !strchr(dot + 1, '.') || !e->trace || r->quiet || !r->started)
                return;
        payload = json_read_lenient(e->payload, strlen(e->payload), NULL);
        sscanf(json_str(payload, "session", ""), "ses-%lld", &session);
        json_decref(payload);
        if (session > 0 && r->env.road)
                wake(r, session, e->trace, true, false);
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct remote *r = arg;

        switch (bus_stream_of(e->type)) {
        case STREAM_SESSION:
                on_session(r, e);
                break;
        case STREAM_ADAPTER:
                on_adapter(r, e);
                break;
        default:
                on_delivery(r, e);
        }
}

void session_views_open(struct remote *r)
{
        map_init(&r->views);
        r->view_listener = bus_listen(r->env.bus,
                                      1u << STREAM_SESSION | 1u << STREAM_ADAPTER |
                                              1u << STREAM_MESSAGE | 1u << STREAM_DELIVERY,
                                      on_event, r);
}

/* ---- the start ---- */

struct recent {
        struct {
                int64_t session;
                char *trace;
        } items[RECENT_MAX];
        size_t count;
};

static int read_recent(struct store_tx *tx, void *arg, struct error *err)
{
        struct recent *all = arg;
        struct store_stmt *s =
                session_view_row_list_recent(tx, clock_wall_ms() - RECENT_MS, RECENT_MAX);
        struct session_view_recent one;
        int rc;

        while ((rc = session_view_row_next(s, &one, err)) == 1) {
                all->items[all->count].session = one.session;
                all->items[all->count++].trace = mem_strdup(one.trace);
        }
        return rc;
}

void session_views_start(struct remote *r)
{
        struct recent *all;
        struct error err;

        if (!r->env.road)
                return;
        all = mem_zalloc(sizeof(*all));
        if (store_read_now(r->env.store, read_recent, all, &err) < 0)
                log_error("cannot read which sessions are to be shown", LOG_S("why", err.text));
        for (size_t i = 0; i < all->count; i++) {
                wake(r, all->items[i].session, all->items[i].trace, false, true)->inherits = true;
                free(all->items[i].trace);
        }
        free(all);
}

void session_views_close(struct remote *r)
{
        const char *key;
        void *value;

        bus_unlisten(r->env.bus, r->view_listener);
        for (size_t i = 0; map_each(&r->views, &i, &key, &value);)
                view_free(value);
        map_release(&r->views);
}
