/*
 * Deliveries become calls of Discord's REST API.
 *
 * Repeating a message does no harm, which is what ADAPTER_IDEMPOTENT promises the road:
 *  - every message carries a nonce made of its delivery, and enforce_nonce: Discord answers a
 *    repetition within "a few minutes" with the message that is there already. That much is
 *    documented, the number of minutes is not.
 *  - so an attempt after the first whose delivery is older than NONCE_MS looks first: it reads the
 *    channel from the delivery's beginning on, and only a message that is not there is sent.
 *    Discord's history is sure to have the message; whether it shows the nonce is not documented,
 *    so our own message with the same text and the same question counts as well. A file is known by
 *    its size.
 *  - when neither can be found out (no right to read the history), the delivery ends as unknown,
 *    never as a repetition.
 * Answers to slash commands are edits of the message that Discord shows already: these may be
 * repeated as long as the command's token is worth something. After that an attempt goes to the
 * channel with a nonce that Discord has never seen: it looks first, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_send.h"

#define SEND_MS        20000
#define UPLOAD_MS      50000 /* with the wait within limits.deliverySeconds */
#define NONCE_MS       120000
#define LOOK_PAGES     5
#define LOOK_MARGIN_MS 5000 /* clocks differ */
#define NO_OPERATOR_MS 60000
#define CLOSED_DM_MS   60000
#define TOO_EARLY_MS   300

static struct discord *discord_of(const struct dc_send *s)
{
        return s->adapter->self;
}

/* ---- ending ---- */

static void send_free(struct dc_send *s)
{
        timer_free(s->later);
        json_decref(s->payload);
        json_decref(s->body);
        for (size_t i = 0; i < DC_ARGS_MAX; i++)
                free(s->args[i]);
        free(s->channel);
        free(s->thread);
        free(s->message);
        free(s->interaction);
        free(s->reply_to);
        free(s->file);
        free(s->file_name);
        free(s->file_mime);
        free(s);
}

static void send_end(struct dc_send *s, const struct send_result *result)
{
        TAILQ_REMOVE(&discord_of(s)->sends, s, next);
        if (s->adapter->road)
                delivery_result(s->adapter->road, s->delivery, s->fence, result);
        send_free(s);
}

static void on_later(void *arg)
{
        struct dc_send *s = arg;

        send_end(s, &s->early);
}

/* An answer that needs no call; given from the loop. */
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

static void end_with(struct dc_send *s, const struct dc_answer *a, const char *platform_id)
{
        struct send_result result;
        char why[400];

        dc_outcome(s->delivery_kind, a, &result, why, sizeof(why));
        result.platform_id = platform_id;
        send_end(s, &result);
}

/* ---- the call ---- */

static void send_call(struct dc_send *s);
static void proceed(struct dc_send *s);

/* Discord has ended the place by itself. */
static bool is_over(const struct dc_answer *a)
{
        return a->code == 10008 || a->code == 10015 || a->code == 10062 || a->code == 50027;
}

static void go_afresh(struct dc_send *s)
{
        struct error err = { 0 };

        if (dc_make_afresh(s, &err) < 0)
                end_later(s, SEND_REJECTED, err.kind, -1, err.text);
        else
                proceed(s);
}

/* Once: the command cannot be answered any more, its channel can. */
static bool try_afresh(struct dc_send *s, const struct dc_answer *a)
{
        if (!s->interaction || !s->kind->creates || s->afresh || a->status < 400 ||
            a->status >= 500 || a->status == 429)
                return false;
        log_info(
                "a command cannot be answered in its own place any more; the answer goes to the channel",
                LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                LOG_S("why", a->why));
        if (is_over(a))
                dc_reply_done(discord_of(s), s->interaction);
        else
                dc_reply_withdraw(discord_of(s), s->interaction);
        go_afresh(s);
        return true;
}

