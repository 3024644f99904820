#include "sim/telegram/tg_people.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/file_content.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_media.h"
#include "sim/telegram/tg_rich_text.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_world.h"

#define DEFAULT_USER 42

struct bot *tg_people_find_bot(struct world *w, const json_t *request, struct error *err)
{
        const json_t *value = json_object_get(request, "bot");
        char number[24];
        struct bot *b;

        if (json_is_integer(value)) {
                snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
                b = tg_world_bot_by_name(w, number);
        } else {
                b = tg_world_bot_by_name(w, json_string_value(value));
        }
        if (!b)
                error_set(err, ERR_MISSING, "no such bot");
        return b;
}

struct user *tg_people_find_user(struct world *w, const json_t *request, const struct chat *chat)
{
        const json_t *from = json_object_get(request, "from");

        if (json_is_integer(from))
                return tg_world_make_user(w, json_integer_value(from), NULL, NULL);
        if (json_is_object(from))
                return tg_world_make_user(w, json_int(from, "id", 0),
                                          json_str(from, "first_name", NULL),
                                          json_str(from, "username", NULL));
        if (chat && chat->user)
                return chat->user;
        return tg_world_make_user(w, DEFAULT_USER, NULL, NULL);
}

struct chat *tg_people_find_chat(struct world *w, const json_t *request, struct error *err)
{
        int64_t id = json_int(request, "chat", 0);
        struct bot *b = tg_people_find_bot(w, request, err);
        struct chat *c;

        if (!b)
                return NULL;
        if (id > 0)
                return tg_chat_private(b, tg_world_make_user(w, id, NULL, NULL), true);
        if (id == 0)
                return tg_chat_private(b, tg_people_find_user(w, request, NULL), true);
        c = tg_chat_group(w, id);
        if (!c)
                error_set(err, ERR_MISSING, "no chat %lld; make it with POST /sim/chats",
                          (long long)id);
        return c;
}

struct message *tg_people_find_message(struct world *w, const json_t *request, struct error *err)
{
        struct chat *c = tg_people_find_chat(w, request, err);
        struct message *m = c ? tg_chat_find_message(c, json_int(request, "message_id", 0)) : NULL;

        if (c && !m)
                error_set(err, ERR_MISSING, "the chat has no such message");
        return m;
}

/* ---- updates ---- */

static bool mentions(const char *text, const char *username)
{
        size_t n = strlen(username);

        for (; text && (text = strchr(text, '@')); text++) {
                if (strncasecmp(text + 1, username, n) == 0)
                        return true;
        }
        return false;
}

/* In groups a bot with privacy gets only messages addressed to it. */
static bool gets_message(const struct member *m, const struct message *message)
{
        const struct message *to;

        if (!m->bot || m->standing < STANDING_MEMBER)
                return false;
        if (message->chat->type == CHAT_CHANNEL)
                return m->standing >= STANDING_ADMIN;
        if (!m->bot->privacy || m->standing >= STANDING_ADMIN || !message->text)
                return true;
        to = message->reply_to ? tg_chat_find_message(message->chat, message->reply_to) : NULL;
        return message->text[0] == '/' || mentions(message->text, m->bot->user.username) ||
               (to && to->from == m->user);
}

unsigned tg_people_deliver(const struct message *m, bool edited)
{
        const struct chat *c = m->chat;
        const char *kind = edited ? "edited_message" : "message";
        unsigned count = 0;
        struct buf text;

        if (c->type == CHAT_CHANNEL)
                kind = edited ? "edited_channel_post" : "channel_post";
        buf_init(&text, 0);
        tg_render_message(&text, NULL, m);
        if (c->bot)
                count += tg_updates_push(c->bot, kind, c->id, text.data);
        for (const struct member *member = c->members; member; member = member->next) {
                if (gets_message(member, m))
                        count += tg_updates_push(member->bot, kind, c->id, text.data);
        }
        buf_release(&text);
        return count;
}

struct message *tg_people_announce(struct world *w, struct chat *c, struct user *by, char *extra,
                                   int64_t thread)
{
        struct message *m = tg_chat_message_new(c, by);

        m->extra = extra;
        m->thread_id = thread;
        tg_chat_post(w, c, m);
        if (!m->thread_id)
                m->thread_id = m->id;
        tg_people_deliver(m, false);
        return m;
}

struct message *tg_people_create_topic(struct world *w, struct chat *c, struct user *by,
                                       const char *name, int64_t color)
{
        struct message *m;
        struct topic *t;
        struct buf extra;

        buf_init(&extra, 0);
        jsonw_open_member(&extra, "forum_topic_created", '{');
        jsonw_str(&extra, "name", name);
        jsonw_int(&extra, "icon_color", color);
        jsonw_close(&extra, '}');
        m = tg_people_announce(w, c, by, buf_take(&extra), 0);
        t = tg_chat_add_topic(c, m->id, name);
        t->color = color;
        t->creator = by;
        return m;
}

