#include "agent/child/child.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "rows/agent_session_row.h"
#include "rows/turn_row.h"

#define CLOSE_MS  3000 /* from the end of stdin to TERM */
#define TERM_MS   2000 /* from there to KILL */
#define WORDS_MAX 64
#define LOST_MAX  2 /* processes, before they were given the turn */

const char *child_state_name(enum child_state state)
{
        static const char *const names[] = {
                [CHILD_ABSENT] = "absent",     [CHILD_QUEUED] = "queued",
                [CHILD_STARTING] = "starting", [CHILD_IDLE] = "idle",
                [CHILD_MARKING] = "marking",   [CHILD_WORKING] = "working",
                [CHILD_STOPPING] = "stopping", [CHILD_ENDING] = "ending",
        };

        return names[state];
}

/* The only place that changes the state; starts what has to end it. */
static void enter(struct child *c, enum child_state state)
{
        const struct child_conf *conf = c->owner->conf;

        log_debug("child", LOG_S("agent", c->owner->agent->name), LOG_I("child", c->number),
                  LOG_S("from", child_state_name(c->state)), LOG_S("to", child_state_name(state)));
        c->state = state;
        timer_stop(c->timer);
        timer_stop(c->limit);
        switch (state) {
        case CHILD_STARTING:
                timer_start(c->timer, conf->start_ms);
                break;
        case CHILD_IDLE:
                c->used_ms = clock_wall_ms();
                if (conf->idle_minutes > 0)
                        timer_start(c->timer, (int64_t)(conf->idle_minutes * 60000));
                break;
        case CHILD_WORKING:
                timer_start(c->timer, conf->silence_seconds * 1000);
                c->limit_ms = loop_now_ms(c->owner->agent->loop) + conf->turn_minutes * 60000;
                timer_start(c->limit, conf->turn_minutes * 60000);
                break;
        case CHILD_STOPPING:
                timer_start(c->timer, conf->cancel_ms);
                break;
        case CHILD_ENDING:
                timer_start(c->timer, CLOSE_MS);
                break;
        case CHILD_ABSENT:
        case CHILD_QUEUED:
        case CHILD_MARKING:
                break;
        }
}

/* ---- the process ---- */

struct child_words {
        const char *argv[WORDS_MAX + 1];
        char *owned[WORDS_MAX];
        size_t argc, owned_count;
};

void child_add_word(struct child_words *w, const char *word)
{
        if (w->argc >= WORDS_MAX)
                return;
        w->owned[w->owned_count] = mem_strdup(word);
        w->argv[w->argc++] = w->owned[w->owned_count++];
}

/* Also what is left of one that could not be started. */
static void release_process(struct child *c)
{
        struct child_agent *o = c->owner;

        if (c->dialect && o->dialect->ended)
                o->dialect->ended(c);
        if (c->process)
                o->running--;
        child_process_free(c->process);
        c->process = NULL;
        free(c->dialect);
        c->dialect = NULL;
        child_place_release(&c->place);
        c->memory_bytes = c->cpu_ms = 0;
        c->runs = c->awaits = false;
        enter(c, CHILD_ABSENT);
        timer_start(o->sweep, 0); /* its place is free, and it may be of no use */
}

void child_end_process(struct child *c)
{
        enter(c, CHILD_ENDING);
        child_process_close_input(c->process);
}

static void fail_first(struct child *c, enum error_kind kind, const char *notice, const char *why)
{
        struct child_turn *t = TAILQ_FIRST(&c->turns);

        snprintf(c->owner->problem, sizeof(c->owner->problem), "%s", why);
        if (!t)
                return;
        TAILQ_REMOVE(&c->turns, t, next);
        child_turn_fail(t, kind, EFFECT_NONE, notice, why);
}

static int on_line(void *arg, const char *line, size_t n, struct buf *out)
{
        struct child *c = arg;
        struct child_agent *o = c->owner;

        c->heard_ms = loop_now_ms(o->agent->loop);
        if (c->state == CHILD_WORKING && !child_turn_asks(c->turn))
                timer_start(c->timer, o->conf->silence_seconds * 1000);
        return o->dialect->read_line ? o->dialect->read_line(c, line, n, out) : -1;
}

static void on_message(void *arg, json_t *message)
{
        struct child *c = arg;
        struct child_agent *o = c->owner;
        size_t most = (size_t)o->conf->output_mb << 20;

        if (c->state == CHILD_WORKING &&
            child_process_received(c->process) - c->turn->received > most)
                child_kill(c, ERR_LIMIT, "it sent more than outputMb in one turn");
        else
                o->dialect->received(c, message);
}

