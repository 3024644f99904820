/*
 * Outbound requests: messages with buttons, files, edits, deletions, reactions.
 *
 * Each becomes a delivery in the outbox, like an agent's answer: stored before the request is
 * answered, paced, retried, and part of the trace report.
 */
#include <stdlib.h>
#include <string.h>

#include "api/core/request.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "platform/platform.h"
#include "road/report/row_json.h"
#include "road/road.h"
#include "rows/person_row.h"
#include "schedule/notice.h"
#include "schedule/schedule.h"
#include "store/store.h"

#define TEXT_MAX    262144
#define BUTTONS_MAX 40

struct send_button {
        const char *text, *data, *url;
        int64_t row;
};
struct send_card_field {
        const char *name, *value;
        bool is_inline;
};
struct send_card {
        const char *title, *color, *body, *footer;
        struct field_list fields;
        int64_t time_ms;
};

/* One struct for all bodies; each route's table fills its part. */
struct send_ask {
        const char *adapter, *to, *person, *thread, *reply_to, *text, *message_id, *emoji;
        const char *path, *name, *mime, *as, *author;
        const char *thread_name;
        int64_t delivery, in_thread_of;
        bool broadcast, silent, closed;
        struct send_card card;
        struct field_list buttons;
};

/* ---- tables ---- */

/* clang-format off */
#define WHERE_FIELDS WHERE_FIELDS_IF(true)
#define WHERE_FIELDS_IF(needed)                                                                 \
        { "instanceId", FIELD_STRING, .required = (needed), .min = 1, .max = 128,               \
          FIELD_AT(send_ask, adapter), .help = "Name of the adapter that sends." },            \
        { "to", FIELD_STRING, .required = (needed), .min = 1, .max = 512,                       \
          FIELD_AT(send_ask, to),                                                               \
          .help = "The platform's id of the chat or channel, or a person (per-3) who has "      \
                  "written to the adapter in a direct message." },                              \
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(send_ask, thread),           \
          .help = "A thread inside the chat." }
#define CARD_FIELD(what)                                                                        \
        { "card", FIELD_GROUP, .group = card_fields, FIELD_AT(send_ask, card), .help = (what) }
#define BUTTONS_FIELD(what)                                                                     \
        { "buttons", FIELD_LIST, .group = button_fields,                                        \
          .item_size = sizeof(struct send_button), .max = BUTTONS_MAX,                          \
          FIELD_AT(send_ask, buttons), .help = (what) }
#define TARGET_FIELD                                                                            \
        { "messageId", FIELD_STRING, .required = true, .min = 1, .max = 256,                    \
          FIELD_AT(send_ask, message_id), .help = "The platform's id of the message." }
#define REPLY_FIELD                                                                             \
        { "replyTo", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(send_ask, reply_to),          \
          .help = "The platform's id of the message to answer." }
/* clang-format on */