/* The acknowledgement was the answer to a post, and Discord has yet to read it. */
static bool is_too_early(const struct dc_send *s, const struct dc_answer *a)
{
        return s->interaction && a->status == 404 &&
               dc_reply_may_come(discord_of(s), s->interaction);
}

static const char *platform_id_of(const struct dc_send *s, const struct dc_answer *a)
{
        const char *id = json_str(a->result, "id", NULL);

        return id && a->ok ? id : s->message;
}

static void on_sent(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;

        s->call = NULL;
        if (is_too_early(s, a)) {
                send_end(s, &(struct send_result){
                                    .outcome = SEND_RETRY,
                                    .kind = ERR_LIMIT,
                                    .why = "Discord has not shown the command's place yet",
                                    .retry_after_ms = TOO_EARLY_MS });
                return;
        }
        if (try_afresh(s, a))
                return;
        if (s->interaction && (a->ok || is_over(a)))
                dc_reply_done(discord_of(s), s->interaction);
        end_with(s, a, platform_id_of(s, a));
}

static void send_call(struct dc_send *s)
{
        const struct dc_upload file = { s->file, s->file_name, s->file_mime };

        s->call = dc_rest_call(
                discord_of(s)->rest,
                &(struct dc_request){ .method = s->method,
                                      .route = s->route,
                                      .args = { s->args[0], s->args[1], s->args[2], s->args[3] },
                                      .body = json_object_size(s->body) > 0 ? s->body : NULL,
                                      .files = &file,
                                      .file_count = s->file ? 1 : 0,
                                      .priority = s->kind->priority,
                                      .repeatable = !s->kind->creates || s->interaction,
                                      .total_ms = s->file ? UPLOAD_MS : SEND_MS,
                                      .wait_ms = s->kind->wait_ms },
                on_sent, s);
}

/* ---- has it arrived already? ---- */

static bool same_text(const char *a, const char *b)
{
        size_t n;

        a += strspn(a, " \t\r\n");
        b += strspn(b, " \t\r\n");
        for (n = strlen(a); n > 0 && strchr(" \t\r\n", a[n - 1]); n--) {
        }
        return strncmp(a, b, n) == 0 && strspn(b + n, " \t\r\n") == strlen(b + n);
}

/* Names are changed by Discord, bytes are not. */
static bool same_file(const struct dc_send *s, const json_t *m)
{
        const json_t *files = json_object_get(m, "attachments");
        struct stat st;

        if (!s->file)
                return json_array_size(files) == 0;
        return stat(s->file, &st) == 0 &&
               json_int(json_array_get(files, 0), "size", -1) == st.st_size;
}

/* Does this message stand in the place of the command that is answered? */
static bool is_commands_place(const struct dc_send *s, const json_t *m)
{
        const char *command = json_str(json_object_get(m, "interaction_metadata"), "id", NULL);

        return command && s->reply_to && strcmp(command, s->reply_to) == 0;
}

/* Is the nonce of an earlier attempt perhaps forgotten by now? */
static bool is_old(const struct dc_send *s)
{
        return clock_wall_ms() - s->created_ms > NONCE_MS;
}

static bool is_this(const struct dc_send *s, const json_t *m)
{
        const struct discord *dc = discord_of(s);
        const char *nonce = json_str(m, "nonce", NULL),
                   *author = json_str(json_object_get(m, "author"), "id", "");
        const char *about = json_str(json_object_get(m, "message_reference"), "message_id", NULL);
        const char *wanted =
                json_str(json_object_get(s->body, "message_reference"), "message_id", NULL);

        if (!dc->self.id || strcmp(author, dc->self.id) != 0)
                return false;
        if (nonce)
                return strcmp(nonce, json_str(s->body, "nonce", "")) == 0;
        if ((wanted && about && strcmp(wanted, about) != 0) || !same_file(s, m))
                return false;
        return (is_old(s) || is_commands_place(s, m)) &&
               same_text(json_str(m, "content", ""), json_str(s->body, "content", ""));
}

