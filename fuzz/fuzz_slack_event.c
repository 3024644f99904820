/* Any JSON as any arrival: every event has a key, a channel and valid ids. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_ts.h"

static void check(const struct incoming *in)
{
        if (!in->key || !*in->key || !sl_id_valid(in->channel) ||
            (in->thread && !sl_ts_valid(in->thread)) ||
            (in->reply_to && !sl_ts_valid(in->reply_to)) ||
            (in->sender_id && !sl_id_valid(in->sender_id)))
                abort();
        if (in->id && !sl_ts_valid(in->id) && strcmp(in->id, in->key) != 0)
                abort();
}

static void put(struct sl_cache *cache, const char *id, const char *name)
{
        json_t *o = json_pack("{s:s, s:s}", "id", id, "name", name);

        if (*id == 'C')
                sl_cache_put_channel(cache, o);
        else
                sl_cache_put_user(cache, o);
        json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static struct slack sl = { .self.user = (char *)(uintptr_t) "U0",
                                   .self.team = (char *)(uintptr_t) "T1" };
        struct sl_event_context context = { .user = "U0", .bot = "B0", .team = "T1" };
        enum sl_arrival kind = n > 0 ? data[0] % 3 : SL_EVENT;
        char users[SL_USERS_MAX][SL_ID_SIZE];
        struct intake_content item;
        json_t *payload = n > 1 ? json_read((const char *)data + 1, n - 1, NULL) : NULL;

        if (!payload)
                return 0;
        context.reply_in_thread = data[0] >= 128;
        context.cache = sl_cache_new(&sl);
        put(context.cache, "C1", "general");
        put(context.cache, "U1", "anna");
        sl_cache_put_user(context.cache,
                          json_object_get(json_object_get(payload, "event"), "user"));
        sl_cache_put_channel(context.cache,
                             json_object_get(json_object_get(payload, "event"), "channel"));
        sl_event_channel(kind, payload);
        for (size_t i = sl_event_users(kind, payload, users); i > 0; i--)
                if (!sl_id_valid(users[i - 1]))
                        abort();
        sl_event_read(&item, &context, kind, payload, data[0] & 1);
        for (size_t i = 0; i < item.event_count; i++)
                check(&item.events[i]);
        if (item.event_count == 0 && !item.ignored)
                abort();
        intake_content_release(&item);
        sl_cache_free(context.cache);
        json_decref(payload);
        return 0;
}
