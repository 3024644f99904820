/*
 * What must survive a restart besides the store: where the operators are reached, which commands
 * were registered. DMs of others are remembered while the process lives, and not without end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/discord/discord.h"

#define DMS_MAX 10000

void dc_memory_read(struct discord *dc)
{
        dc->memory = adapter_memory_read(dc->adapter);
        map_init(&dc->dms);
        map_init(&dc->dm_channels);
}

void dc_memory_release(struct discord *dc)
{
        void *value;

        for (size_t i = 0; map_each(&dc->dms, &i, NULL, &value);)
                free(value);
        map_release(&dc->dms);
        map_release(&dc->dm_channels);
        json_decref(dc->memory);
}

/* ---- small values ---- */

const json_t *dc_memory_get(const struct discord *dc, const char *name)
{
        return json_object_get(dc->memory, name);
}

void dc_memory_set(struct discord *dc, const char *name, json_t *value)
{
        const json_t *old = json_object_get(dc->memory, name);

        if (value ? json_equal(old, value) : !old) {
                json_decref(value);
                return;
        }
        if (value)
                json_object_set_new(dc->memory, name, value);
        else
                json_object_del(dc->memory, name);
        adapter_memory_write(dc->adapter, dc->memory);
}

/* ---- DMs ---- */

bool dc_is_operator(const struct discord *dc, const char *user)
{
        const struct setting_list *admins = &dc->adapter->common->admins;

        for (size_t i = 0; i < admins->count; i++)
                if (strcmp(admins->items[i], user) == 0)
                        return true;
        return false;
}

static void forget_all(struct discord *dc)
{
        void *value;

        for (size_t i = 0; map_each(&dc->dms, &i, NULL, &value);)
                free(value);
        map_release(&dc->dms);
        map_release(&dc->dm_channels);
        map_init(&dc->dms);
        map_init(&dc->dm_channels);
}

static void keep_operator(struct discord *dc, const char *user, const char *channel)
{
        json_t *all = json_deep_copy(dc_memory_get(dc, "operators"));

        if (!json_is_object(all)) {
                json_decref(all);
                all = json_object();
        }
        json_object_set_new(all, user, json_string(channel));
        dc_memory_set(dc, "operators", all);
}

void dc_memory_dm(struct discord *dc, const char *user, const char *channel)
{
        const char *known = dc_memory_dm_of(dc, user);

        if (known && strcmp(known, channel) == 0)
                return;
        if (dc_is_operator(dc, user)) {
                log_info("an operator is reached in this DM", LOG_S("adapter", dc->adapter->name),
                         LOG_S("user", user), LOG_S("channel", channel));
                keep_operator(dc, user, channel);
                return;
        }
        if (dc->dms.count >= DMS_MAX)
                forget_all(dc); /* opening a DM again costs one call */
        free(map_put(&dc->dms, user, mem_strdup(channel)));
        map_put(&dc->dm_channels, channel, dc);
}

const char *dc_memory_dm_of(const struct discord *dc, const char *user)
{
        const char *kept = dc_is_operator(dc, user)
                                   ? json_str(dc_memory_get(dc, "operators"), user, NULL)
                                   : NULL;

        return kept ? kept : map_get(&dc->dms, user);
}

bool dc_memory_has_dm(const struct discord *dc, const char *channel)
{
        const json_t *operators = dc_memory_get(dc, "operators");
        const char *user;
        json_t *kept;

        if (map_get(&dc->dm_channels, channel))
                return true;
        json_object_foreach((json_t *)operators, user, kept) {
                if (json_is_string(kept) && strcmp(json_string_value(kept), channel) == 0)
                        return true;
        }
        return false;
}
