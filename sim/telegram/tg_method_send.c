/*
 * Methods that send messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_compose.h"
#include "sim/telegram/tg_methods.h"

#define MAX_ALBUM 10

/* Posts m, if rc is 0; takes it over in any case. */
static int post(struct call *c, struct message *m, int rc)
{
        if (rc == 0)
                rc = tg_compose_options(c, m);
        if (rc == 0)
                rc = tg_call_pace(c, m->chat, 1);
        if (rc != 0) {
                tg_chat_message_free(m);
                return rc;
        }
        tg_compose_post(c, m);
        return 0;
}

static struct message *make_message(struct call *c, struct chat *chat)
{
        return tg_chat_message_new(chat, chat->type == CHAT_CHANNEL ? NULL : &c->bot->user);
}

static int send_message(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        struct message *m;

        if (!chat)
                return -1;
        m = make_message(c, chat);
        return post(c, m, tg_compose_body(c, m));
}

static int attach(struct call *c, struct message *m, const struct media_kind *k, const json_t *args,
                  const char *key)
{
        struct file *f = NULL;
        int rc = tg_compose_file(c, k, json_str(args, key, ""), &f);

        if (rc != 0)
                return rc;
        m->media_kind = k;
        m->media = tg_media_member(k, f, args);
        return k->caption ? tg_compose_caption(c, args, m) : 0;
}

static int send_media(struct call *c)
{
        const struct media_kind *k = tg_media_kind_of_method(c->method->name);
        struct chat *chat = tg_call_chat(c);
        struct message *m;

        if (!chat)
                return -1;
        m = make_message(c, chat);
        return post(c, m, attach(c, m, k, c->args, k->name));
}

/* ---- albums ---- */

static int build_album(struct call *c, struct chat *chat, const json_t *items,
                       struct message **album)
{
        unsigned long long group = ++c->world->next_token + 13000000000000000ull;
        const json_t *item;
        size_t i;

        json_array_foreach(items, i, item) {
                const struct media_kind *k = tg_media_kind(json_str(item, "type", ""));
                int rc;

                if (!k)
                        return tg_call_fail(
                                c, 400, "Bad Request: can't parse InputMedia: unsupported type");
                album[i] = make_message(c, chat);
                rc = attach(c, album[i], k, item, "media");
                if (rc == 0)
                        rc = tg_compose_options(c, album[i]);
                if (rc != 0)
                        return rc;
                free(album[i]->extra);
                album[i]->extra = mem_printf("\"media_group_id\":\"%llu\"", group);
        }
        return 0;
}

static int send_media_group(struct call *c)
{
        const json_t *items = json_object_get(c->args, "media");
        size_t n = json_array_size(items);
        struct message *album[MAX_ALBUM] = { NULL };
        struct chat *chat = tg_call_chat(c);
        int rc;

        if (!chat)
                return -1;
        if (n < 2 || n > MAX_ALBUM)
                return tg_call_fail(c, 400, "Bad Request: %s messages to send as an album",
                                    n < 2 ? "not enough" : "too many");
        rc = build_album(c, chat, items, album);
        if (rc == 0)
                rc = tg_call_pace(c, chat, (unsigned)n);
        if (rc != 0) {
                for (size_t i = 0; i < n; i++)
                        tg_chat_message_free(album[i]);
                return rc;
        }
        jsonw_open(&c->out, '[');
        for (size_t i = 0; i < n; i++)
                tg_compose_post(c, album[i]);
        jsonw_close(&c->out, ']');
        return 0;
}

/* ---- locations, contacts, venues: one member made of parameters ---- */

static const struct simple {
        const char *method, *member;
        const char *parameters[6];
} simples[] = {
        { "sendLocation",
          "location",
          { "latitude", "longitude", "horizontal_accuracy", "live_period" } },
        { "sendContact", "contact", { "phone_number", "first_name", "last_name", "vcard" } },
        { "sendVenue", "venue", { "title", "address", "foursquare_id", "google_place_id" } },
};

