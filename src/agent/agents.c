/*
 * The registry of configured agents.
 *
 * A slot is one opened agent. A reload that changes it opens a new slot and retires the old one,
 * which stays open while turns or health checks hold it. A timer does what must not happen in a
 * caller's callback: close slots, refuse turns, report checks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "road/turn/late_reply.h"
#include "rows/meta_row.h"

/* ---- slots ---- */

static void slot_free(struct agent_slot *s)
{
        if (!s)
                return;
        if (s->agent.ops->close)
                s->agent.ops->close(&s->agent);
        agent_conf_free(s->conf);
        free(s);
}

/* Takes conf. */
static struct agent_slot *slot_open(struct agents *as, struct agent_conf *conf, struct error *err)
{
        struct agent_slot *s = mem_zalloc(sizeof(*s));

        s->all = as;
        s->conf = conf;
        TAILQ_INIT(&s->queue);
        s->agent = (struct agent){
                .ops = conf->ops,
                .name = conf->name,
                .conf = conf->conf,
                .loop = as->loop,
                .http = as->http,
                .dir = as->dir,
        };
        if (!conf->ops->open || conf->ops->open(&s->agent, err) == 0)
                return s;
        error_prefix(err, "agent '%s'", conf->name);
        agent_conf_free(conf);
        free(s);
        return NULL;
}

void agent_slot_release(struct agent_slot *s)
{
        s->holds--;
        if (s->retired && s->holds == 0)
                timer_start(s->all->deferred, 0);
}

void agent_hold(struct agent *a)
{
        ((struct agent_slot *)a)->holds++;
}

struct store *agent_store(const struct agent *a)
{
        return ((const struct agent_slot *)a)->all->env.store;
}

struct road *agent_road(const struct agent *a)
{
        return ((const struct agent_slot *)a)->all->env.road;
}

int64_t agent_transcript_days(const struct agent *a)
{
        return ((const struct agent_slot *)a)->all->transcript_days;
}

void agents_set_transcript_days(struct agents *as, int64_t days)
{
        as->transcript_days = days;
}

const char *agent_timezone(const struct agent *a)
{
        return ((const struct agent_slot *)a)->all->timezone;
}

void agents_set_timezone(struct agents *as, const char *name)
{
        free(as->timezone);
        as->timezone = name ? mem_strdup(name) : timezone_system_name();
}

void agents_describe(struct agents *as, const char *adapter, const char *channel, struct buf *out)
{
        void *value;

        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);) {
                const struct agent *a = &((struct agent_slot *)value)->agent;

                if (a->ops->describe)
                        a->ops->describe(a, adapter, channel, out);
        }
}

int agents_run_check(struct agents *as, const char *agent, const struct agent_check *check,
                     agent_check_fn *done, void *arg, struct error *err)
{
        struct agent_slot *s = map_get(&as->live, agent);

        if (!s)
                return error_set(err, ERR_MISSING, "there is no agent '%s'", agent);
        if (!s->agent.ops->run_check)
                return error_set(err, ERR_REFUSED,
                                 "agent '%s' of type '%s' runs no commands; only one of type "
                                 "'builtin' has a sandbox",
                                 agent, s->agent.ops->type);
        return s->agent.ops->run_check(&s->agent, check, done, arg, err);
}

void agent_unhold(struct agent *a)
{
        agent_slot_release((struct agent_slot *)a);
}

/* ---- opening and closing ---- */

static void on_deferred(void *arg)
{
        struct agents *as = arg;
        struct health_check *c = LIST_FIRST(&as->checks);
        struct agent_slot *s, *following;

        agent_runs_pump(as);
        while (c && !c->immediate)
                c = LIST_NEXT(c, next);
        if (c) { /* one at a time: the callback may start another check */
                timer_start(as->deferred, 0);
                agent_health_report(c, true, 0, "");
        }
        for (s = LIST_FIRST(&as->retired); s; s = following) {
                following = LIST_NEXT(s, next);
                if (s->holds == 0) {
                        LIST_REMOVE(s, next);
                        slot_free(s);
                }
        }
}

struct agents *agents_new(struct loop *l, struct http_client *http, const char *dir)
{
        struct agents *as = mem_zalloc(sizeof(*as));

        as->loop = l;
        as->http = http;
        as->dir = mem_strdup(dir);
        map_init(&as->live);
        LIST_INIT(&as->retired);
        for (size_t i = 0; i < RUN_BUCKETS; i++)
                LIST_INIT(&as->runs[i]);
        TAILQ_INIT(&as->refused);
        LIST_INIT(&as->checks);
        LIST_INIT(&as->event_writes);
        as->deferred = timer_new(l, on_deferred, as);
        return as;
}

