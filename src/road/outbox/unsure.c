/*
 * unsure: what happens to a message that may have arrived, by the adapter's setting whenUnsure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/outbox/delivery_job.h"
#include "road/outbox/outbox.h"
#include "road/road_state.h"

#define QUOTE_BYTES 200
#define ADMINS_MAX  5 /* who are asked */

/* The setting counts for answers, not for drafts and questions to admins. */
static enum unsure_policy policy_of(const struct road *r, const struct delivery_job *j,
                                    const struct setting_list **admins)
{
        bool answer = (j->d.kind == DELIVER_SEND || j->d.kind == DELIVER_UPLOAD) &&
                      j->d.class == PACE_FINAL;

        *admins = NULL;
        if (!r->platforms.when_unsure || !answer)
                return UNSURE_REPORT;
        return r->platforms.when_unsure(r->platforms.adapters, j->d.adapter, admins);
}

char *unsure_repeats(const struct road *r, const struct delivery_job *j)
{
        const struct setting_list *admins;
        json_t *payload;
        char *marked = NULL;

        if (policy_of(r, j, &admins) != UNSURE_REPEAT)
                return NULL;
        payload = json_read(j->d.payload, strlen(j->d.payload), NULL);
        if (payload && !json_flag(payload, "repeated", false)) {
                json_object_set_new(payload, "repeated", json_true());
                marked = json_text(payload);
        }
        json_decref(payload);
        return marked;
}

static void on_asked(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        if (receipt->error.kind != ERR_NONE)
                log_warn("cannot ask an admin about a delivery", LOG_S("why", receipt->error.text));
}

/* The beginning of its text, without HTML tags. */
static void add_quote(struct buf *b, const char *payload_text)
{
        json_t *payload = json_read(payload_text, strlen(payload_text), NULL);
        const char *said = card_said(payload);
        const char *text = said ? said : json_str(payload, "name", "");
        struct buf plain;
        bool tag = false;

        buf_init(&plain, 0);
        for (const char *p = text; *p; p++) {
                tag = tag || *p == '<';
                if (!tag)
                        buf_addch(&plain, *p == '\n' || *p == '`' ? ' ' : *p);
                tag = tag && *p != '>';
        }
        buf_addstr(b, "> ");
        buf_add(b, plain.data, utf8_prefix(plain.data, plain.len, UTF8_BYTES, QUOTE_BYTES));
        buf_release(&plain);
        json_decref(payload);
}

void unsure_ask(struct road *r, const struct delivery_job *j, const char *why)
{
        const char *prefix = command_prefix(r, j->d.adapter);
        const struct setting_list *admins;
        char key[ROAD_KEY_SIZE], request[160], buttons[200];
        struct buf text;

        if (policy_of(r, j, &admins) != UNSURE_ASK || !admins)
                return;
        road_key("dlv", j->d.id, key);
        buf_init(&text, 0);
        add_quote(&text, j->d.payload);
        buf_addf(&text,
                 "\n\nI do not know whether this arrived in chat `%s` (%s). Shall I send it again? "
                 "`%sresend %s` does, `%sresend %s no` leaves it.",
                 j->d.channel, why ? why : "no reason given", prefix, key, prefix, key);
        snprintf(buttons, sizeof(buttons),
                 "[[{\"text\":\"Send again\",\"data\":\"say:/resend %s\"},"
                 "{\"text\":\"Leave it\",\"data\":\"say:/resend %s no\"}]]",
                 key, key);
        for (size_t i = 0; i < admins->count && i < ADMINS_MAX; i++) {
                snprintf(request, sizeof(request), "ask:%s:%lld:%.100s", key, (long long)j->d.fence,
                         admins->items[i]);
                outbox_submit(r,
                              &(struct outgoing){ .adapter = j->d.adapter,
                                                  .channel = admins->items[i],
                                                  .kind = DELIVER_SEND,
                                                  .text = text.data,
                                                  .buttons = buttons,
                                                  .trace = j->d.trace,
                                                  .unsampled = j->d.unsampled,
                                                  .request_key = request,
                                                  .class = PACE_APPROVAL },
                              on_asked, NULL);
        }
        buf_release(&text);
}
