/*
 * answer: the deliveries that a turn's end brings forth.
 *
 * The text is cut into messages for the place the question came from, or for a thread that begins
 * at the question. An agent that only reads along may have nothing to say; then nothing is said,
 * and the record tells so.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/road_private.h"

#define THREAD_NAME_CHARS 80

static const struct incoming *last_input(const struct turn *t)
{
        return t->inputs[t->input_count - 1];
}

void answer_add(struct answer *a, struct out *o)
{
        a->outs = mem_realloc(a->outs, (a->count + 1) * sizeof(*a->outs));
        a->outs[a->count++] = o;
}

void answer_supersede(struct turn *t, struct answer *a, struct out *o)
{
        if (a->superseded_count == COUNT(a->superseded))
                return;
        a->superseded[a->superseded_count++] = o->d.id;
        outbox_leave(t->road, o);
}

void answer_release(struct answer *a)
{
        free(a->outs);
        free(a->thread);
        free(a->silent);
}

/* ---- the text ---- */

/*
 * {"text": ..., "plain": ..., "replyTo": ..., "answers": [...]}: what the adapter needs and what
 * the story tells.
 */
static void part_payload(const struct turn *t, const char *text, const char *plain, bool refers,
                         struct buf *out)
{
        jsonw_open(out, '{');
        jsonw_str(out, "text", text);
        jsonw_opt(out, "plain", plain);
        jsonw_opt(out, "replyTo", refers ? last_input(t)->id : NULL);
        jsonw_str(out, "turnId", t->key);
        turn_show_inputs(t, "answers", out);
        jsonw_close(out, '}');
}

static void add_part(struct turn *t, struct answer *a, const char *text, const char *plain)
{
        struct road *r = t->road;
        bool first = a->said == 0;
        /* the draft becomes the first part */
        bool edits = first && t->draft_delivery != 0 && !a->thread;
        struct buf payload;
        struct out *o;

        buf_init(&payload, 0);
        part_payload(t, text, plain, first && a->refers, &payload);
        o = out_new(r->next_delivery++, t->run.id, t->adapter, t->channel,
                    a->thread ? a->thread : t->thread, edits ? DELIVER_EDIT : DELIVER_SEND,
                    PACE_FINAL, payload.data, t->trace);
        buf_release(&payload);
        if (edits)
                o->ref = t->draft_delivery;
        out_set_expiry(r, o);
        if (a->part_delay_ms > 0 && !first)
                out_delay(r, o, (int64_t)a->said * a->part_delay_ms);
        answer_add(a, o);
        if (first)
                a->first = o->d.id;
        a->said++;
}

/* A text that cannot be rendered is sent as it is: better plain than lost. */
static void add_message(struct turn *t, struct answer *a, const char *text)
{
        struct road *r = t->road;
        struct rendered parts = { 0 };
        struct error err;
        int rc = r->platforms.render(r->platforms.adapters, t->adapter, text, &parts, &err);

        if (rc < 0) {
                log_warn("cannot render an answer, sending it as it is", LOG_S("turn", t->key),
                         LOG_S("why", err.text));
                add_part(t, a, text, NULL);
        }
        for (size_t i = 0; rc == 0 && i < parts.count; i++)
                add_part(t, a, parts.parts[i].text, parts.parts[i].plain);
        rendered_release(&parts);
}

/* ---- a thread of its own ---- */

static bool wants_thread(const struct turn *t, const struct turn_reply *reply)
{
        const struct reply_policy *policy = &t->policy;

        if (reply->kind != ERR_NONE || t->thread || !t->road->platforms.thread_at ||
            last_input(t)->chat != CHAT_GROUP || !last_input(t)->id)
                return false;
        if (policy->mode == MODE_THREAD)
                return true;
        return policy->thread_chars > 0 &&
               utf8_length(reply->text, strlen(reply->text), UTF8_CODE_POINTS) >
                       (size_t)policy->thread_chars;
}

