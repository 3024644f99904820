/* Where deliveries go. Only DMs of operators survive a restart. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/discord/discord.h"

#define DMS_MAX 10000

static bool is_operator(const struct discord *dc, const char *user)
{
        const struct setting_list *admins = &dc->adapter->common->admins;

        for (size_t i = 0; i < admins->count; i++)
                if (strcmp(admins->items[i], user) == 0)
                        return true;
        return false;
}

void dc_destination_forget(struct discord *dc)
{
        void *value;

        for (size_t i = 0; map_each(&dc->dms, &i, NULL, &value);)
                free(value);
        map_release(&dc->dms);
        map_release(&dc->dm_channels);
        map_init(&dc->dms);
        map_init(&dc->dm_channels);
}

const char *dc_destination_dm(const struct discord *dc, const char *user)
{
        const char *kept =
                is_operator(dc, user) ? adapter_file_get(dc->saved, "operators", user) : NULL;

        return kept ? kept : map_get(&dc->dms, user);
}

void dc_destination_set_dm(void *discord, const char *user, const char *channel)
{
        struct discord *dc = discord;
        const char *known = dc_destination_dm(dc, user);

        if (known && strcmp(known, channel) == 0)
                return;
        if (is_operator(dc, user)) {
                log_info("DM of an operator", LOG_S("adapter", dc->adapter->name),
                         LOG_S("user", user), LOG_S("channel", channel));
                adapter_file_set(dc->adapter, dc->saved, "operators", user, channel);
                return;
        }
        if (dc->dms.count >= DMS_MAX)
                dc_destination_forget(dc); /* opening a DM again costs one call */
        free(map_put(&dc->dms, user, mem_strdup(channel)));
        map_put(&dc->dm_channels, channel, dc);
}

bool dc_destination_is_dm(const struct discord *dc, const char *channel)
{
        const json_t *operators = json_object_get(dc->saved, "operators");
        struct dc_channel_info info;
        const char *user;
        json_t *kept;

        if (!dc_id_valid(channel) || map_get(&dc->dm_channels, channel))
                return true; /* "user:ID" and "operator" are */
        json_object_foreach((json_t *)operators, user, kept)
                if (json_is_string(kept) && strcmp(json_string_value(kept), channel) == 0)
                        return true;
        return dc->intake && dc_intake_channel(dc->intake, channel, &info) && !info.guild;
}

const char *dc_destination_person(const struct discord *dc, const char *channel)
{
        const struct setting_list *admins = &dc->adapter->common->admins;

        if (strncmp(channel, DC_USER, strlen(DC_USER)) == 0)
                return channel + strlen(DC_USER);
        if (strcmp(channel, DC_OPERATOR) != 0)
                return NULL;
        for (size_t i = 0; i < admins->count; i++)
                if (dc_id_valid(admins->items[i]))
                        return admins->items[i];
        return NULL;
}

const char *dc_destination_channel(const struct discord *dc, const char *channel,
                                   const char *thread)
{
        const char *person;

        if (thread && *thread)
                return thread;
        if (dc_id_valid(channel))
                return channel;
        person = dc_destination_person(dc, channel);
        return person ? dc_destination_dm(dc, person) : NULL;
}

const char *dc_destination_of_message(const struct discord *dc, const char *channel,
                                      const char *thread, const char *message)
{
        bool begins_thread = thread && message && strcmp(thread, message) == 0;

        return dc_destination_channel(dc, channel, begins_thread ? NULL : thread);
}
