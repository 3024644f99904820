#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/trigger_log_row.h"

#define STARTS_MAX 1000 /* per sender; no setting allows more */

struct rate_entry {
        char *key;
        int64_t *starts; /* oldest first */
        size_t count, cap;
        int64_t seconds;   /* the longest window asked for: rules have their own */
        int64_t notice_ms; /* 0: never */
        int64_t idle_ms;   /* when the entry becomes useless */
        TAILQ_ENTRY(rate_entry) next;
};
TAILQ_HEAD(rate_list, rate_entry);

struct rate_limits {
        struct map by_key;
        struct rate_list list; /* least recently active first */
        size_t max;
};

struct rate_limits *rate_limits_new(size_t max)
{
        struct rate_limits *l = mem_zalloc(sizeof(*l));

        map_init(&l->by_key);
        TAILQ_INIT(&l->list);
        l->max = max;
        return l;
}

static void evict(struct rate_limits *l, struct rate_entry *e)
{
        TAILQ_REMOVE(&l->list, e, next);
        map_remove(&l->by_key, e->key);
        free(e->key);
        free(e->starts);
        free(e);
}

void rate_limits_free(struct rate_limits *l)
{
        struct rate_entry *e;

        if (!l)
                return;
        while ((e = TAILQ_FIRST(&l->list)))
                evict(l, e);
        map_release(&l->by_key);
        free(l);
}

size_t rate_limit_size(const struct rate_limits *l)
{
        return l->by_key.count;
}

/* Platform ids have no line breaks; if one does, two senders may share a limit. */
static char *key_text(const struct rate_key *key)
{
        return mem_printf("%s\n%s\n%s\n%s", key->adapter ? key->adapter : "",
                          key->channel ? key->channel : "", key->sender ? key->sender : "",
                          key->what ? key->what : "");
}

/* Finds or adds the entry and moves it to the list's end. */
static struct rate_entry *touch(struct rate_limits *l, const struct rate_key *key,
                                struct turn_rate rate, int64_t now_ms)
{
        char *text = key_text(key);
        struct rate_entry *e = map_get(&l->by_key, text), *first;

        if (e) {
                free(text);
                TAILQ_REMOVE(&l->list, e, next);
        } else {
                while ((first = TAILQ_FIRST(&l->list)) &&
                       (first->idle_ms <= now_ms || l->by_key.count >= l->max))
                        evict(l, first);
                e = mem_zalloc(sizeof(*e));
                e->key = text;
                map_put(&l->by_key, text, e);
        }
        TAILQ_INSERT_TAIL(&l->list, e, next);
        if (e->seconds < rate.seconds)
                e->seconds = rate.seconds;
        e->idle_ms = now_ms + e->seconds * 1000;
        return e;
}

static bool in_window(int64_t start, int64_t seconds, int64_t now_ms)
{
        return start <= now_ms && now_ms - start < seconds * 1000;
}

int64_t rate_limit_wait_ms(const struct rate_limits *l, const struct rate_key *key,
                           struct turn_rate rate, int64_t now_ms)
{
        const struct rate_entry *e;
        int64_t used = 0;
        char *text;

        if (rate.turns <= 0)
                return 0;
        text = key_text(key);
        e = map_get(&l->by_key, text);
        free(text);
        /* from the newest back: the start that fills the window must leave it */
        for (size_t i = e ? e->count : 0; i > 0; i--) {
                if (in_window(e->starts[i - 1], rate.seconds, now_ms) && ++used == rate.turns)
                        return e->starts[i - 1] + rate.seconds * 1000 - now_ms;
        }
        return 0;
}

void rate_limit_count(struct rate_limits *l, const struct rate_key *key, struct turn_rate rate,
                      int64_t now_ms)
{
        struct rate_entry *e;
        size_t kept = 0;

        if (rate.turns <= 0)
                return;
        e = touch(l, key, rate, now_ms);
        for (size_t i = e->count >= STARTS_MAX; i < e->count; i++) {
                if (in_window(e->starts[i], e->seconds, now_ms))
                        e->starts[kept++] = e->starts[i];
        }
        e->count = kept;
        if (e->count == e->cap) {
                e->cap = e->cap ? e->cap * 2 : 4;
                e->starts = mem_realloc(e->starts, e->cap * sizeof(*e->starts));
        }
        e->starts[e->count++] = now_ms;
}

bool rate_limit_claim_notice(struct rate_limits *l, const struct rate_key *key,
                             struct turn_rate rate, int64_t now_ms)
{
        struct rate_entry *e = touch(l, key, rate, now_ms);

        if (e->notice_ms > 0 && in_window(e->notice_ms, rate.seconds, now_ms))
                return false;
        e->notice_ms = now_ms;
        return true;
}

/* ---- guard ---- */

bool rate_limit_is_ambient(const struct incoming *in, const struct rule *r)
{
        if (!r || reply_mode_answers(r->mode))
                return false;
        return r->mode == MODE_SILENT ||
               (in->chat != CHAT_DM && !in->is_mention && !in->is_reply && !in->is_command);
}

