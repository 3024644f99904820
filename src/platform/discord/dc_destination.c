/* Where a delivery goes, who may be notified by it, and how emoji are written. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define USERS_MAX 100 /* Discord's limit */

bool dc_is_dm(const struct discord *dc, const char *channel)
{
        struct dc_channel_info place;

        if (!dc_id_valid(channel) || dc_memory_has_dm(dc, channel))
                return true; /* "user:ID" and "operator" */
        return dc->inbound && dc_inbound_channel(dc->inbound, channel, &place) && !place.guild;
}

const char *dc_person(const struct discord *dc, const char *channel)
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

const char *dc_place(const struct discord *dc, const char *channel, const char *thread)
{
        const char *person;

        if (thread && *thread)
                return thread;
        if (dc_id_valid(channel))
                return channel;
        person = dc_person(dc, channel);
        return person ? dc_memory_dm_of(dc, person) : NULL;
}

const char *dc_place_of_message(const struct discord *dc, const char *channel, const char *thread,
                                const char *message)
{
        bool begins_the_thread = thread && message && strcmp(thread, message) == 0;

        return dc_place(dc, channel, begins_the_thread ? NULL : thread);
}

char *dc_emoji(const char *emoji)
{
        size_t n = strlen(emoji);

        if (n > 4 && emoji[0] == '<' && emoji[n - 1] == '>') { /* <:name:id> or <a:name:id> */
                const char *colon = strchr(emoji, ':');

                if (colon)
                        return mem_strndup(colon + 1, n - 2 - (size_t)(colon - emoji));
        }
        return mem_strdup(emoji);
}

/* The id in "<@123>" or "<@!123>" at p; its length, or 0. */
static size_t mention_at(const char *p, const char **id)
{
        size_t n;

        if (strncmp(p, "<@", 2) != 0)
                return 0;
        *id = p + 2 + (p[2] == '!');
        n = strspn(*id, "0123456789");
        return n > 0 && n <= 20 && (*id)[n] == '>' ? n : 0;
}

static bool has(const json_t *list, const char *id, size_t n)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *known = json_string_value(json_array_get(list, i));

                if (strlen(known) == n && memcmp(known, id, n) == 0)
                        return true;
        }
        return false;
}

json_t *dc_allowed_mentions(const char *text, bool replied_user)
{
        json_t *users = json_array();
        const char *id;

        for (const char *p = text; p && (p = strstr(p, "<@")); p++) {
                size_t n = mention_at(p, &id);

                if (n > 0 && (p == text || p[-1] != '\\') && json_array_size(users) < USERS_MAX &&
                    !has(users, id, n))
                        json_array_append_new(users, json_stringn(id, n));
        }
        return json_pack("{s:[], s:o, s:b}", "parse", "users", users, "replied_user", replied_user);
}
