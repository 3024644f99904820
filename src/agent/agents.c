/*
 * The registry of configured agents.
 *
 * An instance is one opened agent. A reload that changes it puts a new instance into the map and
 * retires the old one, which stays open while turns or health checks hold it. What must not happen
 * inside the caller's callback (closing an instance, refusing a turn, answering a check at once) is
 * done by one timer, so that freeing the registry forgets it. Turns are in agent_runs.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/clock.h"
#include "base/mem.h"

/* ---- instances ---- */

static void slot_free(struct agent_slot *in)
{
        if (!in)
                return;
        if (in->agent.ops->close)
                in->agent.ops->close(&in->agent);
        agent_conf_free(in->conf);
        free(in);
}

/* Takes the conf over in any case. */
static struct agent_slot *slot_open(struct agents *as, struct agent_conf *conf, struct error *err)
{
        struct agent_slot *in = mem_zalloc(sizeof(*in));

        in->all = as;
        in->conf = conf;
        queue_init(&in->queue);
        in->agent = (struct agent){
                .ops = conf->ops,
                .name = conf->name,
                .conf = conf->conf,
                .loop = as->loop,
                .http = as->http,
                .dir = as->dir,
        };
        if (!conf->ops->open || conf->ops->open(&in->agent, err) == 0)
                return in;
        error_prefix(err, "agent '%s'", conf->name);
        agent_conf_free(conf);
        free(in);
        return NULL;
}

static void retire(struct agent_slot *in)
{
        in->retired = true;
        LIST_INSERT_HEAD(&in->all->retired, in, next);
        timer_start(in->all->deferred, 0);
}

void agent_slot_release(struct agent_slot *in)
{
        in->holds--;
        if (in->retired && in->holds == 0)
                timer_start(in->all->deferred, 0);
}

/* ---- chores: what waits for the loop ---- */

static struct health_check *first_at_once(const struct agents *as)
{
        struct health_check *c = LIST_FIRST(&as->checks);

        while (c && !c->at_once)
                c = LIST_NEXT(c, next);
        return c;
}

/* One at a time: whoever hears of it may ask again. */
static void answer_checks(struct agents *as)
{
        struct health_check *c = first_at_once(as);

        if (!c)
                return;
        timer_start(as->deferred, 0);
        agent_health_report(c, true, 0, "");
}

static void close_retired(struct agents *as)
{
        struct agent_slot *in, *following;

        for (in = LIST_FIRST(&as->retired); in; in = following) {
                following = LIST_NEXT(in, next);
                if (in->holds)
                        continue;
                LIST_REMOVE(in, next);
                slot_free(in);
        }
}

static void on_deferred(void *arg)
{
        struct agents *as = arg;

        agent_runs_pump(as);
        answer_checks(as);
        close_retired(as);
}

struct agents *agents_new(struct loop *l, struct http_client *http, const char *dir)
{
        struct agents *as = mem_zalloc(sizeof(*as));

        as->loop = l;
        as->http = http;
        as->dir = mem_strdup(dir);
        map_init(&as->live);
        LIST_INIT(&as->retired);
        agent_runs_init(as);
        LIST_INIT(&as->checks);
        LIST_INIT(&as->event_writes);
        as->deferred = timer_new(l, on_deferred, as);
        return as;
}

static void health_of(const struct agent_slot *in, struct agent_health *h);

/* Whoever asked is told what was known before; nobody will find out more. */
static void drop_checks(struct agents *as)
{
        struct agent_health known;
        struct health_check *c;

        while ((c = LIST_FIRST(&as->checks))) {
                LIST_REMOVE(c, next);
                health_of(c->on, &known);
                c->fn(c->arg, &known);
                free(c);
        }
}

void agents_free(struct agents *as)
{
        struct agent_slot *in;
        void *value;

        if (!as)
                return;
        timer_free(as->deferred);
        drop_checks(as);
        agent_runs_drop(as);
        agent_events_drop(as);
        answers_release(&as->answers);
        while ((in = LIST_FIRST(&as->retired))) {
                LIST_REMOVE(in, next);
                slot_free(in);
        }
        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);)
                slot_free(value);
        map_release(&as->live);
        free(as->dir);
        free(as);
}