void tg_people_deliver_member(struct world *w, struct chat *chat, const struct user *by,
                              const struct user *who, int before, int after)
{
        struct member old = { .user = (struct user *)who, .standing = (enum standing)before };
        struct member new = { .user = (struct user *)who, .standing = (enum standing)after };
        struct buf text;

        buf_init(&text, 0);
        jsonw_open(&text, '{');
        tg_render_chat(&text, "chat", chat);
        tg_render_user(&text, "from", by);
        jsonw_int(&text, "date", clock_wall_ms() / 1000);
        tg_render_member(&text, "old_chat_member", &old);
        tg_render_member(&text, "new_chat_member", &new);
        jsonw_close(&text, '}');
        for (struct bot *b = w->bots; b; b = b->next) {
                const struct member *m = tg_chat_member(chat, b->user.id);

                if (who == &b->user || chat->bot == b)
                        tg_updates_push(b, "my_chat_member", chat->id, text.data);
                else if (m && m->standing >= STANDING_ADMIN)
                        tg_updates_push(b, "chat_member", chat->id, text.data);
        }
        buf_release(&text);
}

static const char *const media_names[] = { "photo",     "audio", "document",   "video",
                                           "animation", "voice", "video_note", "sticker" };
static const char *const plain_members[] = { "location", "contact", "venue", "dice", "poll" };

/* ---- messages ---- */

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

/* Copies a location, a contact and the like, and the members of "service". */
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
                return error_set(
                        err, ERR_INVALID,
                        "the message needs text, media, a location, a contact or 'service'");
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
        bool as_chat = c && (c->type == CHAT_CHANNEL || json_flag(request, "anonymous", false));
        struct message *m;

        if (!c)
                return -1;
        m = tg_chat_message_new(c, as_chat ? NULL : tg_people_find_user(w, request, c));
        if (fill(w, m, request, err) != 0) {
                tg_chat_message_free(m);
                return -1;
        }
        if (m->from && c->type != CHAT_PRIVATE && !tg_chat_member(c, m->from->id))
                tg_chat_set_member(c, m->from, NULL, STANDING_MEMBER);
        c->blocked = false; /* writing to a bot unblocks it */
        tg_chat_post(w, c, m);
        jsonw_int(out, "chat", c->id);
        jsonw_int(out, "message_id", m->id);
        jsonw_int(out, "bots", tg_people_deliver(m, false));
        return 0;
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
        rc = control_run_each(w, list, send_one, out, err);
        json_decref(list);
        free(group);
        return rc;
}

int tg_people_send(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        if (json_is_array(json_object_get(request, "album")))
                return send_album(w, request, out, err);
        return control_run_each(w, request, send_one, out, err);
}

int tg_people_edit(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);

        if (!m || add_text(m, request, err) != 0)
                return -1;
        m->edit_date = clock_wall_ms() / 1000;
        jsonw_int(out, "message_id", m->id);
        jsonw_int(out, "bots", tg_people_deliver(m, true));
        return 0;
}

/* ---- reactions ---- */

/* Turns ["👍"] and [{"type":"custom_emoji",...}] into the server's form. */
static json_t *reaction_list(const json_t *request)
{
        json_t *out = json_array(), *one;
        size_t i;

        json_array_foreach(json_object_get(request, "reaction"), i, one) {
                if (json_is_string(one))
                        json_array_append_new(
                                out, json_pack("{s:s,s:O}", "type", "emoji", "emoji", one));
                else
                        json_array_append(out, one);
        }
        return out;
}

static struct buf reaction_change(const struct message *m, const struct user *u,
                                  const json_t *before, const json_t *after)
{
        char *old = before ? json_text(before) : mem_strdup("[]"), *new = json_text(after);
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        tg_render_chat(&b, "chat", m->chat);
        jsonw_int(&b, "message_id", m->id);
        if (u)
                tg_render_user(&b, "user", u);
        else
                tg_render_chat(&b, "actor_chat", m->chat);
        jsonw_int(&b, "date", clock_wall_ms() / 1000);
        jsonw_raw(&b, "old_reaction", old);
        jsonw_raw(&b, "new_reaction", new);
        jsonw_close(&b, '}');
        free(old);
        free(new);
        return b;
}

/* In groups only administrators get reactions. *why explains 0. */
static unsigned deliver_reaction(const struct message *m, const char *text, const char **why)
{
        const struct chat *c = m->chat;
        unsigned count = 0;

        *why = "the bot's allowed_updates lack message_reaction";
        if (c->bot)
                return tg_updates_push(c->bot, "message_reaction", c->id, text);
        for (const struct member *member = c->members; member; member = member->next) {
                if (!member->bot)
                        continue;
                if (member->standing >= STANDING_ADMIN)
                        count += tg_updates_push(member->bot, "message_reaction", c->id, text);
                else
                        *why = "the bot is not an administrator of the chat";
        }
        return count;
}