static const struct field button_fields[] = {
        { "text", FIELD_STRING, .required = true, .min = 1, .max = 256, FIELD_AT(send_button, text),
          .help = "The label." },
        { "data", FIELD_STRING, .min = 1, .max = 64, FIELD_AT(send_button, data),
          .help = "Returned when it is pressed, at most 64 bytes; this or url." },
        { "url", FIELD_STRING, .min = 1, .max = 2048, FIELD_AT(send_button, url),
          .help = "The page it opens." },
        { "row", FIELD_INT, .min = 0, .max = BUTTONS_MAX, FIELD_AT(send_button, row),
          .fallback = "0",
          .help = "Neighbours with the same number are placed side by side; 0: a row of its own." },
        FIELD_END,
};
static const struct field card_field_fields[] = {
        { "name", FIELD_STRING, .required = true, .min = 1, .max = 1024,
          FIELD_AT(send_card_field, name), .help = "What the value is, text on one line." },
        { "value", FIELD_STRING, .required = true, .min = 1, .max = 8192,
          FIELD_AT(send_card_field, value), .help = "The value, Markdown." },
        { "inline", FIELD_BOOL, FIELD_AT(send_card_field, is_inline), .fallback = "false",
          .help = "It may stand beside its neighbours." },
        FIELD_END,
};
static const struct field card_fields[] = {
        { "title", FIELD_STRING, .min = 1, .max = 1024, FIELD_AT(send_card, title),
          .help = "The title, text on one line." },
        { "color", FIELD_STRING, .min = 7, .max = 7, FIELD_AT(send_card, color),
          .help = "The colour of its edge, such as #FFA500." },
        { "body", FIELD_STRING, .min = 1, .max = 16384, FIELD_AT(send_card, body),
          .help = "The text, Markdown." },
        { "fields", FIELD_LIST, .group = card_field_fields,
          .item_size = sizeof(struct send_card_field), .max = CARD_FIELDS_MAX,
          FIELD_AT(send_card, fields), .help = "Named values." },
        { "footer", FIELD_STRING, .min = 1, .max = 2048, FIELD_AT(send_card, footer),
          .help = "Small text below, on one line." },
        { "time", FIELD_TIME, FIELD_AT(send_card, time_ms), .help = "A time, shown beside it." },
        FIELD_END,
};
static const struct field send_fields[] = {
        WHERE_FIELDS_IF(false),
        { "person", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(send_ask, person),
          .help = "Instead of instanceId and to: a person (per-3, telegram:42, or a name that only "
                  "one has), wherever they are reached best. Their quiet hours defer the message, "
                  "their dailyCap counts it." },
        { "text", FIELD_STRING, .min = 1, .max = TEXT_MAX, FIELD_AT(send_ask, text),
          .help = "Markdown; rendered for the platform and split to its length. Required without "
                  "card." },
        CARD_FIELD("Shown below the text where the platform has such things (an embed on Discord), "
                   "else as text. Always one message, cut where it is too long; it notifies "
                   "nobody."),
        { "inThreadOf", FIELD_ID, .prefix = "dlv-", FIELD_AT(send_ask, in_thread_of),
          .help = "Instead of threadId: a delivery of this chat whose message, or which itself, "
                  "begins the thread; also one that is not sent yet. Where there are no threads, "
                  "the message answers that one." },
        REPLY_FIELD,
        { "author", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(send_ask, author),
          .help = "A human who speaks as the bot: the agent remembers the text as its own "
                  "answer. While the agent is paused in the chat, absent means \"the "
                  "operator\"." },
        { "broadcast", FIELD_BOOL, FIELD_AT(send_ask, broadcast), .fallback = "false",
          .help = "With threadId: show the reply in the channel, too (Slack)." },
        { "silent", FIELD_BOOL, FIELD_AT(send_ask, silent), .fallback = "false",
          .help = "No sound or push where the message arrives (Discord, Telegram)." },
        BUTTONS_FIELD("Buttons below the message, where the platform has them."),
        FIELD_END,
};
static const char *const media_kinds[] = { "photo", "audio", "video", "document", "voice", NULL };
static const struct field media_fields[] = {
        WHERE_FIELDS,
        { "path", FIELD_STRING, .required = true, .min = 1, .max = 1024, FIELD_AT(send_ask, path),
          .help = "The file, relative to the workspace folder. A key that is restricted to "
                  "adapters sends files below channels/ADAPTER/ of these." },
        { "name", FIELD_STRING, .min = 1, .max = 255, FIELD_AT(send_ask, name),
          .help = "The name to show; absent: its own." },
        { "mimeType", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(send_ask, mime),
          .help = "Its type, such as image/png." },
        { "as", FIELD_CHOICE, .choices = media_kinds, FIELD_AT(send_ask, as),
          .help = "How to show it; absent: as its type suggests." },
        { "caption", FIELD_STRING, .min = 1, .max = TEXT_MAX, FIELD_AT(send_ask, text),
          .help = "Markdown below it; what is too long for the platform follows as messages." },
        REPLY_FIELD,
        FIELD_END,
};
static const struct field reaction_fields[] = {
        WHERE_FIELDS,
        TARGET_FIELD,
        { "emoji", FIELD_STRING, .required = true, .min = 1, .max = 64, FIELD_AT(send_ask, emoji),
          .help = "The emoji to react with." },
        FIELD_END,
};
/* clang-format off */
#define MESSAGE_FIELDS(what)                                                                    \
        { "messageId", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(send_ask, message_id),      \
          .help = (what) },                                                                     \
        { "deliveryId", FIELD_ID, .prefix = "dlv-", FIELD_AT(send_ask, delivery),               \
          .help = "Instead of messageId: the delivery that sends the message, also when it is " \
                  "not sent yet." }
