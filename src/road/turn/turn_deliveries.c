/*
 * turn_deliveries: builds the deliveries of a turn's end.
 *
 * The text is split into messages for the chat, or for a thread started at the question. If the
 * agent chose silence, nothing is posted and the trigger log says why.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/road_state.h"
#include "road/turn/no_reply.h"
#include "road/turn/turn.h"

#define THREAD_NAME_CHARS 80

void turn_deliveries_add(struct answer *a, struct delivery_job *j)
{
        a->jobs = mem_realloc(a->jobs, (a->count + 1) * sizeof(*a->jobs));
        a->jobs[a->count++] = j;
}

void turn_deliveries_supersede(struct turn *t, struct answer *a, struct delivery_job *j)
{
        if (a->superseded_count == COUNT(a->superseded))
                return;
        a->superseded[a->superseded_count++] = j->d.id;
        outbox_remove(t->road, j);
}

/* ---- the text ---- */

/* Falls back to the plain text if it cannot be rendered. */
static void add_message(struct turn *t, struct answer *a, const char *text)
{
        struct road *r = t->road;
        struct rendered parts = { 0 };
        struct rendered_part as_is = { .text = (char *)text };
        unsigned can = r->platforms.abilities(r->platforms.adapters, t->run.adapter);
        struct error err;
        int rc = r->platforms.render(r->platforms.adapters, t->run.adapter, text, false, &parts,
                                     &err);

        if (rc < 0)
                log_warn("cannot render an answer; sending it as it is", LOG_S("turn", t->key),
                         LOG_S("why", err.text));
        for (size_t i = 0; i < (rc < 0 ? 1 : parts.count); i++) {
                const struct rendered_part *part = rc < 0 ? &as_is : &parts.parts[i];
                bool first = a->messages == 0;
                /* the draft becomes the first part */
                bool edits = first && t->display.draft_delivery != 0;
                struct delivery_job *j;
                struct buf payload;

                buf_init(&payload, 0);
                jsonw_open(&payload, '{');
                jsonw_str(&payload, "text", part->text);
                jsonw_opt(&payload, "plain", part->plain);
                jsonw_opt(&payload, "replyTo", first && a->refers ? turn_last_input(t)->id : NULL);
                jsonw_str(&payload, "turnId", t->key);
                turn_write_inputs(t, "answers", &payload);
                if (edits && parts.count == 1 && (can & ADAPTER_APPENDS))
                        jsonw_str(&payload, "markdown", text);
                jsonw_close(&payload, '}');
                j = delivery_new(
                        r, &(struct delivery){ .turn = t->run.id,
                                               .conversation = t->run.conversation,
                                               .adapter = t->run.adapter,
                                               .channel = t->run.channel,
                                               .thread = a->thread ? a->thread : t->run.thread,
                                               .kind = edits ? DELIVER_EDIT : DELIVER_SEND,
                                               .class = PACE_FINAL,
                                               .payload = payload.data,
                                               .trace = t->trace,
                                               .unsampled = turn_is_unsampled(t) });
                buf_release(&payload);
                if (edits)
                        j->edits = t->display.draft_delivery;
                if (t->policy.part_delay_ms > 0 && !first) {
                        j->delay_ms = (int64_t)a->messages * t->policy.part_delay_ms;
                        j->due_mono = loop_now_ms(r->loop) + j->delay_ms;
                }
                if (first)
                        a->first = a->count;
                turn_deliveries_add(a, j);
                a->messages++;
        }
        rendered_release(&parts);
}

/* ---- starting a thread ---- */

static bool wants_thread(const struct turn *t, const struct turn_reply *reply)
{
        const struct reply_policy *policy = &t->policy;
        const struct incoming *last = turn_last_input(t);

        if (reply->kind != ERR_NONE || t->run.thread || !t->road->platforms.thread_at ||
            last->chat != CHAT_GROUP || !last->id)
                return false;
        if (policy->mode == MODE_THREAD)
                return true;
        if (t->display.draft_delivery != 0) /* people have read it here */
                return false;
        return policy->thread_chars > 0 &&
               utf8_length(reply->text, strlen(reply->text), UTF8_CODE_POINTS) >
                       (size_t)policy->thread_chars;
}

/* Named by the first line of the question, or by the emoji and the line reacted to. */
static void begin_thread(struct turn *t, struct answer *a)
{
        struct road *r = t->road;
        const struct incoming *in = turn_last_input(t);
        const char *id = r->platforms.thread_at(r->platforms.adapters, in);
        const char *said = in->emoji ? in->raw_text : in->text;
        const char *text = said ? said + strspn(said, " \t\r\n") : "";
        size_t n = utf8_prefix(text, strcspn(text, "\r\n"), UTF8_CODE_POINTS, THREAD_NAME_CHARS);
        struct buf name, payload;

        if (!id)
                return;
        a->thread = mem_strdup(id);
        a->refers = false; /* the thread already refers to it */
        buf_init(&name, 0);
        if (in->emoji && !in->emoji_custom)
                buf_addf(&name, "%s ", in->emoji);
        if (n > 0)
                buf_add(&name, text, n);
        else
                buf_addstr(&name, "Conversation");
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", in->id);
        jsonw_str(&payload, "name", name.data);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_close(&payload, '}');
        turn_deliveries_add(
                a, delivery_new(r, &(struct delivery){ .turn = t->run.id,
                                                       .conversation = t->run.conversation,
                                                       .adapter = t->run.adapter,
                                                       .channel = t->run.channel,
                                                       .thread = a->thread,
                                                       .kind = DELIVER_THREAD,
                                                       .class = PACE_FINAL,
                                                       .payload = payload.data,
                                                       .trace = t->trace,
                                                       .unsampled = turn_is_unsampled(t) }));
        buf_release(&name);
        buf_release(&payload);
}