/* It has no turn from now on; the result may still be told what becomes of it. */
static struct child_turn *take_turn(struct child *c)
{
        struct child_turn *t = c->turn;

        c->turn = NULL;
        child_forget_steering(c);
        return t;
}

/* The turn it works on fails, because of what happened to the process. */
static void fail_turn(struct child *c, enum error_kind kind, const char *why)
{
        struct child_turn *t = take_turn(c);
        char *notice;

        notice = mem_printf("The agent was interrupted: %s. What it did until then remains; write "
                            "again to go on.",
                            why);
        log_redact(notice);
        child_turn_fail(t, kind, EFFECT_POSSIBLE, notice, why);
        free(notice);
}

/* The process is of no more use to the turn that it has, or was started for. */
static void take_turn_back(struct child *c, enum error_kind kind, const char *why)
{
        bool fails = c->state == CHILD_STARTING;
        char *notice;

        if (c->state == CHILD_MARKING) { /* it was not given: the next process gets it */
                fails = ++c->turn->lost >= LOST_MAX;
                TAILQ_INSERT_HEAD(&c->turns, c->turn, next);
                c->turn = NULL;
        } else if (c->state == CHILD_WORKING) {
                fail_turn(c, kind, why);
        }
        if (!fails)
                return;
        notice = mem_printf("The agent could not be started: %s. Please tell the operator.", why);
        log_redact(notice);
        fail_first(c, kind, notice, why);
        free(notice);
}

static void on_broken(void *arg, enum error_kind kind, const char *why)
{
        struct child *c = arg;

        take_turn_back(c, kind, why);
        enter(c, CHILD_ENDING);
}

static void on_ended(void *arg, const char *why)
{
        struct child *c = arg;
        struct child_agent *o = c->owner;
        enum child_state was = c->state;

        if (was != CHILD_ENDING)
                log_warn("agent process ended", LOG_S("agent", o->agent->name),
                         LOG_I("child", c->number), LOG_S("state", child_state_name(was)),
                         LOG_S("why", why));
        take_turn_back(c, ERR_IO, why);
        release_process(c);
        child_pump(c);
}

static struct child_process *start_process(struct child *c, struct error *err)
{
        static const struct child_process_handlers handlers = { on_line, on_message, on_broken,
                                                                on_ended };
        struct child_agent *o = c->owner;
        struct child_words words = { .argc = 0 };
        struct child_process *p;

        for (size_t i = 0; i < o->conf->command.count && i < WORDS_MAX; i++)
                words.argv[words.argc++] = o->conf->command.items[i];
        if (o->dialect->add_words)
                o->dialect->add_words(c, &words);
        p = child_process_start(
                &(struct child_process_options){ .sandboxes = o->sandboxes,
                                                 .key = child_sandbox_key(c),
                                                 .folder = c->place.folder,
                                                 .argv = words.argv,
                                                 .name = o->agent->name,
                                                 .line_max = (size_t)o->conf->line_kb << 10,
                                                 .loop = o->agent->loop },
                &handlers, c, err);
        for (size_t i = 0; i < words.owned_count; i++)
                free(words.owned[i]);
        return p;
}

void child_begin(struct child *c)
{
        struct child_agent *o = c->owner;
        struct error err = { 0 };
        char *notice;

        if (child_place_open(&c->place, o, TAILQ_FIRST(&c->turns)->run, &err) == 0) {
                c->dialect = mem_zalloc(o->dialect->state_size ? o->dialect->state_size : 1);
                c->process = start_process(c, &err);
        }
        if (!c->process) {
                release_process(c);
                notice = mem_printf("The agent could not be started: %s. Please tell the operator.",
                                    err.text);
                fail_first(c, err.kind, notice, err.text);
                free(notice);
                child_pump(c);
                return;
        }
        o->running++;
        c->started_ms = c->used_ms = clock_wall_ms();
        c->resumed = false;
        enter(c, CHILD_STARTING);
        child_measure_begin(o);
        o->dialect->started(c);
}

/* ---- giving it a turn ---- */

struct child_mark {
        struct child *child; /* NULL: the turn was taken back */
        char *agent, *name, *session;
        int64_t turn, fence;
};

static int write_mark(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        const struct child_mark *m = arg;
        const struct agent_session_row session = { .agent = m->agent,
                                                   .name = m->name,
                                                   .session = m->session,
                                                   .turn = m->turn,
                                                   .used_ms = clock_wall_ms() };
        int rc = turn_row_give(tx, m->turn, m->fence, m->agent, err);

        (void)batch;
        return rc == 1 ? agent_session_row_put(tx, &session, m->fence, err) : rc;
}

