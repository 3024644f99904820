#include "sim/discord/dc_people.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define ADA 42

const char *dc_people_text(const json_t *request, const char *key, char room[DC_ID_SIZE])
{
        const json_t *value = json_object_get(request, key);

        if (json_is_integer(value))
                return dc_id_text((uint64_t)json_integer_value(value), room);
        return json_string_value(value);
}

struct bot *dc_people_find_bot(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *name = dc_people_text(request, "bot", room);
        struct bot *b = dc_world_bot_by_name(w, name);

        if (!b)
                error_set(err, ERR_MISSING, "there is no bot '%s'", name ? name : "");
        return b;
}

struct user *dc_people_find_user(struct world *w, const json_t *request)
{
        char room[DC_ID_SIZE];
        const char *name = dc_people_text(request, "from", room);
        struct user *u =
                name ? dc_world_user_by_name(w, name) : dc_world_make_user(w, ADA, NULL, NULL);
        uint64_t id = dc_id_parse(name);

        return u ? u : dc_world_make_user(w, id, id ? NULL : name, NULL);
}

struct channel *dc_people_find_channel(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *name = dc_people_text(request, "channel", room);
        struct channel *c = name ? dc_channel_by_name(w, name) : NULL;
        struct bot *b;

        if (c)
                return c;
        if (name) {
                error_set(err, ERR_MISSING, "there is no channel '%s'", name);
                return NULL;
        }
        b = dc_people_find_bot(w, request, err);
        return b ? dc_channel_dm(b, dc_people_find_user(w, request), true) : NULL;
}

struct message *dc_people_find_message(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *text = dc_people_text(request, "message_id", room), *key;
        struct message *m = NULL;
        void *value;

        for (size_t i = 0; !m && map_each(&w->channels, &i, &key, &value);)
                m = dc_message_find(value, dc_id_parse(text));
        if (!m)
                error_set(err, ERR_MISSING, "there is no message '%s'", text ? text : "");
        return m;
}

struct guild *dc_people_find_guild(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *name = dc_people_text(request, "guild", room);
        struct guild *g = dc_guild_by_name(w, name);

        if (!g)
                error_set(err, ERR_MISSING, "there is no guild '%s'", name ? name : "");
        return g;
}

/* "<@ada>" becomes "<@42>": names are easier to write than ids. Yours to free. */
static char *with_ids(struct world *w, const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        while (*text) {
                const char *end = strncmp(text, "<@", 2) == 0 ? strchr(text, '>') : NULL;
                char *name = end ? mem_strndup(text + 2, (size_t)(end - text - 2)) : NULL;
                const struct user *u = name ? dc_world_user_by_name(w, name) : NULL;

                if (u) {
                        buf_addf(&b, "<@%llu>", (unsigned long long)u->id);
                        text = end + 1;
                } else {
                        buf_addch(&b, *text++);
                }
                free(name);
        }
        return buf_take(&b);
}

void dc_people_set_text(struct world *w, struct message *m, const char *text)
{
        char *fresh = with_ids(w, text); /* the text may be the old one */

        free(m->content);
        m->content = fresh;
        dc_message_mentions(w, m, NULL);
}
