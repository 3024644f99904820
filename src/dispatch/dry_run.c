#include "dispatch/dry_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "dispatch/dispatch_private.h"

/* ---- events ---- */

struct incoming *dry_run_event(const json_t *event, struct error *err)
{
        const char *type = json_str(event, "type", EVENT_MESSAGE_RECEIVED);
        const char *adapter = json_str(event, "instanceId", NULL);
        const char *channel = json_str(event, "channel", NULL);
        const json_t *payload = json_object_get(event, "payload");
        struct incoming *in;
        char *text;

        if (!json_is_object(event)) {
                error_set(err, ERR_INVALID, "an event is an object");
                return NULL;
        }
        if (!adapter || !channel) {
                error_set(err, ERR_INVALID,
                          "an event has an 'instanceId' (the adapter) and a 'channel'");
                return NULL;
        }
        if (payload && !json_is_object(payload)) {
                error_set(err, ERR_INVALID, "'payload' is not an object");
                return NULL;
        }
        if (!incoming_is_type(type)) {
                error_set(err, ERR_INVALID, "rules do not apply to events of type '%.60s'", type);
                return NULL;
        }
        text = payload ? json_text(payload) : NULL;
        in = incoming_parse(&(struct bus_event){ .type = type,
                                                 .time_ms = json_int(event, "timestamp", 0),
                                                 .adapter = adapter,
                                                 .channel = channel,
                                                 .thread = json_str(event, "threadId", NULL),
                                                 .trace = json_str(event, "traceId", NULL),
                                                 .payload = text ? text : "{}" },
                            err);
        free(text);
        return in;
}

struct incoming *dry_run_find(struct store_tx *tx, int64_t seq, struct error *err)
{
        struct incoming *in = NULL;
        struct journal_row *row;

        if (journal_row_get(tx, seq, &row, err) < 0)
                return NULL;
        if (!row || strcmp(row->payload, "{}") == 0) /* only its key is kept */
                error_set(err, ERR_MISSING,
                          "there is no event 'evt-%lld'; it may be older than what is kept",
                          (long long)seq);
        else if (!incoming_is_type(row->type))
                error_set(err, ERR_INVALID, "rules do not apply to events of type '%s'", row->type);
        else
                in = incoming_from_row(row, err);
        free(row);
        return in;
}

/* ---- explanations ---- */

static void explain_decision(const struct evaluation *e, struct buf *json)
{
        const struct decision *out = e->out;
        const struct buf *reason = &e->d->reason;

        jsonw_open_member(json, "decision", '{');
        jsonw_bool(json, "trigger", out->trigger);
        jsonw_bool(json, "expired", out->expired);
        jsonw_str(json, "guard", e->guard);
        jsonw_str(json, "agent", out->agent);
        jsonw_str(json, "rule", out->rule);
        jsonw_str(json, "reason", reason->len > 0 ? reason->data : NULL);
        jsonw_int(json, "debounceMs", out->debounce_ms);
        jsonw_str(json, "mode", out->trigger ? reply_mode_name(out->policy.mode) : NULL);
        jsonw_bool(json, "conversation", e->live_session != NULL);
        jsonw_str(json, "command", e->command ? e->command->name : NULL);
        jsonw_close(json, '}');
}

static void explain_limits(const struct evaluation *e, struct buf *json)
{
        const struct dispatch_adapter *a = e->adapter;
        struct turn_rate rate = { e->out->turns, e->out->turns_seconds };
        struct rate_key key = rate_limit_key(e->in, e->rule);
        struct access_verdict v = { .outcome = ACCESS_STRANGER };
        struct buf why;

        buf_init(&why, 0);
        if (a)
                v = access_check_sender(e->d->policy, a, e->in, e->now_ms, &why);
        if (a && a->trusted)
                buf_addstr(&why, "the platform is trusted");
        else if (incoming_is_scheduled(e->in))
                buf_addstr(&why, "a schedule needs none");
        jsonw_open_member(json, "access", '{');
        jsonw_bool(json, "allowed", v.outcome == ACCESS_ALLOWED);
        jsonw_str(json, "why", why.len > 0 ? why.data : NULL);
        jsonw_close(json, '}');
        buf_release(&why);
        if (rate.turns <= 0) {
                jsonw_null(json, "rateLimit");
                return;
        }
        jsonw_open_member(json, "rateLimit", '{');
        jsonw_int(json, "turns", rate.turns);
        jsonw_int(json, "seconds", rate.seconds);
        jsonw_int(json, "waitMs", rate_limit_wait_ms(e->d->rates, &key, rate, e->now_ms));
        jsonw_close(json, '}');
}

static void explain_rules(struct evaluation *e, enum dry_run_rules which, struct buf *json)
{
        const struct dispatch_adapter *a = e->adapter;
        size_t count = which == DRY_RUN_ALL_RULES ? e->d->rule_count : a ? a->rule_count : 0;
        bool decided = false;
        struct buf why;

        buf_init(&why, 0);
        jsonw_open_member(json, "rules", '[');
        for (size_t i = 0; i < count; i++) {
                const struct rule *r = which == DRY_RUN_ALL_RULES ? &e->d->rules[i] : a->rules[i];
                bool matched = rule_matches(r, &e->context, &why);

                if (matched)
                        buf_addstr(&why,
                                   decided ? "all conditions hold, but an earlier rule came first"
                                           : "all conditions hold");
                decided = decided || matched;
                jsonw_open(json, '{');
                jsonw_str(json, "name", r->name);
                jsonw_bool(json, "matched", matched);
                jsonw_str(json, "why", why.data);
                jsonw_close(json, '}');
                buf_clear(&why);
        }
        jsonw_close(json, ']');
        buf_release(&why);
}

void dry_run_explain(struct dispatch *d, const struct incoming *in, enum dry_run_rules which,
                     struct buf *json)
{
        const struct dispatch_adapter *a = in->adapter ? map_get(&d->by_name, in->adapter) : NULL;
        struct incoming event = *in;
        struct decision decision;
        struct evaluation e = { .d = d, .in = &event, .dry = true, .out = &decision };

        if (!event.platform && a)
                event.platform = a->platform; /* may be missing in a made-up event */
        evaluation_run(&e);
        jsonw_open(json, '{');
        explain_decision(&e, json);
        explain_limits(&e, json);
        explain_rules(&e, which, json);
        jsonw_close(json, '}');
        rule_context_release(&e.context);
}