/* clang-format on */
static const struct field edit_fields[] = {
        WHERE_FIELDS,
        MESSAGE_FIELDS("The platform's id of the message."),
        { "text", FIELD_STRING, .min = 1, .max = TEXT_MAX, FIELD_AT(send_ask, text),
          .help = "The new text, Markdown. Required without card." },
        CARD_FIELD("The new card. Without one, Discord and Slack keep the card that is there."),
        BUTTONS_FIELD("With a card: the new buttons, of a message that was sent with some; absent: "
                      "none."),
        FIELD_END,
};
static const struct field thread_fields[] = {
        WHERE_FIELDS,
        MESSAGE_FIELDS("The platform's id of the message where it begins; not for a Telegram "
                       "topic, which begins by its name."),
        { "name", FIELD_STRING, .required = true, .min = 1, .max = 1024,
          FIELD_AT(send_ask, thread_name), .help = "Its name, cut to what the platform takes." },
        FIELD_END,
};
static const struct field change_fields[] = {
        WHERE_FIELDS,
        { "inThreadOf", FIELD_ID, .prefix = "dlv-", FIELD_AT(send_ask, in_thread_of),
          .help = "Instead of threadId: the delivery that began the thread." },
        { "name", FIELD_STRING, .min = 1, .max = 1024, FIELD_AT(send_ask, thread_name),
          .help = "The new name; absent: it stays." },
        { "closed", FIELD_BOOL, FIELD_AT(send_ask, closed),
          .help = "true archives the thread, or closes the topic; false opens it again; absent: it "
                  "stays as it is." },
        FIELD_END,
};
static const struct field delete_fields[] = { WHERE_FIELDS, TARGET_FIELD, FIELD_END };

/* ---- submitting to the outbox ---- */

/* The body keeps the strings of ask. */
struct send_job {
        struct api_job job;
        struct body body;
        struct send_ask ask;
        enum delivery_kind kind;
        char *key;                  /* namespaced by caller; NULL: none given */
        char hash[SHA256_HEX_SIZE]; /* of the request; "" without key */
        int64_t person;
        char trace[ID_TRACE_SIZE]; /* of the request; "": a new one */
        bool unsampled;            /* the request says so */
        char *channel;             /* result: direct chat with the person; NULL: none */
        bool known;                /* result: the person exists */
};

static void send_job_free(struct send_job *j)
{
        body_release(&j->body);
        free(j->key);
        free(j->channel);
        free(j);
}

/*
 * Idempotency keys are per caller, the operator (key 0) included, so that none sees or blocks
 * another's sends. Copy the headers at once: they are gone with the client, and a send without its
 * key would be repeated.
 */
static void copy_headers(struct send_job *j, const struct http_exchange *x, const char *key)
{
        if (!id_trace_of_parent(http_header(x, "traceparent"), j->trace))
                j->trace[0] = '\0';
        j->unsampled = !id_parent_samples(http_header(x, "traceparent"), j->trace);
        if (!key)
                return;
        j->key = request_own_key(x, key);
        request_hash(delivery_kind_name(j->kind), j->body.root, j->hash);
}

/* [[{"text","data"}, ...], ...], a list per row. NULL without buttons; yours to free. */
static char *buttons_json(const struct field_list *list)
{
        const struct send_button *b = list->items;
        struct buf json;

        if (list->count == 0)
                return NULL;
        buf_init(&json, 0);
        jsonw_open(&json, '[');
        for (size_t i = 0; i < list->count; i++) {
                bool joins = i > 0 && b[i].row > 0 && b[i].row == b[i - 1].row;

                if (!joins && i > 0)
                        jsonw_close(&json, ']');
                if (!joins)
                        jsonw_open(&json, '[');
                jsonw_open(&json, '{');
                jsonw_str(&json, "text", b[i].text);
                jsonw_opt(&json, "data", b[i].data);
                jsonw_opt(&json, "url", b[i].url);
                jsonw_close(&json, '}');
        }
        jsonw_close(&json, ']');
        jsonw_close(&json, ']');
        return buf_take(&json);
}

/* NULL without one; yours to free. */
static char *card_of(const struct send_job *j)
{
        const struct send_card *c = &j->ask.card;
        const struct send_card_field *f = c->fields.items;
        struct card card = { .title = c->title,
                             .body = c->body,
                             .footer = c->footer,
                             .color = c->color ? strtoll(c->color + 1, NULL, 16) : 0,
                             .field_count = c->fields.count,
                             .time_ms = c->time_ms };

        if (!json_object_get(j->body.root, "card"))
                return NULL;
        for (size_t i = 0; i < c->fields.count; i++)
                card.fields[i] = (struct card_field){ f[i].name, f[i].value, f[i].is_inline };
        return card_json(&card);
}

