/*
 * approval_message: the messages that ask, and their edits that show what was decided.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/inbox/decide.h"
#include "road/turn/approval_private.h"

#define ADMINS_MAX 5 /* asked in their direct chats */

/* ---- words for people ---- */

void approval_describe(const struct approval_row *row, struct buf *out)
{
        static const char *const words[] = {
                [APPROVAL_OPEN] = "still open",
                [APPROVAL_APPROVED] = "approved",
                [APPROVAL_REFUSED] = "refused",
                [APPROVAL_EXPIRED] = "expired, which is a refusal",
                [APPROVAL_CANCELLED] = "closed, because its turn ended",
        };

        buf_addstr(out, words[row->state]);
        if (row->by)
                buf_addf(out, " by %s", row->by);
        if (row->always)
                buf_addstr(out, ", also in future");
        if (row->note)
                buf_addf(out, ": %s", row->note);
}

/* The question, as it stays above its outcome. */
static void add_question(const struct approval_row *row, struct buf *b)
{
        buf_addf(b, "**%s** wants to %s (`apr-%lld`):\n\n%s\n\n", row->agent, row->title,
                 (long long)row->id, row->detail);
}

/* Only ways that work there: not every platform has buttons, and the terminal has a prompt. */
static void add_ways_to_answer(const struct turn *t, const struct approval_row *row,
                               const char *rule_label, struct buf *b)
{
        const struct road *r = t->road;
        bool buttons =
                r->platforms.abilities(r->platforms.adapters, row->adapter) & ADAPTER_BUTTONS;
        const char *platform = turn_last_input(t)->platform,
                   *prefix = command_prefix(r, row->adapter);
        bool terminal = platform && strcmp(platform, "cli") == 0;
        char iso[CLOCK_ISO_SIZE];
        long long minutes = (long long)(row->expires_ms - row->created_ms + 59999) / 60000;
        long long id = (long long)row->id;

        buf_addf(b, "It asks because %s. ", row->reason);
        if (row->rule && (buttons || terminal))
                buf_addf(b, "*Always* also allows `%s` here in future. ", rule_label);
        else if (row->rule)
                buf_addf(b,
                         "`dragoman approvals approve apr-%lld --always` also allows `%s` here in "
                         "future. ",
                         id, rule_label);
        clock_iso(row->expires_ms, iso);
        buf_addf(b,
                 "%s may answer until %.5s UTC (%lld minute%s), then it counts as refused: with ",
                 row->approvers == APPROVERS_ADMINS ? "Admins" : "You and admins", iso + 11,
                 minutes, minutes == 1 ? "" : "s");
        if (terminal)
                buf_addf(b, "\"yes\"%s or \"no\".", row->rule ? ", \"always\"" : "");
        else
                buf_addf(b,
                         "%sa reply \"yes\" or \"no\", `%sapprove apr-%lld` or `%srefuse "
                         "apr-%lld`.",
                         buttons ? "the buttons, " : "", prefix, id, prefix, id);
}

static char *buttons_json(const struct road *r, const struct approval_row *row)
{
        unsigned can = r->platforms.abilities(r->platforms.adapters, row->adapter);
        struct buf b;
        long long id = (long long)row->id;

        buf_init(&b, 0);
        buf_addf(&b,
                 "[[{\"text\":\"Approve\",\"data\":\"say:/approve apr-%lld\"},"
                 "{\"text\":\"Refuse\",\"data\":\"say:/refuse apr-%lld\"}",
                 id, id);
        if (row->rule)
                buf_addf(&b, ",{\"text\":\"Always\",\"data\":\"say:/approve apr-%lld always\"}",
                         id);
        if (can & ADAPTER_FORMS)
                buf_addf(&b, ",{\"text\":\"Refuse, because…\",\"data\":\"ask:/refuse apr-%lld\"}",
                         id);
        buf_addstr(&b, "]]");
        return buf_take(&b);
}

/* ---- messages ---- */

struct message_to {
        const char *channel, *thread, *reply_to;
        int64_t edits; /* 0: a new message */
};

/* Appends unnumbered deliveries of the text; the last has the buttons (may be NULL). */
static void make_messages(struct road *r, const struct approval_row *row,
                          const struct message_to *to, const char *text, const char *buttons,
                          struct answer *out)
{
        struct rendered parts = { 0 };
        struct rendered_part as_is = { .text = (char *)text };
        struct error err;
        int rc =
                r->platforms.render(r->platforms.adapters, row->adapter, text, false, &parts, &err);
        size_t count = rc < 0 || parts.count == 0 ? 1 : parts.count;

