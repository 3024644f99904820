/*
 * Sends deliveries as calls of Discord's REST API.
 *
 * Repeating a message does no harm, as ADAPTER_IDEMPOTENT promises:
 *  - Every message carries a nonce derived from its delivery, with enforce_nonce: for "a few
 *    minutes" Discord answers a repetition with the existing message.
 *  - A retry more than NONCE_MS after the first attempt that may have arrived looks for the message
 *    in the channel, where it was written when it could have arrived (dc_window.h), and sends only
 *    if it is missing. History may not show the nonce, so a message of ours with the same text and
 *    question counts, and a file is recognised by its size. A search that cannot be completed ends
 *    the attempt; the next one goes on from there, until the delivery is unknown.
 *  - Replies to slash commands edit the placeholder while the command's token is valid
 *    (dc_deferred.c). Later ones go to the channel with a new nonce, and read back first, too.
 */
#include "platform/discord/dc_send.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/discord/dc_embed.h"
#include "platform/discord/dc_id.h"

#define SEND_MS        20000
#define UPLOAD_MS      50000 /* with the wait within limits.deliverySeconds */
#define NONCE_MS       120000
#define LOOK_PAGES     50 /* of an attempt */
#define LOOK_MS        25000
#define LOOK_PAGE      100
#define LOOK_MARGIN_MS 5000 /* clocks differ */
/* from the begin of an attempt until its message must have arrived */
#define BEGIN_MS        30000                                  /* later the call is not made */
#define ARRIVED_MS      (BEGIN_MS + 10000 + UPLOAD_MS + 60000) /* wait, call, clocks */
#define NO_OPERATOR_MS  60000
#define CLOSED_DM_MS    60000
#define TOO_EARLY_MS    300
#define UNKNOWN_CHANNEL 10003
#define ARCHIVED        50083
#define NONCE_DIGITS    16      /* of a nonce, enough to recognise it */
#define CLOCK_MARGIN_MS 60000   /* clocks differ */
#define WARN_MS         3600000 /* between warnings */

static void proceed(struct dc_send *s);

static void store_window(struct dc_send *s, int64_t claimed_ms)
{
        char text[DC_WINDOW_SIZE];

        if (!s->has_window)
                return;
        s->window.claimed_ms = claimed_ms;
        delivery_set_read_from(s->adapter->road, s->delivery, s->fence,
                               dc_window_write(&s->window, text));
}

static void end(struct dc_send *s, const struct send_result *result)
{
        TAILQ_REMOVE(&s->dc->sends, s, next);
        if (result->outcome == SEND_RETRY)
                store_window(s, 0); /* this attempt did not arrive */
        delivery_result(s->adapter->road, s->delivery, s->fence, result);
        timer_free(s->later);
        json_decref(s->payload);
        json_decref(s->body);
        for (size_t i = 0; i < DC_ARGS_MAX; i++)
                free(s->args[i]);
        free(s->channel);
        free(s->thread);
        free(s->message);
        free(s->root);
        free(s->interaction);
        free(s->reply_to);
        free(s->command);
        adapter_file_close(&s->file);
        free(s->file_name);
        free(s->file_mime);
        free(s);
}

static void on_later(void *arg)
{
        struct dc_send *s = arg;

        end(s, &s->early);
}

static void end_later(struct dc_send *s, enum send_outcome outcome, enum error_kind kind,
                      int64_t retry_ms, const char *why)
{
        snprintf(s->why, sizeof(s->why), "%s", why);
        s->early = (struct send_result){
                .outcome = outcome, .kind = kind, .why = s->why, .retry_after_ms = retry_ms
        };
        s->later = timer_new(s->adapter->loop, on_later, s);
        timer_start(s->later, 0);
}

static void end_now(struct dc_send *s, enum send_outcome outcome, enum error_kind kind,
                    int64_t retry_ms, const char *why)
{
        end(s, &(struct send_result){
                       .outcome = outcome, .kind = kind, .why = why, .retry_after_ms = retry_ms });
}

static void end_with(struct dc_send *s, const struct dc_answer *a, const char *platform_id)
{
        struct send_result result;
        char why[400];

        dc_outcome_read(s->delivery_kind, a, &result, why, sizeof(why));
        result.platform_id = platform_id;
        end(s, &result);
}

