/*
 * An event passes the guards; then the decision is counted, recorded and carried out.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "store/write_through.h"

/* ---- small guards ---- */

static bool check_adapter(struct evaluation *e)
{
        return e->adapter || evaluation_refuse(e, "adapter '%s' is not configured",
                                               e->in->adapter ? e->in->adapter : "");
}

static bool check_own(struct evaluation *e)
{
        return !e->in->is_own || evaluation_refuse(e, "it is the bot's own message");
}

/* Joins, pins and other service messages have nothing to answer. */
static bool check_content(struct evaluation *e)
{
        const struct incoming *in = e->in;
        bool something = (in->text && *in->text) || (in->raw_text && *in->raw_text) ||
                         in->attachment_count > 0;

        if (strcmp(e->type, EVENT_CALENDAR) == 0)
                return evaluation_refuse(e, "it is a change in the platform's calendar");
        if (strncmp(e->type, "reaction.", 9) == 0)
                something = in->emoji != NULL;
        else if (strcmp(e->type, EVENT_MESSAGE_DELETED) == 0)
                something = true;
        return something || evaluation_refuse(e, "there is nothing to answer: neither text nor "
                                                 "attachments nor emoji");
}

bool evaluation_age_guard(struct evaluation *e)
{
        bool by_rule = e->rule && e->rule->max_age_seconds >= 0;
        int64_t most = by_rule ? e->rule->max_age_seconds : e->adapter->max_age_seconds;

        if (most <= 0 || e->in->time_ms <= 0 || e->now_ms - e->in->time_ms <= most * 1000)
                return true;
        if (incoming_is_scheduled(e->in) && !by_rule) /* the schedule has its own limit */
                return true;
        e->out->expired = true;
        return evaluation_refuse(e, "it is older than the %lld seconds %s '%s' allows",
                                 (long long)most, by_rule ? "rule" : "adapter",
                                 by_rule ? e->rule->name : e->adapter->name);
}

/* Only the road knows whether the message begins a turn, joins one, or finds no room. */
static bool check_placement(struct evaluation *e)
{
        enum placement placement =
                e->query ? e->query->ask(e->query->arg, e->out) : PLACEMENT_NEW_TURN;

        e->joins_turn = placement == PLACEMENT_JOINS_TURN;
        return placement != PLACEMENT_REFUSED; /* the road has set the reason */
}

/* ---- evaluation ---- */

/* In order; the first to refuse ends the evaluation. */
static const struct guard {
        const char *name;
        bool (*check)(struct evaluation *e);
        bool counts_turns; /* needs the placement */
} guards[] = {
        { "adapter", check_adapter, false },        /* the adapter is configured */
        { "own", check_own, false },                /* not the bot's own message */
        { "content", check_content, false },        /* text, a file, an emoji */
        { "link", account_link_guard, false },      /* not the command /link */
        { "access", access_check_guard, false },    /* the sender may talk to the bot there */
        { "command", command_guard, false },        /* not a command to the bot itself */
        { "rule", rule_select_guard, false },       /* a rule matches; fills the decision */
        { "age", evaluation_age_guard, false },     /* not old backlog */
        { "handover", handover_guard, false },      /* no human has taken over the chat */
        { "placement", check_placement, true },     /* there is room in the conversation */
        { "rate", rate_limit_guard, true },         /* the sender's turns in the channel */
        { "reaction", reaction_limit_guard, true }, /* not repeated, not too many on the message */
        { "loop", bot_loop_guard, true },           /* has not passed through too many bots */
        { "budget", budget_guard, true },           /* of the adapter and the rule */
};

void evaluation_run(struct evaluation *e)
{
        struct dispatch *d = e->d;
        const struct incoming *in = e->in;

        *e->out = (struct decision){ 0 };
        e->type = in->type ? in->type : EVENT_MESSAGE_RECEIVED;
        e->adapter = in->adapter ? map_get(&d->by_name, in->adapter) : NULL;
        e->now_ms = dispatch_now(d);
        e->context.in = in;
        e->context.persons = d->policy ? d->policy->persons : NULL;
        e->context.platform = e->adapter ? e->adapter->platform : NULL;
        buf_clear(&d->reason);
        buf_clear(&d->notice);
        buf_clear(&d->rules_tried);
        chat_session_continue(e);
        for (size_t i = 0; i < COUNT(guards) && !e->guard; i++) {
                bool skipped = guards[i].counts_turns && !e->query && !e->dry;

                if (!skipped && !guards[i].check(e))
                        e->guard = guards[i].name;
        }
        e->out->trigger = !e->guard;
}

