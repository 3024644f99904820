/*
 * Deliveries become calls of the Bot API.
 *
 * Telegram has no idempotency key: a message that may have arrived is reported as unsure and never
 * repeated here; tg_reconcile.c looks for it. Edits, deletes, reactions and typing are repeatable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

#define SEND_MS        30000
#define UPLOAD_MS      55000              /* within limits.deliverySeconds */
#define CAPTION_MAX    1024               /* UTF-16 units, without markup */
#define CALLBACK_MAX   64                 /* bytes */
#define REPEATED       "\xf0\x9f\x94\x81" /* a message that may be there already */
#define LIMITED_IN_ROW 3                  /* then the whole bot is too fast, not one chat */

struct tg_send {
        struct adapter *adapter;
        int64_t delivery, fence;
        enum delivery_kind kind;
        char *channel, *message; /* the chat as the delivery names it; the message to change */
        const char *then;        /* the method of a second call; NULL: there is none */
        struct tg_request request;
        struct tg_upload upload; /* its strings are ours, except the field */
        struct tg_call *call;
        int64_t started_ms;  /* of the last call */
        bool plain, as_file; /* fallbacks that were tried */
        TAILQ_ENTRY(tg_send) next;
};

/* ---- the parts of a call ---- */

static bool is_number(const char *text)
{
        if (!text)
                return false;
        text += *text == '-';
        return *text && strspn(text, "0123456789") == strlen(text);
}

/* The General topic must not be named, and no message begins one. */
static void add_topic(struct tg_send *s, const struct delivery *d)
{
        if (!d->target && is_number(d->thread) && strcmp(d->thread, "1") != 0)
                tg_call_set_id(s->request.params, "message_thread_id", d->thread);
}

/* In a private chat an answer is not a reply, unless the sender asked for one. */
static void add_reply(struct tg_send *s, const struct delivery *d, const json_t *payload)
{
        const char *to = d->target ? d->target : json_str(payload, "replyTo", NULL);
        json_t *reply;

        /* the messages of a group are not in the supergroup it became */
        if (strcmp(tg_chat_id(s->adapter->self, d->channel), d->channel) != 0)
                return;
        if (!is_number(to) || (d->turn > 0 && d->channel[0] != '-'))
                return;
        reply = json_object();
        tg_call_set_id(reply, "message_id", to);
        json_object_set_new(reply, "allow_sending_without_reply", json_true());
        json_object_set_new(s->request.params, "reply_parameters", reply);
}

static void add_silence(struct tg_send *s, const json_t *payload)
{
        if (json_flag(payload, "silent", false))
                json_object_set_new(s->request.params, "disable_notification", json_true());
}

/* The road knows where a draft is; other messages are named in the payload. */
static int add_message_id(struct tg_send *s, const struct delivery *d, const json_t *payload,
                          struct error *err)
{
        const char *id = d->target ? d->target : json_str(payload, "messageId", NULL);

        if (!is_number(id))
                return error_set(err, ERR_INVALID, "'%.40s' is not a Telegram message id",
                                 id ? id : "");
        s->message = mem_strdup(id);
        tg_call_set_id(s->request.params, "message_id", id);
        return 0;
}

static int add_text(struct tg_send *s, const json_t *payload, const char *field, struct error *err)
{
        const char *text = json_str(payload, "text", "");
        bool repeated = json_flag(payload, "repeated", false);

        if (text[0] == '\0' && !repeated)
                return error_set(err, ERR_INVALID, "there is no text to send");
        json_object_set_new(s->request.params, field,
                            repeated ? json_sprintf("%s %s", REPEATED, text) : json_string(text));
        json_object_set_new(s->request.params, "parse_mode", json_string("HTML"));
        return 0;
}

/* NULL with an error: its data is too long for Telegram. */
static json_t *make_button(const json_t *wanted, struct error *err)
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
static json_t *make_keyboard(const json_t *rows, struct error *err)
{
        json_t *keyboard = json_array();

        for (size_t i = 0; i < json_array_size(rows); i++) {
                const json_t *wanted = json_array_get(rows, i);
                json_t *row = json_array();

                json_array_append_new(keyboard, row);
                for (size_t j = 0; j < json_array_size(wanted); j++) {
                        json_t *b = make_button(json_array_get(wanted, j), err);

                        if (!b) {
                                json_decref(keyboard);
                                return NULL;
                        }
                        json_array_append_new(row, b);
                }
        }
        return json_pack("{s:o}", "inline_keyboard", keyboard);
}

