/*
 * Hands the settings of adapters to dispatch, which does not know platforms.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "config/config_private.h"

#define DEFAULT_TURNS         5
#define DEFAULT_AMBIENT_TURNS 20

static struct access_lists lists_of(const struct adapter_conf *a)
{
        const struct adapter_common *c = &a->common;

        return (struct access_lists){ .admins = &c->admins,
                                      .dm = &c->dm,
                                      .allow = &c->allow,
                                      .block = &c->block,
                                      .channels = &c->channels,
                                      .is_id = a->ops->is_id,
                                      .platform = a->ops->title };
}

static struct turn_rate rate_of(const struct adapter_conf *a, const struct adapter_rate *given,
                                int64_t default_turns)
{
        int64_t turns = given->turns;

        if (turns < 0)
                turns = a->ops->trusted ? 0 : default_turns;
        return (struct turn_rate){ .turns = turns, .seconds = given->seconds };
}

static int64_t or_default(int64_t given, int64_t fallback)
{
        return given >= 0 ? given : fallback;
}

static struct dispatch_adapter adapter_for_dispatch(const struct adapter_conf *a)
{
        struct access_lists lists = lists_of(a);
        const struct platform_manners *manners = &a->ops->manners;
        /* off by default for programs, whose texts may begin with "/stop" by chance */
        bool commands_apply = !a->ops->for_programs || json_object_get(a->raw, "chatCommands");

        return (struct dispatch_adapter){
                .name = mem_strdup(a->name),
                .platform = mem_strdup(a->ops->name),
                .agent = mem_strdup(a->common.agent),
                .trusted = a->ops->trusted,
                .access = access_new(&lists),
                .rate = rate_of(a, &a->common.rate, DEFAULT_TURNS),
                .ambient_rate = rate_of(a, &a->common.ambient_rate, DEFAULT_AMBIENT_TURNS),
                .max_hops = a->common.max_hops,
                .debounce_ms = or_default(a->common.debounce_ms, a->ops->debounce_ms),
                .debounce_max_ms = a->common.debounce_max_ms,
                .max_age_seconds = a->common.max_age_seconds,
                .conversation_seconds =
                        or_default(a->common.conversation_seconds, manners->conversation_seconds),
                .dm_conversation_seconds = or_default(a->common.dm_conversation_seconds,
                                                      manners->dm_conversation_seconds),
                .thread_chars = or_default(a->common.thread_chars, manners->thread_chars),
                .part_delay_ms = a->common.part_delay_ms,
                .slow_ms = or_default(a->common.slow_ms, manners->slow_ms),
                .budget_microusd = (int64_t)(a->common.budget.usd_per_day * 1e6),
                .commands = commands_apply && a->common.commands,
                .command_help = a->ops->command_help,
        };
}

void config_dispatch_apply(struct config *c, struct dispatch *d)
{
        struct dispatch_adapter *known = mem_array(c->adapter_count, sizeof(*known));

        for (size_t i = 0; i < c->adapter_count; i++)
                known[i] = adapter_for_dispatch(c->adapters[i]);
        dispatch_set(d, known, c->adapter_count, c->rules, c->rule_count, c->default_agent);
        c->rules = NULL;
        c->rule_count = 0;
}

struct list_check {
        const struct settings_source *src;
        const char *adapter;
};

static void on_mistake(void *arg, const char *key, const char *why)
{
        const struct list_check *l = arg;
        char *path = mem_printf("adapters.%s.%s", l->adapter, key);

        settings_error(l->src, path, NULL, "%s", why);
        free(path);
}

void config_dispatch_check(const struct config *c, const struct settings_source *src)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                struct access_lists lists = lists_of(c->adapters[i]);
                struct list_check l = { src, c->adapters[i]->name };

                access_validate(&lists, on_mistake, &l);
        }
}