int tg_people_react(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);
        bool anonymous = json_flag(request, "anonymous", false);
        struct user *u;
        json_t *list;
        char key[24];
        const char *why;
        struct buf text;
        unsigned count;

        if (!m)
                return -1;
        u = anonymous ? NULL : tg_people_find_user(w, request, m->chat);
        snprintf(key, sizeof(key), "%lld", (long long)(u ? u->id : m->chat->id));
        list = reaction_list(request);
        if (!m->reactions)
                m->reactions = json_object();
        text = reaction_change(m, u, json_object_get(m->reactions, key), list);
        json_object_set_new(m->reactions, key, list);
        count = deliver_reaction(m, text.data, &why);
        buf_release(&text);
        jsonw_int(out, "bots", count);
        if (count == 0)
                jsonw_str(out, "why", why);
        return 0;
}

/* ---- buttons ---- */

static bool matches(const json_t *button, const json_t *request)
{
        const char *data = json_str(request, "data", NULL), *text = json_str(request, "text", NULL);

        return (!data || strcmp(data, json_str(button, "callback_data", "")) == 0) &&
               (!text || strcmp(text, json_str(button, "text", "")) == 0) &&
               json_str(button, "callback_data", NULL);
}

/* The callback_data of the matching button; yours to free. */
static char *find_button(const struct message *m, const json_t *request)
{
        json_t *markup = m->markup ? json_read(m->markup, strlen(m->markup), NULL) : NULL, *row,
               *button;
        char *data = NULL;
        size_t i, k;

        json_array_foreach(json_object_get(markup, "inline_keyboard"), i, row) {
                json_array_foreach(row, k, button) {
                        if (!data && matches(button, request))
                                data = mem_strdup(json_str(button, "callback_data", ""));
                }
        }
        json_decref(markup);
        return data;
}

int tg_people_press(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);
        struct bot *b = w->bots;
        char *data, id[32];
        struct buf text;

        if (!m)
                return -1;
        while (b && &b->user != m->from)
                b = b->next;
        data = b ? find_button(m, request) : NULL;
        if (!data)
                return error_set(err, ERR_MISSING, "the message has no such button");
        snprintf(id, sizeof(id), "%llu",
                 4000000000000000000ull + (unsigned long long)++w->next_token);
        map_put(&b->callbacks, id, b);
        buf_init(&text, 0);
        jsonw_open(&text, '{');
        jsonw_str(&text, "id", id);
        tg_render_user(&text, "from", tg_people_find_user(w, request, m->chat));
        tg_render_message(&text, "message", m);
        jsonw_str(&text, "chat_instance", "-4611686018427387904");
        jsonw_str(&text, "data", data);
        jsonw_close(&text, '}');
        jsonw_int(out, "bots", tg_updates_push(b, "callback_query", m->chat->id, text.data));
        jsonw_str(out, "callback_query_id", id);
        buf_release(&text);
        free(data);
        return 0;
}

/* ---- blocking and migration ---- */

int tg_people_block(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct bot *b = tg_people_find_bot(w, request, err);
        struct user *u =
                b ? tg_world_make_user(w, json_int(request, "user", 42), NULL, NULL) : NULL;
        struct chat *c = u ? tg_chat_private(b, u, true) : NULL;
        bool blocked = json_flag(request, "blocked", true);

        if (!b)
                return -1;
        if (!c)
                return error_set(err, ERR_INVALID, "'user' must be a person");
        if (c->blocked != blocked)
                tg_people_deliver_member(w, c, u, &b->user,
                                         blocked ? STANDING_MEMBER : STANDING_KICKED,
                                         blocked ? STANDING_KICKED : STANDING_MEMBER);
        c->blocked = blocked;
        jsonw_bool(out, "blocked", blocked);
        return 0;
}

static void post_migration(struct world *w, struct chat *c, struct user *by, const char *member,
                           int64_t other)
{
        struct message *m = tg_chat_message_new(c, by);

        m->extra = mem_printf("\"%s\":%lld", member, (long long)other);
        tg_chat_post(w, c, m);
        tg_people_deliver(m, false);
}

int tg_people_migrate(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct chat *old = tg_people_find_chat(w, request, err), *new;
        struct user *by;

        if (!old)
                return -1;
        if (old->type != CHAT_GROUP || old->migrated_to)
                return error_set(err, ERR_INVALID, "'chat' must be a group that has not migrated");
        new = tg_chat_make(w, json_int(request, "to", 0), CHAT_SUPERGROUP, old->title);
        if (!new)
                return error_set(err, ERR_CONFLICT, "'to' is taken or no id of a supergroup");
        for (const struct member *m = old->members; m; m = m->next)
                tg_chat_set_member(new, m->user, m->bot, m->standing);
        by = tg_people_find_user(w, request, old);
        post_migration(w, old, by, "migrate_to_chat_id", new->id);
        old->migrated_to = new->id;
        post_migration(w, new, by, "migrate_from_chat_id", old->id);
        jsonw_int(out, "chat", new->id);
        return 0;
}