json_t *tg_send_markup(const struct delivery *d)
{
        json_t *payload = json_read(d->payload, strlen(d->payload), NULL);
        const json_t *rows = d->kind == DELIVER_SEND ? json_object_get(payload, "buttons") : NULL;
        struct error err;
        json_t *markup = rows ? make_keyboard(rows, &err) : NULL;

        json_decref(payload);
        return markup;
}

/* ---- the kinds ---- */

static int add_buttons(struct tg_send *s, const json_t *payload, struct error *err)
{
        const json_t *rows = json_object_get(payload, "buttons");
        json_t *markup = rows ? make_keyboard(rows, err) : NULL;

        if (markup)
                json_object_set_new(s->request.params, "reply_markup", markup);
        return rows && !markup ? -1 : 0;
}

static int make_send(struct tg_send *s, const struct delivery *d, const json_t *payload,
                     struct error *err)
{
        s->request.method = "sendMessage";
        add_topic(s, d);
        add_reply(s, d, payload);
        add_silence(s, payload);
        if (add_text(s, payload, "text", err) < 0)
                return -1;
        return add_buttons(s, payload, err);
}

/* tg_reconcile.c edits messages that were sent without buttons: they must not get any later. */
static int make_edit(struct tg_send *s, const struct delivery *d, const json_t *payload,
                     struct error *err)
{
        bool some = json_array_size(json_object_get(payload, "buttons")) > 0;

        s->request.method = "editMessageText";
        if (some && !json_is_true(json_object_get(payload, "hadButtons")))
                return error_set(err, ERR_INVALID, "an edit cannot add buttons on Telegram");
        if (add_message_id(s, d, payload, err) < 0 || add_text(s, payload, "text", err) < 0)
                return -1;
        /* none at all: Telegram removes them */
        return some ? add_buttons(s, payload, err) : 0;
}

static int make_delete(struct tg_send *s, const struct delivery *d, const json_t *payload,
                       struct error *err)
{
        s->request.method = "deleteMessage";
        return add_message_id(s, d, payload, err);
}

/* Replaces the bot's reaction; without an emoji it is removed. */
static int make_react(struct tg_send *s, const struct delivery *d, const json_t *payload,
                      struct error *err)
{
        const char *emoji = json_str(payload, "emoji", ""), *allowed = tg_reaction(emoji);
        json_t *list = json_array();

        s->request.method = "setMessageReaction";
        json_object_set_new(s->request.params, "reaction", list);
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
        s->request.method = "sendChatAction";
        add_topic(s, d);
        json_object_set_new(s->request.params, "action", json_string("typing"));
        return 0;
}

static int make_thread(struct tg_send *s, const struct delivery *d, const json_t *payload,
                       struct error *err)
{
        char *name = tg_topic_name(payload);

        s->request.method = "createForumTopic";
        if (d->target || json_str(payload, "messageId", NULL)) {
                free(name);
                return error_set(err, ERR_INVALID,
                                 "a topic on Telegram has a name and begins at no message");
        }
        if (!name)
                return error_set(err, ERR_INVALID, "a topic needs a name");
        json_object_set_new(s->request.params, "name", json_string(name));
        free(name);
        return 0;
}

/* {"name", "closed"}: what changes both needs two calls. */
static int make_change_thread(struct tg_send *s, const struct delivery *d, const json_t *payload,
                              struct error *err)
{
        const json_t *closed = json_object_get(payload, "closed");
        const char *state = !closed                ? NULL
                            : json_is_true(closed) ? "closeForumTopic"
                                                   : "reopenForumTopic";
        char *name = tg_topic_name(payload);

