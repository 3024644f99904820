/*
 * Finds out whether a send without an answer arrived.
 *
 * Every message carries the id of its delivery as metadata, which history shows to us alone. So the
 * conversation, or the thread, is read from before the send on, and there are three answers:
 *
 *     found        it arrived; its ts is known now
 *     not there    read to the end, after Slack had time to finish: it is sent again
 *     no answer    Slack is silent or limits us: it is asked again, however long that takes
 *
 * The road gives each search a limited time and asks again later. A search that ran out of time
 * goes on at its page, so that slow limits and long histories only make it take longer.
 *
 * Where a read begins is a time of Slack's clock, stored before the send, so that it holds after a
 * crash, and whatever our own clock does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/slack/sl_send.h"

#define PAGE           200
#define MARGIN_US      ((int64_t)60 * 1000000) /* servers of Slack differ */
#define STREAM_US      ((int64_t)2 * 1000000)
#define KEEP_US        ((int64_t)600 * 1000000)
#define RETRY_MS       500
#define RETRY_MAX_MS   15000
#define FILE_LOOK_MS   1000
#define FILE_SETTLE_MS 10000 /* Slack shows a file some time after it has answered */
#define ASK_LATER_MS   5000

struct sl_doubt {
        struct adapter *adapter;
        struct slack *sl;
        int64_t delivery, fence;
        char *channel, *conversation, *thread;
        char nonce[ADAPTER_NONCE_SIZE + 1];
        char from[SL_TS_SIZE];
        char file[SL_FILE_SIZE];      /* "": a message */
        bool streams;                 /* it may have been a stream, which has no metadata yet */
        bool by_history;              /* files.info does not say: look for the file in messages */
        char *cursor;                 /* of the next page; NULL: the first */
        int64_t settled_ms, until_ms; /* loop_now_ms */
        int64_t began_ms;             /* when the first page was asked for */
        unsigned pages, failures;
        struct sl_call *call;
        struct timer *timer;
        bool paused; /* until the road asks again */
        TAILQ_ENTRY(sl_doubt) next;
};

static void step(struct sl_doubt *b);

/* ---- the end ---- */

static void doubt_free(struct sl_doubt *b)
{
        sl_api_abort(b->call);
        timer_free(b->timer);
        free(b->channel);
        free(b->conversation);
        free(b->thread);
        free(b->cursor);
        free(b);
}

/* False: the road no longer waits for it. */
static bool report(const struct sl_doubt *b, const struct send_result *result)
{
        log_info("looked for a message that may have arrived", LOG_S("adapter", b->adapter->name),
                 LOG_I("delivery", b->delivery), LOG_I("pages", b->pages),
                 LOG_S("result", result->why));
        return delivery_result(b->adapter->road, b->delivery, b->fence, result);
}

static void finish(struct sl_doubt *b, const struct send_result *result)
{
        TAILQ_REMOVE(&b->sl->sends->doubts, b, next);
        report(b, result);
        doubt_free(b);
}

static void end_found(struct sl_doubt *b, const char *ts)
{
        char why[120];

        snprintf(why, sizeof(why), "it had arrived: message %.30s carries its id", ts);
        sl_sends_saw(b->sl, ts);
        finish(b,
               &(struct send_result){
                       .outcome = SEND_DONE, .platform_id = ts, .why = why, .retry_after_ms = -1 });
}

static void end_not_there(struct sl_doubt *b, const char *why)
{
        finish(b,
               &(struct send_result){
                       .outcome = SEND_RETRY, .kind = ERR_NET, .why = why, .retry_after_ms = 0 });
}

static void end_unsure(struct sl_doubt *b, const struct sl_answer *a)
{
        struct error err = { 0 };
        char text[500];

        sl_outcome_error(a, &err);
        snprintf(text, sizeof(text), "it may have arrived, and cannot be looked for: %.400s",
                 err.text);
        finish(b, &(struct send_result){ .outcome = SEND_UNSURE,
                                         .kind = err.kind,
                                         .why = text,
                                         .retry_after_ms = -1 });
}

/* ---- asking ---- */

/* The road's patience ends before Slack's silence. */
static void pause_search(struct sl_doubt *b, int64_t ms)
{
        const struct send_result result = { .outcome = SEND_UNSURE,
                                            .kind = ERR_CANCELLED,
                                            .why = "Slack could not be asked yet whether it "
                                                   "arrived",
                                            .retry_after_ms =
                                                    ms > ASK_LATER_MS ? ms : ASK_LATER_MS };

        sl_api_abort(b->call);
        b->call = NULL;
        timer_stop(b->timer);
        b->paused = true;
        if (report(b, &result))
                return;
        TAILQ_REMOVE(&b->sl->sends->doubts, b, next);
        doubt_free(b);
}