static void look(struct dc_send *s, const char *after);

static void on_looked(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;
        const char *newest = json_str(json_array_get(a->result, 0), "id", NULL);
        size_t n = json_array_size(a->result);
        const json_t *found = NULL;

        s->call = NULL;
        for (size_t i = 0; a->ok && i < n && !found; i++)
                if (is_this(s, json_array_get(a->result, i)))
                        found = json_array_get(a->result, i);
        if (found) {
                send_end(s, &(struct send_result){ .outcome = SEND_DONE,
                                                   .platform_id = json_str(found, "id", NULL),
                                                   .why = "an earlier attempt had arrived",
                                                   .retry_after_ms = -1 });
        } else if (a->ok && n == 100 && newest && ++s->pages < LOOK_PAGES) {
                look(s, newest);
        } else if ((a->ok && n < 100) || !is_old(s)) {
                s->looked = true;
                proceed(s);
        } else {
                send_end(s, &(struct send_result){
                                    .outcome = SEND_UNSURE,
                                    .kind = a->ok ? ERR_LIMIT : ERR_REFUSED,
                                    .why = a->ok ? "an earlier attempt may have arrived, and "
                                                   "too much was written there since"
                                                 : a->why,
                                    .retry_after_ms = -1 });
        }
}

static void look(struct dc_send *s, const char *after)
{
        char query[60];

        snprintf(query, sizeof(query), "after=%.24s&limit=100", after);
        s->call = dc_rest_call(discord_of(s)->rest,
                               &(struct dc_request){ .method = "GET",
                                                     .route = "/channels/{channel_id}/messages",
                                                     .args = { s->args[0] },
                                                     .query = query,
                                                     .priority = DC_NORMAL,
                                                     .repeatable = true },
                               on_looked, s);
}

static bool must_look(const struct dc_send *s)
{
        bool earlier_life = s->reply_to && s->created_ms < discord_of(s)->opened_ms;

        return s->kind->creates && !s->interaction && !s->looked && s->attempt > 1 &&
               (is_old(s) || earlier_life);
}

/* ---- the DM of a person ---- */

static void on_opened(void *arg, const struct dc_answer *a)
{
        struct dc_send *s = arg;
        struct discord *dc = discord_of(s);
        const char *id = json_str(a->result, "id", NULL);
        bool is_operator = strcmp(s->channel, DC_OPERATOR) == 0;

        s->call = NULL;
        if (a->ok && dc_id_valid(id)) {
                dc_memory_dm(dc, dc_person(dc, s->channel), id);
                free(s->args[0]);
                s->args[0] = mem_strdup(id);
                proceed(s);
        } else if (is_operator && a->status >= 400 && a->status < 500 && a->status != 429) {
                /* it waits until the operator shares a server with the bot, or writes first */
                send_end(s, &(struct send_result){ .outcome = SEND_RETRY,
                                                   .kind = ERR_LIMIT,
                                                   .why = a->why,
                                                   .retry_after_ms = CLOSED_DM_MS });
        } else {
                const struct dc_answer answer = { .status = a->status,
                                                  .code = a->code,
                                                  /* no message went */
                                                  .reach = a->status ? a->reach : HTTP_NOT_SENT,
                                                  .kind = a->kind == ERR_INVALID ? ERR_INVALID
                                                                                 : ERR_NET,
                                                  .why = a->why,
                                                  .retry_after_ms = a->retry_after_ms };

                end_with(s, &answer, NULL);
        }
}

static void open_dm(struct dc_send *s, const char *person)
{
        json_t *body = json_pack("{s:s}", "recipient_id", person);

        s->call = dc_rest_call(discord_of(s)->rest,
                               &(struct dc_request){ .method = "POST",
                                                     .route = "/users/@me/channels",
                                                     .body = body,
                                                     .priority = DC_NORMAL,
                                                     .repeatable = true },
                               on_opened, s);
        json_decref(body);
}