        s->request.method = name ? "editForumTopic" : state;
        s->then = name ? state : NULL;
        s->message = mem_strdup(d->thread); /* its id, for the result */
        if (name)
                json_object_set_new(s->request.params, "name", json_string(name));
        free(name);
        if (d->target || !is_number(d->thread) || strcmp(d->thread, "1") == 0)
                return error_set(err, ERR_INVALID, "'%.40s' is not the id of a topic",
                                 d->thread ? d->thread : "");
        if (!s->request.method)
                return error_set(err, ERR_INVALID, "nothing of the topic changes");
        tg_call_set_id(s->request.params, "message_thread_id", d->thread);
        return 0;
}

/* clang-format off */
static const struct {
        const char *as, *mime, *method; /* mime: a prefix; the first match wins */
} uploads[] = {
        { "photo",    "image/jpeg", "sendPhoto"    },
        { "photo",    "image/png",  "sendPhoto"    },
        { "voice",    "audio/ogg",  "sendVoice"    },
        { "audio",    "audio/",     "sendAudio"    },
        { "video",    "video/",     "sendVideo"    },
        { "document", "",           "sendDocument" },
};
/* clang-format on */

/*
 * {"path": in the workspace, "name", "mime", "as": photo, audio, video, document or voice, "text":
 * the caption}
 */
static int make_upload(struct tg_send *s, const struct delivery *d, const json_t *payload,
                       struct error *err)
{
        const char *path = json_str(payload, "path", ""), *slash = strrchr(path, '/');
        const char *mime = json_str(payload, "mime", "application/octet-stream");
        const char *as = json_str(payload, "as", NULL), *text = json_str(payload, "text", "");
        char *plain;
        size_t row = 0, length;

        while (row + 1 < COUNT(uploads) &&
               (as ? strcmp(as, uploads[row].as) != 0
                   : strncmp(mime, uploads[row].mime, strlen(uploads[row].mime)) != 0))
                row++;
        s->request.method = uploads[row].method;
        s->request.upload = &s->upload;
        s->request.total_ms = UPLOAD_MS;
        s->upload.field = uploads[row].as;
        if (adapter_file_to_send(s->adapter, path, &s->upload.file, err) < 0)
                return -1;
        s->upload.name = mem_strdup(json_str(payload, "name", slash ? slash + 1 : path));
        s->upload.mime = mem_strdup(mime);
        add_topic(s, d);
        add_reply(s, d, payload);
        plain = tg_text_plain(text);
        length = utf8_length(plain, strlen(plain), UTF8_UTF16);
        free(plain);
        if (length > CAPTION_MAX)
                return error_set(err, ERR_INVALID,
                                 "a caption has at most 1024 characters; send the text as a "
                                 "message of its own");
        return text[0] || json_flag(payload, "repeated", false)
                       ? add_text(s, payload, "caption", err)
                       : 0;
}

/* A row for each kind of delivery; make returns -1 with an error when it cannot be sent. */
/* clang-format off */
static const struct {
        bool repeatable;
        int (*make)(struct tg_send *s, const struct delivery *d, const json_t *payload,
                    struct error *err);
} kinds[] = {
        [DELIVER_SEND]   = { false, make_send   },
        [DELIVER_EDIT]   = { true,  make_edit   },
        [DELIVER_DELETE] = { true,  make_delete },
        [DELIVER_REACT]  = { true,  make_react  },
        [DELIVER_TYPE]   = { true,  make_type   },
        [DELIVER_UPLOAD] = { false, make_upload },
        [DELIVER_THREAD] = { false, make_thread },
        [DELIVER_CHANGE_THREAD] = { true, make_change_thread },
};
/* clang-format on */

static bool is_supported(enum delivery_kind kind)
{
        return kind < COUNT(kinds) && kinds[kind].make;
}

/* ---- outcomes ---- */

/* Does this 400 mean that there is nothing left to do? */
static bool is_already_so(enum delivery_kind kind, const struct tg_answer *a)
{
        if (a->status != 400)
                return false;
        if (kind == DELIVER_EDIT)
                return strstr(a->why, "message is not modified") != NULL;
        if (kind == DELIVER_CHANGE_THREAD)
                return strstr(a->why, "TOPIC_NOT_MODIFIED") != NULL;
        return kind == DELIVER_DELETE && strstr(a->why, "message to delete not found") != NULL;
}