static void wait_and_step(struct sl_doubt *b, int64_t ms)
{
        if (loop_now_ms(b->adapter->loop) + ms < b->until_ms)
                timer_start(b->timer, ms);
        else
                pause_search(b, ms);
}

/* A wait is over, or a call lasts too long. */
static void on_timer(void *arg)
{
        struct sl_doubt *b = arg;

        if (b->call)
                pause_search(b, 0);
        else
                step(b);
}

/* The road would take its own deadline for "unknown". */
static void limit_call(struct sl_doubt *b)
{
        int64_t left = b->until_ms - loop_now_ms(b->adapter->loop);

        timer_start(b->timer, left > 0 ? left : 0);
}

static void answered(struct sl_doubt *b)
{
        b->call = NULL;
        timer_stop(b->timer);
}

/* True: Slack gave no answer, and is asked again later. */
static bool asks_again(struct sl_doubt *b, const struct sl_answer *a)
{
        int64_t wait = backoff_half_jitter_ms(b->failures, RETRY_MS, RETRY_MAX_MS);

        if (a->ok || !(sl_api_is_revoked(a->error) || sl_api_is_unavailable(a))) {
                b->failures = 0;
                return false;
        }
        b->failures++;
        wait_and_step(b, a->retry_after_ms > wait ? a->retry_after_ms : wait);
        return true;
}

static void call(struct sl_doubt *b, const char *method, json_t *args, sl_answer_fn *done)
{
        limit_call(b);
        b->call = sl_api_call(b->sl->api, &(struct sl_request){ .method = method, .args = args },
                              done, b);
        json_decref(args);
}

/* Its ts, if it arrived and was deleted since; NULL: not as far as we know. */
static const char *deleted_ts(const struct sl_doubt *b)
{
        const struct sl_sends *all = b->sl->sends;

        for (size_t i = 0; i < SL_DELETED_MAX; i++)
                if (strcmp(all->deleted[i].nonce, b->nonce) == 0)
                        return all->deleted[i].ts;
        return NULL;
}

/* Nothing was found in all there is. Slack may still be working on the send. */
static void conclude(struct sl_doubt *b, const char *why)
{
        int64_t wait = b->settled_ms - loop_now_ms(b->adapter->loop);

        const char *deleted = deleted_ts(b);

        free(b->cursor);
        b->cursor = NULL;
        if (deleted)
                end_found(b, deleted);
        else if (b->began_ms >= b->settled_ms)
                end_not_there(b, why);
        else if (b->file[0] && wait > FILE_LOOK_MS)
                wait_and_step(b, FILE_LOOK_MS);
        else
                wait_and_step(b, wait > 0 ? wait : 0);
}

/* ---- messages ---- */

static bool is_own(const struct slack *sl, const json_t *m)
{
        const char *user = json_str(m, "user", NULL), *bot = json_str(m, "bot_id", NULL);

        return sl_ts_valid(json_str(m, "ts", NULL)) &&
               ((user && sl->self.user && strcmp(user, sl->self.user) == 0) ||
                (bot && sl->self.bot && strcmp(bot, sl->self.bot) == 0));
}

/* The delivery that a message of ours carries; "": none. */
static const char *nonce_of(const json_t *m)
{
        const json_t *metadata = json_object_get(m, "metadata");

        return strcmp(json_str(metadata, "event_type", ""), SL_METADATA) == 0
                       ? json_str(json_object_get(metadata, "event_payload"), "id", "")
                       : "";
}

/* Is m the message of the delivery? */
static bool is_this(const struct sl_doubt *b, const json_t *m)
{
        const json_t *metadata = json_object_get(m, "metadata"),
                     *files = json_object_get(m, "files");
        int64_t us = sl_ts_us(json_str(m, "ts", NULL));

        if (!is_own(b->sl, m))
                return false;
        for (size_t i = 0; b->file[0] && i < json_array_size(files); i++)
                if (strcmp(json_str(json_array_get(files, i), "id", ""), b->file) == 0)
                        return true;
        /*
         * Only one send of the channel is under way, and a stream gets metadata at its end. An
         * older one that a crash left open is before the time of this send.
         */
        if (b->streams && !metadata && !files && us > sl_ts_us(b->thread) &&
            us > sl_ts_us(b->from) + MARGIN_US - STREAM_US)
                return !sl_stream_knows(b->sl, b->conversation, json_str(m, "ts", ""));
        return strcmp(nonce_of(m), b->nonce) == 0;
}

