/*
 * Deliveries become calls of the Bot API.
 *
 * A row for each kind of delivery says how to make the call. Telegram knows no idempotency mark: a
 * message that may have arrived is reported as unsure and never repeated here. Edits, deletes,
 * reactions and typing may be repeated without harm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"
#include "platform/workspace.h"

#define SEND_MS        30000
#define UPLOAD_MS      55000 /* within limits.deliverySeconds */
#define CAPTION_MAX    1024  /* UTF-16 units, markup aside */
#define CALLBACK_MAX   64    /* bytes */
#define BAD_TOKEN_MS   60000
#define LIMITED_IN_ROW 3 /* then it is the bot that is too fast, not one chat */

struct tg_send {
        struct adapter *adapter;
        int64_t delivery, fence;
        enum delivery_kind delivery_kind;
        const struct kind *kind;
        char *channel, *message; /* the chat as the delivery names it; the message it is about */
        const char *method;      /* a constant */
        json_t *params;
        char *file, *file_name, *file_mime;
        const char *file_field;
        struct tg_call *call;
        struct timer *later;        /* the answer to what could not even begin */
        bool plain, moved, as_file; /* tried already */
        char why[200];
        TAILQ_ENTRY(tg_send) next;
};

/* How a kind of delivery is made; -1 with an error when it cannot be. */
struct kind {
        bool repeatable;
        int (*make)(struct tg_send *s, const struct delivery *d, const json_t *payload,
                    struct error *err);
};

/* ---- the parts of a call ---- */

static bool is_number(const char *text)
{
        return text && *text &&
               strspn(text + (*text == '-'), "0123456789") == strlen(text + (*text == '-')) &&
               text[*text == '-'];
}

/* The General topic must not be named. */
static void add_topic(struct tg_send *s, const char *thread)
{
        if (is_number(thread) && strcmp(thread, "1") != 0)
                tg_set_id(s->params, "message_thread_id", thread);
}

/* In a private chat an answer needs no arrow to the question, unless somebody asks for it. */
static void add_reply(struct tg_send *s, const struct delivery *d, const json_t *payload)
{
        const char *to = json_str(payload, "replyTo", NULL);
        json_t *reply;

        if (!is_number(to) || (d->turn > 0 && d->channel[0] != '-'))
                return;
        reply = json_object();
        tg_set_id(reply, "message_id", to);
        json_object_set_new(reply, "allow_sending_without_reply", json_true());
        json_object_set_new(s->params, "reply_parameters", reply);
}

/* A draft's place is known to the road, other messages are named. */
static int add_message_id(struct tg_send *s, const struct delivery *d, const json_t *payload,
                          struct error *err)
{
        const char *id = d->target ? d->target : json_str(payload, "messageId", NULL);

        if (!is_number(id))
                return error_set(err, ERR_INVALID, "'%.40s' is no id of a Telegram message",
                                 id ? id : "");
        s->message = mem_strdup(id);
        tg_set_id(s->params, "message_id", id);
        return 0;
}

static int add_text(struct tg_send *s, const json_t *payload, const char *field, struct error *err)
{
        const char *text = json_str(payload, "text", "");

        if (text[0] == '\0')
                return error_set(err, ERR_INVALID, "there is no text to send");
        json_object_set_new(s->params, field, json_string(text));
        json_object_set_new(s->params, "parse_mode", json_string("HTML"));
        return 0;
}

static json_t *button(const json_t *wanted, struct error *err)
{
        const char *url = json_str(wanted, "url", NULL), *data = json_str(wanted, "data", "");
        const char *text = json_str(wanted, "text", data);

        if (url)
                return json_pack("{s:s, s:s}", "text", text, "url", url);
        if (strlen(data) == 0 || strlen(data) > CALLBACK_MAX) {
                error_set(err, ERR_INVALID, "the data of button '%.40s' must have 1 to 64 bytes",
                          text);
                return NULL;
        }
        return json_pack("{s:s, s:s}", "text", text, "callback_data", data);
}

/* "buttons": [[{"text", "data" or "url"}, ...], ...]: rows of buttons below the message. */
static int add_buttons(struct tg_send *s, const json_t *payload, struct error *err)
{
        const json_t *rows = json_object_get(payload, "buttons");
        json_t *keyboard;

        if (!rows)
                return 0;
        keyboard = json_array();
        json_object_set_new(s->params, "reply_markup",
                            json_pack("{s:o}", "inline_keyboard", keyboard));
        for (size_t i = 0; i < json_array_size(rows); i++) {
                const json_t *wanted = json_array_get(rows, i);
                json_t *row = json_array();

                json_array_append_new(keyboard, row);
                for (size_t j = 0; j < json_array_size(wanted); j++) {
                        json_t *b = button(json_array_get(wanted, j), err);

                        if (!b)
                                return -1;
                        json_array_append_new(row, b);
                }
        }
        return 0;
}

