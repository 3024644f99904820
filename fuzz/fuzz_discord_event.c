/* Any JSON as any dispatch: every event has a key, a channel and valid ids. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_rest.h"
#include "platform/discord/dc_scheduled_event.h"
#include "road/calendar_sync.h"

static const char *const types[] = {
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_REACTION_REMOVE",
        "INTERACTION_CREATE",
        "GUILD_CREATE",
        "THREAD_LIST_SYNC",
        "CHANNEL_UPDATE",
        "GUILD_DELETE",
        "THREAD_DELETE",
        "GUILD_MEMBER_UPDATE",
        "GUILD_SCHEDULED_EVENT_CREATE",
        "GUILD_SCHEDULED_EVENT_UPDATE",
        "GUILD_SCHEDULED_EVENT_DELETE",
        "GUILD_SCHEDULED_EVENT_USER_ADD",
        DC_EVENT_MEMBERS,
};

static void check(const struct incoming *in)
{
        bool of_guild = strcmp(in->type ? in->type : "", EVENT_CALENDAR) == 0;
        const char *channel = in->channel + (of_guild ? strlen(DC_GUILD) : 0);

        if (of_guild) { /* what the calendar reads */
                json_t *metadata = json_read(in->metadata, strlen(in->metadata), NULL);
                struct calendar_sync s;

                if (calendar_sync_read(metadata, &s, NULL) < 0)
                        abort();
                json_decref(metadata);
        }
        if (!in->key || !*in->key || !dc_id_valid(channel) ||
            (in->thread && !dc_id_valid(in->thread)) ||
            (in->sender_id && !dc_id_valid(in->sender_id)))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct dc_cache *cache;
        struct dc_dispatch e = { .session = "s", .seq = 1 };
        struct intake_content item;
        json_t *first;

        if (n < 1)
                return 0;
        e.type = types[data[0] % COUNT(types)];
        e.d = json_read((const char *)data + 1, n - 1, NULL);
        if (!e.d)
                return 0;
        cache = dc_cache_new();
        first = json_pack("{s:s, s:i, s:s}", "id", "11", "type", 11, "parent_id", "10");
        dc_cache_add(cache, "1", first);
        json_decref(first);
        dc_cache_learn(cache, "42", e.type, e.d);
        dc_event_missing_member(e.type, e.d);
        dc_event_read(
                &item,
                &(struct dc_event_context){ .self = "42", .cache = cache, .role_mentions = true },
                &e);
        for (size_t i = 0; i < item.event_count; i++)
                check(&item.events[i]);
        if (item.event_count == 0 && !item.ignored)
                abort();
        intake_content_release(&item);
        dc_cache_free(cache);
        json_decref(e.d);
        return 0;
}