static void on_page(void *arg, const struct sl_answer *a)
{
        struct sl_doubt *b = arg;
        const json_t *messages = json_object_get(a->result, "messages");
        const char *next =
                json_str(json_object_get(a->result, "response_metadata"), "next_cursor", "");

        answered(b);
        if (asks_again(b, a))
                return;
        /* a reply to a message that is deleted appears in the channel (slack-go/slack#1571) */
        if (!a->ok && a->error && strcmp(a->error, "thread_not_found") == 0 && b->thread) {
                free(b->thread);
                b->thread = NULL;
                b->streams = false;
                free(b->cursor);
                b->cursor = NULL;
                step(b);
                return;
        }
        if (!a->ok && a->error && strcmp(a->error, "invalid_cursor") == 0 && b->cursor) {
                free(b->cursor);
                b->cursor = NULL;
                wait_and_step(b, RETRY_MS);
                return;
        }
        if (!a->ok || !json_is_array(messages)) {
                end_unsure(b, a);
                return;
        }
        b->pages++;
        for (size_t i = 0; i < json_array_size(messages); i++) {
                const json_t *m = json_array_get(messages, i);

                if (is_this(b, m)) {
                        end_found(b, json_str(m, "ts", ""));
                        return;
                }
        }
        free(b->cursor);
        b->cursor = *next ? mem_strdup(next) : NULL;
        if (b->cursor)
                step(b);
        else
                conclude(b, "it did not arrive: no message there carries its id");
}

static void read_page(struct sl_doubt *b)
{
        json_t *args = json_pack("{s:s, s:s, s:b, s:i}", "channel", b->conversation, "oldest",
                                 b->from, "include_all_metadata", true, "limit", PAGE);

        if (b->thread)
                json_object_set_new(args, "ts", json_string(b->thread));
        if (b->cursor)
                json_object_set_new(args, "cursor", json_string(b->cursor));
        else
                b->began_ms = loop_now_ms(b->adapter->loop);
        call(b, b->thread ? "conversations.replies" : "conversations.history", args, on_page);
}

/* ---- files ---- */

static void on_file(void *arg, const struct sl_answer *a)
{
        struct sl_doubt *b = arg;
        const char *ts = sl_upload_shared_ts(json_object_get(a->result, "file"), b->conversation);
        bool missing = a->error && strcmp(a->error, "file_not_found") == 0;

        answered(b);
        if (asks_again(b, a))
                return;
        if (ts) {
                end_found(b, ts);
        } else if (a->ok || missing) {
                conclude(b, "it did not arrive: the file is shown nowhere");
        } else { /* a message also shows a file that is deleted since */
                b->by_history = true;
                step(b);
        }
}

/* ---- the order of steps ---- */

static void on_opened(void *arg, const struct sl_answer *a)
{
        struct sl_doubt *b = arg;
        struct sl_answer answer = *a;
        char why[300];

        answered(b);
        if (asks_again(b, a))
                return;
        if (sl_destination_opened(b->sl, b->channel, a)) {
                step(b);
                return;
        }
        sl_destination_refuse(b->channel, &answer, why, sizeof(why));
        end_unsure(b, &answer);
}

static void step(struct sl_doubt *b)
{
        const char *id = sl_destination_find(b->sl, b->channel);
        struct send_result wrong;
        char why[300];

        if (!b->conversation && !id) {
                limit_call(b);
                b->call = sl_destination_open(b->sl, b->channel, on_opened, b, &wrong, why,
                                              sizeof(why));
                if (!b->call) /* it never had a destination */
                        end_not_there(b, why);
                return;
        }
        if (!b->conversation)
                b->conversation = mem_strdup(id);
        if (b->file[0] && !b->by_history) {
                b->began_ms = loop_now_ms(b->adapter->loop);
                call(b, "files.info", json_pack("{s:s}", "file", b->file), on_file);
        } else {
                read_page(b);
        }
}

/* ---- where it begins ---- */

/*
 * Slack's time before the send: that of its newest message that we know, of the question, or of
 * Slack's answers.
 */
static int64_t now_us(const struct slack *sl, const char *payload)
{
        static const char member[] = "\"replyTo\":\""; /* a parser would be slow for every send */
        const struct sl_sends *all = sl->sends;
        const char *at = strstr(payload, member);
        char question[SL_TS_SIZE] = "";

        if (all->newest_us > 0)
                return all->newest_us + (clock_boot_ms() - all->newest_boot_ms) * 1000;
        if (at)
                snprintf(question, sizeof(question), "%.*s",
                         (int)strcspn(at + strlen(member), "\""), at + strlen(member));
        return sl_ts_valid(question) ? sl_ts_us(question) : sl_api_now_ms(sl->api) * 1000;
}