/* ---- reconciling ---- */

/* A handle may stand for another secret than before although it reads the same. */
static bool same_secrets(const struct setting *table, const void *a, const void *b)
{
        for (const struct setting *row = table; row->type != SETTING_NONE; row++) {
                const struct secret *old, *new;

                if (row->type != SETTING_SECRET)
                        continue;
                memcpy(&old, (const char *)a + row->at, sizeof(const struct secret *));
                memcpy(&new, (const char *)b + row->at, sizeof(const struct secret *));
                if (!old || !new) {
                        if (old != new)
                                return false;
                } else if (!secret_equals(old, secret_reveal(new), secret_length(new))) {
                        return false;
                }
        }
        return true;
}

static bool same_conf(const struct agent_conf *a, const struct agent_conf *b)
{
        return a->ops == b->ops && json_equal(a->raw, b->raw) &&
               same_secrets(a->ops->settings, a->conf, b->conf);
}

/* Opens what is new or changed; opened[i] stays NULL where the running instance may stay. */
static int open_changed(struct agents *as, struct agent_conf **confs, size_t count,
                        struct agent_slot **opened, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                struct agent_conf *conf = confs[i];
                struct agent_slot *old = map_get(&as->live, conf->name);

                if (old && same_conf(old->conf, conf))
                        continue;
                confs[i] = NULL;
                opened[i] = slot_open(as, conf, err);
                if (!opened[i])
                        return -1;
        }
        return 0;
}

/* Fills `next` with the instances that are to run from now on. */
static void put_together(struct agents *as, struct agent_conf **confs, size_t count,
                         struct agent_slot **opened, struct map *next)
{
        for (size_t i = 0; i < count; i++) {
                struct agent_slot *in = opened[i] ? opened[i] : map_get(&as->live, confs[i]->name);

                map_put(next, in->agent.name, in);
        }
}

static void switch_to(struct agents *as, const struct map *next)
{
        struct map before = as->live;
        const char *name;
        void *value;

        as->live = *next; /* first: who waited for one that is gone looks for another among these */
        for (size_t i = 0; map_each(&before, &i, &name, &value);) {
                struct agent_slot *old = value, *new = map_get(&as->live, name);

                if (new == old)
                        continue;
                if (new) {
                        new->health.turns = old->health.turns;
                        new->health.failures = old->health.failures;
                }
                agent_runs_move(old, new);
                retire(old);
        }
        map_release(&before);
}

int agents_apply(struct agents *as, struct agent_conf **confs, size_t count, struct error *err)
{
        struct agent_slot **opened = mem_array(count ? count : 1, sizeof(struct agent_slot *));
        int rc = open_changed(as, confs, count, opened, err);
        struct map next;

        if (rc == 0) {
                map_init(&next);
                put_together(as, confs, count, opened, &next);
                switch_to(as, &next);
        } else {
                for (size_t i = 0; i < count; i++)
                        slot_free(opened[i]);
        }
        for (size_t i = 0; i < count; i++) {
                agent_conf_free(confs[i]);
                confs[i] = NULL;
        }
        free(opened);
        return rc;
}

/* ---- turns ---- */

bool agents_has(struct agents *as, const char *name)
{
        return map_get(&as->live, name) != NULL;
}

unsigned agent_slot_abilities(const struct agent_slot *in)
{
        return in->agent.ops->abilities ? in->agent.ops->abilities(&in->agent) : in->agent.ops->can;
}

/*
 * Of whoever may get its turns. After a crash nobody knows who had one: it may be run again only
 * when that harms none of the list. And the conversation is gathered before anybody is asked, so
 * for any who wants it.
 */
