#include "sim/telegram/tg_compose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

/* ---- text ---- */

static const struct {
        const char *name;
        int (*parse)(struct rich_text *r, const char *text, char *problem);
} modes[] = {
        { "HTML", tg_rich_text_html },
        { "MarkdownV2", tg_rich_text_markdown_v2 },
        { "Markdown", tg_rich_text_markdown },
};

int tg_compose_text(struct call *c, const json_t *args, const char *text_key,
                    const char *entities_key, struct rich_text *r)
{
        const char *mode = json_str(args, "parse_mode", ""), *text = json_str(args, text_key, "");
        json_t *entities = json_object_get(args, entities_key);
        char problem[TG_RICH_TEXT_PROBLEM_SIZE] = "";
        size_t i = 0;
        int rc;

        while (i < COUNT(modes) && strcasecmp(modes[i].name, mode) != 0)
                i++;
        if (*mode && i == COUNT(modes))
                return tg_call_fail(c, 400, "Bad Request: unsupported parse_mode");
        rc = *mode ? modes[i].parse(r, text, problem)
                   : tg_rich_text_from_entities(r, text, entities, problem);
        if (rc != 0)
                return tg_call_fail(c, 400, "Bad Request: can't parse entities: %s", problem);
        tg_rich_text_trim(r);
        tg_rich_text_detect(r);
        return 0;
}

int tg_compose_body(struct call *c, struct message *m)
{
        struct rich_text r;
        int rc;

        tg_rich_text_init(&r);
        rc = tg_compose_text(c, c->args, "text", "entities", &r);
        if (rc == 0 && r.units == 0)
                rc = tg_call_fail(c, 400, "Bad Request: message text is empty");
        if (rc == 0 && r.units > MAX_TEXT)
                rc = tg_call_fail(c, 400, "Bad Request: message is too long");
        if (rc == 0)
                tg_chat_message_set_text(m, &r);
        tg_rich_text_release(&r);
        return rc;
}

int tg_compose_caption(struct call *c, const json_t *args, struct message *m)
{
        struct rich_text r;
        int rc;

        tg_rich_text_init(&r);
        rc = tg_compose_text(c, args, "caption", "caption_entities", &r);
        if (rc == 0 && r.units > MAX_CAPTION)
                rc = tg_call_fail(c, 400, "Bad Request: message caption is too long");
        if (rc == 0)
                tg_chat_message_set_text(m, &r);
        tg_rich_text_release(&r);
        return rc;
}

/* ---- keyboards ---- */

static int check_button(struct call *c, const json_t *button)
{
        static const char *const not_actions[] = { "text", "style", "icon_custom_emoji_id" };
        const char *data = json_str(button, "callback_data", NULL);
        size_t actions = json_object_size(button);

        for (size_t i = 0; i < COUNT(not_actions); i++)
                actions -= json_object_get(button, not_actions[i]) != NULL;
        if (!*json_str(button, "text", ""))
                return tg_call_fail(
                        c, 400,
                        "Bad Request: can't parse inline keyboard button: Field \"text\" must be "
                        "non-empty");
        if (actions == 0)
                return tg_call_fail(
                        c, 400,
                        "Bad Request: can't parse inline keyboard button: Text buttons are "
                        "unallowed in the inline keyboard");
        if (data && (!*data || strlen(data) > 64))
                return tg_call_fail(c, 400, "Bad Request: BUTTON_DATA_INVALID");
        return 0;
}

int tg_compose_markup(struct call *c, char **out)
{
        const json_t *markup = json_object_get(c->args, "reply_markup");
        const json_t *rows = json_object_get(markup, "inline_keyboard"), *row, *button;
        size_t i, k, count = 0;

        *out = NULL;
        json_array_foreach(rows, i, row) {
                json_array_foreach(row, k, button) {
                        count++;
                        if (check_button(c, button) != 0)
                                return -1;
                }
        }
        if (count > 0) {
                json_t *kept = json_pack("{s:O}", "inline_keyboard", rows);

                *out = json_text(kept);
                json_decref(kept);
        }
        return 0;
}

/* ---- topic and reply ---- */

static int set_reply(struct call *c, struct message *m)
{
        const json_t *reply = json_object_get(c->args, "reply_parameters");
        const json_t *from = reply ? reply : c->args;
        int64_t id = json_int(from, reply ? "message_id" : "reply_to_message_id", 0);
        const struct message *to = id ? tg_chat_find_message(m->chat, id) : NULL;

        if (!id || (!to && json_flag(from, "allow_sending_without_reply", false)))
                return 0;
        if (!to)
                return tg_call_fail(c, 400, "Bad Request: message to be replied not found");
        m->reply_to = id;
        if (!m->thread_id)
                m->thread_id = to->thread_id;
        return 0;
}

