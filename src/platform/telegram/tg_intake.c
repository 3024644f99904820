/*
 * Updates from their arrival, polled or posted, to their acknowledgement; platform/intake.c keeps
 * them in order and stores them.
 *
 * The offset of the next getUpdates confirms polled updates. Telegram repeats everything from the
 * first unconfirmed one on, so finished updates stay in the window until all before them are
 * committed. A posted update is answered with 200 after its commit; if the inbox refuses it, with
 * 503, and Telegram posts it again.
 *
 * Albums: the parts of an album are separate updates, and only one carries the caption.
 *
 *     polled      parts that come within ALBUM_MS are one event, under the key of the first
 *                 message; the inbox stores the keys of the other parts with it
 *     posted      Telegram posts the next part only after we have stored and acknowledged the last
 *                 one: each part is an event, like a polled part that comes too late, and the road
 *                 gathers them in one turn
 *     repeated    after a crash the parts may be grouped differently: when the inbox knows some of
 *                 them, each is handed over by itself
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "platform/attachment_fetch.h"
#include "platform/telegram/telegram.h"

#define SECRET_HEADER "X-Telegram-Bot-Api-Secret-Token"
#define ALBUM_MS      1000  /* after its last part */
#define WINDOW_MAX    100   /* the most that getUpdates gives; further posts are refused */
#define LOCATE_MS     10000 /* for getFile */

/* ---- albums ---- */

/*
 * Only one part's caption mentions the bot, and addresses the others as well. Remembers this for
 * the last TG_ALBUMS albums.
 */
static void address_as_album(struct telegram *tg, const struct tg_update *u, struct incoming *in)
{
        struct tg_albums *known = &tg->albums;
        unsigned i = 0;

        while (i < TG_ALBUMS && !(known->items[i].id && strcmp(known->items[i].id, u->album) == 0 &&
                                  strcmp(known->items[i].chat, u->base.chat) == 0))
                i++;
        if (i == TG_ALBUMS) {
                i = known->next;
                known->next = (known->next + 1) % TG_ALBUMS;
                free(known->items[i].chat);
                free(known->items[i].id);
                known->items[i].chat = mem_strdup(u->base.chat);
                known->items[i].id = mem_strdup(u->album);
                known->items[i].is_mention = known->items[i].is_reply = false;
        }
        in->is_mention = known->items[i].is_mention = known->items[i].is_mention || in->is_mention;
        in->is_reply = known->items[i].is_reply = known->items[i].is_reply || in->is_reply;
}

/* All parts, yours to free: the earliest message first, then in the order of arrival. */
static struct tg_update **album_parts(struct tg_update *lead, size_t *count)
{
        struct tg_update **parts, *earliest;
        struct intake_update *p;
        size_t n = 1, first = 0;

        TAILQ_FOREACH(p, &lead->base.parts, next_part)
                n++;
        parts = mem_array(n, sizeof(struct tg_update *));
        parts[0] = lead;
        n = 1;
        TAILQ_FOREACH(p, &lead->base.parts, next_part) {
                parts[n] = (struct tg_update *)p;
                if (parts[n]->message < parts[first]->message)
                        first = n;
                n++;
        }
        earliest = parts[first];
        memmove(parts + 1, parts, first * sizeof(struct tg_update *));
        parts[0] = earliest;
        *count = n;
        return parts;
}