static char *write_simple(const struct simple *kind, const json_t *args)
{
        json_t *object = json_object();
        char *text, *member;

        for (size_t i = 0; i < COUNT(kind->parameters) && kind->parameters[i]; i++) {
                json_t *value = json_object_get(args, kind->parameters[i]);

                if (value)
                        json_object_set(object, kind->parameters[i], value);
        }
        if (strcmp(kind->member, "venue") == 0)
                json_object_set_new(object, "location",
                                    json_pack("{s:O,s:O}", "latitude",
                                              json_object_get(args, "latitude"), "longitude",
                                              json_object_get(args, "longitude")));
        text = json_text(object);
        member = mem_printf("\"%s\":%s", kind->member, text);
        free(text);
        json_decref(object);
        return member;
}

static int send_simple(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        struct message *m;

        if (!chat)
                return -1;
        m = make_message(c, chat);
        for (size_t i = 0; i < COUNT(simples); i++) {
                if (strcmp(simples[i].method, c->method->name) == 0)
                        m->extra = write_simple(&simples[i], c->args);
        }
        return post(c, m, 0);
}

static int send_dice(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        struct message *m;

        if (!chat)
                return -1;
        m = make_message(c, chat);
        m->extra = mem_printf("\"dice\":{\"emoji\":\"%s\",\"value\":%d}",
                              json_str(c->args, "emoji", "🎲"),
                              1 + (int)faults_random(&c->world->base.faults, 6));
        return post(c, m, 0);
}

/* ---- forwarding and copying ---- */

static char *write_origin(const struct message *m)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "\"forward_origin\":");
        jsonw_open(&b, '{');
        jsonw_str(&b, "type", m->from ? "user" : "channel");
        if (m->from)
                tg_render_user(&b, "sender_user", m->from);
        else {
                tg_render_chat(&b, "chat", m->chat);
                jsonw_int(&b, "message_id", m->id);
        }
        jsonw_int(&b, "date", m->date);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static const struct message *find_source(struct call *c, int64_t id, const char *verb)
{
        struct chat *from = tg_call_find_chat(c, "from_chat_id");
        const struct message *m = from ? tg_chat_find_message(from, id) : NULL;

        if (from && !m)
                tg_call_fail(c, 400, "Bad Request: message to %s not found", verb);
        return m;
}

static struct message *copy_of(struct call *c, struct chat *chat, const struct message *m)
{
        struct message *copy = make_message(c, chat);

        copy->media_kind = m->media_kind;
        copy->media = mem_strdup(m->media);
        copy->text = mem_strdup(m->text);
        copy->entities = mem_strdup(m->entities);
        return copy;
}

static int forward_message(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        const struct message *m =
                chat ? find_source(c, json_int(c->args, "message_id", 0), "forward") : NULL;
        struct message *copy;

        if (!m)
                return -1;
        copy = copy_of(c, chat, m);
        copy->extra = write_origin(m);
        return post(c, copy, 0);
}

static int copy_message(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        const struct message *m =
                chat ? find_source(c, json_int(c->args, "message_id", 0), "copy") : NULL;
        size_t from = c->out.len;
        struct message *copy;
        int rc = 0;

        if (!m)
                return -1;
        copy = copy_of(c, chat, m);
        if (json_object_get(c->args, "caption") && copy->media)
                rc = tg_compose_caption(c, c->args, copy);
        rc = post(c, copy, rc);
        if (rc != 0)
                return rc;
        /* the result is only the id */
        buf_truncate(&c->out, from);
        jsonw_open(&c->out, '{');
        jsonw_int(&c->out, "message_id", chat->last_id);
        jsonw_close(&c->out, '}');
        return 0;
}

const struct tg_method_row tg_method_send[] = {
        { "sendMessage", send_message },
        { "sendPhoto", send_media },
        { "sendAudio", send_media },
        { "sendDocument", send_media },
        { "sendVideo", send_media },
        { "sendAnimation", send_media },
        { "sendVoice", send_media },
        { "sendVideoNote", send_media },
        { "sendSticker", send_media },
        { "sendMediaGroup", send_media_group },
        { "sendLocation", send_simple },
        { "sendContact", send_simple },
        { "sendVenue", send_simple },
        { "sendDice", send_dice },
        { "forwardMessage", forward_message },
        { "copyMessage", copy_message },
        { 0 },
};