unsigned agents_abilities(struct agents *as, const char *agent)
{
        const struct agent_slot *in = map_get(&as->live, agent);
        unsigned can = in ? agent_slot_abilities(in) : 0;

        for (size_t i = 0; in && i < in->conf->common.failover.count; i++) {
                const struct agent_slot *other =
                        map_get(&as->live, in->conf->common.failover.items[i]);
                unsigned others = other ? agent_slot_abilities(other) : AGENT_REPEATABLE;

                can |= others & AGENT_HISTORY;
                if (!(others & AGENT_REPEATABLE))
                        can &= ~(unsigned)AGENT_REPEATABLE;
        }
        return can;
}

void agent_hold(struct agent *a)
{
        ((struct agent_slot *)a)->holds++;
}

void agent_unhold(struct agent *a)
{
        agent_slot_release((struct agent_slot *)a);
}

/* ---- reply URLs ---- */

int agents_set_outlet(struct agents *as, const struct agents_outlet *outlet, struct error *err)
{
        return answers_open(&as->answers, outlet, err);
}

void agents_set_reply_base(struct agents *as, const char *url)
{
        size_t n = strlen(url);

        while (n > 0 && url[n - 1] == '/')
                n--;
        free(as->answers.base);
        as->answers.base = mem_strndup(url, n);
}

char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds)
{
        return answers_url(&((const struct agent_slot *)a)->all->answers, run->key, seconds);
}

/* ---- persons ---- */

void agents_set_persons(struct agents *as, agents_person_fn *fn, void *ctx)
{
        as->person = fn;
        as->person_ctx = ctx;
}

int64_t agent_person(const struct agent *a, const struct incoming *in)
{
        const struct agents *as = ((const struct agent_slot *)a)->all;

        return as->person && in->platform && in->sender_id
                       ? as->person(as->person_ctx, in->platform, in->sender_id)
                       : 0;
}

/* ---- health ---- */

static void health_of(const struct agent_slot *in, struct agent_health *h)
{
        int64_t rest_ms = in->breaker.until_ms - loop_now_ms(in->all->loop);

        *h = in->health;
        h->running = in->queue.working;
        h->waiting = in->queue.waiting;
        h->circuit = breaker_name(in->breaker.state);
        h->circuit_open = in->breaker.state != BREAKER_CLOSED;
        h->in_a_row = in->breaker.failures;
        h->opened = in->breaker.opened;
        h->retry_ms = in->breaker.state == BREAKER_OPEN && rest_ms > 0 ? rest_ms : 0;
        h->last_failure = in->last_failure;
}

void agents_each(struct agents *as,
                 void (*fn)(void *arg, const struct agent *a, const struct agent_health *h),
                 void *arg)
{
        void *value;

        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);) {
                const struct agent_slot *in = value;

                struct agent_health h;

                health_of(in, &h);
                fn(arg, &in->agent, &h);
        }
}

int agents_check(struct agents *as, const char *name, agents_checked_fn *fn, void *arg,
                 struct error *err)
{
        struct agent_slot *in = map_get(&as->live, name);
        struct health_check *c;

        if (!in)
                return error_set(err, ERR_MISSING, "there is no agent '%s'", name);
        c = mem_zalloc(sizeof(*c));
        c->on = in;
        c->fn = fn;
        c->arg = arg;
        c->at_once = in->agent.ops->check_health == NULL;
        LIST_INSERT_HEAD(&as->checks, c, next);
        in->holds++;
        if (c->at_once)
                timer_start(as->deferred, 0);
        else
                in->agent.ops->check_health(&in->agent, c);
        return 0;
}

void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why)
{
        struct health_check *c = token;
        struct agent_slot *in = c->on;
        struct agent_health *h = &in->health;
        struct agent_health told;

        h->known = true;
        h->healthy = healthy;
        h->latency_ms = latency_ms;
        h->checked_ms = clock_wall_ms();
        snprintf(h->why, sizeof(h->why), "%s", why ? why : "");
        health_of(in, &told);
        LIST_REMOVE(c, next);
        agent_slot_release(in);
        c->fn(c->arg, &told);
        free(c);
}
