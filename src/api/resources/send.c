/*
 * What goes out through an adapter on request: messages with buttons, files, edits, deletes,
 * reactions.
 *
 * Each is a delivery in the outbox like an agent's answer: stored before this request is answered,
 * paced, retried, told by `why`.
 */
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/crypto.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

#define TEXT_MAX    262144
#define BUTTONS_MAX 40

struct button {
        const char *text, *data, *url;
        int64_t row;
};

/* One struct for all bodies; each route's table fills what it needs. */
struct send {
        const char *instance, *to, *thread, *reply_to, *text, *message_id, *emoji;
        const char *path, *name, *mime, *as, *author;
        struct field_list buttons;
};

#define AT(member) .at = offsetof(struct send, member)

/* clang-format off */
#define WHERE_FIELDS                                                                                                          \
        { "instanceId", FIELD_STRING, .required = true, .min = 1, .max = 128, AT(instance),                                    \
          .help = "Name of the adapter that sends." },                                                                         \
        { "to", FIELD_STRING, .required = true, .min = 1, .max = 512, AT(to),                                                  \
          .help = "The platform's id of the chat or channel, or a person (per-3) who has written to the adapter alone." },                                                               \
        { "threadId", FIELD_STRING, .min = 1, .max = 512, AT(thread), .help = "A thread inside the chat." }
#define TARGET_FIELD                                                                                                          \
        { "messageId", FIELD_STRING, .required = true, .min = 1, .max = 256, AT(message_id),                                   \
          .help = "The platform's id of the message." }
#define REPLY_FIELD                                                                                                           \
        { "replyTo", FIELD_STRING, .min = 1, .max = 256, AT(reply_to), .help = "The platform's id of the message to answer." }

static const struct field button_fields[] = {
        { "text", FIELD_STRING, .required = true, .min = 1, .max = 256, .at = offsetof(struct button, text),
          .help = "What stands on the button." },
        { "data", FIELD_STRING, .min = 1, .max = 64, .at = offsetof(struct button, data),
          .help = "What comes back when it is pressed, at most 64 bytes; this or url." },
        { "url", FIELD_STRING, .min = 1, .max = 2048, .at = offsetof(struct button, url),
          .help = "The page it opens." },
        { "row", FIELD_INT, .min = 0, .max = BUTTONS_MAX, .at = offsetof(struct button, row), .fallback = "0",
          .help = "Buttons of the same number, one after the other, stand side by side; 0: a row of its own." },
        FIELD_END,
};
const struct field send_fields[] = {
        WHERE_FIELDS,
        { "text", FIELD_STRING, .required = true, .min = 1, .max = TEXT_MAX, AT(text),
          .help = "Markdown; written in the platform's markup and split to its length." },
        REPLY_FIELD,
        { "author", FIELD_STRING, .min = 1, .max = 100, AT(author),
          .help = "A person who speaks in the bot's name: the agent remembers the text as an answer of its own. While the agent is "
                  "paused in the chat, absent means \"the operator\"." },
        { "buttons", FIELD_LIST, .group = button_fields, .item_size = sizeof(struct button), .max = BUTTONS_MAX, AT(buttons),
          .help = "Buttons below the message, where the platform has them." },
        FIELD_END,
};
static const char *const media_kinds[] = { "photo", "audio", "video", "document", "voice", NULL };
const struct field send_media_fields[] = {
        WHERE_FIELDS,
        { "path", FIELD_STRING, .required = true, .min = 1, .max = 1024, AT(path),
          .help = "The file, relative to the workspace folder. A key that is restricted to adapters sends files below channels/ADAPTER/ of these." },
        { "name", FIELD_STRING, .min = 1, .max = 255, AT(name), .help = "The name it gets; absent: its own." },
        { "mimeType", FIELD_STRING, .min = 1, .max = 128, AT(mime), .help = "Its type, such as image/png." },
        { "as", FIELD_CHOICE, .choices = media_kinds, AT(as), .help = "How it is shown; absent: as its type suggests." },
        { "caption", FIELD_STRING, .min = 1, .max = TEXT_MAX, AT(text),
          .help = "Markdown below it; what is too long for the platform follows as messages." },
        REPLY_FIELD,
        FIELD_END,
};
const struct field send_reaction_fields[] = {
        WHERE_FIELDS,
        TARGET_FIELD,
        { "emoji", FIELD_STRING, .required = true, .min = 1, .max = 64, AT(emoji), .help = "The emoji to react with." },
        FIELD_END,
};
const struct field edit_fields[] = {
        WHERE_FIELDS,
        TARGET_FIELD,
        { "text", FIELD_STRING, .required = true, .min = 1, .max = TEXT_MAX, AT(text), .help = "The new text, Markdown." },
        FIELD_END,
};
const struct field delete_fields[] = { WHERE_FIELDS, TARGET_FIELD, FIELD_END };
/* clang-format on */

