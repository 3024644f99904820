/*
 * Where deliveries go. DMs are opened and names of channels are looked up when first needed, and
 * again after a restart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_send.h"

#define DMS_MAX         10000
#define NO_OPERATOR_MS  60000
#define CHANNELS_LISTED 999 /* the most that Slack lists at once */

#define UNKNOWN                                                                                   \
        "'%.60s' is not a Slack channel that the bot knows: use an id, '#name', 'user:ID' for a " \
        "person's DM, or 'operator'"

static bool is_id(const char *text, const char *letters)
{
        size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

        return n > 1 && n <= 32 && text[n] == '\0' && strchr(letters, text[0]);
}

const char *sl_destination_person(const struct slack *sl, const char *channel)
{
        const struct setting_list *admins = &sl->adapter->common->admins;

        if (strncmp(channel, SL_USER, strlen(SL_USER)) == 0)
                channel += strlen(SL_USER);
        if (is_id(channel, "UW"))
                return channel;
        if (strcmp(channel, SL_OPERATOR) != 0)
                return NULL;
        for (size_t i = 0; i < admins->count; i++)
                if (is_id(admins->items[i], "UW"))
                        return admins->items[i];
        return NULL;
}

const char *sl_destination_find(struct slack *sl, const char *channel)
{
        const char *person;

        if (is_id(channel, "CDG"))
                return channel;
        if (channel[0] == '#')
                return sl_cache_channel_named(sl->cache, channel);
        person = sl_destination_person(sl, channel);
        return person ? map_get(&sl->sends->dms, person) : NULL;
}

bool sl_destination_is_dm(struct slack *sl, const char *channel)
{
        const char *id = sl_destination_find(sl, channel);

        return sl_destination_person(sl, channel) || (id && id[0] == 'D');
}

struct sl_call *sl_destination_open(struct slack *sl, const char *channel, sl_answer_fn *done,
                                    void *arg, struct send_result *wrong, char *why, size_t size)
{
        const char *person = sl_destination_person(sl, channel);
        struct sl_call *call;
        json_t *args;

        *wrong = (struct send_result){
                .outcome = SEND_REJECTED, .kind = ERR_INVALID, .why = why, .retry_after_ms = -1
        };
        if (!person && strcmp(channel, SL_OPERATOR) == 0) {
                wrong->outcome = SEND_RETRY;
                wrong->kind = ERR_LIMIT;
                wrong->retry_after_ms = NO_OPERATOR_MS;
                snprintf(why, size, "there is no operator yet: name one in adapters.%.60s.admins",
                         sl->adapter->name);
                return NULL;
        }
        if (!person && channel[0] != '#') {
                snprintf(why, size, UNKNOWN, channel);
                return NULL;
        }
        args = person ? json_pack("{s:s}", "users", person)
                      : json_pack("{s:s, s:b, s:i}", "types", "public_channel,private_channel",
                                  "exclude_archived", true, "limit", CHANNELS_LISTED);
        call = sl_api_call(sl->api,
                           &(struct sl_request){ .method = person ? "conversations.open"
                                                                  : "users.conversations",
                                                 .args = args },
                           done, arg);
        json_decref(args);
        return call;
}

const char *sl_destination_opened(struct slack *sl, const char *channel, const struct sl_answer *a)
{
        const char *person = sl_destination_person(sl, channel),
                   *id = json_str(json_object_get(a->result, "channel"), "id", "");
        struct map *dms = &sl->sends->dms;
        json_t *listed;
        void *value;
        size_t k;

        if (channel[0] == '#') {
                json_array_foreach(json_object_get(a->result, "channels"), k, listed)
                        if (strcmp(json_str(listed, "name", ""), channel + 1) == 0)
                                sl_cache_put_channel(sl->cache, listed);
                return sl_cache_channel_named(sl->cache, channel);
        }
        if (!a->ok || !person || !is_id(id, "CDG"))
                return NULL;
        if (dms->count >= DMS_MAX) { /* opening one again costs a call */
                for (size_t i = 0; map_each(dms, &i, NULL, &value);)
                        free(value);
                map_release(dms);
                map_init(dms);
        }
        free(map_put(dms, person, mem_strdup(id)));
        return map_get(dms, person);
}

void sl_destination_refuse(const char *channel, struct sl_answer *a, char *why, size_t size)
{
        if (a->ok && channel[0] == '#') {
                snprintf(why, size, UNKNOWN, channel);
                a->error = "channel_not_found";
                a->why = why;
        }
        a->ok = false;
}