/* ---- the kinds ---- */

static int make_send(struct tg_send *s, const struct delivery *d, const json_t *payload,
                     struct error *err)
{
        s->method = "sendMessage";
        add_topic(s, d->thread);
        add_reply(s, d, payload);
        if (add_text(s, payload, "text", err) < 0)
                return -1;
        return add_buttons(s, payload, err);
}

static int make_edit(struct tg_send *s, const struct delivery *d, const json_t *payload,
                     struct error *err)
{
        s->method = "editMessageText";
        if (add_message_id(s, d, payload, err) < 0 || add_text(s, payload, "text", err) < 0)
                return -1;
        return add_buttons(s, payload, err);
}

static int make_delete(struct tg_send *s, const struct delivery *d, const json_t *payload,
                       struct error *err)
{
        s->method = "deleteMessage";
        return add_message_id(s, d, payload, err);
}

/* Replaces the bot's reaction; without an emoji it is taken away. */
static int make_react(struct tg_send *s, const struct delivery *d, const json_t *payload,
                      struct error *err)
{
        const char *emoji = json_str(payload, "emoji", ""), *allowed = tg_reaction(emoji);
        json_t *list = json_array();

        s->method = "setMessageReaction";
        json_object_set_new(s->params, "reaction", list);
        if (add_message_id(s, d, payload, err) < 0)
                return -1;
        if (allowed)
                json_array_append_new(list,
                                      json_pack("{s:s, s:s}", "type", "emoji", "emoji", allowed));
        else if (is_number(emoji))
                json_array_append_new(list, json_pack("{s:s, s:s}", "type", "custom_emoji",
                                                      "custom_emoji_id", emoji));
        else if (emoji[0])
                return error_set(err, ERR_INVALID, "Telegram's bots cannot react with '%.20s'",
                                 emoji);
        return 0;
}

static int make_type(struct tg_send *s, const struct delivery *d, const json_t *payload,
                     struct error *err)
{
        (void)payload;
        (void)err;
        s->method = "sendChatAction";
        add_topic(s, d->thread);
        json_object_set_new(s->params, "action", json_string("typing"));
        return 0;
}

/* clang-format off */
static const struct upload {
        const char *as, *mime, *method; /* mime: how it begins; the first row that fits */
} uploads[] = {
        { "photo",    "image/jpeg", "sendPhoto"    },
        { "photo",    "image/png",  "sendPhoto"    },
        { "voice",    "audio/ogg",  "sendVoice"    },
        { "audio",    "audio/",     "sendAudio"    },
        { "video",    "video/",     "sendVideo"    },
        { "document", "",           "sendDocument" },
};
/* clang-format on */

static const struct upload *choose_upload(const char *as, const char *mime)
{
        for (size_t i = 0; i < COUNT(uploads); i++)
                if (as ? strcmp(as, uploads[i].as) == 0
                       : strncmp(mime, uploads[i].mime, strlen(uploads[i].mime)) == 0)
                        return &uploads[i];
        return &uploads[COUNT(uploads) - 1];
}

static int add_caption(struct tg_send *s, const json_t *payload, struct error *err)
{
        const char *text = json_str(payload, "text", "");
        char *plain = tg_text_plain(text);
        bool fits = utf8_length(plain, strlen(plain), UTF8_UTF16) <= CAPTION_MAX;

        free(plain);
        if (!fits)
                return error_set(
                        err, ERR_INVALID,
                        "a caption has at most 1024 characters; send the text as a message of its own");
        return text[0] ? add_text(s, payload, "caption", err) : 0;
}

/*
 * {"path": in the workspace, "name", "mime", "as": photo, audio, video, document or voice, "text":
 * the caption}
 */
static int make_upload(struct tg_send *s, const struct delivery *d, const json_t *payload,
                       struct error *err)
{
        const char *path = json_str(payload, "path", ""), *slash = strrchr(path, '/');
        const char *mime = json_str(payload, "mime", "application/octet-stream");
        const struct upload *u = choose_upload(json_str(payload, "as", NULL), mime);

        s->method = u->method;
        s->file_field = u->as;
        s->file = workspace_file(s->adapter->dir, path, err);
        if (!s->file)
                return -1;
        s->file_name = mem_strdup(json_str(payload, "name", slash ? slash + 1 : path));
        s->file_mime = mem_strdup(mime);
        add_topic(s, d->thread);
        add_reply(s, d, payload);
        return add_caption(s, payload, err);
}

