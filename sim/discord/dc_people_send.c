#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_files.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_world_events.h"
#include "sim/file_content.h"

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

static void set_reply(struct message *m, const json_t *request)
{
        char room[DC_ID_SIZE];
        uint64_t id = dc_id_parse(dc_people_text(request, "reply_to", room));

        if (!id)
                return;
        m->type = MESSAGE_REPLY;
        m->reply_to = id;
        m->reply_channel = m->channel->id;
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

        set_reply(m, request);
        set_list(&m->embeds, request, "embeds");
        set_list(&m->components, request, "components");
        m->type = (int)json_int(request, "type", m->type);
        m->flags = json_int(request, "flags", 0);
        if (json_is_object(extra))
                m->extra = json_deep_copy(extra);
        if (add_files(w, m, json_object_get(request, "files"), err) != 0)
                return -1;
        dc_people_set_text(w, m, json_str(request, "text", ""));
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
                return error_set(err, ERR_INVALID, "'%s' is a forum: open a post with /sim/thread",
                                 c->name);
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
        const json_t *list = json_is_array(request) ? request
                                                    : json_object_get(request, "messages"),
                     *one;
        size_t i;
        int rc = 0;

        if (!list)
                return send_one(w, request, out, err);
        jsonw_open_member(out, "results", '[');
        json_array_foreach(list, i, one) {
                jsonw_open(out, '{');
                rc = send_one(w, one, out, err);
                jsonw_close(out, '}');
                if (rc != 0)
                        break;
        }
        jsonw_close(out, ']');
        return rc;
}

int dc_people_edit(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);

        if (!m)
                return -1;
        dc_people_set_text(w, m, json_str(request, "text", m->content));
        dc_render_id(out, "message_id", m->id);
        jsonw_int(out, "sessions", dc_world_event_edit(w, m));
        return 0;
}