/* One event with the attachments of all parts (each has one), and the first text among them. */
static void compose_album(struct intake_update *base, struct intake_content *out)
{
        struct tg_update *lead = (struct tg_update *)base;
        size_t n;
        struct tg_update **parts = album_parts(lead, &n);
        struct attachment *attachments = arena_alloc(&out->arena, n * sizeof(*attachments));
        struct incoming_part *others = arena_alloc(&out->arena, n * sizeof(*others));
        struct incoming *event = arena_alloc(&out->arena, sizeof(*event));
        json_t *files = json_array();

        *event = parts[0]->base.content.events[0];
        json_object_update(out->metadata, parts[0]->base.content.metadata);
        for (size_t i = 0; i < n; i++) {
                const struct intake_content *c = &parts[i]->base.content;
                const struct incoming *e = c->events;

                if (c->attachment_count > 0)
                        attachments[event->attachment_count++] = c->attachments[0];
                json_array_extend(files, json_object_get(c->metadata, "files"));
                if (i > 0)
                        others[event->part_count++] = (struct incoming_part){ e->key, e->id };
                if (!event->text || !*event->text) {
                        event->text = e->text;
                        event->raw_text = e->raw_text;
                }
                event->is_mention = event->is_mention || e->is_mention;
                event->is_reply = event->is_reply || e->is_reply;
        }
        json_object_set_new(out->metadata, "files", files);
        event->attachments = attachments;
        event->parts = others;
        address_as_album(base->intake->adapter->self, lead, event);
        out->events = event;
        out->event_count = 1;
        free(parts);
}

static void compose_parts(struct intake_update *base, struct intake_content *out)
{
        struct tg_update **parts = album_parts((struct tg_update *)base, &out->event_count);

        out->events = arena_alloc(&out->arena, out->event_count * sizeof(*out->events));
        for (size_t i = 0; i < out->event_count; i++) {
                const struct intake_content *c = &parts[i]->base.content;
                struct incoming *event = &out->events[i];
                char *metadata = json_text(c->metadata);

                *event = c->events[0];
                event->attachments = c->attachments;
                event->attachment_count = c->attachment_count;
                event->metadata = arena_strdup(&out->arena, metadata);
                event->more_follows = true;
                address_as_album(base->intake->adapter->self, parts[i], event);
                free(metadata);
        }
        free(parts);
}

/* Joins a polled part to the album that waits for it, or begins one. */
static void join_album(struct telegram *tg, struct tg_update *u)
{
        struct intake_update *lead;

        TAILQ_FOREACH(lead, &tg->intake.window, next) {
                const char *album = ((struct tg_update *)lead)->album;

                if (lead != &u->base && !lead->lead && lead->state == INTAKE_PREPARING && album &&
                    strcmp(album, u->album) == 0 && strcmp(lead->chat, u->base.chat) == 0)
                        break;
        }
        if (lead)
                intake_join(lead, &u->base);
        intake_wait(lead ? lead : &u->base, ALBUM_MS);
}

/* ---- the intake's handlers ---- */

static bool on_duplicate(struct intake_update *base)
{
        if (TAILQ_EMPTY(&base->parts) || base->compose == compose_parts)
                return false;
        base->compose = compose_parts;
        return true;
}

static void on_button_answered(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;

        if (!answer->ok)
                log_info("cannot confirm a pressed button", LOG_S("adapter", tg->adapter->name),
                         LOG_S("why", answer->why));
}

static void answer_post(struct tg_update *u, bool stored)
{
        struct http_exchange *x = u->exchange;

        u->exchange = NULL;
        if (x && stored)
                http_answer(x, 200, NULL, "", 0);
        else if (x)
                http_refuse(x, 503, "UNAVAILABLE", "the update could not be stored; send it again");
}

static void on_done(struct intake_update *base, bool stored)
{
        struct tg_update *u = (struct tg_update *)base;
        struct telegram *tg = base->intake->adapter->self;

        if (stored && u->callback) { /* ends the progress indicator on the button */
                json_t *params = json_pack("{s:s}", "callback_query_id", u->callback);

                tg_call_start(
                        tg,
                        &(struct tg_request){ .method = "answerCallbackQuery", .params = params },
                        on_button_answered, tg);
                json_decref(params);
        }
        answer_post(u, stored);
}

static void on_free(struct intake_update *base)
{
        struct tg_update *u = (struct tg_update *)base;

        json_decref(u->json);
        free(u);
}

/* ---- arrival ---- */

static struct tg_update *find(const struct telegram *tg, int64_t id)
{
        struct intake_update *u;