static int set_thread(struct call *c, struct message *m)
{
        int64_t id = json_int(c->args, "message_thread_id", 0);
        const struct topic *t = tg_chat_topic(m->chat, id);
        const struct member *me = tg_chat_member(m->chat, c->bot->user.id);

        if (!id)
                return 0;
        /* the general topic has the id 1, but the server refuses it */
        if (!t || id == 1)
                return tg_call_fail(c, 400, "Bad Request: message thread not found");
        if (t->closed && me && (me->standing < STANDING_ADMIN || me->no_topics) &&
            t->creator != &c->bot->user)
                return tg_call_fail(c, 400, "Bad Request: TOPIC_CLOSED");
        m->thread_id = id;
        return 0;
}

int tg_compose_options(struct call *c, struct message *m)
{
        const json_t *preview = json_object_get(c->args, "link_preview_options");

        if (set_thread(c, m) != 0 || set_reply(c, m) != 0 || tg_compose_markup(c, &m->markup) != 0)
                return -1;
        if (preview && !m->extra) {
                char *text = json_text(preview);

                m->extra = mem_printf("\"link_preview_options\":%s", text);
                free(text);
        }
        return 0;
}

/* ---- files ---- */

static int add_upload(struct call *c, const struct media_kind *k, const char *name,
                      struct file **out)
{
        const struct multipart_part *p = multipart_find(&c->uploads, name);
        int width, height;
        const char *mime;

        if (!p)
                return tg_call_fail(c, 400,
                                    "Bad Request: wrong file identifier/HTTP URL specified");
        if (p->n == 0)
                return tg_call_fail(c, 400, "Bad Request: file must be non-empty");
        if (p->n > FILES_MAX_UPLOAD || (k->image && p->n > FILES_MAX_PHOTO))
                return tg_call_fail(c, 413, "Request Entity Too Large");
        if (k->image && !tg_files_image(p->data, p->n, &width, &height, &mime))
                return tg_call_fail(c, 400, "Bad Request: IMAGE_PROCESS_FAILED");
        *out = tg_files_add(c->world->files, k->folder, p->file_name, p->content_type, p->data,
                            p->n);
        return 0;
}

int tg_compose_file(struct call *c, const struct media_kind *k, const char *value,
                    struct file **out)
{
        if (strncmp(value, "attach://", 9) == 0)
                return add_upload(c, k, value + 9, out);
        if (strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0) {
                for (struct fetched *f = c->fetched; f; f = f->next) {
                        if (strcmp(f->url, value) == 0) {
                                *out = f->file;
                                return 0;
                        }
                }
                c->wants_url = mem_strdup(value);
                return TG_CALL_FETCH;
        }
        *out = tg_files_by_id(c->world->files, value);
        return *out ? 0
                    : tg_call_fail(c, 400, "Bad Request: wrong file identifier/HTTP URL specified");
}

/* ---- posting ---- */

struct buf *tg_compose_record(struct call *c, const char *kind, const struct chat *chat)
{
        struct buf *b = journal_open(c->world->base.sent, kind, chat ? chat->id : 0);

        jsonw_int(b, "bot", c->bot->user.id);
        if (chat)
                jsonw_int(b, "chat", chat->id);
        return b;
}

void tg_compose_post(struct call *c, struct message *m)
{
        struct buf text, *b;

        tg_chat_post(c->world, m->chat, m);
        c->world->base.message_count++;
        buf_init(&text, 0);
        tg_render_message(&text, NULL, m);
        jsonw_raw(&c->out, NULL, text.data);
        b = tg_compose_record(c, "message", m->chat);
        jsonw_int(b, "message_id", m->id);
        jsonw_raw(b, "message", text.data);
        if (json_flag(c->args, "disable_notification", false))
                jsonw_bool(b, "silent", true);
        journal_close(c->world->base.sent);
        buf_release(&text);
        if (c->world->base.quiet)
                return;
        printf("%s -> %s: %s%s%s\n", c->bot->user.username,
               m->chat->user ? m->chat->user->first_name : m->chat->title,
               m->media_kind ? m->media_kind->name : "", m->media_kind && m->text ? " " : "",
               m->text ? m->text : "");
        fflush(stdout);
}
