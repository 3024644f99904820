#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/file_content.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_media.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_rich_text.h"
#include "sim/telegram/tg_world.h"

static const char *const media_names[] = { "photo",     "audio", "document",   "video",
                                           "animation", "voice", "video_note", "sticker" };
static const char *const plain_members[] = { "location", "contact", "venue", "dice", "poll" };

/* ---- media ---- */

static int add_media(struct world *w, struct message *m, const char *name, const json_t *request,
                     struct error *err)
{
        const struct media_kind *k = tg_media_kind(name);
        struct buf data;
        struct file *f;

        buf_init(&data, 0);
        if (file_content_read(request, &data, err) != 0) {
                buf_release(&data);
                return -1;
        }
        f = tg_files_add(w->files, k->folder, json_str(request, "file_name", NULL),
                         json_str(request, "mime_type", k->mime), data.data, data.len);
        m->media_kind = k;
        m->media = tg_media_member(k, f, request);
        buf_release(&data);
        return 0;
}

/* ---- messages ---- */

static int add_text(struct message *m, const json_t *request, struct error *err)
{
        const char *text = json_str(request, m->media ? "caption" : "text", NULL);
        json_t *entities = json_object_get(request, m->media ? "caption_entities" : "entities");
        char problem[TG_RICH_TEXT_PROBLEM_SIZE] = "";
        struct rich_text r;
        int rc = 0;

        if (!text)
                return 0;
        tg_rich_text_init(&r);
        if (tg_rich_text_from_entities(&r, text, entities, problem) != 0)
                rc = error_set(err, ERR_INVALID, "%s", problem);
        else {
                if (!entities)
                        tg_rich_text_detect(&r);
                tg_chat_message_set_text(m, &r);
        }
        tg_rich_text_release(&r);
        return rc;
}

/* Members the message gets as they are: a location, a contact, or anything under "service". */
static void add_extra(struct world *w, struct message *m, const json_t *request)
{
        const json_t *service = json_object_get(request, "service");
        json_t *all = json_is_object(service) ? json_copy((json_t *)service) : json_object();
        int64_t forwarded = json_int(request, "forward_from", 0);
        char *text;

        for (size_t i = 0; i < COUNT(plain_members); i++) {
                json_t *value = json_object_get(request, plain_members[i]);

                if (value)
                        json_object_set(all, plain_members[i], value);
        }
        if (json_str(request, "media_group_id", NULL))
                json_object_set(all, "media_group_id", json_object_get(request, "media_group_id"));
        if (forwarded) {
                const struct user *u = tg_world_make_user(w, forwarded, NULL, NULL);

                json_object_set_new(all, "forward_origin",
                                    json_pack("{s:s,s:I,s:{s:I,s:b,s:s}}", "type", "user", "date",
                                              (json_int_t)(clock_wall_ms() / 1000), "sender_user",
                                              "id", (json_int_t)u->id, "is_bot", u->is_bot,
                                              "first_name", u->first_name));
        }
        if (json_object_size(all) > 0) {
                text = json_text(all);
                m->extra = mem_strndup(text + 1, strlen(text) - 2);
                free(text);
        }
        json_decref(all);
}

static int fill(struct world *w, struct message *m, const json_t *request, struct error *err)
{
        int64_t thread = json_int(request, "message_thread_id", 0);
        const struct message *to;

        for (size_t i = 0; i < COUNT(media_names); i++) {
                const json_t *media = json_object_get(request, media_names[i]);

                if (media && add_media(w, m, media_names[i], media, err) != 0)
                        return -1;
        }
        if (add_text(m, request, err) != 0)
                return -1;
        add_extra(w, m, request);
        if (!m->media && !m->text && !m->extra)
                return error_set(err, ERR_INVALID,
                                 "a message needs text, media, a location, a contact or 'service'");
        if (thread && !tg_chat_topic(m->chat, thread))
                return error_set(err, ERR_MISSING, "the chat has no topic %lld", (long long)thread);
        m->thread_id = thread;
        m->reply_to = json_int(request, "reply_to", 0);
        to = m->reply_to ? tg_chat_find_message(m->chat, m->reply_to) : NULL;
        if (to && !thread)
                m->thread_id = to->thread_id;
        return 0;
}

static int send_one(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct chat *c = tg_people_find_chat(w, request, err);
        bool nobody = c && (c->type == CHAT_CHANNEL || json_flag(request, "anonymous", false));
        struct message *m;

        if (!c)
                return -1;
        m = tg_chat_message_new(c, nobody ? NULL : tg_people_find_user(w, request, c));
        if (fill(w, m, request, err) != 0) {
                tg_chat_message_free(m);
                return -1;
        }
        if (m->from && c->type != CHAT_PRIVATE && !tg_chat_member(c, m->from->id))
                tg_chat_set_member(c, m->from, NULL, STANDING_MEMBER);
        c->blocked = false; /* whoever writes to a bot has unblocked it */
        tg_chat_post(c, m, w->settings.keep_messages);
        jsonw_int(out, "chat", c->id);
        jsonw_int(out, "message_id", m->id);
        jsonw_int(out, "bots", tg_people_deliver(w, m, false));
        return 0;
}

static int send_list(struct world *w, const json_t *list, struct buf *out, struct error *err)
{
        const json_t *request;
        size_t i;
        int rc = 0;

        jsonw_open_member(out, "results", '[');
        json_array_foreach(list, i, request) {
                jsonw_open(out, '{');
                rc = send_one(w, request, out, err);
                jsonw_close(out, '}');
                if (rc != 0)
                        break;
        }
        jsonw_close(out, ']');
        return rc;
}

/* The parts of an album share everything but their media and captions. */
static int send_album(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const json_t *album = json_object_get(request, "album"), *part;
        char *group =
                mem_printf("%llu", 13500000000000000ull + (unsigned long long)++w->next_token);
        json_t *list = json_array();
        size_t i;
        int rc;

        json_array_foreach(album, i, part) {
                json_t *one = json_copy((json_t *)request);

                json_object_del(one, "album");
                json_object_update(one, (json_t *)part);
                json_object_set_new(one, "media_group_id", json_string(group));
                json_array_append_new(list, one);
        }
        rc = send_list(w, list, out, err);
        json_decref(list);
        free(group);
        return rc;
}

int tg_people_send(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        if (json_is_array(request))
                return send_list(w, request, out, err);
        if (json_is_array(json_object_get(request, "messages")))
                return send_list(w, json_object_get(request, "messages"), out, err);
        if (json_is_array(json_object_get(request, "album")))
                return send_album(w, request, out, err);
        return send_one(w, request, out, err);
}

int tg_people_edit(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);

        if (!m)
                return -1;
        if (add_text(m, request, err) != 0)
                return -1;
        m->edit_date = clock_wall_ms() / 1000;
        jsonw_int(out, "message_id", m->id);
        jsonw_int(out, "bots", tg_people_deliver(w, m, true));
        return 0;
}