/* clang-format off */
static const struct kind kinds[] = {
        [DELIVER_SEND]   = { false, make_send   },
        [DELIVER_EDIT]   = { true,  make_edit   },
        [DELIVER_DELETE] = { true,  make_delete },
        [DELIVER_REACT]  = { true,  make_react  },
        [DELIVER_TYPE]   = { true,  make_type   },
        [DELIVER_UPLOAD] = { false, make_upload },
};
/* clang-format on */

/* NULL: Telegram has nothing for it. */
static const struct kind *find_kind(enum delivery_kind kind)
{
        return kind < COUNT(kinds) && kinds[kind].make ? &kinds[kind] : NULL;
}

/* ---- what an answer means ---- */

/* 400s that say: it is already so. */
static bool is_already_so(enum delivery_kind kind, const struct tg_answer *a)
{
        if (a->status != 400)
                return false;
        if (kind == DELIVER_EDIT)
                return strstr(a->why, "message is not modified") != NULL;
        return kind == DELIVER_DELETE && strstr(a->why, "message to delete not found") != NULL;
}

static enum send_outcome outcome_of(enum delivery_kind kind, const struct tg_answer *a)
{
        const struct kind *k = find_kind(kind);

        if (a->ok || is_already_so(kind, a))
                return SEND_DONE;
        if (a->status == 429 || a->status == 401)
                return SEND_RETRY;
        if (a->status >= 300 && a->status < 500)
                /* a proxy may let it pass next time */
                return a->genuine || a->status == 413 ? SEND_REJECTED : SEND_RETRY;
        if (a->status == 0 && a->reach == HTTP_NOT_SENT)
                return SEND_RETRY;
        return k && k->repeatable ? SEND_RETRY : SEND_UNSURE;
}

/* Somebody has deleted what should be edited: the road sends a final answer anew. */
static bool is_gone(enum delivery_kind kind, const struct tg_answer *a)
{
        static const char *const words[] = { "message to edit not found", "message can't be edited",
                                             "MESSAGE_ID_INVALID" };

        for (size_t i = 0; a->status == 400 && kind == DELIVER_EDIT && i < COUNT(words); i++)
                if (strstr(a->why, words[i]))
                        return true;
        return false;
}

static enum error_kind kind_of(enum delivery_kind kind, const struct tg_answer *a)
{
        if (a->status == 0)
                return a->kind;
        if (is_gone(kind, a))
                return ERR_MISSING;
        if (a->status == 429)
                return ERR_LIMIT;
        return a->status >= 500 || !a->genuine ? ERR_NET : ERR_REFUSED;
}

void tg_outcome(enum delivery_kind kind, const struct tg_answer *a, struct send_result *out,
                char *text, size_t size)
{
        *out = (struct send_result){ .outcome = outcome_of(kind, a), .retry_after_ms = -1 };
        if (out->outcome == SEND_DONE)
                return;
        out->kind = kind_of(kind, a);
        out->retry_after_ms = a->status == 401 ? BAD_TOKEN_MS : a->retry_after_ms;
        snprintf(text, size, "%s", a->why);
        out->why = text;
}

/* ---- the call ---- */

static void send_free(struct tg_send *s)
{
        timer_free(s->later);
        json_decref(s->params);
        free(s->channel);
        free(s->message);
        free(s->file);
        free(s->file_name);
        free(s->file_mime);
        free(s);
}

static void send_end(struct tg_send *s, const struct send_result *result)
{
        struct telegram *tg = s->adapter->self;

        TAILQ_REMOVE(&tg->sends, s, next);
        if (s->adapter->road)
                delivery_result(s->adapter->road, s->delivery, s->fence, result);
        send_free(s);
}

static void send_call(struct tg_send *s);

/* Once: the same words without markup. */
static bool try_plain(struct tg_send *s, const struct tg_answer *a)
{
        const char *field = s->file ? "caption" : "text";
        const char *html = json_str(s->params, field, NULL);
        char *plain;

        if (s->plain || a->status != 400 || !html || !strstr(a->why, "can't parse entities"))
                return false;
        log_warn("Telegram refuses the markup of a message; it is sent as plain text",
                 LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                 LOG_S("why", a->why));
        plain = tg_text_plain(html);
        json_object_set_new(s->params, field, json_string(plain));
        json_object_del(s->params, "parse_mode");
        free(plain);
        s->plain = true;
        send_call(s);
        return true;
}