static void on_put(void *arg, const struct outbox_receipt *r)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (!x)
                return;
        if (r->error.kind != ERR_NONE) {
                reply_failed(x, &r->error);
                return;
        }
        buf_init(&data, 0);
        buf_addf(&data, "{\"deliveryId\":\"dlv-%lld\",\"status\":\"%s\"", (long long)r->delivery,
                 r->duplicate ? "duplicate" : "queued");
        jsonw_int(&data, "count", r->count);
        jsonw_str(&data, "traceId", r->trace);
        jsonw_close(&data, '}');
        reply_data(x, 202, &data);
}

/*
 * Rows of buttons as the adapters want them: [[{"text","data"}, ...], ...]. NULL without buttons;
 * yours to free.
 */
static char *rows_of(const struct field_list *list)
{
        const struct button *b = list->items;
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

/* While a person has taken over, whatever is sent is an answer the agent should know of. */
static const char *author_of(const struct http_exchange *x, const struct send *m)
{
        struct runtime_policy *policy = dispatch_policy(api_of(x)->env.dispatch);
        struct chat_key here = { m->instance, m->to, m->thread };

        if (m->author)
                return m->author;
        return policy && handover_find(policy->handover, &here) ? "the operator" : NULL;
}

/* A request on its way; the body keeps the strings of m. */
struct sending {
        struct api_job job;
        struct body body;
        struct send m;
        enum delivery_kind kind;
        char *key; /* of the caller's own keys; NULL: none was given */
        /* of what is asked for; "" without a key, because nobody compares it then */
        char hash[SHA256_HEX_SIZE];
        int64_t person;
        char *channel; /* result: where the person can be written to alone; NULL: nowhere */
        bool known;    /* result */
};

static void sending_free(struct sending *s)
{
        body_release(&s->body);
        free(s->key);
        free(s->channel);
        free(s);
}

/*
 * Every caller has idempotency keys of his own, the operator (key 0) too: nobody sees or blocks
 * what another has sent. They are taken down at once: when the client goes away meanwhile, its
 * headers go with it, and a send without its key would be repeated.
 */
static void name_request(struct sending *s, const struct http_exchange *x, const char *key)
{
        char *text, *whole;

        if (!key)
                return;
        s->key = mem_printf("key-%lld:%s", (long long)caller_of(x)->id, key);
        text = json_dumps(s->body.root, JSON_SORT_KEYS | JSON_COMPACT);
        whole = mem_printf("%s %s", delivery_kind_name(s->kind), text ? text : "");
        crypto_sha256_hex(whole, strlen(whole), s->hash);
        free(text);
        free(whole);
}

static void put(struct http_exchange *x, const struct sending *s)
{
        const struct send *m = &s->m;
        struct api_job *j = mem_alloc(sizeof(*j));
        char *buttons = rows_of(&m->buttons);
        struct outgoing out = { .adapter = m->instance,
                                .channel = m->to,
                                .thread = m->thread,
                                .kind = s->kind,
                                .text = m->text,
                                .reply_to = m->reply_to,
                                .message_id = m->message_id,
                                .emoji = m->emoji,
                                .buttons = buttons,
                                .file = { m->path, m->name, m->mime, m->as },
                                .author = s->kind == DELIVER_SEND ? author_of(x, m) : NULL,
                                .request_key = s->key,
                                .request_hash = s->hash,
                                .class = PACE_FINAL };
        struct api *a = api_of(x);

        api_job_begin(j, x);
        outbox_submit(a->env.road, &out, on_put, j);
        free(buttons);
}

/* What the adapter must be able to do for a kind of delivery; a journaled one keeps everything. */
static unsigned needed(enum delivery_kind kind)
{
        if (kind == DELIVER_EDIT || kind == DELIVER_DELETE)
                return ADAPTER_EDITS;
        if (kind == DELIVER_REACT)
                return ADAPTER_REACTIONS;
        return kind == DELIVER_UPLOAD ? ADAPTER_FILES : 0;
}

/*
 * "channels/tg/42/report.pdf": files of that adapter's chats. A key for some adapters sends theirs
 * and no others: the rest is everybody's.
 */
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

static bool check_path(struct http_exchange *x, const char *path)
{
        if (path[0] == '/' || !request_path_is_inside(path)) {
                reply_error(x, 400, "VALIDATION_ERROR", NULL,
                            "path must lie inside the workspace folder");
                return false;
        }
        if (reaches_file(caller_of(x), path))
                return true;
        reply_error(
                x, 403, "FORBIDDEN", NULL,
                "this key sends only files of its own instances, below channels/INSTANCE/ in the workspace");
        return false;
}

/* Answers and returns false when it may not go. */
static bool check(struct http_exchange *x, const struct send *m, enum delivery_kind kind)
{
        struct adapters *adapters = api_of(x)->env.adapters;
        const struct button *b = m->buttons.items;

        if (!adapters_find(adapters, m->instance)) {
                reply_missing(x, "instance", m->instance);
                return false;
        }
        if (needed(kind) & ~adapters_abilities(adapters, m->instance)) {
                reply_error(x, 409, "CAPABILITY_NOT_SUPPORTED", NULL,
                            "adapter '%s' cannot do this (%s)", m->instance,
                            delivery_kind_name(kind));
                return false;
        }
        for (size_t i = 0; i < m->buttons.count; i++) {
                if (!b[i].data == !b[i].url) {
                        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                                    "buttons[%zu] needs either data or url", i);
                        return false;
                }
        }
        return !m->path || check_path(x, m->path);
}