/* Was the message to edit deleted? The road then sends a final answer as a new message. */
static bool is_gone(enum delivery_kind kind, const struct tg_answer *a)
{
        if (kind == DELIVER_CHANGE_THREAD && a->status == 400)
                return strstr(a->why, "message thread not found") ||
                       strstr(a->why, "TOPIC_DELETED");
        return kind == DELIVER_EDIT && a->status == 400 &&
               (strstr(a->why, "message to edit not found") ||
                strstr(a->why, "message can't be edited") || strstr(a->why, "MESSAGE_ID_INVALID"));
}

void tg_send_outcome(enum delivery_kind kind, const struct tg_answer *a, struct send_result *out,
                     char *text, size_t size)
{
        *out = (struct send_result){ .outcome = SEND_DONE, .retry_after_ms = -1 };
        if (a->ok || is_already_so(kind, a))
                return;
        out->outcome = adapter_http_outcome(a->status, a->reach,
                                            is_supported(kind) && kinds[kind].repeatable);
        out->kind = is_gone(kind, a) ? ERR_MISSING : adapter_http_kind(a->status, a->kind);
        out->retry_after_ms = a->status == 401 ? ADAPTER_BAD_TOKEN_MS : a->retry_after_ms;
        if (a->status > 0 && a->status != 429 && !a->genuine) {
                out->kind = ERR_NET;
                /* a proxy may accept it next time, unless it is too large */
                if (out->outcome == SEND_REJECTED && a->status != 413)
                        out->outcome = SEND_RETRY;
        }
        snprintf(text, size, "%s", a->why);
        out->why = text;
}

/* ---- the call ---- */

static void on_sent(void *arg, const struct tg_answer *a);

static void send_free(struct tg_send *s)
{
        json_decref(s->request.params);
        free(s->channel);
        free(s->message);
        adapter_file_close(&s->upload.file);
        free((char *)s->upload.name);
        free((char *)s->upload.mime);
        free(s);
}

/*
 * Changes a refused call into one that Telegram may accept, each way once. False: no way is left.
 */
static bool change_call(struct tg_send *s, const struct tg_answer *a)
{
        const char *field = s->request.upload ? "caption" : "text";
        const char *html = json_str(s->request.params, field, NULL);

        if (!s->plain && a->status == 400 && html && strstr(a->why, "can't parse entities")) {
                char *plain = tg_text_plain(html);

                log_warn("Telegram refuses the markup of a message; sending it as plain text",
                         LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                         LOG_S("why", a->why));
                json_object_set_new(s->request.params, field, json_string(plain));
                json_object_del(s->request.params, "parse_mode");
                free(plain);
                return s->plain = true;
        }
        if (!s->as_file && a->status == 400 && strcmp(s->request.method, "sendPhoto") == 0 &&
            (strcasestr(a->why, "photo") || strcasestr(a->why, "image"))) {
                log_info("Telegram refuses a photo; sending it as a document",
                         LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                         LOG_S("why", a->why));
                s->request.method = "sendDocument";
                s->upload.field = "document";
                return s->as_file = true;
        }
        return false;
}

static void start(struct tg_send *s)
{
        s->started_ms = loop_now_ms(s->adapter->loop);
        s->call = tg_call_start(s->adapter->self, &s->request, on_sent, s);
}

/* The id of what was sent: a topic has that of the message about it. 0: none. */
static int64_t answer_id(const struct tg_answer *a)
{
        return json_int(a->result, "message_id", json_int(a->result, "message_thread_id", 0));
}

/* What the answer says about message ids. */
static void note_id(const struct tg_send *s, const struct tg_answer *a)
{
        struct telegram *tg = s->adapter->self;
        int64_t id = answer_id(a);
        const json_t *in = json_object_get(a->result, "chat"); /* not with a topic */
        char chat[24];

        if (!a->ok || id <= 0 || kinds[s->kind].repeatable)
                return;
        if (in)
                snprintf(chat, sizeof(chat), "%" PRId64, json_int(in, "id", 0));
        else
                snprintf(chat, sizeof(chat), "%.23s", tg_chat_id(tg, s->channel));
        tg_ids_note(tg, chat, id, json_int(a->result, "date", 0));
        tg_reconcile_sent(tg, chat, id, s->started_ms);
}