struct rate_key rate_limit_key(const struct incoming *in, const struct rule *r)
{
        /* clients of foreign protocols choose chat and sender, often new ones for each request */
        if (in->caller)
                return (struct rate_key){ in->adapter, NULL, in->caller, NULL };
        if (incoming_is_scheduled(in)) /* not the person's in a direct chat */
                return (struct rate_key){ in->adapter, in->channel, in->sender_username, NULL };
        return (struct rate_key){ in->adapter, in->channel, in->sender_id,
                                  rate_limit_is_ambient(in, r) ? "ambient" : NULL };
}

struct turn_rate rate_limit_of(const struct dispatch_adapter *a, const struct rule *r, bool ambient)
{
        struct turn_rate rate = ambient ? a->ambient_rate : a->rate;

        if (r && r->rate.turns >= 0)
                rate.turns = r->rate.turns;
        if (r && r->rate.seconds > 0)
                rate.seconds = r->rate.seconds;
        return rate;
}

/* A schedule has one open turn; only a rule limits it further. */
struct turn_rate rate_limit_of_event(const struct evaluation *e)
{
        if (incoming_is_scheduled(e->in) && !(e->rule && e->rule->rate.turns >= 0))
                return (struct turn_rate){ 0 };
        return rate_limit_of(e->adapter, e->rule, rate_limit_is_ambient(e->in, e->rule));
}

bool rate_limit_guard(struct evaluation *e)
{
        bool ambient = rate_limit_is_ambient(e->in, e->rule);
        struct turn_rate rate = rate_limit_of_event(e);
        struct rate_key key = rate_limit_key(e->in, e->rule);
        int64_t wait_ms =
                e->joins_turn ? 0 : rate_limit_wait_ms(e->d->rates, &key, rate, e->now_ms);
        long long turns = rate.turns, seconds = rate.seconds, wait = (wait_ms + 999) / 1000;

        if (wait_ms == 0 || e->dry) /* a dry run reports the rate separately */
                return true;
        if (evaluation_may_notify(e) && rate_limit_claim_notice(e->d->rates, &key, rate, e->now_ms))
                evaluation_notify(e,
                                  "Too many messages: I can give one person %lld answers within "
                                  "%lld seconds here. Please try again in %lld seconds.",
                                  turns, seconds, wait);
        return evaluation_refuse(e,
                                 "the sender caused %lld turns within %lld seconds here, more are "
                                 "not allowed (%s); the next one in %lld seconds",
                                 turns, seconds, ambient ? "ambientRateLimit" : "rateLimit", wait);
}

/* ---- restoring ---- */

/* Rows come newest first; a turn counts at its first message, which comes last. */
int rate_limit_restore(struct dispatch *d, struct store_tx *tx, struct error *err)
{
        int64_t longest = 0, since_ms;
        struct store_stmt *s = trigger_log_row_list_turns(tx, (int64_t)d->rates->max);
        struct trigger_turn row, *turns = NULL;
        struct map seen;
        size_t count = 0;
        int rc;

        for (size_t i = 0; i < d->adapter_count; i++) {
                if (d->adapters[i].rate.seconds > longest)
                        longest = d->adapters[i].rate.seconds;
                if (d->adapters[i].ambient_rate.seconds > longest)
                        longest = d->adapters[i].ambient_rate.seconds;
        }
        for (size_t i = 0; i < d->rule_count; i++) {
                if (d->rules[i].rate.seconds > longest)
                        longest = d->rules[i].rate.seconds;
        }
        since_ms = dispatch_now(d) - longest * 1000;
        while ((rc = trigger_log_row_next_turn(s, since_ms, &row, err)) == 1) {
                turns = mem_realloc(turns, (count + 1) * sizeof(*turns));
                turns[count++] = (struct trigger_turn){ mem_strdup(row.adapter),
                                                        mem_strdup(row.channel),
                                                        mem_strdup(row.sender),
                                                        mem_strdup(row.rule),
                                                        row.turn,
                                                        row.time_ms };
        }
        map_init(&seen);
        for (; count > 0; count--) {
                struct trigger_turn *t = &turns[count - 1];
                const struct dispatch_adapter *a = map_get(&d->by_name, t->adapter);
                const struct rule *r = t->rule ? map_get(&d->rules_by_name, t->rule) : NULL;
                /* the log does not record addressing; spare the limit of direct requests */
                bool ambient = r && !reply_mode_answers(r->mode);
                char *key = mem_printf("%lld", (long long)t->turn);

                if (a && !map_put(&seen, key, d))
                        rate_limit_count(d->rates,
                                         &(struct rate_key){ t->adapter, t->channel, t->sender,
                                                             ambient ? "ambient" : NULL },
                                         rate_limit_of(a, r, ambient), t->time_ms);
                free(key);
                free((char *)t->adapter);
                free((char *)t->channel);
                free((char *)t->sender);
                free((char *)t->rule);
        }
        map_release(&seen);
        free(turns);
        return rc;
}