static void mark_free(struct child_mark *m)
{
        free(m->agent);
        free(m->name);
        free(m->session);
        free(m);
}

static void on_marked(void *arg, bool stored)
{
        struct child_mark *m = arg;
        struct child *c = m->child;
        struct child_turn *t;

        mark_free(m);
        if (!c)
                return;
        c->mark = NULL;
        if (c->state != CHILD_MARKING) { /* the process ended meanwhile */
                child_pump(c);
                return;
        }
        t = c->turn;
        if (!stored) {
                if (t->run->interrupted)
                        return; /* cancel follows */
                c->turn = NULL;
                enter(c, CHILD_IDLE);
                child_turn_fail(t, ERR_CONFLICT, EFFECT_POSSIBLE, NULL,
                                "another process has this turn");
                child_pump(c);
                return;
        }
        fault_point("child.marked");
        t->received = child_process_received(c->process);
        c->conversation = t->run->conversation;
        enter(c, CHILD_WORKING);
        c->owner->dialect->prompt(c);
        fault_point("child.prompted");
        child_steer(c); /* what came while it was started */
}

void child_forget_writes(struct child *c)
{
        if (c->mark)
                c->mark->child = NULL;
        child_forget_steering(c);
}

static void give_next(struct child *c)
{
        struct child_turn *t = TAILQ_FIRST(&c->turns);
        struct child_mark *m = mem_zalloc(sizeof(*m));

        TAILQ_REMOVE(&c->turns, t, next);
        c->turn = t;
        c->mark = m;
        m->child = c;
        m->agent = mem_strdup(c->owner->agent->name);
        m->name = mem_strdup(c->name);
        m->session = mem_strdup(c->session);
        m->turn = t->run->id;
        m->fence = t->run->fence;
        enter(c, CHILD_MARKING);
        if (turn_store_step(t->run, write_mark, on_marked, m))
                return;
        c->mark = NULL; /* Dragoman ends: cancel follows */
        mark_free(m);
}

/* Takes the next step for the turns that wait. */
void child_pump(struct child *c)
{
        struct child_agent *o = c->owner;

        if (TAILQ_EMPTY(&c->turns)) {
                timer_start(o->sweep, 0);
                return;
        }
        switch (c->state) {
        case CHILD_ABSENT:
                if (c->mark)
                        return; /* of a turn that comes again: on_marked pumps */
                if (child_has_place(o)) {
                        child_begin(c);
                        return;
                }
                enter(c, CHILD_QUEUED);
                turn_progress(TAILQ_FIRST(&c->turns)->run, "waiting for other sessions");
                child_make_room(o);
                break;
        case CHILD_IDLE:
                if (!c->mark)
                        give_next(c);
                break;
        case CHILD_QUEUED:
        case CHILD_STARTING:
        case CHILD_MARKING:
        case CHILD_WORKING:
        case CHILD_STOPPING:
        case CHILD_ENDING:
                break;
        }
}

/* ---- ending a turn ---- */

static void end_work(struct child *c, bool unusable)
{
        if (unusable)
                child_end_process(c);
        else
                enter(c, CHILD_IDLE);
}

/* The agent may still work on it. */
static void stop_work(struct child *c)
{
        enter(c, CHILD_STOPPING);
        c->owner->dialect->cancel(c);
}

void child_over(struct child *c, const struct child_end *end)
{
        struct child_turn *t;

        if (c->state == CHILD_STOPPING) {
                end_work(c, end->unusable);
                child_pump(c);
                return;
        }
        if (c->state != CHILD_WORKING || child_steering_holds(c, end))
                return;
        fault_point("child.over");
        t = take_turn(c);
        c->turns_done++;
        c->resumed = true; /* it knows the conversation now */
        end_work(c, end->unusable);
        child_turn_finish(t, end);
        child_pump(c);
}

void child_kill(struct child *c, enum error_kind kind, const char *why)
{
        if (!c->process || c->state == CHILD_ENDING)
                return;
        take_turn_back(c, kind, why);
        log_warn("ending an agent's process", LOG_S("agent", c->owner->agent->name),
                 LOG_I("child", c->number), LOG_S("why", why));
        enter(c, CHILD_ENDING);
        child_process_stop(c->process, 0);
}