/*
 * The chat has a new id. The next attempt goes there, as a claim of its own: ids start again in a
 * supergroup, and what was known before the send is of no use for it.
 */
static void follow_chat(struct tg_send *s, const struct tg_answer *a, struct send_result *out)
{
        if (!a->migrated || strcmp(tg_chat_id(s->adapter->self, s->channel), a->migrated) == 0)
                return;
        tg_chat_moved(s->adapter->self, s->channel, a->migrated);
        out->outcome = SEND_RETRY;
        out->kind = ERR_NET;
        out->retry_after_ms = 0;
}

static void on_sent(void *arg, const struct tg_answer *a)
{
        struct tg_send *s = arg;
        struct telegram *tg = s->adapter->self;
        struct send_result result;
        char why[300], id[24];

        s->call = NULL;
        if (change_call(s, a)) {
                start(s);
                return;
        }
        tg_send_outcome(s->kind, a, &result, why, sizeof(why));
        if (result.outcome == SEND_DONE && s->then) {
                s->request.method = s->then;
                s->then = NULL;
                json_object_del(s->request.params, "name");
                start(s);
                return;
        }
        follow_chat(s, a, &result);
        tg->limited = a->status == 429 ? tg->limited + 1 : 0;
        result.freeze_adapter = tg->limited >= LIMITED_IN_ROW;
        result.platform_id = s->message;
        if (answer_id(a) > 0) {
                snprintf(id, sizeof(id), "%" PRId64, answer_id(a));
                result.platform_id = id;
        }
        if (result.outcome == SEND_DONE && s->plain)
                result.why = "sent as plain text: Telegram refused the markup";
        else if (result.outcome == SEND_DONE && s->as_file)
                result.why = "sent as a document: Telegram refused it as a photo";
        TAILQ_REMOVE(&tg->sends, s, next);
        /* else it came too late: the message is looked for, and must not seem to be another's */
        if (delivery_result(s->adapter->road, s->delivery, s->fence, &result))
                note_id(s, a);
        send_free(s);
        if (a->status == 401 && a->genuine)
                tg_link_bad_token(tg);
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
        s->kind = d->kind;
        s->upload.file.fd = -1;
        s->channel = mem_strdup(d->channel);
        s->request.params = json_object();
        s->request.total_ms = SEND_MS;
        tg_call_set_id(s->request.params, "chat_id", tg_chat_id(tg, d->channel));
        if (!is_supported(d->kind))
                error_set(&err, ERR_INVALID, "Telegram does not support deliveries of kind '%.20s'",
                          delivery_kind_name(d->kind));
        if (is_supported(d->kind) && kinds[d->kind].make(s, d, payload, &err) == 0) {
                s->request.repeatable = kinds[d->kind].repeatable;
                TAILQ_INSERT_TAIL(&tg->sends, s, next);
                start(s);
        } else {
                adapter_refuse(a, d, err.kind == ERR_IO ? SEND_RETRY : SEND_REJECTED, err.kind,
                               err.text);
                send_free(s);
        }
        json_decref(payload);
}

void tg_send_abort(struct telegram *tg, int64_t delivery)
{
        struct tg_send *s;

        TAILQ_FOREACH(s, &tg->sends, next) {
                if (s->delivery == delivery)
                        break;
        }
        if (!s)
                return;
        tg_call_abort(s->call);
        TAILQ_REMOVE(&tg->sends, s, next);
        send_free(s);
}

void tg_sends_close(struct telegram *tg)
{
        struct tg_send *s;

        while ((s = TAILQ_FIRST(&tg->sends))) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                const struct send_result result = { .outcome = kinds[s->kind].repeatable
                                                                       ? SEND_RETRY
                                                                       : SEND_UNSURE,
                                                    .kind = ERR_CANCELLED,
                                                    .why = "the adapter was stopped",
                                                    .retry_after_ms = -1 };

                tg_call_abort(s->call);
                TAILQ_REMOVE(&tg->sends, s, next);
                delivery_result(s->adapter->road, s->delivery, s->fence, &result);
                send_free(s);
        }
}