/* The placeholder is gone: a message goes to the channel. */
static void leave_placeholder(struct dc_send *s)
{
        struct error err = { 0 };

        if (!s->kind->creates)
                end_later(s, SEND_DONE, ERR_NONE, -1, "");
        else if (dc_payload_for_channel(s, &err) < 0)
                end_later(s, SEND_REJECTED, err.kind, -1, err.text);
        else
                proceed(s);
}

static void send_call(struct dc_send *s);

/* Only the reply's reference is refused: the question is gone, or can no longer be read. */
static bool refuses_reference(const struct dc_send *s, const struct dc_answer *a)
{
        const json_t *errors = json_object_get(a->result, "errors");

        return json_object_get(s->body, "message_reference") &&
               (a->code == 160002 || a->code == 10008 ||
                (a->status == 400 && json_object_get(errors, "message_reference")));
}

/* Where the bot may not embed links, its message would have nothing in it. */
static bool refuses_card(const struct dc_send *s, const struct dc_answer *a)
{
        return json_object_get(s->body, "embeds") && (a->code == 50013 || a->code == 50006);
}

/* A DM has no threads: an answer to its first message is as near. */
static void stay_in_channel(struct dc_send *s)
{
        free(s->thread);
        s->thread = NULL;
        if (s->root && !s->reply_to)
                s->reply_to = mem_strdup(s->root);
}

/* No thread was begun there, or it is gone. */
static bool leave_thread(struct dc_send *s)
{
        const struct delivery d = { .kind = s->delivery_kind, .target = s->message };
        struct error err;

        if (!s->thread || !(s->root || s->delivery_kind == DELIVER_EDIT))
                return false;
        log_info("there is no such thread; using its channel", LOG_S("adapter", s->adapter->name),
                 LOG_I("delivery", s->delivery), LOG_S("thread", s->thread));
        stay_in_channel(s);
        json_object_clear(s->body);
        adapter_file_close(&s->file);
        free(s->file_name);
        free(s->file_mime);
        s->file_name = s->file_mime = NULL;
        return s->kind->make(s, &d, &err) == 0;
}

static void on_reopened(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;

        s->call = NULL;
        if (a->ok)
                send_call(s);
        else
                end_with(s, a, NULL);
}

/* Discord opens an archived thread for a new message, but for nothing else. */
static void reopen_thread(struct dc_send *s)
{
        json_t *body = json_pack("{s:b}", "archived", false);

        s->reopened = true;
        s->call = dc_rest_call(s->dc->rest,
                               &(struct dc_request){ .method = "PATCH",
                                                     .route = "/channels/{channel_id}",
                                                     .args = { s->thread },
                                                     .body = body,
                                                     .priority = s->kind->priority,
                                                     .repeatable = true,
                                                     .total_ms = SEND_MS },
                               on_reopened, s);
        json_decref(body);
}

static void on_sent(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;
        const char *id = a->ok ? json_str(a->result, "id", NULL) : NULL;
        enum dc_deferred_result result = DC_DEFERRED_SETTLED;

        s->call = NULL;
        if (s->interaction)
                result = dc_deferred_answered(s->dc, s->interaction, a, s->kind->creates);
        if (result == DC_DEFERRED_TOO_EARLY) {
                end_now(s, SEND_RETRY, ERR_LIMIT, TOO_EARLY_MS,
                        "Discord does not show the placeholder yet");
        } else if (result == DC_DEFERRED_LOST) {
                log_info("placeholder of a command lost; replying in the channel",
                         LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                         LOG_S("why", a->why));
                leave_placeholder(s);
        } else if (refuses_reference(s, a)) {
                log_info("reply refused; sending without its reference",
                         LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                         LOG_S("why", a->why));
                json_object_del(s->body, "message_reference");
                send_call(s);
        } else if (a->code == UNKNOWN_CHANNEL && leave_thread(s)) {
                proceed(s);
        } else if (a->code == ARCHIVED && s->thread && !s->reopened) {
                reopen_thread(s);
        } else if (refuses_card(s, a)) {
                log_info("card refused; sending it as text", LOG_S("adapter", s->adapter->name),
                         LOG_I("delivery", s->delivery), LOG_S("why", a->why));
                dc_payload_card_as_text(s);
                send_call(s);
        } else {
                end_with(s, a, id ? id : s->message);
        }
}