/* ---- to a person ---- */

/* The chat with the identity of his that was seen last on this adapter. */
static int find_chat(struct store_tx *tx, void *arg, struct error *err)
{
        struct sending *m = arg;
        struct store_stmt *s = store_prepare(tx, "SELECT id FROM persons WHERE id = ?1");

        store_bind_int(s, 1, m->person);
        m->known = store_step(s, err) == 1;
        store_reset(s);
        s = store_prepare(
                tx, "SELECT c.channel FROM identities i JOIN identity_chats c ON c.identity = i.id"
                    " WHERE i.person = ?1 AND c.adapter = ?2 ORDER BY c.seen_ms DESC LIMIT 1");
        store_bind_int(s, 1, m->person);
        store_bind_text(s, 2, m->m.instance);
        free(m->channel);
        m->channel = store_step(s, err) == 1 ? mem_strdup(store_col_text(s, 0)) : NULL;
        store_reset(s);
        return 0;
}

static void on_chat(void *arg, const struct error *err)
{
        struct sending *s = arg;
        struct http_exchange *x = api_job_end(&s->job);

        if (x && err) {
                reply_failed(x, err);
        } else if (x && !s->known) {
                reply_missing(x, "person", s->m.to);
        } else if (x && !s->channel) {
                reply_error(
                        x, 409, "RECIPIENT_NOT_ON_CHANNEL", NULL,
                        "person '%s' has never written to adapter '%s' alone, so there is no chat to send to",
                        s->m.to, s->m.instance);
        } else if (x) {
                s->m.to = s->channel;
                put(x, s);
        }
        sending_free(s);
}

/* "per-3" is a person: the message goes to the chat where he writes to this adapter alone. */
static int64_t person_of(const struct http_exchange *x, const char *to)
{
        struct runtime_policy *policy = dispatch_policy(api_of(x)->env.dispatch);
        int64_t id = strncmp(to, "per-", 4) == 0 ? field_id("per-", to) : -1;

        return policy && id > 0 ? persons_current(policy->persons, id) : -1;
}

static void send_as(struct http_exchange *x, enum delivery_kind kind)
{
        struct sending *s = mem_zalloc(sizeof(*s));
        const char *key;

        if (request_key(x, &key) < 0 || request_body(x, &s->body, &s->m) < 0) {
                free(s);
                return;
        }
        s->kind = kind;
        name_request(s, x, key);
        if (check(x, &s->m, kind)) {
                s->person = person_of(x, s->m.to);
                if (s->person > 0) {
                        api_job_begin(&s->job, x);
                        store_read(api_of(x)->env.store, find_chat, on_chat, s);
                        return;
                }
                put(x, s);
        }
        sending_free(s);
}

void messages_send(struct http_exchange *x)
{
        send_as(x, DELIVER_SEND);
}

void messages_send_media(struct http_exchange *x)
{
        send_as(x, DELIVER_UPLOAD);
}

void messages_send_reaction(struct http_exchange *x)
{
        send_as(x, DELIVER_REACT);
}

void messages_edit(struct http_exchange *x)
{
        send_as(x, DELIVER_EDIT);
}

void messages_delete(struct http_exchange *x)
{
        send_as(x, DELIVER_DELETE);
}