void sl_readback_from(struct adapter *a, const struct delivery *d, char *out, size_t size)
{
        int64_t us = now_us(a->self, d->payload) - MARGIN_US;
        char earlier[SL_TS_SIZE], file[SL_FILE_SIZE], text[SL_TS_SIZE];

        /* an earlier attempt might still arrive, against all expectation */
        sl_upload_read_from(d->read_from, earlier, file);
        if (us - sl_ts_us(earlier) < KEEP_US && us > sl_ts_us(earlier))
                us = sl_ts_us(earlier);
        snprintf(out, size, "%s", sl_ts_write(us, text));
}

/* A paused search of the delivery goes on. False: there is none. */
static bool resume(const struct slack *sl, const struct delivery *d)
{
        struct sl_doubt *b;

        TAILQ_FOREACH(b, &sl->sends->doubts, next)
                if (b->paused && b->delivery == d->id)
                        break;
        if (!b)
                return false;
        b->paused = false;
        b->fence = d->fence;
        b->until_ms = d->reconcile_until_ms;
        timer_start(b->timer, 0);
        return true;
}

void sl_readback(struct adapter *a, const struct delivery *d)
{
        struct slack *sl = a->self;
        json_t *payload = json_read(d->payload, strlen(d->payload), NULL);
        bool for_one = sl_payload_is_for_one(sl, d, payload),
             draft = json_flag(payload, "draft", false);
        int was = sl_send_abort(sl, d->id); /* else it might arrive after it was looked for */
        struct sl_doubt *b;

        json_decref(payload);
        if (was == 0 || for_one) {
                adapter_refuse(a, d, SEND_RETRY, ERR_NET,
                               for_one ? "a notice for one person cannot be looked for; showing it "
                                         "again does no harm"
                                       : "it was not sent yet");
                return;
        }
        if (resume(sl, d))
                return;
        b = mem_zalloc(sizeof(*b));
        b->adapter = a;
        b->sl = sl;
        b->delivery = d->id;
        b->fence = d->fence;
        b->channel = mem_strdup(d->channel);
        b->thread = d->thread && *d->thread ? mem_strdup(d->thread) : NULL;
        b->streams = b->thread && draft && strcmp(sl->conf->streaming, "auto") == 0;
        adapter_nonce(a, d->id, d->created_ms, b->nonce);
        if (d->kind == DELIVER_UPLOAD && !sl_upload_read_from(d->read_from, b->from, b->file)) {
                /* the file's id is stored before the file is shown */
                adapter_refuse(a, d, SEND_RETRY, ERR_NET, "its file was not shown yet");
                doubt_free(b);
                return;
        }
        sl_upload_read_from(d->read_from, b->from, b->file);
        if (!b->from[0]) /* of a version that did not store it */
                sl_ts_write(d->created_ms * 1000 - 60 * MARGIN_US, b->from);
        b->settled_ms =
                loop_now_ms(a->loop) + (b->file[0] ? FILE_SETTLE_MS : sl->conf->reconcile_after_ms);
        b->until_ms = d->reconcile_until_ms;
        b->timer = timer_new(a->loop, on_timer, b);
        TAILQ_INSERT_TAIL(&sl->sends->doubts, b, next);
        timer_start(b->timer, 0);
}

void sl_readback_event(struct slack *sl, const json_t *event)
{
        const json_t *previous = json_object_get(event, "previous_message"),
                     *now = json_object_get(event, "message");
        struct sl_sends *all = sl->sends;

        if (!all || strcmp(json_str(event, "type", ""), "message") != 0)
                return;
        sl_sends_saw(sl, json_str(event, "ts", NULL));
        /* one with replies leaves a tombstone */
        if ((strcmp(json_str(event, "subtype", ""), "message_deleted") != 0 &&
             strcmp(json_str(now, "subtype", ""), "tombstone") != 0) ||
            !is_own(sl, previous) || !*nonce_of(previous))
                return;
        snprintf(all->deleted[all->deleted_next].nonce, sizeof(all->deleted[0].nonce), "%s",
                 nonce_of(previous));
        snprintf(all->deleted[all->deleted_next].ts, SL_TS_SIZE, "%s",
                 json_str(previous, "ts", ""));
        all->deleted_next = (all->deleted_next + 1) % SL_DELETED_MAX;
}

void sl_readback_close(struct slack *sl)
{
        struct sl_doubt *b;

        while ((b = TAILQ_FIRST(&sl->sends->doubts))) {
                const struct send_result result = { .outcome = SEND_UNSURE,
                                                    .kind = ERR_CANCELLED,
                                                    .why = "the adapter was stopped",
                                                    .retry_after_ms = -1 };

                TAILQ_REMOVE(&sl->sends->doubts, b, next);
                delivery_result(b->adapter->road, b->delivery, b->fence, &result);
                doubt_free(b);
        }
}
