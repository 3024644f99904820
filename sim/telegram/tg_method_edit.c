/*
 * Methods that edit, delete and mark messages, chat actions and answers to callbacks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sim/telegram/tg_compose.h"
#include "sim/telegram/tg_methods.h"

#define NOT_MODIFIED                                                                     \
        "Bad Request: message is not modified: specified new message content and reply " \
        "markup are exactly the same as a current content and reply markup of the message"

/* ---- edits ---- */

static struct message *find_own(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        struct message *m =
                chat ? tg_chat_find_message(chat, json_int(c->args, "message_id", 0)) : NULL;

        if (!chat)
                return NULL;
        if (!m)
                tg_call_fail(c, 400, "Bad Request: message to edit not found");
        else if (m->from && m->from != &c->bot->user) {
                tg_call_fail(c, 400, "Bad Request: message can't be edited");
                m = NULL;
        }
        return m;
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Replaces m by `draft`, if rc is 0; takes over draft. */
static int apply(struct call *c, struct message *m, struct message *draft, int rc)
{
        struct buf text, *b;

        if (rc == 0)
                rc = tg_compose_markup(c, &draft->markup);
        if (rc == 0 && same(m->text, draft->text) && same(m->entities, draft->entities) &&
            same(m->markup, draft->markup) && same(m->media, draft->media))
                rc = tg_call_fail(c, 400, NOT_MODIFIED);
        if (rc == 0)
                rc = tg_call_pace(c, m->chat, 1);
        if (rc != 0) {
                tg_chat_message_free(draft);
                return rc;
        }
        draft->id = m->id;
        draft->date = m->date;
        draft->thread_id = m->thread_id;
        draft->reply_to = m->reply_to;
        draft->edit_date = clock_wall_ms() / 1000;
        draft->extra = m->extra;
        draft->reactions = m->reactions;
        m->extra = NULL;
        m->reactions = NULL;
        tg_chat_replace(m->chat, draft);
        c->world->edit_count++;
        buf_init(&text, 0);
        tg_render_message(&text, NULL, draft);
        jsonw_raw(&c->out, NULL, text.data);
        b = tg_compose_record(c, "edit", draft->chat);
        jsonw_int(b, "message_id", draft->id);
        jsonw_raw(b, "message", text.data);
        journal_close(c->world->base.sent);
        buf_release(&text);
        return 0;
}

static struct message *make_draft(const struct message *m)
{
        struct message *draft = tg_chat_message_new(m->chat, m->from);

        draft->media_kind = m->media_kind;
        draft->media = mem_strdup(m->media);
        return draft;
}

static int edit_text(struct call *c)
{
        struct message *m = find_own(c), *draft;

        if (!m)
                return -1;
        if (m->media || !m->text)
                return tg_call_fail(c, 400, "Bad Request: there is no text in the message to edit");
        draft = make_draft(m);
        return apply(c, m, draft, tg_compose_body(c, draft));
}

static int edit_caption(struct call *c)
{
        struct message *m = find_own(c), *draft;

        if (!m)
                return -1;
        if (!m->media || !m->media_kind->caption)
                return tg_call_fail(c, 400,
                                    "Bad Request: there is no caption in the message to edit");
        draft = make_draft(m);
        return apply(c, m, draft, tg_compose_caption(c, c->args, draft));
}

static int edit_markup(struct call *c)
{
        struct message *m = find_own(c), *draft;

        if (!m)
                return -1;
        draft = make_draft(m);
        draft->text = mem_strdup(m->text);
        draft->entities = mem_strdup(m->entities);
        return apply(c, m, draft, 0);
}

static int edit_media(struct call *c)
{
        const json_t *media = json_object_get(c->args, "media");
        const struct media_kind *k = tg_media_kind(json_str(media, "type", ""));
        struct message *m = find_own(c), *draft;
        struct file *f = NULL;
        int rc;

        if (!m)
                return -1;
        rc = k ? tg_compose_file(c, k, json_str(media, "media", ""), &f)
               : tg_call_fail(c, 400, "Bad Request: can't parse InputMedia: unsupported type");
        if (rc != 0)
                return rc;
        draft = tg_chat_message_new(m->chat, m->from);
        draft->media_kind = k;
        draft->media = tg_media_member(k, f, media);
        return apply(c, m, draft, tg_compose_caption(c, media, draft));
}

/* ---- deletes ---- */

static int delete_one(struct call *c, struct chat *chat, int64_t id)
{
        struct message *m = tg_chat_find_message(chat, id);
        const struct member *me = tg_chat_member(chat, c->bot->user.id);

        if (!m)
                return tg_call_fail(c, 400, "Bad Request: message to delete not found");
        if (m->from != &c->bot->user && chat->type != CHAT_PRIVATE &&
            (!me || me->standing < STANDING_ADMIN))
                return tg_call_fail(c, 400, "Bad Request: message can't be deleted");
        tg_chat_delete(chat, m);
        jsonw_int(tg_compose_record(c, "delete", chat), "message_id", id);
        journal_close(c->world->base.sent);
        return 0;
}

static int delete_message(struct call *c)
{
        struct chat *chat = tg_call_chat(c);

        if (!chat || delete_one(c, chat, json_int(c->args, "message_id", 0)) != 0)
                return -1;
        return tg_call_true(c);
}

static int delete_messages(struct call *c)
{
        const json_t *ids = json_object_get(c->args, "message_ids"), *id;
        struct chat *chat = tg_call_chat(c);
        size_t i;

        if (!chat)
                return -1;
        if (json_array_size(ids) < 1 || json_array_size(ids) > 100)
                return tg_call_fail(c, 400, "Bad Request: message identifiers are not specified");
        json_array_foreach(ids, i, id) {
                delete_one(c, chat, json_integer_value(id)); /* skips missing ones */
        }
        c->status = 200;
        return tg_call_true(c);
}

/* ---- reactions ---- */

static int react(struct call *c)
{
        json_t *list = json_object_get(c->args, "reaction"), *one;
        struct chat *chat = tg_call_chat(c);
        struct message *m =
                chat ? tg_chat_find_message(chat, json_int(c->args, "message_id", 0)) : NULL;
        struct buf *b;
        char *text;
        size_t i;

        if (!chat)
                return -1;
        if (!m)
                return tg_call_fail(c, 400, "Bad Request: message to react not found");
        if (json_array_size(list) > 1)
                return tg_call_fail(c, 400, "Bad Request: REACTIONS_TOO_MANY");
        json_array_foreach(list, i, one) {
                if (strcmp(json_str(one, "type", ""), "emoji") != 0 ||
                    !tg_spec_reaction_allowed(json_str(one, "emoji", "")))
                        return tg_call_fail(c, 400, "Bad Request: REACTION_INVALID");
        }
        text = list ? json_text(list) : mem_strdup("[]");
        b = tg_compose_record(c, "reaction", chat);
        jsonw_int(b, "message_id", m->id);
        jsonw_raw(b, "reaction", text);
        journal_close(c->world->base.sent);
        free(text);
        return tg_call_true(c);
}

/* ---- chat actions and callbacks ---- */

static int chat_action(struct call *c)
{
        static const char *const known[] = {
                "typing",        "upload_photo",      "record_video",     "upload_video",
                "record_voice",  "upload_voice",      "upload_document",  "choose_sticker",
                "find_location", "record_video_note", "upload_video_note"
        };
        const char *action = json_str(c->args, "action", "");
        struct chat *chat = tg_call_chat(c);
        struct buf *b;
        size_t i = 0;

        if (!chat)
                return -1;
        while (i < COUNT(known) && strcmp(known[i], action) != 0)
                i++;
        if (i == COUNT(known))
                return tg_call_fail(c, 400, "Bad Request: wrong parameter action in request");
        b = tg_compose_record(c, "action", chat);
        jsonw_str(b, "action", action);
        if (json_int(c->args, "message_thread_id", 0))
                jsonw_int(b, "message_thread_id", json_int(c->args, "message_thread_id", 0));
        journal_close(c->world->base.sent);
        return tg_call_true(c);
}

static int answer_callback(struct call *c)
{
        const char *id = json_str(c->args, "callback_query_id", ""),
                   *text = json_str(c->args, "text", "");
        struct buf *b;

        if (!map_remove(&c->bot->callbacks, id))
                return tg_call_fail(
                        c, 400,
                        "Bad Request: query is too old and response timeout expired or query ID "
                        "is invalid");
        if (utf8_length(text, strlen(text), UTF8_UTF16) > 200)
                return tg_call_fail(c, 400, "Bad Request: MESSAGE_TOO_LONG");
        b = tg_compose_record(c, "callback_answer", NULL);
        jsonw_str(b, "callback_query_id", id);
        jsonw_str(b, "text", text);
        jsonw_bool(b, "show_alert", json_flag(c->args, "show_alert", false));
        journal_close(c->world->base.sent);
        return tg_call_true(c);
}

const struct tg_method_row tg_method_edit[] = {
        { "editMessageText", edit_text },
        { "editMessageCaption", edit_caption },
        { "editMessageReplyMarkup", edit_markup },
        { "editMessageMedia", edit_media },
        { "deleteMessage", delete_message },
        { "deleteMessages", delete_messages },
        { "setMessageReaction", react },
        { "sendChatAction", chat_action },
        { "answerCallbackQuery", answer_callback },
        { 0 },
};
