/*
 * What dispatch counts in memory, read back from the rows after a restart.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/trigger_log_row.h"

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

/* Rows come newest first, and only the first message of a turn counts: the last one seen here. */
static int restore_rates(struct dispatch *d, struct store_tx *tx, struct error *err)
{
        int64_t since_ms = dispatch_now(d) - longest_rate(d) * 1000;
        struct store_stmt *s = trigger_log_row_list_turns(tx, PEOPLE_MAX);
        struct trigger_turn row, *turns = NULL;
        struct map seen;
        size_t count = 0;
        int rc;

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
                char *key = mem_printf("%lld", (long long)t->turn);

                if (a && !map_put(&seen, key, d))
                        rate_limit_count(d->rates,
                                         &(struct rate_key){ t->adapter, t->channel, t->sender },
                                         guard_rate(a, dispatch_rule(d, t->rule)), t->time_ms);
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

static int restore(struct store_tx *tx, void *arg, struct error *err)
{
        struct dispatch *d = arg;
        int64_t now_ms = dispatch_now(d);

        if (restore_rates(d, tx, err) < 0 ||
            chat_session_restore(d->sessions, tx, now_ms, err) < 0 ||
            reaction_limit_restore(d->reactions, tx, now_ms, err) < 0)
                return -1;
        return budget_restore(d->budget, tx, now_ms, err);
}

int dispatch_restore(struct dispatch *d, struct store *s, struct error *err)
{
        return store_read_now(s, restore, d, err);
}