static void send_call(struct dc_send *s)
{
        const struct dc_upload file = { s->file, s->file_name, s->file_mime };
        struct dc_request q = { .method = s->method,
                                .route = s->route,
                                .args = { s->args[0], s->args[1], s->args[2], s->args[3] },
                                .body = json_object_size(s->body) > 0 ? s->body : NULL,
                                .files = &file,
                                .file_count = s->file.fd >= 0 ? 1 : 0,
                                .priority = s->kind->priority,
                                .repeatable = !s->kind->creates || s->interaction,
                                .total_ms = s->file.fd >= 0 ? UPLOAD_MS : SEND_MS,
                                .wait_ms = s->kind->wait_ms };

        if (s->interaction)
                dc_deferred_address(s->dc, s->interaction, &q.args[0], &q.args[1]);
        s->call = dc_rest_call(s->dc->rest, &q, on_sent, s);
}

/* ---- looking for an earlier attempt ---- */

/* Discord may have forgotten the nonce of an earlier attempt. */
static bool is_old(const struct dc_send *s)
{
        if (s->has_window)
                return dc_rest_now_ms(s->dc->rest) - s->window.first_ms > NONCE_MS;
        return clock_wall_ms() - s->created_ms > NONCE_MS;
}

/* May an earlier attempt have arrived, and be repeated? */
static bool must_look(const struct dc_send *s)
{
        bool earlier_run = s->reply_to && s->created_ms < s->dc->opened_ms;

        if (!s->kind->creates || s->looked || s->attempt <= 1 ||
            (s->has_window && s->window.first_ms == 0))
                return false;
        return is_old(s) || earlier_run;
}

/* Text and card of m, which may have been sent as text. */
static bool shows_the_same(const struct dc_send *s, const json_t *m)
{
        const char *content = json_str(m, "content", "");
        const json_t *card = json_array_get(json_object_get(s->body, "embeds"), 0);
        bool same;
        char *text;

        if (!card) /* the link of a text may have a preview */
                return dc_embed_same_text(content, json_str(s->body, "content", ""));
        if (dc_embed_same_text(content, json_str(s->body, "content", "")) &&
            dc_embed_same(json_array_get(json_object_get(m, "embeds"), 0), card))
                return true;
        text = dc_embed_text(s->payload);
        same = dc_embed_same_text(content, text);
        free(text);
        return same;
}

/* Is m the message we are about to send? */
static bool is_this(const struct dc_send *s, const json_t *m)
{
        const char *nonce = json_str(m, "nonce", NULL),
                   *author = json_str(json_object_get(m, "author"), "id", ""),
                   *about = json_str(json_object_get(m, "message_reference"), "message_id", NULL),
                   *wanted = json_str(json_object_get(s->body, "message_reference"), "message_id",
                                      NULL),
                   *command = json_str(json_object_get(m, "interaction_metadata"), "id", NULL);
        const json_t *files = json_object_get(m, "attachments");
        bool is_placeholder = command && s->reply_to && strcmp(command, s->reply_to) == 0,
             same_file;

        if (!s->dc->self.id || strcmp(author, s->dc->self.id) != 0)
                return false;
        if (nonce)
                return strcmp(nonce, json_str(s->body, "nonce", "")) == 0;
        /* Discord changes names of files, not bytes */
        same_file = s->file.fd >= 0 ? json_int(json_array_get(files, 0), "size", -1) == s->file.size
                                    : json_array_size(files) == 0;
        if ((wanted && about && strcmp(wanted, about) != 0) || !same_file)
                return false;
        return (is_old(s) || is_placeholder) && shows_the_same(s, m);
}

static void look(struct dc_send *s, const char *after);