static void no_place(struct dc_send *s)
{
        const char *person = dc_person(discord_of(s), s->channel);
        char why[200];

        if (person && dc_id_valid(person)) {
                open_dm(s, person);
        } else if (strcmp(s->channel, DC_OPERATOR) == 0) {
                snprintf(why, sizeof(why),
                         "there is no operator to tell yet: name one in adapters.%.60s.admins",
                         s->adapter->name);
                end_later(s, SEND_RETRY, ERR_LIMIT, NO_OPERATOR_MS, why);
        } else {
                snprintf(why, sizeof(why),
                         "'%.60s' is no Discord channel: it is an id, 'user:ID' for somebody's "
                         "DM, or 'operator'",
                         s->channel);
                end_later(s, SEND_REJECTED, ERR_INVALID, -1, why);
        }
}

/* The next step: when, where, whether, then the call itself. */
static void proceed(struct dc_send *s)
{
        char since[24];

        if (s->interaction && dc_reply_is_acknowledging(discord_of(s), s->interaction)) {
                s->waits = true;
        } else if (!s->args[0]) {
                no_place(s);
        } else if (must_look(s)) {
                dc_id_at(s->created_ms - LOOK_MARGIN_MS, since);
                look(s, since);
        } else {
                send_call(s);
        }
}

/* ---- the acknowledgement of a command ---- */

/* There is no place: a message goes to the channel, and nothing needs to be withdrawn. */
static void no_command(struct dc_send *s)
{
        if (s->kind->creates)
                go_afresh(s);
        else
                end_later(s, SEND_DONE, ERR_NONE, -1, "");
}

void dc_sends_acknowledged(struct discord *dc, const char *interaction)
{
        const char *application, *token;
        struct dc_send *s;

        TAILQ_FOREACH(s, &dc->sends, next) {
                if (!s->waits || strcmp(s->interaction, interaction) != 0)
                        continue;
                s->waits = false;
                if (dc_reply_token(dc, interaction, &application, &token))
                        proceed(s);
                else
                        no_command(s);
        }
}

/* ---- the hook ---- */

static struct dc_send *send_new(struct adapter *a, const struct delivery *d)
{
        struct dc_send *s = mem_zalloc(sizeof(*s));

        s->adapter = a;
        s->delivery = d->id;
        s->fence = d->fence;
        s->created_ms = d->created_ms;
        s->attempt = d->attempt;
        s->delivery_kind = d->kind;
        s->kind = dc_kind_of(d->kind);
        s->channel = mem_strdup(d->channel);
        s->thread = d->thread && *d->thread ? mem_strdup(d->thread) : NULL;
        s->payload = json_read(d->payload, strlen(d->payload), NULL);
        s->reply_to = mem_strdup(json_str(s->payload, "replyTo", NULL));
        s->body = json_object();
        TAILQ_INSERT_TAIL(&discord_of(s)->sends, s, next);
        return s;
}

void dc_send(struct adapter *a, const struct delivery *d)
{
        struct dc_send *s = send_new(a, d);
        struct error err = { 0 };

        if (s->kind->make(s, d, &err) < 0)
                end_later(s, SEND_REJECTED, err.kind, -1, err.text);
        else if (s->needless)
                end_later(s, SEND_DONE, ERR_NONE, -1, "");
        else
                proceed(s);
}

void dc_sends_release(struct discord *dc)
{
        struct dc_send *s;

        while ((s = TAILQ_FIRST(&dc->sends))) {
                bool harmless =
                        s->later || !s->kind->creates || !s->call || !dc_rest_begun(s->call);
                const struct send_result result = { .outcome = harmless ? SEND_RETRY : SEND_UNSURE,
                                                    .kind = ERR_CANCELLED,
                                                    .why = "the adapter was stopped",
                                                    .retry_after_ms = -1 };

                dc_rest_abort(s->call);
                send_end(s, &result);
        }
}
