/* Maps Slack's answers to the outcome of a delivery: done, retry, rejected, or unsure. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "platform/slack/sl_send.h"

#define DELETE  (1u << DELIVER_DELETE)
#define REACT   (1u << DELIVER_REACT)
#define UNREACT (1u << DELIVER_UNREACT)

/* Slack's errors that mean more than "refused". */
/* clang-format off */
static const struct error_row {
        const char *error;
        unsigned done_for; /* delivery kinds for which it is success */
        enum error_kind kind;
} errors[] = {
        { "already_reacted",     REACT,            ERR_CONFLICT },
        /* a final answer whose draft can no longer be changed becomes a new message */
        { "cant_update_message", 0,                ERR_MISSING },
        { "channel_not_found",   UNREACT,          ERR_MISSING },
        { "edit_window_closed",  0,                ERR_MISSING },
        { "invalid_name",        0,                ERR_INVALID },
        { "message_not_found",   DELETE | UNREACT, ERR_MISSING },
        { "msg_too_long",        0,                ERR_INVALID },
        { "no_reaction",         UNREACT,          ERR_MISSING },
        { "no_text",             0,                ERR_INVALID },
        { "thread_not_found",    0,                ERR_MISSING },
        { "too_many_emoji",      0,                ERR_LIMIT },
        { "too_many_reactions",  0,                ERR_LIMIT },
        { "user_not_found",      0,                ERR_MISSING },
        { "user_not_in_channel", 0,                ERR_MISSING },
};
/* clang-format on */

static const struct error_row *find(const char *error)
{
        for (size_t i = 0; error && i < COUNT(errors); i++)
                if (strcmp(errors[i].error, error) == 0)
                        return &errors[i];
        return NULL;
}

void sl_outcome_error(const struct sl_answer *a, struct error *err)
{
        const struct error_row *row = find(a->error);

        error_set(err,
                  row                    ? row->kind
                  : sl_api_is_limited(a) ? ERR_LIMIT
                  : a->error             ? ERR_REFUSED
                  : a->kind              ? a->kind
                                         : ERR_NET,
                  "%s", a->why);
}

void sl_outcome_read(enum delivery_kind kind, bool creates, const struct sl_answer *a,
                     struct send_result *out)
{
        const struct error_row *row = find(a->error);

        *out = (struct send_result){ .outcome = SEND_DONE, .retry_after_ms = -1 };
        if (a->ok || (row && (row->done_for & (1u << kind))))
                return;
        out->why = a->why;
        out->retry_after_ms = a->retry_after_ms;
        if (sl_api_is_limited(a)) {
                out->outcome = SEND_RETRY;
                out->kind = ERR_LIMIT;
        } else if (a->status == 0 && a->kind == ERR_INVALID) { /* refused before it was made */
                out->outcome = SEND_REJECTED;
                out->kind = ERR_INVALID;
        } else if ((a->status == 0 && a->kind == ERR_REFUSED) || sl_api_is_revoked(a->error)) {
                out->outcome = SEND_RETRY;
                out->kind = ERR_REFUSED;
                out->retry_after_ms = ADAPTER_BAD_TOKEN_MS;
        } else if (sl_api_is_unavailable(a) || !a->error) {
                /* internal_error and the like may come after the message was posted */
                bool sent = a->reach != HTTP_NOT_SENT;

                out->outcome = creates && sent ? SEND_UNSURE : SEND_RETRY;
                out->kind = a->kind ? a->kind : ERR_NET;
        } else {
                out->outcome = SEND_REJECTED;
                out->kind = row ? row->kind : ERR_REFUSED;
        }
}
