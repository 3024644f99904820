/*
 * Sends deliveries as calls of Slack's Web API.
 *
 * Slack has no idempotent send: an answer that is lost, or says internal_error, may belong to a
 * message that was posted. Such a delivery ends as unsure, and sl_readback.c looks for it by the
 * metadata that every message carries. Everything else may be repeated.
 */
#include "platform/slack/sl_send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define SEND_MS 20000 /* with the wait within limits.deliverySeconds */

void sl_sends_saw(struct slack *sl, const char *ts)
{
        int64_t us = sl_ts_us(ts);

        if (sl->sends && us > sl->sends->newest_us) {
                sl->sends->newest_us = us;
                sl->sends->newest_boot_ms = clock_boot_ms();
        }
}

/* ---- the end ---- */

static void send_free(struct sl_send *s)
{
        sl_api_abort(s->call);
        timer_free(s->later);
        sl_upload_free(s->upload);
        json_decref(s->payload);
        json_decref(s->args);
        json_decref(s->instead.args);
        free(s->channel);
        free(s->conversation);
        free(s->thread);
        free(s->message);
        free(s);
}

void sl_send_end(struct sl_send *s, const struct send_result *result)
{
        TAILQ_REMOVE(&s->sl->sends->list, s, next);
        delivery_result(s->adapter->road, s->delivery, s->fence, result);
        send_free(s);
}

static void on_later(void *arg)
{
        struct sl_send *s = arg;

        sl_send_end(s, &s->early);
}

static void end_later(struct sl_send *s, const struct send_result *result)
{
        snprintf(s->why, sizeof(s->why), "%s", result->why ? result->why : "");
        s->early = *result;
        s->early.why = s->why;
        s->later = timer_new(s->adapter->loop, on_later, s);
        timer_start(s->later, 0);
}

void sl_send_end_with(struct sl_send *s, const struct sl_answer *a, const char *platform_id)
{
        bool creates = s->kind->creates && s->creating && !s->only_for_one;
        struct send_result result;

        sl_outcome_read(s->delivery_kind, creates, a, &result);
        result.platform_id = platform_id;
        sl_send_end(s, &result);
}

/* ---- calls ---- */

static bool is_text(const struct sl_send *s)
{
        return s->delivery_kind == DELIVER_SEND || s->delivery_kind == DELIVER_EDIT;
}

static bool refuses_blocks(const struct sl_answer *a)
{
        static const char *const refusals[] = { "invalid_blocks", "invalid_blocks_format",
                                                "invalid_attachments", "only_one_table_allowed" };

        for (size_t i = 0; a->error && i < COUNT(refusals); i++)
                if (strcmp(a->error, refusals[i]) == 0)
                        return true;
        return false;
}

/* The status of its thread ends: Slack clears it after a new message, not after an edit. */
static void tell_assistant(const struct sl_send *s)
{
        const struct delivery d = { .id = s->delivery,
                                    .turn = s->turn,
                                    .adapter = s->adapter->name,
                                    .channel = s->conversation,
                                    .thread = s->thread,
                                    .kind = s->delivery_kind,
                                    .class = s->class };

        if (is_text(s) && !s->only_for_one)
                sl_assistant_answered(s->sl, &d, s->delivery_kind == DELIVER_SEND);
}

static void on_responded(void *arg, const struct sl_answer *a)
{
        struct sl_send *s = arg;
        bool over = a->status >= 400 && a->status < 500 && a->status != 429;

        s->call = NULL;
        if (!a->ok && over && s->only_for_one)
                sl_send_call(s);
        else if (!a->ok && over)
                sl_send_end(s, &(struct send_result){
                                       .outcome = SEND_REJECTED,
                                       .kind = ERR_REFUSED,
                                       .why = "the command can no longer be answered where the bot "
                                              "is not: invite the bot",
                                       .retry_after_ms = -1 });
        else
                sl_send_end_with(s, a, NULL);
}

/*
 * A command may come from where the bot is not: only its response_url reaches that place. False:
 * there is none, or it is a draft, which could not be edited there.
 */