static int load_secret(struct store_tx *tx, void *arg, struct error *err)
{
        char *hex = arg, *kept;

        if (meta_row_put_new(tx, "reply.secret", hex, err) < 0 ||
            meta_row_get(tx, "reply.secret", &kept, err) != 1)
                return -1;
        snprintf(hex, SHA256_HEX_SIZE, "%s", kept);
        explicit_bzero(kept, strlen(kept));
        free(kept);
        return 0;
}

int agents_connect(struct agents *as, const struct agents_env *env, struct error *err)
{
        char hex[SHA256_HEX_SIZE];
        unsigned char random[SHA256_SIZE];

        id_random_bytes(random, sizeof(random));
        crypto_hex(random, sizeof(random), hex);
        if (store_write_now(env->store, load_secret, hex, err) < 0)
                return error_prefix(err, "cannot store the secret of reply tokens");
        crypto_sha256(hex, strlen(hex), as->secret);
        explicit_bzero(hex, sizeof(hex));
        as->env = *env;
        return 0;
}

static void fill_health(const struct agent_slot *s, struct agent_health *h)
{
        int64_t left_ms = s->breaker.until_ms - loop_now_ms(s->all->loop);

        *h = s->health;
        h->running = s->working;
        h->waiting = s->waiting;
        h->circuit = breaker_name(s->breaker.state);
        h->circuit_open = s->breaker.state != BREAKER_CLOSED;
        h->in_a_row = s->breaker.failures;
        h->opened = s->breaker.opened;
        h->retry_ms = s->breaker.state == BREAKER_OPEN && left_ms > 0 ? left_ms : 0;
        h->last_failure = s->last_failure;
}

void agents_free(struct agents *as)
{
        struct health_check *c;
        struct agent_health health;
        struct agent_slot *s;
        void *value;

        if (!as)
                return;
        timer_free(as->deferred);
        while ((c = LIST_FIRST(&as->checks))) {
                LIST_REMOVE(c, next);
                fill_health(c->slot, &health);
                c->fn(c->arg, &health);
                free(c);
        }
        agent_runs_drop(as);
        while ((s = LIST_FIRST(&as->retired))) {
                LIST_REMOVE(s, next);
                slot_free(s);
        }
        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);)
                slot_free(value);
        map_release(&as->live);
        explicit_bzero(as->secret, sizeof(as->secret));
        free(as->reply_base);
        free(as->timezone);
        free(as->dir);
        free(as);
}

/* ---- applying a configuration ---- */

/* An unchanged handle may resolve to another secret. */
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

/* opened[i] stays NULL where the running slot is kept. */
static int open_changed(struct agents *as, struct agent_conf **confs, size_t count,
                        struct agent_slot **opened, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                struct agent_conf *conf = confs[i];
                struct agent_slot *old = map_get(&as->live, conf->name);

                if (old && old->conf->ops == conf->ops && json_equal(old->conf->raw, conf->raw) &&
                    same_secrets(conf->ops->settings, old->conf->conf, conf->conf))
                        continue;
                confs[i] = NULL;
                opened[i] = slot_open(as, conf, err);
                if (!opened[i])
                        return -1;
        }
        return 0;
}

static void switch_to(struct agents *as, struct agent_conf **confs, size_t count,
                      struct agent_slot **opened)
{
        struct map before = as->live;
        const char *name;
        void *value;

        /* first, so that waiting turns fail over to the new ones */
        map_init(&as->live);
        for (size_t i = 0; i < count; i++) {
                struct agent_slot *s = opened[i] ? opened[i] : map_get(&before, confs[i]->name);

                map_put(&as->live, s->agent.name, s);
        }
        for (size_t i = 0; map_each(&before, &i, &name, &value);) {
                struct agent_slot *old = value, *new = map_get(&as->live, name);

                if (new == old)
                        continue;
                if (new) {
                        new->health.turns = old->health.turns;
                        new->health.failures = old->health.failures;
                }
                agent_runs_move(old, new);
                old->retired = true;
                LIST_INSERT_HEAD(&as->retired, old, next);
                timer_start(as->deferred, 0);
        }
        map_release(&before);
}

int agents_apply(struct agents *as, struct agent_conf **confs, size_t count, struct error *err)
{
        struct agent_slot **opened = mem_array(count ? count : 1, sizeof(struct agent_slot *));
        int rc = open_changed(as, confs, count, opened, err);

        if (rc == 0)
                switch_to(as, confs, count, opened);
        for (size_t i = 0; i < count; i++) {
                if (rc < 0)
                        slot_free(opened[i]);
                agent_conf_free(confs[i]);
                confs[i] = NULL;
        }
        free(opened);
        return rc;
}