/* Where a message of an earlier attempt can be first. */
static void look_first(struct dc_send *s)
{
        const char *command = s->command                         ? s->command
                              : s->created_ms < s->dc->opened_ms ? s->reply_to
                                                                 : NULL;
        char first[DC_ID_SIZE];

        dc_id_at((s->has_window ? s->window.first_ms : s->created_ms) - LOOK_MARGIN_MS, first);
        /* a placeholder is as old as its command, which may be forgotten: a page of its own */
        look(s, s->has_window && dc_id_valid(command) ? command : first);
}

static void look_on(struct dc_send *s, const char *newest)
{
        char first[DC_ID_SIZE];

        store_window(s, s->window.claimed_ms); /* for the next attempt, when this one ends */
        if (!s->has_window || dc_id_time_ms(newest) >= s->window.first_ms) {
                look(s, newest);
                return;
        }
        dc_id_at(s->window.first_ms - LOOK_MARGIN_MS, first);
        look(s, first);
}

/* The next attempt goes on from here. */
static void leave_look(struct dc_send *s, enum error_kind kind, const char *why)
{
        store_window(s, 0);
        end_now(s, SEND_UNSURE, kind, -1, why);
}

/* Is the message in the page? *newest: the page's last id; NULL: none. */
static const json_t *look_at(const struct dc_send *s, const json_t *page, const char **newest)
{
        const json_t *found = NULL;

        *newest = NULL;
        for (size_t i = 0; i < json_array_size(page) && !found; i++) {
                const json_t *m = json_array_get(page, i);
                const char *id = json_str(m, "id", NULL);

                if (dc_id_valid(id) &&
                    (!*newest || strtoull(id, NULL, 10) > strtoull(*newest, NULL, 10)))
                        *newest = id;
                if (is_this(s, m))
                        found = m;
        }
        return found;
}

/* It did not arrive before the end of this page. True: nor later. */
static bool look_is_complete(struct dc_send *s, size_t n, const char *newest)
{
        int64_t seen_ms = newest ? dc_id_time_ms(newest) : 0;

        if (n < LOOK_PAGE || (s->has_window && seen_ms > s->window.last_ms + ARRIVED_MS)) {
                s->window.first_ms = s->window.last_ms = s->page_ms;
                return true;
        }
        if (seen_ms > s->window.first_ms)
                s->window.first_ms = seen_ms;
        return false;
}

static void on_looked(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;
        const char *newest = NULL;
        const json_t *found = a->ok ? look_at(s, a->result, &newest) : NULL;

        s->call = NULL;
        if (found) {
                end(s, &(struct send_result){ .outcome = SEND_DONE,
                                              .platform_id = json_str(found, "id", NULL),
                                              .why = "an earlier attempt had arrived",
                                              .retry_after_ms = -1 });
        } else if ((a->ok && look_is_complete(s, json_array_size(a->result), newest)) ||
                   !is_old(s)) { /* it is not there, or Discord still knows its nonce */
                s->looked = true;
                store_window(s, dc_rest_now_ms(s->dc->rest));
                proceed(s);
        } else if (a->code == UNKNOWN_CHANNEL && leave_thread(s)) {
                proceed(s);
        } else if (!a->ok) {
                leave_look(s, ERR_REFUSED, a->why);
        } else if (newest && ++s->pages < LOOK_PAGES && clock_boot_ms() - s->began_ms < LOOK_MS) {
                look_on(s, newest);
        } else {
                leave_look(s, ERR_TIMEOUT,
                           "an earlier attempt may have arrived, and so much was written there "
                           "then that it was not found in time");
        }
}

static void look(struct dc_send *s, const char *after)
{
        char query[60];

        s->page_ms = dc_rest_now_ms(s->dc->rest);
        snprintf(query, sizeof(query), "after=%.24s&limit=%d", after, LOOK_PAGE);
        s->call = dc_rest_call(s->dc->rest,
                               &(struct dc_request){ .method = "GET",
                                                     .route = "/channels/{channel_id}/messages",
                                                     .args = { s->args[0] },
                                                     .query = query,
                                                     .priority = DC_NORMAL,
                                                     .repeatable = true },
                               on_looked, s);
}

