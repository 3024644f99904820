#include "sim/discord/dc_people.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_files.h"
#include "sim/discord/dc_world_events.h"
#include "sim/file_content.h"

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
                error_set(err, ERR_MISSING, "no bot '%s'", name ? name : "");
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
                error_set(err, ERR_MISSING, "no channel '%s'", name);
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
                error_set(err, ERR_MISSING, "no message '%s'", text ? text : "");
        return m;
}

struct guild *dc_people_find_guild(struct world *w, const json_t *request, struct error *err)
{
        char room[DC_ID_SIZE];
        const char *name = dc_people_text(request, "guild", room);
        struct guild *g = dc_guild_by_name(w, name);

        if (!g)
                error_set(err, ERR_MISSING, "no guild '%s'", name ? name : "");
        return g;
}

/* ---- messages ---- */

/* Sets the text and its mentions, which may be by name: "<@ada>" becomes "<@42>". */
static void set_text(struct world *w, struct message *m, const char *text)
{
        struct buf b; /* the text may be the old one */

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
        free(m->content);
        m->content = buf_take(&b);
        dc_message_mentions(w, m, NULL);
}

static int add_files(struct world *w, struct message *m, const json_t *files, struct error *err)
{
        const json_t *request;
        struct buf data;
        int rc = 0;
        size_t i;

        buf_init(&data, 0);
        json_array_foreach(files, i, request) {
                buf_clear(&data);
                rc = file_content_read(request, &data, err);
                if (rc != 0)
                        break;
                json_array_append_new(
                        m->attachments,
                        dc_file_add(w, m->channel, json_str(request, "file_name", "picture.png"),
                                    json_str(request, "mime_type", NULL), data.data, data.len));
        }
        buf_release(&data);
        return rc;
}

static void set_list(json_t **slot, const json_t *request, const char *key)
{
        const json_t *value = json_object_get(request, key);

        if (!json_is_array(value))
                return;
        json_decref(*slot);
        *slot = json_deep_copy(value);
}

static int fill(struct world *w, struct message *m, const json_t *request, struct error *err)
{
        const json_t *extra = json_object_get(request, "extra");
        char room[DC_ID_SIZE];

        m->reply_to = dc_id_parse(dc_people_text(request, "reply_to", room));
        if (m->reply_to) {
                m->type = MESSAGE_REPLY;
                m->reply_channel = m->channel->id;
        }
        set_list(&m->embeds, request, "embeds");
        set_list(&m->components, request, "components");
        m->type = (int)json_int(request, "type", m->type);
        m->flags = json_int(request, "flags", 0);
        if (json_is_object(extra))
                m->extra = json_deep_copy(extra);
        if (add_files(w, m, json_object_get(request, "files"), err) != 0)
                return -1;
        set_text(w, m, json_str(request, "text", ""));
        return 0;
}

static int send_one(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);
        struct user *from = dc_people_find_user(w, request);
        struct message *m;
        uint64_t id;

        if (!c)
                return -1;
        if (dc_channel_is_forum(c))
                return error_set(err, ERR_INVALID, "'%s' is a forum; use /sim/thread", c->name);
        m = dc_message_new(w, c, c->guild || from == c->bot->user ? from : c->user);
        if (fill(w, m, request, err) != 0) {
                dc_message_free(m);
                return -1;
        }
        if (c->guild)
                dc_guild_add_member(c->guild, from);
        id = m->id;
        jsonw_int(out, "sessions", dc_world_event_message(w, m));
        dc_render_id(out, "channel", c->id);
        dc_render_id(out, "message_id", id);
        return 0;
}

int dc_people_send(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        return control_run_each(w, request, send_one, out, err);
}

int dc_people_edit(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);

        if (!m)
                return -1;
        set_text(w, m, json_str(request, "text", m->content));
        dc_render_id(out, "message_id", m->id);
        jsonw_int(out, "sessions", dc_world_event_edit(w, m));
        return 0;
}

int dc_people_delete(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);

        if (!m)
                return -1;
        jsonw_int(out, "sessions", dc_world_event_delete(w, m));
        return 0;
}

/* ---- reactions and typing ---- */

static int find_emoji(const json_t *request, struct emoji *e, struct error *err)
{
        const char *text = json_str(request, "emoji", "");

        if (dc_message_parse_emoji(text, e) == 0)
                return 0;
        return error_set(err, ERR_INVALID, "'%s' must be an emoji or name:id", text);
}

int dc_people_react(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);
        struct user *u = dc_people_find_user(w, request);
        struct emoji e;

        if (!m || find_emoji(request, &e, err) != 0)
                return -1;
        if (m->channel->guild)
                dc_guild_add_member(m->channel->guild, u);
        jsonw_int(out, "sessions", dc_world_event_react(w, m, &e, u));
        return 0;
}

int dc_people_unreact(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);
        struct emoji e;

        if (!m || find_emoji(request, &e, err) != 0)
                return -1;
        jsonw_int(out, "sessions",
                  dc_world_event_unreact(w, m, &e, dc_people_find_user(w, request)));
        return 0;
}

int dc_people_typing(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);

        if (!c)
                return -1;
        jsonw_int(out, "sessions", dc_world_event_typing(w, c, dc_people_find_user(w, request)));
        return 0;
}

/* ---- threads ---- */

/* On "message_id" if there is one; in a forum "text" is the first message. */
int dc_people_thread(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        bool on_message = json_object_get(request, "message_id") != NULL;
        struct message *m = on_message ? dc_people_find_message(w, request, err) : NULL, *first;
        struct channel *parent =
                on_message ? (m ? m->channel : NULL) : dc_people_find_channel(w, request, err);
        struct user *from = dc_people_find_user(w, request);
        struct channel *c;

        if (!parent)
                return -1;
        if (!parent->guild || dc_channel_is_thread(parent) ||
            (m && (m->has_thread || dc_channel_find(w, m->id))))
                return error_set(err, ERR_INVALID, "the channel or message cannot have a thread");
        dc_guild_add_member(parent->guild, from);
        c = dc_world_event_thread(w, parent, m, CHANNEL_THREAD,
                                  json_str(request, "name", "a thread"), from);
        dc_render_id(out, "channel", c->id);
        jsonw_str(out, "name", c->name);
        if (!json_str(request, "text", NULL))
                return 0;
        first = dc_message_new(w, c, from);
        first->id = dc_channel_is_forum(parent) ? c->id : first->id;
        set_text(w, first, json_str(request, "text", ""));
        dc_render_id(out, "message_id", first->id);
        dc_world_event_message(w, first);
        return 0;
}

int dc_people_rename(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);
        const char *name = json_str(request, "name", NULL);

        if (!c)
                return -1;
        if (!c->guild || !name)
                return error_set(err, ERR_INVALID,
                                 "rename needs a channel of a guild and a 'name'");
        jsonw_int(out, "sessions",
                  dc_world_event_rename(w, c, name, dc_people_find_user(w, request)));
        return 0;
}

int dc_people_archive(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);

        if (!c)
                return -1;
        if (!dc_channel_is_thread(c))
                return error_set(err, ERR_INVALID, "'%s' is no thread",
                                 c->name ? c->name : "channel");
        c->archived = json_flag(request, "archived", true);
        c->locked = json_flag(request, "locked", c->locked);
        jsonw_int(out, "sessions", dc_world_event_channel(w, c, "UPDATE"));
        return 0;
}