static enum thread_state wanted_state(const struct send_job *j)
{
        if (!json_object_get(j->body.root, "closed"))
                return THREAD_AS_IT_IS;
        return j->ask.closed ? THREAD_CLOSED : THREAD_OPEN;
}

static void on_put(void *arg, const struct outbox_receipt *r)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (x && r->error.kind != ERR_NONE) {
                reply_failed(x, &r->error);
        } else if (x) {
                buf_init(&data, 0);
                buf_addf(&data, "{\"deliveryId\":\"dlv-%lld\",\"status\":\"%s\"",
                         (long long)r->delivery, r->duplicate ? "duplicate" : "queued");
                jsonw_int(&data, "count", r->count);
                jsonw_str(&data, "traceId", r->trace);
                jsonw_close(&data, '}');
                reply_data(x, 202, &data);
        }
}

static void put(struct http_exchange *x, const struct send_job *s)
{
        const struct send_ask *ask = &s->ask;
        struct api_job *j = mem_alloc(sizeof(*j));
        char *buttons = buttons_json(&ask->buttons), *card = card_of(s);
        struct runtime_policy *policy = dispatch_policy(api_of(x)->env.dispatch);
        struct chat_key chat = { ask->adapter, ask->to, ask->thread };
        struct outgoing out = { .adapter = ask->adapter,
                                .channel = ask->to,
                                .thread = ask->thread,
                                .kind = s->kind,
                                .text = ask->text,
                                .reply_to = ask->reply_to,
                                .message_id = ask->message_id,
                                .edits = ask->delivery,
                                .in_thread_of = ask->in_thread_of,
                                .thread_name = ask->thread_name,
                                .thread_state = wanted_state(s),
                                .card = card,
                                .had_buttons = s->kind == DELIVER_EDIT && buttons,
                                .emoji = ask->emoji,
                                .broadcast = ask->broadcast,
                                .silent = ask->silent,
                                .buttons = buttons,
                                .file = { ask->path, ask->name, ask->mime, ask->as },
                                .author = s->kind == DELIVER_SEND ? ask->author : NULL,
                                .trace = s->trace,
                                .unsampled = s->unsampled,
                                .request_key = s->key,
                                .request_hash = s->hash,
                                .class = PACE_FINAL };

        /* during a handover every message is an answer the agent should know */
        if (s->kind == DELIVER_SEND && !out.author && policy &&
            handover_find(policy->handovers, &chat))
                out.author = "the operator";
        api_job_begin(j, x);
        outbox_submit(api_of(x)->env.road, &out, on_put, j);
        free(buttons);
        free(card);
}

/* ---- checks ---- */

/* "channels/tg/42/report.pdf" is a file of adapter tg; restricted keys send only such files. */
static bool reaches_file(const struct key *k, const char *path)
{
        static const char chats[] = "channels/";
        const char *name = path + strlen(chats);
        char *adapter;
        bool yes;

        if (!k->adapters)
                return true;
        if (strncmp(path, chats, strlen(chats)) != 0 || !strchr(name, '/'))
                return false;
        adapter = mem_strndup(name, strcspn(name, "/"));
        yes = key_reaches(k, adapter);
        free(adapter);
        return yes;
}

/* false: answered with 400. */
static bool check_buttons(struct http_exchange *x, const struct send_ask *ask)
{
        const struct send_button *b = ask->buttons.items;

        for (size_t i = 0; i < ask->buttons.count; i++) {
                if (!b[i].data == !b[i].url) {
                        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                                    "buttons[%zu] needs either data or url", i);
                        return false;
                }
        }
        return true;
}