static void on_opened(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;
        const char *id = json_str(a->result, "id", NULL);
        bool refused = a->status >= 400 && a->status < 500 && a->status != 429;

        s->call = NULL;
        if (a->ok && dc_id_valid(id)) {
                dc_destination_set_dm(s->dc, dc_destination_person(s->dc, s->channel), id);
                free(s->args[0]);
                s->args[0] = mem_strdup(id);
                proceed(s);
        } else if (refused && strcmp(s->channel, DC_OPERATOR) == 0) {
                /* until the operator shares a server with the bot, or writes first */
                end_now(s, SEND_RETRY, ERR_LIMIT, CLOSED_DM_MS, a->why);
        } else {
                struct dc_answer answer = *a;

                answer.ok = false;
                answer.global = false;
                answer.reach = a->status ? a->reach : HTTP_NOT_SENT; /* no message went out */
                answer.kind = a->kind == ERR_INVALID ? ERR_INVALID : ERR_NET;
                end_with(s, &answer, NULL);
        }
}

static void resolve_channel(struct dc_send *s)
{
        const char *person = dc_destination_person(s->dc, s->channel);
        char why[200];

        if (person && dc_id_valid(person)) {
                json_t *body = json_pack("{s:s}", "recipient_id", person);

                s->call = dc_rest_call(s->dc->rest,
                                       &(struct dc_request){ .method = "POST",
                                                             .route = "/users/@me/channels",
                                                             .body = body,
                                                             .priority = DC_NORMAL,
                                                             .repeatable = true },
                                       on_opened, s);
                json_decref(body);
        } else if (strcmp(s->channel, DC_OPERATOR) == 0) {
                snprintf(why, sizeof(why),
                         "there is no operator yet: name one in adapters.%.60s.admins",
                         s->adapter->name);
                end_later(s, SEND_RETRY, ERR_LIMIT, NO_OPERATOR_MS, why);
        } else {
                snprintf(
                        why, sizeof(why),
                        "'%.60s' is not a Discord channel: use an id, 'user:ID' for a person's DM, "
                        "or 'operator'",
                        s->channel);
                end_later(s, SEND_REJECTED, ERR_INVALID, -1, why);
        }
}

/* The next step: wait for the placeholder, find the channel, look, send. */
static void proceed(struct dc_send *s)
{
        if (s->interaction) {
                enum dc_placeholder state = dc_deferred_placeholder(s->dc, s->interaction);

                if (state == DC_PLACEHOLDER_GONE)
                        leave_placeholder(s);
                else if (state == DC_PLACEHOLDER_OPEN)
                        send_call(s);
                return; /* DC_PLACEHOLDER_PENDING: dc_sends_resume follows */
        }
        if (!s->args[0]) {
                resolve_channel(s);
        } else if (must_look(s)) {
                look_first(s);
        } else if (s->kind->creates && clock_boot_ms() - s->began_ms > BEGIN_MS) {
                end_later(s, SEND_RETRY, ERR_TIMEOUT, 0, "it took too long until it could be sent");
        } else {
                send_call(s);
        }
}

void dc_sends_resume(struct discord *dc, const char *interaction)
{
        struct dc_send *s;

        TAILQ_FOREACH(s, &dc->sends, next)
                if (s->interaction && strcmp(s->interaction, interaction) == 0 && !s->call &&
                    !s->later)
                        proceed(s);
}

void dc_send_delivery(struct adapter *a, const struct delivery *d)
{
        struct dc_send *s;
        struct error err = { 0 };

        if (d->kind == DELIVER_CALENDAR) {
                dc_scheduled_event_send(a, d);
                return;
        }
        s = mem_zalloc(sizeof(*s));
        s->adapter = a;
        s->dc = a->self;
        s->file.fd = -1;
        s->delivery = d->id;
        s->fence = d->fence;
        s->created_ms = d->created_ms;
        s->attempt = d->attempt;
        s->has_window = dc_window_parse(d->read_from, &s->window);
        s->began_ms = clock_boot_ms();
        s->delivery_kind = d->kind;
        s->kind = &dc_payload_kinds[d->kind];
        s->channel = mem_strdup(d->channel);
        s->thread = d->thread && *d->thread ? mem_strdup(d->thread) : NULL;
        s->payload = json_read(d->payload, strlen(d->payload), NULL);
        s->reply_to = mem_strdup(json_str(s->payload, "replyTo", NULL));
        s->root = s->kind->creates ? mem_strdup(d->target) : NULL;
        if (s->thread && dc_destination_is_dm(s->dc, s->channel))
                stay_in_channel(s);
        s->body = json_object();
        TAILQ_INSERT_TAIL(&s->dc->sends, s, next);
        if (s->kind->make(s, d, &err) < 0)
                end_later(s, err.kind == ERR_IO ? SEND_RETRY : SEND_REJECTED, err.kind, -1,
                          err.text);
        else if (s->needless)
                end_later(s, SEND_DONE, ERR_NONE, -1, "");
        else
                proceed(s);
}