/* The first line of what was asked, or the emoji and the first line of what it was put on. */
static void thread_name(const struct incoming *in, struct buf *payload)
{
        const char *said = in->emoji ? in->raw_text : in->text;
        const char *text = said ? said + strspn(said, " \t\r\n") : "";
        size_t line = strcspn(text, "\r\n"),
               n = utf8_prefix(text, line, UTF8_CODE_POINTS, THREAD_NAME_CHARS);
        struct buf name;

        buf_init(&name, 0);
        if (in->emoji && !in->emoji_custom)
                buf_addf(&name, "%s ", in->emoji);
        if (n > 0)
                buf_add(&name, text, n);
        else
                buf_addstr(&name, "Conversation");
        jsonw_str(payload, "name", name.data);
        buf_release(&name);
}

static void begin_thread(struct turn *t, struct answer *a)
{
        struct road *r = t->road;
        const struct incoming *in = last_input(t);
        const char *id = r->platforms.thread_at(r->platforms.adapters, in);
        struct buf payload;
        struct out *o;

        if (!id)
                return;
        a->thread = mem_strdup(id);
        a->refers = false; /* the thread does already */
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", in->id);
        thread_name(in, &payload);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_close(&payload, '}');
        o = out_new(r->next_delivery++, t->run.id, t->adapter, t->channel, a->thread,
                    DELIVER_THREAD, PACE_FINAL, payload.data, t->trace);
        buf_release(&payload);
        out_set_expiry(r, o);
        answer_add(a, o);
}

/* What people saw growing stands in a thread now, or nobody wants to know it any more. */
static void remove_draft(struct turn *t, struct answer *a)
{
        struct road *r = t->road;
        struct out *o;

        if (t->draft_delivery == 0)
                return;
        o = out_new(r->next_delivery++, t->run.id, t->adapter, t->channel, t->thread,
                    DELIVER_DELETE, PACE_EDIT, "{}", t->trace);
        o->ref = t->draft_delivery;
        out_set_expiry(r, o);
        answer_add(a, o);
}

/* ---- nothing to say ---- */

/*
 * Why the answer is not posted; NULL: it is. Yours to free. Nobody has asked an agent that reads
 * along, so its failures are not told in the chat either.
 */
static char *silence_of(const struct turn *t, const struct turn_reply *reply)
{
        const struct reply_policy *policy = &t->policy;

        if (policy->mode == MODE_SILENT)
                return mem_printf("the rule runs agent '%s' without posting what it says",
                                  t->agent);
        if (policy->mode != MODE_AMBIENT)
                return NULL;
        if (reply->kind != ERR_NONE)
                return mem_printf("agent '%s' only reads along here", t->agent);
        return silence_is(policy, reply->text)
                       ? mem_printf("agent '%s' had nothing to say", t->agent)
                       : NULL;
}

/* ---- all of it ---- */

void answer_make(struct turn *t, const struct turn_reply *reply, struct answer *a)
{
        struct road *r = t->road;
        const struct reply_policy *policy = &t->policy;

        /* who joins in answers nobody in particular, unless there is a place for the answer */
        a->refers = policy->mode != MODE_AMBIENT || last_input(t)->is_awaited;
        a->part_delay_ms = policy->part_delay_ms;
        a->journaled = (r->platforms.abilities(r->platforms.adapters, t->adapter) &
                        ADAPTER_JOURNALED) != 0;
        draft_supersede(t, a);
        a->silent = silence_of(t, reply);
        if (!a->silent && reply->text && reply->text[0] != '\0') {
                if (wants_thread(t, reply))
                        begin_thread(t, a);
                if (reply->part_count == 0)
                        add_message(t, a, reply->text);
                for (unsigned i = 0; i < reply->part_count; i++)
                        add_message(t, a, reply->parts[i]);
        }
        if (a->thread || (reply->kind == ERR_CANCELLED && turn_is_taken_back(t)))
                remove_draft(t, a);
        withdraw_unanswered(t, a);
        mark_end(t, reply->kind, a);
}