bool agents_has(struct agents *as, const char *name)
{
        return map_get(&as->live, name) != NULL;
}

const char *agents_description(const struct agents *as, const char *name)
{
        const struct agent_slot *s = map_get(&as->live, name);

        return s ? s->conf->common.description : NULL;
}

/* ---- abilities ---- */

unsigned agent_abilities(const struct agent *a)
{
        return a->ops->abilities ? a->ops->abilities(a) : a->ops->can;
}

/* The road reads history before it knows which agent answers, so one that wants it is enough. */
unsigned agents_abilities(struct agents *as, const char *agent)
{
        const struct agent_slot *s = map_get(&as->live, agent);
        unsigned can = s ? agent_abilities(&s->agent) : 0;

        for (size_t i = 0; s && i < s->conf->common.failover.count; i++) {
                const struct agent_slot *other =
                        map_get(&as->live, s->conf->common.failover.items[i]);

                can |= other ? agent_abilities(&other->agent) & AGENT_HISTORY : 0;
        }
        return can;
}

/* ---- reply URLs and late replies ---- */

void agents_set_reply_base(struct agents *as, const char *url)
{
        size_t n = strlen(url);

        while (n > 0 && url[n - 1] == '/')
                n--;
        free(as->reply_base);
        as->reply_base = mem_strndup(url, n);
}

char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds)
{
        const struct agents *as = ((const struct agent_slot *)a)->all;
        char token[REPLY_TOKEN_SIZE];

        if (!as->reply_base || !as->env.store)
                return NULL;
        reply_token_write(as->secret, run->key, clock_wall_ms() / 1000 + seconds, token);
        return mem_printf("%s/api/v2/turns/%s/reply?token=%s", as->reply_base, run->key, token);
}

int agents_check_token(const struct agents *as, int64_t turn, const char *token, struct error *err)
{
        char key[32];

        snprintf(key, sizeof(key), "trn-%" PRId64, turn);
        if (!as->env.store)
                return error_set(err, ERR_REFUSED, "there are no reply tokens yet");
        return reply_token_check(as->secret, key, token, clock_wall_ms() / 1000, err);
}

bool agents_late_replies(struct agents *as, const char *agent, struct late_reply_policy *out)
{
        const struct agent_slot *s = map_get(&as->live, agent);

        if (!s || !s->agent.ops->late_replies)
                return false;
        s->agent.ops->late_replies(&s->agent, out);
        return true;
}

void agent_late_reply(struct agent *a, int64_t turn, const struct turn_reply *reply)
{
        const struct agents *as = ((struct agent_slot *)a)->all;

        if (as->env.road)
                late_reply_overdue(as->env.road, turn, reply);
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

void agents_each(struct agents *as,
                 void (*fn)(void *arg, const struct agent *a, const struct agent_health *h),
                 void *arg)
{
        struct agent_health h;
        void *value;

        for (size_t i = 0; map_each(&as->live, &i, NULL, &value);) {
                const struct agent_slot *s = value;

                fill_health(s, &h);
                fn(arg, &s->agent, &h);
        }
}

int agents_check(struct agents *as, const char *name, agents_checked_fn *fn, void *arg,
                 struct error *err)
{
        struct agent_slot *s = map_get(&as->live, name);
        struct health_check *c;

        if (!s)
                return error_set(err, ERR_MISSING, "there is no agent '%s'", name);
        c = mem_zalloc(sizeof(*c));
        c->slot = s;
        c->fn = fn;
        c->arg = arg;
        c->immediate = s->agent.ops->check_health == NULL;
        LIST_INSERT_HEAD(&as->checks, c, next);
        s->holds++;
        if (c->immediate)
                timer_start(as->deferred, 0);
        else
                s->agent.ops->check_health(&s->agent, c);
        return 0;
}

void agent_slot_observe(struct agent_slot *s, bool healthy, int64_t latency_ms, const char *why)
{
        struct agent_health *h = &s->health;

        if (latency_ms >= 0 || !h->known)
                h->latency_ms = latency_ms;
        h->known = true;
        h->healthy = healthy;
        h->checked_ms = clock_wall_ms();
        snprintf(h->why, sizeof(h->why), "%s", healthy || !why ? "" : why);
}

void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why)
{
        struct health_check *c = token;
        struct agent_slot *s = c->slot;
        struct agent_health reported;

        agent_slot_observe(s, healthy, latency_ms, why);
        fill_health(s, &reported);
        LIST_REMOVE(c, next);
        agent_slot_release(s);
        c->fn(c->arg, &reported);
        free(c);
}