void child_cancel(struct agent *a, struct turn_run *run)
{
        struct child_turn *t = run->agent_data;
        struct child *c = t ? t->child : NULL;
        enum child_state was;

        (void)a;
        run->agent_data = NULL;
        if (!t)
                return;
        if (!c || c->turn != t) {
                if (c)
                        TAILQ_REMOVE(&c->turns, t, next);
                child_turn_free(t);
                if (c)
                        child_pump(c);
                return;
        }
        was = c->state;
        take_turn(c);
        if (was == CHILD_MARKING) {
                if (c->mark)
                        c->mark->child = NULL;
                c->mark = NULL;
                enter(c, CHILD_IDLE);
        } else {
                if (run->stopped)
                        child_tools_end(t, "stopped");
                stop_work(c);
        }
        child_turn_free(t);
        child_pump(c);
}

/* ---- time ---- */

static void on_timer(void *arg)
{
        struct child *c = arg;
        char why[120];

        switch (c->state) {
        case CHILD_STARTING:
                snprintf(why, sizeof(why), "it was not ready within %" PRId64 " ms",
                         c->owner->conf->start_ms);
                child_kill(c, ERR_TIMEOUT, why);
                break;
        case CHILD_IDLE:
                if (child_works_for_ms(c) > 0 || c->awaits)
                        timer_start(c->timer, (int64_t)(c->owner->conf->idle_minutes * 60000));
                else
                        child_end_process(c);
                break;
        case CHILD_WORKING:
                snprintf(why, sizeof(why), "it said nothing for %" PRId64 " seconds",
                         c->owner->conf->silence_seconds);
                fail_turn(c, ERR_TIMEOUT, why);
                stop_work(c);
                break;
        case CHILD_STOPPING:
                child_kill(c, ERR_TIMEOUT, "it did not stop when it was told to");
                break;
        case CHILD_ENDING:
                child_process_stop(c->process, TERM_MS);
                break;
        case CHILD_ABSENT:
        case CHILD_QUEUED:
        case CHILD_MARKING:
                break;
        }
}

static void on_limit(void *arg)
{
        struct child *c = arg;
        char why[80];

        if (c->state != CHILD_WORKING)
                return;
        snprintf(why, sizeof(why), "it worked for %" PRId64 " minutes",
                 c->owner->conf->turn_minutes);
        fail_turn(c, ERR_TIMEOUT, why);
        stop_work(c);
}

void child_pause_limits(struct child *c, bool pause)
{
        int64_t now = loop_now_ms(c->owner->agent->loop);

        if (c->state != CHILD_WORKING)
                return;
        if (pause) {
                timer_stop(c->timer);
                timer_stop(c->limit);
                c->limit_ms -= now; /* what is left */
        } else {
                timer_start(c->timer, c->owner->conf->silence_seconds * 1000);
                timer_start(c->limit, c->limit_ms > 0 ? c->limit_ms : 1);
                c->limit_ms += now;
        }
}

void child_make_timers(struct child *c)
{
        struct loop *l = c->owner->agent->loop;

        c->timer = timer_new(l, on_timer, c);
        c->limit = timer_new(l, on_limit, c);
        timer_unref(c->timer);
}

/* ---- what it reports ---- */

void child_send(struct child *c, const char *json, size_t n)
{
        struct error err = { 0 };

        if (!c->process || c->state == CHILD_ENDING)
                return;
        if (child_process_send(c->process, json, n, &err) < 0 && err.kind == ERR_LIMIT)
                child_kill(c, ERR_LIMIT, "it does not read what it is told");
}

void child_send_json(struct child *c, json_t *message)
{
        char *text = json_text(message);

        json_decref(message);
        child_send(c, text, strlen(text));
        free(text);
}

void child_ready(struct child *c, const char *session, bool resumed)
{
        if (c->state != CHILD_STARTING)
                return;
        child_remember(c, session);
        c->resumed = resumed;
        c->owner->problem[0] = '\0';
        enter(c, CHILD_IDLE);
        child_pump(c);
}

void child_refused(struct child *c, enum error_kind kind, const char *notice, const char *why)
{
        if (c->state != CHILD_STARTING)
                return;
        fail_first(c, kind, notice, why);
        child_end_process(c);
}

int64_t child_works_for_ms(const struct child *c)
{
        const struct child_agent *o = c->owner;
        int64_t silent = loop_now_ms(o->agent->loop) - c->heard_ms;
        int64_t most = o->conf->silence_seconds * 1000;

        return c->runs && silent < most ? most - silent : 0;
}

void child_set_busy(struct child *c, bool runs, bool awaits)
{
        if (c->runs && !runs)
                timer_start(c->owner->sweep, 0); /* it can make room now */
        c->runs = runs;
        c->awaits = awaits;
}

void child_set_session(struct child *c, const char *session)
{
        child_remember(c, session);
}
