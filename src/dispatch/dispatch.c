/*
 * The evaluator. Guards and rules are asked in the order dispatch.h tells; each "no" leaves the guard's name and a sentence for a person.
 */
#include "dispatch/dispatch.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/rules.h"

#define PEOPLE_MAX 20000 /* whose turns are counted at the same time */

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *rules;
        size_t rule_count;
        char *only_agent;
        struct limits *limits;
        struct desk *desk;         /* may be NULL */
        struct buf reason, notice; /* of the last decision */
        const char *guard;         /* who said no; NULL: nobody */
};

struct dispatch *dispatch_new(void)
{
        struct dispatch *d = mem_zalloc(sizeof(*d));

        map_init(&d->by_name);
        buf_init(&d->reason, 0);
        buf_init(&d->notice, 0);
        d->limits = limits_new(PEOPLE_MAX);
        return d;
}

static void forget(struct dispatch *d)
{
        for (size_t i = 0; i < d->adapter_count; i++) {
                free(d->adapters[i].name);
                free(d->adapters[i].platform);
                free(d->adapters[i].agent);
                access_free(d->adapters[i].access);
        }
        for (size_t i = 0; i < d->rule_count; i++)
                rule_release(&d->rules[i]);
        free(d->adapters);
        free(d->rules);
        free(d->only_agent);
        map_release(&d->by_name);
}

void dispatch_free(struct dispatch *d)
{
        if (!d)
                return;
        forget(d);
        limits_free(d->limits);
        buf_release(&d->reason);
        buf_release(&d->notice);
        free(d);
}

void dispatch_set_desk(struct dispatch *d, struct desk *desk)
{
        d->desk = desk;
}

struct desk *dispatch_desk(const struct dispatch *d)
{
        return d->desk;
}

void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count,
                  struct rule *rules, size_t rule_count, const char *only_agent)
{
        char *only = mem_strdup(only_agent); /* it may be the one we are about to forget */

        forget(d);
        d->adapters = adapters;
        d->adapter_count = adapter_count;
        d->rules = rules;
        d->rule_count = rule_count;
        d->only_agent = only;
        for (size_t i = 0; i < adapter_count; i++)
                map_put(&d->by_name, adapters[i].name, &adapters[i]);
}

bool dispatch_describe(const struct dispatch *d, const char *adapter, struct buf *out)
{
        const struct dispatch_adapter *a = map_get(&d->by_name, adapter);

        if (!a || a->trusted || !a->access)
                return false;
        buf_addf(out, "%s %s: ", a->platform, a->name);
        access_describe(a->access, out);
        return true;
}