        TAILQ_FOREACH(u, &tg->intake.window, next)
                if (((struct tg_update *)u)->id == id)
                        return (struct tg_update *)u;
        return NULL;
}

/* New messages of others. What else names an id may name one of ours. */
static void note_id(struct telegram *tg, const json_t *update)
{
        const json_t *message = json_object_get(update, "message");
        int64_t id = json_int(message, "message_id", 0);
        char chat[24];

        if (id <= 0)
                return;
        if (json_int(json_object_get(message, "from"), "id", 0) == tg->self.id) {
                tg_topic_update(tg, message);
                return;
        }
        snprintf(chat, sizeof(chat), "%" PRId64,
                 json_int(json_object_get(message, "chat"), "id", 0));
        tg_ids_note(tg, chat, id, json_int(message, "date", 0));
        tg_reconcile_received(tg, chat, id);
}

void tg_intake_add(struct telegram *tg, json_t *json, struct http_exchange *x)
{
        struct tg_update *u = find(tg, json_int(json, "update_id", 0));

        if (u) {
                if (x) { /* Telegram has given up on its first post */
                        answer_post(u, false);
                        u->exchange = x;
                }
                return;
        }
        if (x && tg->intake.count >= WINDOW_MAX) {
                http_refuse(x, 503, "UNAVAILABLE",
                            "too many updates wait to be stored; send it again");
                return;
        }
        note_id(tg, json);
        u = mem_zalloc(sizeof(*u));
        u->exchange = x;
        u->base.sender_retries = x != NULL;
        tg_update_read(u, &tg->self, json);
        intake_add(&tg->intake, &u->base);
        if (u->migrated)
                tg_chat_moved(tg, u->base.chat, u->migrated);
        if (u->base.content.event_count == 0) {
                log_debug("update ignored", LOG_S("adapter", tg->adapter->name),
                          LOG_I("update", u->id), LOG_S("why", u->base.content.ignored));
                intake_skip(&u->base);
                return;
        }
        u->base.compose = u->album ? compose_album : NULL;
        if (u->album && tg_link_polls(tg)) {
                join_album(tg, u);
        } else if (u->album) {
                u->base.content.events->more_follows = true;
                address_as_album(tg, u, u->base.content.events);
        }
        intake_prepared(&u->base);
}

bool tg_intake_admits_post(struct adapter *a, struct http_exchange *x)
{
        const struct telegram *tg = a->self;
        const char *secret = http_header(x, SECRET_HEADER);

        if (tg_link_polls(tg) || !tg->webhook_secret) {
                http_refuse(x, 404, "NOT_FOUND",
                            "adapter '%s' takes no webhooks: its mode is polling", a->name);
                return false;
        }
        if (!secret ||
            !crypto_equal(secret, strlen(secret), tg->webhook_secret, strlen(tg->webhook_secret))) {
                http_refuse(x, 401, "UNAUTHORIZED", "the secret token is missing or wrong");
                return false;
        }
        return true;
}

void tg_intake_post(struct adapter *a, struct http_exchange *x)
{
        struct telegram *tg = a->self;
        struct error err = { 0 };
        const char *body;
        json_t *update;
        size_t n;

        if (tg->state != TG_LISTENING || !a->road) {
                http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' is not connected yet", a->name);
                return;
        }
        body = http_body(x, &n);
        update = json_read(body, n, &err);
        if (!update && tg_update_first_id(body, n) >= 0) {
                /* accept it anyway: Telegram would repeat it for a day */
                log_warn("update dropped: it cannot be read", LOG_S("adapter", a->name),
                         LOG_I("update", tg_update_first_id(body, n)), LOG_S("why", err.text));
                http_answer(x, 200, NULL, "", 0);
        } else if (!json_is_object(update) ||
                   !json_is_integer(json_object_get(update, "update_id"))) {
                http_refuse(x, 400, "VALIDATION_ERROR", "this is not an update: %s",
                            err.text[0] ? err.text : "it has no update_id");
        } else {
                tg_intake_add(tg, update, x);
        }
        json_decref(update);
}

