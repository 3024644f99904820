/*
 * What dispatch counts in memory, filled again from the rows after a restart.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/dispatch_private.h"

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
        struct store_stmt *s = store_prepare(
                tx, "SELECT adapter, channel, sender, rule, turn, time_ms FROM trigger_log"
                    " ORDER BY event DESC LIMIT ?1");
        int rc;

        store_bind_int(s, 1, PEOPLE_MAX);
        while ((rc = store_step(s, err)) == 1) {
                /*
                 * newest first: the first old one ends the look, so that a start does not read the
                 * whole log
                 */
                if (store_col_int(s, 5) <= p->since_ms) {
                        store_reset(s);
                        return 0;
                }
                if (store_col_null(s, 4))
                        continue;
                p->items = mem_realloc(p->items, (p->count + 1) * sizeof(*p->items));
                p->items[p->count++] =
                        (struct past_turn){ .adapter = mem_strdup(store_col_text(s, 0)),
                                            .channel = mem_strdup(store_col_text(s, 1)),
                                            .sender = mem_strdup(store_col_text(s, 2)),
                                            .rule = mem_strdup(store_col_text(s, 3)),
                                            .turn = store_col_int(s, 4),
                                            .time_ms = store_col_int(s, 5) };
        }
        return rc;
}

/* Oldest first, and of each turn only the message that began it. */
static void count_past(struct past *p)
{
        struct map seen;

        map_init(&seen);
        for (size_t i = p->count; i > 0; i--) {
                const struct past_turn *t = &p->items[i - 1];
                const struct dispatch_adapter *a = map_get(&p->dispatch->by_name, t->adapter);
                struct rate_key who = { t->adapter, t->channel, t->sender };
                char *key = mem_printf("%lld", (long long)t->turn);

                if (a && !map_put(&seen, key, p))
                        rate_limit_count(p->dispatch->rates, &who,
                                         guard_rate(a, dispatch_rule(p->dispatch, t->rule)),
                                         t->time_ms);
                free(key);
        }
        map_release(&seen);
}

static int64_t longest_rate(const struct dispatch *d)
{
        int64_t seconds = 0;

        for (size_t i = 0; i < d->adapter_count; i++)
                seconds = d->adapters[i].rate.seconds > seconds ? d->adapters[i].rate.seconds
                                                                : seconds;
        for (size_t i = 0; i < d->rule_count; i++)
                seconds = d->rules[i].rate.seconds > seconds ? d->rules[i].rate.seconds : seconds;
        return seconds;
}

static int restore_rates(struct dispatch *d, struct store *s, struct error *err)
{
        struct past p = { .dispatch = d, .since_ms = dispatch_now(d) - longest_rate(d) * 1000 };
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

int dispatch_restore(struct dispatch *d, struct store *s, struct error *err)
{
        if (restore_rates(d, s, err) < 0)
                return -1;
        if (chat_session_restore(d->sessions, s, dispatch_now(d), err) < 0 ||
            reaction_limit_restore(d->reactions, s, dispatch_now(d), err) < 0)
                return -1;
        return budget_restore(d->budget, s, dispatch_now(d), err);
}