/* ---- decision ---- */

static void count_turn(struct evaluation *e)
{
        struct dispatch *d = e->d;
        struct rate_key key = rate_limit_key(e->in, e->rule);
        struct turn_rate rate = rate_limit_of_event(e);
        struct budget_turn turn = { e->in->trace, e->in->adapter, e->out->rule, e->out->agent };

        if (!e->joins_turn) {
                rate_limit_count(d->rates, &key, rate, e->now_ms);
                budget_begin(d->budget, &turn, e->now_ms);
        }
        if (e->in->sender_is_bot)
                bot_loop_count(d->loops, e->in, e->now_ms);
        if (reaction_limit_applies(e->in))
                reaction_limit_count(d->reactions, e->in, e->now_ms);
        chat_session_open(e);
}

/* Records allowed senders; offers strangers in a direct chat a code. */
static void record_sender(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct runtime_policy *policy = e->d->policy;
        const struct incoming *in = e->in;

        if (!policy || in->sender_is_bot || !in->sender_id || incoming_is_scheduled(in))
                return;
        /* software with a key is not a person */
        if (e->is_allowed && !a->trusted)
                persons_record(policy->persons, a->platform, in, e->now_ms, e->out);
        else if (e->is_stranger && a->access && access_pairs(a->access) && in->chat == CHAT_DM &&
                 strcmp(e->type, EVENT_MESSAGE_RECEIVED) == 0)
                pairing_offer(e);
}

void dispatch_decide(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query, struct decision *out)
{
        struct evaluation e = { .d = d, .in = in, .query = query, .out = out };

        evaluation_run(&e);
        rule_context_release(&e.context);
        out->rules = rule_select_tried(d);
        /* edits, deletions and reactions do not end a chain of bots */
        if (!in->sender_is_bot && !in->is_own && strcmp(e.type, EVENT_MESSAGE_RECEIVED) == 0)
                bot_loop_break(d->loops, in);
        if (out->trigger && query)
                count_turn(&e);
        if (e.link_code)
                account_link_run(&e);
        else
                record_sender(&e);
        if (e.counts_command)
                command_count(&e);
        if (e.command)
                command_run(&e);
        if (out->trigger || out->reason) /* the road has set it */
                return;
        /* the platform shows a placeholder that needs an answer */
        if (in->is_awaited && !e.command && d->notice.len == 0)
                evaluation_notify(&e, "I do not answer this here.");
        out->reason = d->reason.len > 0 ? d->reason.data : NULL;
        out->notice = d->notice.len > 0 ? d->notice.data : NULL;
}

/* ---- for guards and commands ---- */

bool evaluation_refuse(struct evaluation *e, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&e->d->reason, fmt, ap);
        va_end(ap);
        return false;
}

void evaluation_notify(struct evaluation *e, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&e->d->notice, fmt, ap);
        va_end(ap);
}

bool evaluation_may_notify(const struct evaluation *e)
{
        return !e->in->sender_is_bot && !e->dry && !incoming_is_scheduled(e->in) &&
               reply_mode_answers(e->rule ? e->rule->mode : MODE_REPLY);
}

struct extra_pair {
        struct tx_extra first, second;
};

static int write_pair(struct store_tx *tx, void *arg, struct error *err)
{
        struct extra_pair *p = arg;

        if (p->first.fn(tx, p->first.arg, err) < 0)
                return -1;
        return p->second.fn(tx, p->second.arg, err);
}

static void pair_done(void *arg, const struct error *err)
{
        struct extra_pair *p = arg;

        p->first.done(p->first.arg, err);
        p->second.done(p->second.arg, err);
        free(p);
}

void evaluation_add_write(struct decision *out, struct tx_extra extra)
{
        struct extra_pair *p;

        if (!out->extra.fn) {
                out->extra = extra;
                return;
        }
        p = mem_alloc(sizeof(*p));
        *p = (struct extra_pair){ out->extra, extra };
        out->extra = (struct tx_extra){ .fn = write_pair, .done = pair_done, .arg = p };
}

void evaluation_add_change(struct decision *out, void *change)
{
        evaluation_add_write(out, (struct tx_extra){ .fn = write_through_write,
                                                     .done = write_through_end,
                                                     .arg = change });
}