/* false: answered; it may not be sent. */
static bool check(struct http_exchange *x, const struct send_ask *ask, enum delivery_kind kind)
{
        struct adapters *adapters = api_of(x)->env.adapters;
        static const unsigned needs[] = {
                [DELIVER_EDIT] = ADAPTER_EDITS,      [DELIVER_DELETE] = ADAPTER_EDITS,
                [DELIVER_REACT] = ADAPTER_REACTIONS, [DELIVER_UPLOAD] = ADAPTER_FILES,
                [DELIVER_THREAD] = ADAPTER_THREADS,  [DELIVER_CHANGE_THREAD] = ADAPTER_THREADS,
        };
        unsigned needed = needs[kind];

        if (!adapters_find(adapters, ask->adapter)) {
                reply_missing(x, "instance", ask->adapter);
                return false;
        }
        if (needed & ~adapters_abilities(adapters, ask->adapter)) {
                reply_error(x, 409, "CAPABILITY_NOT_SUPPORTED", NULL,
                            "adapter '%s' cannot do this (%s)", ask->adapter,
                            delivery_kind_name(kind));
                return false;
        }
        if (!check_buttons(x, ask))
                return false;
        if (ask->path && (ask->path[0] == '/' || !request_path_is_inside(ask->path))) {
                reply_error(x, 400, "VALIDATION_ERROR", NULL,
                            "path must lie inside the workspace folder");
                return false;
        }
        if (ask->path && !reaches_file(caller_of(x), ask->path)) {
                reply_error(x, 403, "FORBIDDEN", NULL,
                            "this key sends only files of its own instances, below "
                            "channels/INSTANCE/ in the workspace");
                return false;
        }
        return true;
}

/* ---- finding a person's chat ---- */

static int find_chat(struct store_tx *tx, void *arg, struct error *err)
{
        struct send_job *j = arg;
        int64_t merged_into;
        int rc = person_row_get_alias(tx, j->person, &merged_into, err);

        j->known = rc == 1;
        free(j->channel);
        j->channel = NULL;
        if (rc == 1)
                rc = person_row_get_chat(tx, j->person, j->ask.adapter, &j->channel, err);
        return rc < 0 ? -1 : 0;
}

static void on_chat(void *arg, const struct error *err)
{
        struct send_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err) {
                reply_failed(x, err);
        } else if (x && !j->known) {
                reply_missing(x, "person", j->ask.to);
        } else if (x && !j->channel) {
                reply_error(x, 409, "RECIPIENT_NOT_ON_CHANNEL", NULL,
                            "person '%s' has never sent adapter '%s' a direct message, so there is "
                            "no chat to send to",
                            j->ask.to, j->ask.adapter);
        } else if (x) {
                j->ask.to = j->channel;
                put(x, j);
        }
        send_job_free(j);
}

/* ---- to a person, wherever they are ---- */

struct notice_job {
        struct send_job *send;
        const struct schedule_conf *conf;
        struct schedule *schedule;
        char *by, *buttons;
        int64_t now_ms;
        struct notice_receipt result;
};

static int write_notice(struct store_tx *tx, void *arg, struct error *err)
{
        struct notice_job *n = arg;
        const struct send_job *j = n->send;

        return notice_add(tx, n->conf,
                          &(struct notice_wish){ .to = j->ask.person,
                                                 .text = j->ask.text,
                                                 .buttons = n->buttons,
                                                 .request_key = j->key,
                                                 .request_hash = j->key ? j->hash : NULL,
                                                 .created_by = n->by,
                                                 .trace = j->trace,
                                                 .now_ms = n->now_ms },
                          &n->result, err);
}

static void reply_notice(struct http_exchange *x, const struct notice_job *n)
{
        const struct notice_receipt *r = &n->result;
        struct buf data;

        buf_init(&data, 0);
        jsonw_open(&data, '{');
        row_json_id(&data, "scheduleId", "sch-", r->schedule);
        row_json_id(&data, "personId", "per-", r->person);
        jsonw_str(&data, "status",
                  r->duplicate       ? "duplicate"
                  : r->not_before_ms ? "deferred"
                                     : "queued");
        if (r->not_before_ms)
                row_json_time(&data, "notBefore", r->not_before_ms);
        if (!r->duplicate)
                jsonw_str(&data, "traceId", n->send->trace);
        jsonw_close(&data, '}');
        reply_data(x, 202, &data);
}

static void on_notice(void *arg, const struct error *err)
{
        struct notice_job *n = arg;
        struct http_exchange *x = api_job_end(&n->send->job);

        if (!err)
                schedule_wake(n->schedule);
        if (x && err && err->kind == ERR_LIMIT) /* not soon, as Retry-After would say */
                reply_error(x, 429, "RATE_LIMITED", NULL, "%s", err->text);
        else if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_notice(x, n);
        send_job_free(n->send);
        free(n->by);
        free(n->buttons);
        free(n);
}