        if (rc < 0)
                log_warn("cannot render a question; sending it as it is", LOG_S("why", err.text));
        if (to->edits > 0) /* outcomes are short */
                count = 1;
        for (size_t i = 0; i < count && out->count < APPROVAL_MESSAGES_MAX; i++) {
                const struct rendered_part *part = parts.count > 0 ? &parts.parts[i] : &as_is;
                bool last = i + 1 == count || out->count + 1 == APPROVAL_MESSAGES_MAX;
                struct delivery_job *j;
                struct buf payload;
                char key[ROAD_KEY_SIZE];

                buf_init(&payload, 0);
                jsonw_open(&payload, '{');
                jsonw_str(&payload, "text", part->text);
                jsonw_opt(&payload, "plain", part->plain);
                jsonw_opt(&payload, "replyTo", i == 0 ? to->reply_to : NULL);
                if (last && buttons)
                        jsonw_raw(&payload, "buttons", buttons);
                jsonw_str(&payload, "approvalId", road_key("apr", row->id, key));
                jsonw_close(&payload, '}');
                j = delivery_new(
                        r, &(struct delivery){ .turn = row->turn,
                                               .conversation = row->conversation,
                                               .adapter = row->adapter,
                                               .channel = to->channel,
                                               .thread = to->thread,
                                               .kind = to->edits ? DELIVER_EDIT : DELIVER_SEND,
                                               .class = to->edits ? PACE_EDIT : PACE_APPROVAL,
                                               .payload = payload.data,
                                               .trace = row->trace });
                j->edits = to->edits;
                if (!to->edits)
                        delivery_expire_at(j, row->expires_ms);
                buf_release(&payload);
                turn_deliveries_add(out, j);
        }
        rendered_release(&parts);
}

void approval_make_question(struct turn *t, const struct approval_row *row, const char *rule_label,
                            struct answer *out)
{
        struct road *r = t->road;
        char *buttons = buttons_json(r, row);
        const struct setting_list *admins = NULL;
        const struct incoming *last = turn_last_input(t);
        struct buf text;

        buf_init(&text, 0);
        add_question(row, &text);
        add_ways_to_answer(t, row, rule_label, &text);
        if (t->policy.mode != MODE_SILENT)
                make_messages(
                        r, row,
                        &(struct message_to){ .channel = t->run.channel,
                                              .thread = t->run.thread,
                                              /* a placeholder is for the answer */
                                              .reply_to = last->is_awaited ? NULL : last->id },
                        text.data, buttons, out);
        if (row->approvers == APPROVERS_ADMINS && r->platforms.when_unsure &&
            (r->platforms.abilities(r->platforms.adapters, t->run.adapter) & ADAPTER_DIRECT))
                r->platforms.when_unsure(r->platforms.adapters, t->run.adapter, &admins);
        for (size_t i = 0; admins && i < admins->count && i < ADMINS_MAX; i++) {
                if (strcmp(admins->items[i], t->run.channel) != 0)
                        make_messages(r, row, &(struct message_to){ .channel = admins->items[i] },
                                      text.data, buttons, out);
        }
        buf_release(&text);
        free(buttons);
}

void approval_make_outcome(struct approval *a, const struct approval_row *outcome,
                           struct answer *out)
{
        struct road *r = a->road;
        bool edits = r->platforms.abilities(r->platforms.adapters, a->row->adapter) & ADAPTER_EDITS;
        struct buf text, words;

        if (!edits)
                return;
        buf_init(&words, 0);
        buf_init(&text, 0);
        approval_describe(outcome, &words);
        add_question(a->row, &text);
        if (text.len > 1500) /* it may have been several messages, of which we edit one */
                buf_clear(&text);
        buf_addf(&text, "%s`apr-%lld` was %s.", outcome->state == APPROVAL_APPROVED ? "✅ " : "🚫 ",
                 (long long)a->row->id, words.data);
        for (unsigned i = 0; i < a->message_count; i++) {
                const struct approval_message *m = &a->messages[i];
                bool last = i + 1 == a->message_count || a->messages[i + 1].admin != m->admin;

                if (last) /* the one with the buttons */
                        make_messages(r, a->row,
                                      &(struct message_to){ .channel = m->channel,
                                                            .thread = m->thread,
                                                            .edits = m->delivery },
                                      text.data, "[]", out);
        }
        buf_release(&text);
        buf_release(&words);
}

void approval_discard_jobs(struct answer *jobs)
{
        for (size_t i = 0; i < jobs->count; i++)
                delivery_free(jobs->jobs[i]);
        free(jobs->jobs);
        *jobs = (struct answer){ 0 };
}

void approval_enqueue_jobs(struct road *r, struct answer *jobs)
{
        for (size_t i = 0; i < jobs->count; i++) {
                struct delivery_job *j = jobs->jobs[i];

                if (j->journaled) {
                        outbox_count_journaled(r, j->d.adapter, 1, j->d.created_ms);
                        delivery_free(j);
                } else {
                        outbox_enqueue(r, j);
                }
        }
        free(jobs->jobs);
        *jobs = (struct answer){ 0 };
}