void dc_send_read_from(struct adapter *a, const struct delivery *d, char *out, size_t size)
{
        const struct discord *dc = a->self;
        struct dc_window w = { 0 };
        int64_t now_ms = dc_rest_now_ms(dc->rest);
        char text[DC_WINDOW_SIZE];

        /* without the window of an earlier attempt, only its creation is known */
        if (d->attempt > 1 && !dc_window_parse(d->read_from, &w))
                w = (struct dc_window){ .first_ms = d->created_ms, .last_ms = now_ms };
        w = dc_window_next(&w, now_ms);
        snprintf(out, size, "%s", dc_window_write(&w, text));
}

void dc_sends_release(struct discord *dc)
{
        struct dc_send *s;

        while ((s = TAILQ_FIRST(&dc->sends))) {
                bool harmless =
                        s->later || !s->kind->creates || !s->call || !dc_rest_begun(s->call);

                dc_rest_abort(s->call);
                end_now(s, harmless ? SEND_RETRY : SEND_UNSURE, ERR_CANCELLED, -1,
                        "the adapter was stopped");
        }
}

/* ---- another process with the same token ---- */

/*
 * Every message of ours has a nonce. A message of this bot with another nonce comes from another
 * process with the same token.
 */

/* 0: not one of ours. */
static uint64_t nonce_value(const char *nonce)
{
        char digits[NONCE_DIGITS + 1];

        if (!nonce || strlen(nonce) != ADAPTER_NONCE_SIZE ||
            strspn(nonce, "0123456789abcdef") != ADAPTER_NONCE_SIZE)
                return 0;
        memcpy(digits, nonce, NONCE_DIGITS);
        digits[NONCE_DIGITS] = '\0';
        return strtoull(digits, NULL, 16);
}

void dc_send_add_nonce(struct discord *dc, const char *nonce)
{
        struct dc_duplicate_bot *d = &dc->duplicate;

        d->sent[d->next].nonce = nonce_value(nonce);
        d->sent[d->next].wall_ms = clock_wall_ms();
        d->next = (d->next + 1) % DC_NONCES_KEPT;
}

void dc_send_check_own(void *discord, const json_t *message)
{
        struct discord *dc = discord;
        struct dc_duplicate_bot *d = &dc->duplicate;
        uint64_t nonce = nonce_value(json_str(message, "nonce", NULL));
        int64_t message_ms = dc_id_time_ms(json_str(message, "id", NULL)),
                oldest_ms = d->sent[d->next].wall_ms, /* the next to be overwritten */
                now_ms = clock_wall_ms();

        /* a message from before the ring began may be ours */
        if (nonce == 0 || message_ms <= dc->opened_ms + CLOCK_MARGIN_MS ||
            message_ms <= oldest_ms + CLOCK_MARGIN_MS)
                return;
        for (size_t i = 0; i < DC_NONCES_KEPT; i++)
                if (d->sent[i].nonce == nonce)
                        return;
        d->seen++;
        if (d->warned_ms > 0 && now_ms - d->warned_ms < WARN_MS)
                return;
        d->warned_ms = now_ms;
        log_warn("another process uses this bot's token, and both answer; stop one of them or give "
                 "it its own bot",
                 LOG_S("adapter", dc->adapter->name),
                 LOG_S("channel", json_str(message, "channel_id", "")),
                 LOG_S("message", json_str(message, "id", "")), LOG_I("messages", d->seen));
}