int64_t tg_intake_offset(const struct telegram *tg, int64_t otherwise)
{
        const struct intake_update *u;
        int64_t least = otherwise;

        TAILQ_FOREACH(u, &tg->intake.window, next)
                if (u->state != INTAKE_DONE && ((const struct tg_update *)u)->id < least)
                        least = ((const struct tg_update *)u)->id;
        return least;
}

bool tg_intake_has_room(const struct telegram *tg)
{
        return tg->intake.preparing > 0 && tg->intake.count < WINDOW_MAX &&
               tg->intake.refusals == 0;
}

/* ---- locating files ---- */

/* Telegram's path with each segment encoded; NULL: not acceptable. */
static char *encode_path(const char *path)
{
        char *copy, *rest, *part;
        struct buf out;

        if (path[0] == '\0' || path[0] == '/' || strstr(path, ".."))
                return NULL;
        copy = rest = mem_strdup(path);
        buf_init(&out, 0);
        while ((part = strsep(&rest, "/"))) {
                char *safe = http_text_escape(part);

                buf_addf(&out, "%s%s", out.len > 0 ? "/" : "", safe);
                free(safe);
        }
        free(copy);
        return buf_take(&out);
}

static void on_file(void *arg, const struct tg_answer *answer)
{
        struct attachment_fetch *f = arg;
        struct telegram *tg = attachment_fetch_adapter(f)->self;
        const char *path = json_str(answer->result, "file_path", ""), *refusal;
        char *encoded, *url;

        if (!answer->ok) {
                if (!answer->genuine || answer->status == 429 || answer->status >= 500)
                        attachment_fetch_retry(f, answer->why);
                else
                        attachment_fetch_fail(f, answer->why);
                return;
        }
        refusal = attachment_fetch_refusal(tg->adapter->files,
                                           json_int(answer->result, "file_size", 0));
        encoded = encode_path(path);
        if (refusal) {
                attachment_fetch_fail(f, refusal);
        } else if (encoded) {
                url = tg_call_url(tg, "/file", encoded);
                attachment_fetch_from(f, url);
                tg_call_url_free(url);
        } else {
                attachment_fetch_fail(
                        f, path[0] == '/'
                                   ? "the Bot API server keeps its files for itself (--local)"
                                   : "Telegram gave no path to download it from");
        }
        free(encoded);
}

static void *locate_file(struct adapter *a, struct attachment_fetch *f, const char *file_id)
{
        json_t *params = json_pack("{s:s}", "file_id", file_id);
        struct tg_call *call = tg_call_start(a->self,
                                             &(struct tg_request){ .method = "getFile",
                                                                   .params = params,
                                                                   .total_ms = LOCATE_MS,
                                                                   .repeatable = true },
                                             on_file, f);

        json_decref(params);
        return call;
}

static void cancel_locate(void *call)
{
        tg_call_abort(call);
}

static int64_t max_bytes(const struct adapter *a)
{
        return ((const struct telegram_conf *)a->conf)->media_max_bytes;
}

const struct attachment_source tg_intake_files = { .max_bytes = max_bytes,
                                                   .locate = locate_file,
                                                   .cancel = cancel_locate };

/* ---- opening and closing ---- */

void tg_intake_open(struct telegram *tg)
{
        static const struct intake_handlers handlers = { .done = on_done,
                                                         .free = on_free,
                                                         .duplicate = on_duplicate,
                                                         .advanced = tg_link_poll };

        intake_open(&tg->intake, tg->adapter, &handlers);
        tg->intake.leaves_in_order = tg_link_polls(tg);
}

void tg_intake_close(struct telegram *tg)
{
        intake_close(&tg->intake);
        for (unsigned i = 0; i < TG_ALBUMS; i++) {
                free(tg->albums.items[i].chat);
                free(tg->albums.items[i].id);
        }
}