/* Once: a picture too large or too strange for a photo is still a file. */
static bool try_as_file(struct tg_send *s, const struct tg_answer *a)
{
        if (s->as_file || a->status != 400 || strcmp(s->method, "sendPhoto") != 0 ||
            (!strcasestr(a->why, "photo") && !strcasestr(a->why, "image")))
                return false;
        log_info("Telegram does not take a picture as a photo; it is sent as a document",
                 LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                 LOG_S("why", a->why));
        s->method = "sendDocument";
        s->file_field = "document";
        s->as_file = true;
        send_call(s);
        return true;
}

/* Once: the group has become a supergroup with another id. */
static bool try_moved(struct tg_send *s, const struct tg_answer *a)
{
        if (s->moved || !a->migrated)
                return false;
        tg_chat_moved(s->adapter->self, s->channel, a->migrated);
        tg_set_id(s->params, "chat_id", a->migrated);
        json_object_del(s->params, "reply_parameters"); /* the old chat's messages are not there */
        s->moved = true;
        send_call(s);
        return true;
}

static void on_sent(void *arg, const struct tg_answer *a)
{
        struct tg_send *s = arg;
        struct telegram *tg = s->adapter->self;
        struct send_result result;
        char why[300], id[24];

        s->call = NULL;
        if (try_plain(s, a) || try_as_file(s, a) || try_moved(s, a))
                return;
        tg_outcome(s->delivery_kind, a, &result, why, sizeof(why));
        tg->limited = a->status == 429 ? tg->limited + 1 : 0;
        result.freeze_adapter = tg->limited >= LIMITED_IN_ROW;
        result.platform_id = s->message;
        if (json_int(a->result, "message_id", 0) > 0) {
                snprintf(id, sizeof(id), "%" PRId64, json_int(a->result, "message_id", 0));
                result.platform_id = id;
        }
        if (result.outcome == SEND_DONE)
                result.why = s->plain ? "sent as plain text: Telegram refused the markup"
                             : s->as_file
                                     ? "sent as a document: Telegram does not take it as a photo"
                                     : NULL;
        send_end(s, &result);
        if (a->status == 401 && a->genuine)
                tg_stop(tg,
                        "Telegram does not accept the bot token any more: put the one @BotFather "
                        "shows into botToken");
}

static void send_call(struct tg_send *s)
{
        struct tg_upload file = { s->file_field, s->file, s->file_name, s->file_mime };

        s->call = tg_call_start(s->adapter->self,
                                &(struct tg_request){ .method = s->method,
                                                      .params = s->params,
                                                      .upload = s->file ? &file : NULL,
                                                      .total_ms = s->file ? UPLOAD_MS : SEND_MS,
                                                      .repeatable = s->kind->repeatable },
                                on_sent, s);
}

/* ---- the hook ---- */

static void on_later(void *arg)
{
        struct tg_send *s = arg;
        const struct send_result result = {
                .outcome = SEND_REJECTED, .kind = ERR_INVALID, .why = s->why, .retry_after_ms = -1
        };

        send_end(s, &result);
}

static void reject_later(struct tg_send *s, const char *why)
{
        snprintf(s->why, sizeof(s->why), "%.199s", why);
        s->later = timer_new(s->adapter->loop, on_later, s);
        timer_start(s->later, 0);
}

void tg_send(struct adapter *a, const struct delivery *d)
{
        struct telegram *tg = a->self;
        struct tg_send *s = mem_zalloc(sizeof(*s));
        json_t *payload = json_read(d->payload, strlen(d->payload), NULL);
        struct error err = { 0 };

        s->adapter = a;
        s->delivery = d->id;
        s->fence = d->fence;
        s->delivery_kind = d->kind;
        s->kind = find_kind(d->kind);
        s->channel = mem_strdup(d->channel);
        s->params = json_object();
        TAILQ_INSERT_TAIL(&tg->sends, s, next);
        tg_set_id(s->params, "chat_id", tg_chat_now(tg, d->channel));
        if (!s->kind)
                error_set(&err, ERR_INVALID, "Telegram has nothing for a delivery of kind '%.20s'",
                          delivery_kind_name(d->kind));
        if (s->kind && s->kind->make(s, d, payload, &err) == 0)
                send_call(s);
        else
                reject_later(s, err.text);
        json_decref(payload);
}

void tg_sends_release(struct telegram *tg)
{
        struct tg_send *s, *after;

        for (s = TAILQ_FIRST(&tg->sends); s; s = after) {
                bool harmless = s->later || s->kind->repeatable;
                const struct send_result result = { .outcome = harmless ? SEND_RETRY : SEND_UNSURE,
                                                    .kind = ERR_CANCELLED,
                                                    .why = "the adapter was stopped",
                                                    .retry_after_ms = -1 };

                after = TAILQ_NEXT(s, next);
                tg_call_abort(s->call);
                send_end(s, &result);
        }
}