/* Takes j. */
static void send_notice(struct http_exchange *x, struct send_job *j)
{
        struct notice_job *n = mem_zalloc(sizeof(*n));

        n->send = j;
        n->schedule = api_of(x)->env.schedule;
        n->conf = schedule_get_conf(n->schedule);
        n->by = mem_strdup(caller_name(x));
        n->buttons = buttons_json(&j->ask.buttons);
        n->now_ms = clock_wall_ms();
        if (!j->trace[0])
                id_trace(j->trace);
        api_job_begin(&j->job, x);
        store_write(api_of(x)->env.store, write_notice, on_notice, n);
}

static bool is_color(const char *text)
{
        return text[0] == '#' && strspn(text + 1, "0123456789abcdefABCDEF") == 6;
}

static void check_content(struct send_job *j)
{
        const struct send_ask *ask = &j->ask;
        const struct send_card *c = &ask->card;
        bool has_card = json_object_get(j->body.root, "card") != NULL;
        bool has_text = j->kind == DELIVER_SEND || j->kind == DELIVER_EDIT;
        bool has_target = j->kind == DELIVER_EDIT || j->kind == DELIVER_THREAD;

        if (has_text && !ask->text && !has_card)
                body_mistake(&j->body, "text", "is required, unless card is given");
        if (has_card && !c->title && !c->body && c->fields.count == 0)
                body_mistake(&j->body, "card", "needs a title, a body or fields");
        if (has_card && c->color && !is_color(c->color))
                body_mistake(&j->body, "card.color", "must be like #FFA500");
        if (has_card && ask->person)
                body_mistake(&j->body, "card", "cannot be combined with person");
        if (has_target && ask->message_id && ask->delivery)
                body_mistake(&j->body, "deliveryId", "cannot be combined with messageId");
        if (j->kind == DELIVER_EDIT && !ask->message_id && !ask->delivery)
                body_mistake(&j->body, "messageId", "is required, unless deliveryId is given");
        if (ask->thread && ask->in_thread_of)
                body_mistake(&j->body, "inThreadOf", "cannot be combined with threadId");
        if (j->kind == DELIVER_CHANGE_THREAD && !ask->thread && !ask->in_thread_of)
                body_mistake(&j->body, "threadId", "is required, unless inThreadOf is given");
}

/* 1: to a person; 0: to a chat; -1: answered with 400 or 409. */
static int check_recipient(struct http_exchange *x, struct send_job *j)
{
        const struct send_ask *ask = &j->ask;

        if (ask->person &&
            (ask->adapter || ask->to || ask->thread || ask->reply_to || ask->in_thread_of))
                body_mistake(&j->body, "person",
                             "cannot be combined with instanceId, to, threadId, inThreadOf or "
                             "replyTo: the chat is found");
        if (!ask->person && !ask->adapter)
                body_mistake(&j->body, "instanceId", "is required, unless person is given");
        if (!ask->person && !ask->to)
                body_mistake(&j->body, "to", "is required, unless person is given");
        check_content(j);
        if (j->body.mistake_count > 0) {
                reply_mistakes(x, &j->body);
                return -1;
        }
        if (ask->person && !api_of(x)->env.schedule) {
                reply_error(x, 409, "CONFLICT", NULL, "there is no schedule to send it");
                return -1;
        }
        return ask->person != NULL;
}

/* ---- handlers ---- */

static void send_as(struct http_exchange *x, enum delivery_kind kind)
{
        struct runtime_policy *policy = dispatch_policy(api_of(x)->env.dispatch);
        struct send_job *j = mem_zalloc(sizeof(*j));
        const char *key;
        int to_person;

        if (request_key(x, &key) < 0 || request_body(x, &j->body, &j->ask) < 0) {
                free(j);
                return;
        }
        j->kind = kind;
        copy_headers(j, x, key);
        to_person = check_recipient(x, j);
        if (to_person == 1 && check_buttons(x, &j->ask)) {
                send_notice(x, j);
                return;
        }
        if (to_person == 0 && check(x, &j->ask, kind)) {
                if (policy && strncmp(j->ask.to, "per-", 4) == 0) /* follow merges */
                        j->person = persons_current(policy->persons, field_id("per-", j->ask.to));
                if (j->person > 0) {
                        api_job_begin(&j->job, x);
                        store_read(api_of(x)->env.store, find_chat, on_chat, j);
                        return;
                }
                put(x, j);
        }
        send_job_free(j);
}

static void send_text(struct http_exchange *x)
{
        send_as(x, DELIVER_SEND);
}