static bool respond(struct sl_send *s)
{
        bool draft = json_flag(s->payload, "draft", false);
        const char *url =
                s->delivery_kind == DELIVER_SEND && !s->responded && !draft
                        ? sl_interaction_url(s->sl, json_str(s->payload, "replyTo", NULL), s->turn)
                        : NULL;
        json_t *body;

        if (!url)
                return false;
        s->responded = true;
        s->creating = !s->only_for_one;
        body = json_pack("{s:s, s:b, s:O, s:O*, s:O*}", "response_type",
                         s->only_for_one || s->turn == 0 ? "ephemeral" : "in_channel",
                         "replace_original", false, "text", json_object_get(s->args, "text"),
                         "blocks", json_object_get(s->args, "blocks"), "attachments",
                         json_object_get(s->args, "attachments"));
        s->call = sl_api_post(s->sl->api,
                              &(struct sl_post){ .url = url, .json = body, .total_ms = SEND_MS },
                              on_responded, s);
        json_decref(body);
        return true;
}

static bool is_outside(const struct sl_answer *a)
{
        return a->error && (strcmp(a->error, "channel_not_found") == 0 ||
                            strcmp(a->error, "not_in_channel") == 0 ||
                            strcmp(a->error, "user_not_in_channel") == 0);
}

static void on_sent(void *arg, const struct sl_answer *a)
{
        struct sl_send *s = arg;
        bool creates = s->kind->creates && !s->only_for_one;
        const char *ts = a->ok ? json_str(a->result, "ts", NULL) : NULL;

        s->call = NULL;
        if (is_text(s) && sl_stream_goes_on(s, a))
                return;
        if (is_outside(a) && respond(s))
                return;
        if (refuses_blocks(a) && sl_payload_make_plain(s)) {
                log_info("Slack refused blocks; sending the text without them",
                         LOG_S("adapter", s->adapter->name), LOG_I("delivery", s->delivery),
                         LOG_S("why", a->why));
                sl_send_call(s);
                return;
        }
        sl_sends_saw(s->sl, ts);
        if (a->ok && creates && !sl_ts_valid(ts)) {
                sl_send_end(s, &(struct send_result){ .outcome = SEND_UNSURE,
                                                      .kind = ERR_NET,
                                                      .why = "Slack's answer has no ts",
                                                      .retry_after_ms = -1 });
                return;
        }
        if (a->ok)
                tell_assistant(s);
        sl_send_end_with(s, a, s->message ? s->message : ts);
}

void sl_send_call(struct sl_send *s)
{
        s->creating = s->kind->creates;
        s->call = sl_api_call(
                s->sl->api,
                &(struct sl_request){ .method = s->method,
                                      .args = s->args,
                                      .priority = s->kind->priority,
                                      .total_ms = SEND_MS,
                                      .wait_ms = s->wait_ms ? s->wait_ms : s->kind->wait_ms },
                on_sent, s);
}

static void resolve(struct sl_send *s);

static void on_opened(void *arg, const struct sl_answer *a)
{
        struct sl_send *s = arg;

        s->call = NULL;
        if (sl_destination_opened(s->sl, s->channel, a)) {
                resolve(s);
        } else if (strcmp(s->channel, SL_OPERATOR) == 0 && a->error && !sl_api_is_unavailable(a)) {
                /* until the configuration names somebody else, or the scope is added */
                sl_send_end(s, &(struct send_result){ .outcome = SEND_RETRY,
                                                      .kind = ERR_LIMIT,
                                                      .why = a->why,
                                                      .retry_after_ms = ADAPTER_BAD_TOKEN_MS });
        } else {
                struct sl_answer answer = *a;
                char why[300];

                sl_destination_refuse(s->channel, &answer, why, sizeof(why));
                sl_send_end_with(s, &answer, NULL);
        }
}