static const char *type_of(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

static void refuse(struct dispatch *d, const char *guard, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void refuse(struct dispatch *d, const char *guard, const char *fmt, ...)
{
        va_list ap;

        d->guard = guard;
        va_start(ap, fmt);
        buf_vaddf(&d->reason, fmt, ap);
        va_end(ap);
}

/* ---- guards ---- */

static bool has_text(const struct incoming *in)
{
        return (in->text && *in->text) || (in->raw_text && *in->raw_text);
}

/* Joins, pins and other service messages are events, but there is nothing in them to answer. */
static bool has_content(const struct incoming *in)
{
        if (strncmp(type_of(in), "reaction.", 9) == 0)
                return in->emoji != NULL;
        if (strcmp(type_of(in), EVENT_MESSAGE_DELETED) == 0)
                return true;
        return has_text(in) || in->attachment_count > 0;
}

static bool may_talk(const struct dispatch_adapter *a, const struct incoming *in, struct buf *why)
{
        if (a->trusted)
                return true;
        if (a->access)
                return access_allows(a->access, in, why);
        buf_addf(why, "adapter '%s' lets nobody in", a->name);
        return false;
}

static int64_t max_age_seconds(const struct dispatch_adapter *a, const struct rule *r)
{
        return r && r->max_age_seconds >= 0 ? r->max_age_seconds : a->max_age_seconds;
}

static bool too_old(int64_t max_seconds, const struct incoming *in)
{
        if (max_seconds <= 0 || in->time_ms <= 0)
                return false;
        return clock_wall_ms() - in->time_ms > max_seconds * 1000;
}

static struct turn_rate rate_for(const struct dispatch_adapter *a, const struct rule *r)
{
        struct turn_rate rate = a->rate;

        if (r && r->rate.turns >= 0)
                rate.turns = r->rate.turns;
        if (r && r->rate.seconds > 0)
                rate.seconds = r->rate.seconds;
        return rate;
}

/* ---- rules ---- */

static const char *agent_for(const struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r)
{
        if (r && r->agent)
                return r->agent;
        return a->agent ? a->agent : d->only_agent;
}

static void say_trigger(struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r,
                        struct decision *out)
{
        out->agent = agent_for(d, a, r);
        if (!out->agent) {
                refuse(d, "rule", "several agents are configured and neither %s nor adapter '%s' names one",
                       r ? "the rule" : "a rule", a->name);
                return;
        }
        out->trigger = true;
        out->turns = rate_for(a, r).turns;
        out->turns_seconds = rate_for(a, r).seconds;
        out->debounce_ms = r && r->debounce_ms >= 0 ? r->debounce_ms : a->debounce_ms;
        out->debounce_max_ms = a->debounce_max_ms;
}

static void decide_by_rule(struct dispatch *d, const struct dispatch_adapter *a, const struct rule *r,
                           struct decision *out)
{
        out->rule = r->name;
        if (strcmp(r->mode, "off") == 0)
                refuse(d, "rule", "rule '%s' says off", r->name);
        else
                say_trigger(d, a, r, out);
}

/* What holds where no rule speaks about the adapter. */
static void decide_by_default(struct dispatch *d, const struct dispatch_adapter *a, const struct incoming *in,
                              struct decision *out)
{
        if (strcmp(type_of(in), EVENT_MESSAGE_RECEIVED) != 0)
                refuse(d, "rule", "event '%s' triggers only by a rule that names it", type_of(in));
        else if (in->sender_is_bot)
                refuse(d, "rule", "the sender is a bot");
        else if (!a->trusted && in->chat != CHAT_DM && !in->is_mention && !in->is_reply)
                refuse(d, "rule", "not addressed to the bot: neither DM, mention nor reply");
        else
                say_trigger(d, a, NULL, out);
}

static const struct rule *first_match(const struct dispatch *d, const struct incoming *in)
{
        for (size_t i = 0; i < d->rule_count; i++) {
                if (rule_matches(&d->rules[i], in, NULL))
                        return &d->rules[i];
        }
        return NULL;
}

/*
 * With rules, what they do not match is not answered. A trusted adapter that no rule is about keeps answering all the same: rules
 * for a group chat should not silence the terminal.
 */
static bool default_applies(const struct dispatch *d, const struct dispatch_adapter *a)
{
        if (d->rule_count == 0)
                return true;
        if (!a->trusted)
                return false;
        for (size_t i = 0; i < d->rule_count; i++) {
                if (rule_concerns(&d->rules[i], a->name, a->platform))
                        return false;
        }
        return true;
}

static void decide_by_rules(struct dispatch *d, const struct dispatch_adapter *a, const struct incoming *in,
                            struct decision *out)
{
        const struct rule *r = first_match(d, in);

        if (too_old(max_age_seconds(a, r), in)) {
                out->expired = true;
                refuse(d, "age", "it is older than the %lld seconds %s '%s' allows",
                       (long long)max_age_seconds(a, r), r && r->max_age_seconds >= 0 ? "rule" : "adapter",
                       r && r->max_age_seconds >= 0 ? r->name : a->name);
        } else if (r) {
                decide_by_rule(d, a, r, out);
        } else if (default_applies(d, a)) {
                decide_by_default(d, a, in, out);
        } else {
                refuse(d, "rule", "no rule matched: %zu tried", d->rule_count);
        }
}

static const struct dispatch_adapter *adapter_of(const struct dispatch *d, const struct incoming *in)
{
        return in->adapter ? map_get(&d->by_name, in->adapter) : NULL;
}

static void evaluate(struct dispatch *d, const struct incoming *in, struct decision *out)
{
        const struct dispatch_adapter *a = adapter_of(d, in);

        if (!a) {
                refuse(d, "adapter", "adapter '%s' is not configured", in->adapter ? in->adapter : "");
                return;
        }
        if (in->is_own) {
                refuse(d, "own", "it is the bot's own message");
                return;
        }
        if (!has_content(in)) {
                refuse(d, "content", "there is nothing to answer: neither text nor attachments nor emoji");
                return;
        }
        if (!may_talk(a, in, &d->reason)) {
                d->guard = "access";
                return;
        }
        decide_by_rules(d, a, in, out);
        if (out->trigger && in->hops > a->max_hops) {
                out->trigger = false;
                refuse(d, "loop", "it has passed through %d bots, adapter '%s' allows %lld (maxHops)",
                       in->hops, a->name, (long long)a->max_hops);
        }
}

/* A person has taken over: the agent is not asked, but it remembers what was said. */
static void give_way(struct dispatch *d, const struct incoming *in, struct decision *out)
{
        struct handover_place here = { in->adapter, in->channel, in->thread };
        const struct handover_pause *p =
                d->desk && out->trigger ? handover_find(d->desk->handover, &here) : NULL;
        char since[CLOCK_ISO_SIZE];

        if (!p)
                return;
        out->trigger = false;
        out->remember = true;
        refuse(d, "handover", "the agent is paused here since %s by %s%s%s", clock_iso(p->since_ms, since),
               p->by ? p->by : "somebody", p->reason ? ": " : "", p->reason ? p->reason : "");
}

void dispatch_decide(void *dispatch, const struct incoming *in, struct decision *out)
{
        struct dispatch *d = dispatch;

        *out = (struct decision){ 0 };
        buf_clear(&d->reason);
        d->guard = NULL;
        evaluate(d, in, out);
        give_way(d, in, out);
        out->reason = d->reason.len > 0 ? d->reason.data : NULL;
}

/* ---- the rate of turns ---- */

static struct limits_who who_of(const struct incoming *in)
{
        return (struct limits_who){ .adapter = in->adapter, .channel = in->channel, .sender = in->sender_id };
}

static void say_too_many(struct dispatch *d, const struct incoming *in, struct turn_rate rate,
                         int64_t wait_ms, struct decision *out)
{
        struct limits_who who = who_of(in);
        long long turns = rate.turns, seconds = rate.seconds, wait = (wait_ms + 999) / 1000;

        out->trigger = false;
        buf_clear(&d->reason);
        refuse(d, "rate",
               "the sender caused %lld turns within %lld seconds here, more are not allowed (rateLimit); "
               "the next one in %lld seconds",
               turns, seconds, wait);
        out->reason = d->reason.data;
        /* two bots that tell each other to slow down would be the loop this is meant to end */
        if (in->sender_is_bot || !limits_tell_once(d->limits, &who, rate, clock_wall_ms()))
                return;
        buf_clear(&d->notice);
        buf_addf(&d->notice,
                 "Too many messages: %lld answers within %lld seconds are what I can give one person here. "
                 "Please try again in %lld seconds.",
                 turns, seconds, wait);
        out->notice = d->notice.data;
}

bool dispatch_admit(void *dispatch, const struct incoming *in, struct decision *out)
{
        struct dispatch *d = dispatch;
        struct turn_rate rate = { out->turns, out->turns_seconds };
        struct limits_who who = who_of(in);
        int64_t now_ms = clock_wall_ms();
        int64_t wait_ms = out->joins ? 0 : limits_wait_ms(d->limits, &who, rate, now_ms);

        if (out->joins)
                return true; /* turns are counted, not messages */
        if (wait_ms > 0)
                say_too_many(d, in, rate, wait_ms, out);
        else
                limits_count(d->limits, &who, rate, now_ms);
        return wait_ms == 0;
}

/* ---- explanations ---- */

static void explain_rules(const struct dispatch *d, const struct incoming *in, struct buf *json)
{
        bool decided = false;
        struct buf why;

        buf_init(&why, 0);
        for (size_t i = 0; i < d->rule_count; i++) {
                bool matched = rule_matches(&d->rules[i], in, &why);

                if (matched)
                        buf_addstr(&why, decided ? "all conditions hold, but an earlier rule came first"
                                                 : "all conditions hold");
                decided = decided || matched;
                jsonw_open(json, '{');
                jsonw_str(json, "name", d->rules[i].name);
                jsonw_bool(json, "matched", matched);
                jsonw_str(json, "why", why.data);
                jsonw_close(json, '}');
                buf_clear(&why);
        }
        buf_release(&why);
}

static void explain_decision(const struct dispatch *d, const struct decision *decision, struct buf *json)
{
        jsonw_open_member(json, "decision", '{');
        jsonw_bool(json, "trigger", decision->trigger);
        jsonw_bool(json, "expired", decision->expired);
        jsonw_str(json, "guard", d->guard);
        jsonw_str(json, "agent", decision->agent);
        jsonw_str(json, "rule", decision->rule);
        jsonw_str(json, "reason", decision->reason);
        jsonw_int(json, "debounceMs", decision->debounce_ms);
        jsonw_close(json, '}');
}

static void explain_access(const struct dispatch *d, const struct incoming *in, struct buf *json)
{
        const struct dispatch_adapter *a = adapter_of(d, in);
        struct buf why;
        bool allowed;

        buf_init(&why, 0);
        allowed = a && may_talk(a, in, &why);
        jsonw_open_member(json, "access", '{');
        jsonw_bool(json, "allowed", allowed);
        jsonw_str(json, "why", why.len > 0 ? why.data : a && a->trusted ? "the platform is trusted" : NULL);
        jsonw_close(json, '}');
        buf_release(&why);
}

static void explain_rate(const struct dispatch *d, const struct incoming *in, const struct decision *decision,
                         struct buf *json)
{
        struct turn_rate rate = { decision->turns, decision->turns_seconds };
        struct limits_who who = who_of(in);

        if (rate.turns <= 0) {
                jsonw_null(json, "rateLimit");
                return;
        }
        jsonw_open_member(json, "rateLimit", '{');
        jsonw_int(json, "turns", rate.turns);
        jsonw_int(json, "seconds", rate.seconds);
        jsonw_int(json, "waitMs", limits_wait_ms(d->limits, &who, rate, clock_wall_ms()));
        jsonw_close(json, '}');
}

void dispatch_explain(struct dispatch *d, const struct incoming *in, struct buf *json)
{
        const struct dispatch_adapter *a = adapter_of(d, in);
        struct incoming event = *in;
        struct decision decision;

        if (!event.platform && a)
                event.platform = a->platform; /* a made-up event need not know it */
        dispatch_decide(d, &event, &decision);
        jsonw_open(json, '{');
        explain_decision(d, &decision, json);
        explain_access(d, &event, json);
        explain_rate(d, &event, &decision, json);
        jsonw_open_member(json, "rules", '[');
        explain_rules(d, &event, json);
        jsonw_close(json, ']');
        jsonw_close(json, '}');
}

/* ---- after a restart ---- */

/* Turns of the trigger log within the longest window, newest first. */
struct past {
        struct dispatch *dispatch;
        int64_t since_ms;
        struct past_turn {
                char *adapter, *channel, *sender, *rule;
                int64_t turn, time_ms;
        } * items;
        size_t count;
};

static int read_past(struct store_tx *tx, void *arg, struct error *err)
{
        struct past *p = arg;
        struct store_stmt *s =
                store_prepare(tx, "SELECT adapter, channel, sender, rule, turn, time_ms FROM trigger_log"
                                  " ORDER BY event DESC LIMIT ?1");
        int rc;

        store_bind_int(s, 1, PEOPLE_MAX);
        while ((rc = store_step(s, err)) == 1) {
                /* newest first: the first old one ends the look, so that a start does not read the whole log */
                if (store_col_int(s, 5) <= p->since_ms) {
                        store_reset(s);
                        return 0;
                }
                if (store_col_null(s, 4))
                        continue;
                p->items = mem_realloc(p->items, (p->count + 1) * sizeof(*p->items));
                p->items[p->count++] = (struct past_turn){ .adapter = mem_strdup(store_col_text(s, 0)),
                                                           .channel = mem_strdup(store_col_text(s, 1)),
                                                           .sender = mem_strdup(store_col_text(s, 2)),
                                                           .rule = mem_strdup(store_col_text(s, 3)),
                                                           .turn = store_col_int(s, 4),
                                                           .time_ms = store_col_int(s, 5) };
        }
        return rc;
}

static const struct rule *rule_called(const struct dispatch *d, const char *name)
{
        for (size_t i = 0; name && i < d->rule_count; i++) {
                if (strcmp(d->rules[i].name, name) == 0)
                        return &d->rules[i];
        }
        return NULL;
}

/* Oldest first, and of each turn only the message that began it. */
static void count_past(struct past *p)
{
        struct map seen;

        map_init(&seen);
        for (size_t i = p->count; i > 0; i--) {
                const struct past_turn *t = &p->items[i - 1];
                const struct dispatch_adapter *a = map_get(&p->dispatch->by_name, t->adapter);
                struct limits_who who = { t->adapter, t->channel, t->sender };
                char *key = mem_printf("%lld", (long long)t->turn);

                if (a && !map_put(&seen, key, p))
                        limits_count(p->dispatch->limits, &who,
                                     rate_for(a, rule_called(p->dispatch, t->rule)), t->time_ms);
                free(key);
        }
        map_release(&seen);
}

static int64_t longest_window(const struct dispatch *d)
{
        int64_t seconds = 0;

        for (size_t i = 0; i < d->adapter_count; i++)
                seconds = d->adapters[i].rate.seconds > seconds ? d->adapters[i].rate.seconds : seconds;
        for (size_t i = 0; i < d->rule_count; i++)
                seconds = d->rules[i].rate.seconds > seconds ? d->rules[i].rate.seconds : seconds;
        return seconds;
}

int dispatch_restore(struct dispatch *d, struct store *s, struct error *err)
{
        struct past p = { .dispatch = d, .since_ms = clock_wall_ms() - longest_window(d) * 1000 };
        int rc = store_read_now(s, read_past, &p, err);

        if (rc == 0)
                count_past(&p);
        for (size_t i = 0; i < p.count; i++) {
                free(p.items[i].adapter);
                free(p.items[i].channel);
                free(p.items[i].sender);
                free(p.items[i].rule);
        }
        free(p.items);
        return rc;
}