static void send_media(struct http_exchange *x)
{
        send_as(x, DELIVER_UPLOAD);
}

static void send_reaction(struct http_exchange *x)
{
        send_as(x, DELIVER_REACT);
}

static void edit(struct http_exchange *x)
{
        send_as(x, DELIVER_EDIT);
}

static void delete_message(struct http_exchange *x)
{
        send_as(x, DELIVER_DELETE);
}

static void begin_thread(struct http_exchange *x)
{
        send_as(x, DELIVER_THREAD);
}

static void change_thread(struct http_exchange *x)
{
        send_as(x, DELIVER_CHANGE_THREAD);
}

#define ANSWER                                                                           \
        "The delivery is stored: {\"data\": {\"deliveryId\", \"status\": \"queued\" or " \
        "\"duplicate\", \"count\", \"traceId\"}}."
#define EXAMPLE_ANSWER                                                 \
        ROUTE_JSON({                                                   \
                "data" : {                                             \
                        "deliveryId" : "dlv-7",                        \
                        "status" : "queued",                           \
                        "count" : 1,                                   \
                        "traceId" : "0198c0ffee00aabbccddeeff00112233" \
                }                                                      \
        })

const struct route send_routes[] = {
        { "POST", "/api/v2/messages/send", SCOPE_WRITE, send_text, REACH_BODY,
          .summary = "Send a message through an adapter, or to a person. The header "
                     "Idempotency-Key makes repeating the request harmless.",
          .body = send_fields, .status = 202,
          .answer = ANSWER " To a person: {\"data\": {\"scheduleId\", \"personId\", "
                           "\"status\": queued, deferred or duplicate, \"notBefore\": the end "
                           "of their quiet hours, \"traceId\"}}.",
          .example = ROUTE_JSON(
                  { "instanceId" : "api", "to" : "support-17", "text" : "It is **noon**." }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/send/media", SCOPE_WRITE, send_media, REACH_BODY,
          .summary = "Send a file of the workspace, with a caption.", .body = media_fields,
          .status = 202, .answer = ANSWER, .example = ROUTE_JSON({
                                                   "instanceId" : "tg",
                                                   "to" : "42",
                                                   "path" : "charts/today.png",
                                                   "as" : "photo",
                                                   "caption" : "Today"
                                           }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/send/reaction", SCOPE_WRITE, send_reaction, REACH_BODY,
          .summary = "React to a message.", .body = reaction_fields, .status = 202,
          .answer = ANSWER,
          .example = ROUTE_JSON(
                  { "instanceId" : "tg", "to" : "42", "messageId" : "17", "emoji" : "👀" }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/edit", SCOPE_WRITE, edit, REACH_BODY,
          .summary = "Change a message of the bot. Of the queued edits of one message only the "
                     "latest is sent.",
          .body = edit_fields, .status = 202, .answer = ANSWER, .example = ROUTE_JSON({
                                                                        "instanceId" : "tg",
                                                                        "to" : "42",
                                                                        "messageId" : "17",
                                                                        "text" : "It is *one*."
                                                                }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/thread", SCOPE_WRITE, begin_thread, REACH_BODY,
          .summary = "Begin a thread; inThreadOf of further messages names its delivery. How "
                     "threads begin in a chat is shown by the lookup of its channel.",
          .body = thread_fields, .status = 202, .answer = ANSWER, .example = ROUTE_JSON({
                                                                          "instanceId" : "dc",
                                                                          "to" : "456",
                                                                          "deliveryId" : "dlv-7",
                                                                          "name" : "my session"
                                                                  }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/thread/change", SCOPE_WRITE, change_thread, REACH_BODY,
          .summary = "Rename, close or reopen a thread. A closed one stays readable; Slack has no "
                     "such thing, and nothing happens there.",
          .body = change_fields, .status = 202, .answer = ANSWER,
          .example = ROUTE_JSON(
                  { "instanceId" : "dc", "to" : "456", "inThreadOf" : "dlv-8", "closed" : true }),
          .example_answer = EXAMPLE_ANSWER },
        { "POST", "/api/v2/messages/delete", SCOPE_WRITE, delete_message, REACH_BODY,
          .summary = "Delete a message.", .body = delete_fields, .status = 202, .answer = ANSWER,
          .example = ROUTE_JSON({ "instanceId" : "tg", "to" : "42", "messageId" : "17" }),
          .example_answer = EXAMPLE_ANSWER },
        ROUTE_END,
};