/* Finds the conversation, then sends. */
static void resolve(struct sl_send *s)
{
        const char *id = sl_destination_find(s->sl, s->channel);
        struct send_result wrong;
        char why[300];

        if (!id) {
                s->call = sl_destination_open(s->sl, s->channel, on_opened, s, &wrong, why,
                                              sizeof(why));
                if (!s->call)
                        end_later(s, &wrong);
                return;
        }
        s->conversation = mem_strdup(id);
        if (s->upload) {
                sl_upload_start(s->upload);
                return;
        }
        json_object_set_new(s->args, "channel", json_string(id));
        if (s->only_for_one && respond(s))
                return;
        if (is_text(s))
                sl_stream_prepare(s);
        if (s->method)
                sl_send_call(s);
        else
                end_later(s, &(struct send_result){ .outcome = SEND_DONE,
                                                    .platform_id = s->message,
                                                    .retry_after_ms = -1 });
}

void sl_send(struct adapter *a, const struct delivery *d)
{
        struct sl_send *s;
        struct error err = { 0 };

        if (d->kind == DELIVER_TYPE) {
                sl_assistant_type(a->self, d);
                return;
        }
        s = mem_zalloc(sizeof(*s));
        s->adapter = a;
        s->sl = a->self;
        s->delivery = d->id;
        s->fence = d->fence;
        s->created_ms = d->created_ms;
        s->turn = d->turn;
        s->class = d->class;
        s->delivery_kind = d->kind;
        s->kind = &sl_payload_kinds[d->kind];
        s->channel = mem_strdup(d->channel);
        s->thread = d->thread && *d->thread ? mem_strdup(d->thread) : NULL;
        s->payload = json_read(d->payload, strlen(d->payload), NULL);
        s->args = json_object();
        TAILQ_INSERT_TAIL(&s->sl->sends->list, s, next);
        if (s->thread && !sl_ts_valid(s->thread))
                error_set(&err, ERR_INVALID,
                          "'%.40s' is not the ts of a thread's first message, such as "
                          "1700000000.000100",
                          s->thread);
        if (err.kind != ERR_NONE || s->kind->make(s, d, &err) < 0)
                end_later(s, &(struct send_result){ .outcome = err.kind == ERR_IO ? SEND_RETRY
                                                                                  : SEND_REJECTED,
                                                    .kind = err.kind,
                                                    .why = err.text,
                                                    .retry_after_ms = -1 });
        else if (!s->method)
                end_later(s, &(struct send_result){ .outcome = SEND_DONE,
                                                    .platform_id = s->message,
                                                    .retry_after_ms = -1 });
        else
                resolve(s);
}

static bool may_have_arrived(const struct sl_send *s)
{
        return s->created || (s->creating && s->call && sl_api_begun(s->call));
}

int sl_send_abort(struct slack *sl, int64_t delivery)
{
        struct sl_send *s;
        bool arrived;

        TAILQ_FOREACH(s, &sl->sends->list, next)
                if (s->delivery == delivery)
                        break;
        if (!s)
                return -1;
        arrived = may_have_arrived(s);
        TAILQ_REMOVE(&sl->sends->list, s, next);
        send_free(s);
        return arrived;
}

/* ---- open and close ---- */

void sl_sends_open(struct slack *sl)
{
        sl->sends = mem_zalloc(sizeof(*sl->sends));
        TAILQ_INIT(&sl->sends->list);
        TAILQ_INIT(&sl->sends->doubts);
        map_init(&sl->sends->dms);
}

void sl_sends_close(struct slack *sl)
{
        struct sl_sends *all = sl->sends;
        struct sl_send *s;
        void *value;

        while ((s = TAILQ_FIRST(&all->list))) {
                bool unsure = !s->only_for_one && may_have_arrived(s);

                sl_send_end(s, &(struct send_result){ .outcome = unsure ? SEND_UNSURE : SEND_RETRY,
                                                      .kind = ERR_CANCELLED,
                                                      .why = "the adapter was stopped",
                                                      .retry_after_ms = -1 });
        }
        sl_readback_close(sl);
        for (size_t i = 0; map_each(&all->dms, &i, NULL, &value);)
                free(value);
        map_release(&all->dms);
        free(all);
        sl->sends = NULL;
}