/* ---- the whole answer ---- */

/* The text with a line that no transcript has; yours to free. */
static char *with_usage(const struct turn_reply *reply)
{
        struct buf text;

        buf_init(&text, 0);
        buf_addf(&text, "%s\n\n(%lld tokens in", reply->text, (long long)reply->tokens_in);
        if (reply->tokens_cached > 0)
                buf_addf(&text, ", %lld of them cached", (long long)reply->tokens_cached);
        buf_addf(&text, ", %lld out", (long long)reply->tokens_out);
        if (reply->cost_microusd > 0)
                buf_addf(&text, ", %.4f USD", (double)reply->cost_microusd / 1e6);
        buf_addch(&text, ')');
        return buf_take(&text);
}

/* NULL: post it; else why not, yours to free. */
static char *silent_reason(const struct turn *t, const struct turn_reply *reply)
{
        if (t->policy.mode == MODE_SILENT)
                return mem_printf("the rule runs agent '%s' without posting its answer",
                                  turn_agent(t));
        if (reply->accepted)
                return mem_printf("agent '%s' took the message and has not answered yet",
                                  turn_agent(t));
        if (reply->kind != ERR_NONE) /* failures are not posted where the bot was not asked */
                return t->policy.mode == MODE_AMBIENT
                               ? mem_printf("agent '%s' only listens here", turn_agent(t))
                               : NULL;
        return no_reply_matches(&t->policy, reply->text)
                       ? mem_printf("agent '%s' had nothing to say", turn_agent(t))
                       : NULL;
}

/* Removes placeholders that neither the answer nor a draft replaces. */
static void cancel_deferred(struct turn *t, struct answer *a)
{
        for (unsigned i = 0; i < t->run.input_count; i++) {
                bool last = i + 1 == t->run.input_count;
                bool answered =
                        last && a->refers && (a->messages > 0 || t->display.draft_delivery != 0);

                if (deferred_reply_is_open(t->inputs[i]) && !answered)
                        turn_deliveries_add(a, deferred_reply_cancel(t->road, t->inputs[i], t));
        }
}

void turn_deliveries_make(struct turn *t, const struct turn_reply *reply, struct answer *a)
{
        struct delivery_job *j;
        bool withdrawn = reply->kind == ERR_CANCELLED && turn_is_withdrawn(t);

        /* an ambient answer refers to no message, unless a placeholder waits */
        a->refers = t->policy.mode != MODE_AMBIENT || turn_last_input(t)->is_awaited;
        draft_supersede(t, a);
        a->silent_reason = silent_reason(t, reply);
        if (!a->silent_reason && reply->text && reply->text[0] != '\0') {
                if (wants_thread(t, reply))
                        begin_thread(t, a);
                if (reply->part_count == 0) {
                        char *text = reply->usage_line ? with_usage(reply) : NULL;

                        add_message(t, a, text ? text : reply->text);
                        free(text);
                }
                for (unsigned i = 0; i < reply->part_count; i++)
                        add_message(t, a, reply->parts[i]);
        }
        if (reply->kind == ERR_CANCELLED && !withdrawn && a->messages == 0 &&
            t->display.draft_delivery != 0) { /* a draft looks as if the work went on */
                char *text = a->draft ? mem_printf("%s\n\n(stopped)", a->draft) : NULL;

                add_message(t, a, text ? text : "Stopped.");
                free(text);
        }
        /* an earlier attempt left the draft, or its question is gone */
        if (t->display.draft_delivery != 0 &&
            (withdrawn || (a->messages == 0 && reply->kind == ERR_NONE))) {
                turn_detail_delete(t, a);
                j = delivery_new(t->road, &(struct delivery){ .turn = t->run.id,
                                                              .conversation = t->run.conversation,
                                                              .adapter = t->run.adapter,
                                                              .channel = t->run.channel,
                                                              .thread = t->run.thread,
                                                              .kind = DELIVER_DELETE,
                                                              .class = PACE_EDIT,
                                                              .payload = "{}",
                                                              .trace = t->trace,
                                                              .unsampled = turn_is_unsampled(t) });
                j->edits = t->display.draft_delivery;
                turn_deliveries_add(a, j);
        } else {
                turn_detail_end(t, reply, a);
        }
        cancel_deferred(t, a);
        progress_reaction_end(t, a->silent_reason ? ERR_CANCELLED : reply->kind, a);
}
