/* Maps Discord's answers to the outcome of a delivery: done, retry, rejected, or unsure. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "platform/discord/discord.h"

#define DELETE          (1u << DELIVER_DELETE)
#define UNREACT         (1u << DELIVER_UNREACT)
#define THREAD          (1u << DELIVER_THREAD)
#define CANCEL_DEFERRED (1u << DELIVER_CANCEL_DEFERRED)

/* Discord's codes that mean more than their status. */
/* clang-format off */
static const struct code_row {
        int code;
        unsigned done_for; /* delivery kinds for which it is success */
        bool again;        /* temporary: retry */
        enum error_kind kind;
        const char *advice;
} codes[] = {
        { 10003, UNREACT, false, ERR_MISSING, "the channel is gone, or the bot was never in it" },
        { 10008, DELETE | UNREACT | CANCEL_DEFERRED, false, ERR_MISSING,
          "the message has been deleted" },
        { 10014, 0, false, ERR_INVALID,
          "an emoji is written as itself or as name:id, and the bot must know it" },
        { 10015, CANCEL_DEFERRED, false, ERR_MISSING,
          "a command can be answered for fifteen minutes" },
        { 10062, CANCEL_DEFERRED, false, ERR_MISSING,
          "the command was not acknowledged within three seconds" },
        { 10070, 0, false, ERR_MISSING, "the event was deleted in Discord" },
        { 20028, 0, true, ERR_LIMIT, NULL },
        { 30010, 0, false, ERR_LIMIT, "the message has 20 different reactions already" },
        { 30038, 0, false, ERR_LIMIT, "the server has 100 scheduled events already" },
        { 30046, 0, true, ERR_LIMIT, NULL },
        { 40003, 0, true, ERR_LIMIT, "too many DMs were opened" },
        { 40005, 0, false, ERR_INVALID, "the file is larger than Discord accepts there" },
        { 40060, 0, false, ERR_CONFLICT, "the command was acknowledged already" },
        { 50001, 0, false, ERR_REFUSED, "give the bot View Channel there" },
        { 50006, 0, false, ERR_INVALID, "a message needs text or a file" },
        { 50007, 0, false, ERR_REFUSED, "the person accepts no DMs from this bot" },
        { 50013, 0, false, ERR_REFUSED,
          "give the bot the permission there: docs/platforms/discord.md lists them" },
        { 50024, 0, false, ERR_INVALID, "this kind of channel cannot do that" },
        { 50027, CANCEL_DEFERRED, false, ERR_MISSING,
          "a command can be answered for fifteen minutes" },
        { 50083, 0, false, ERR_REFUSED, "the thread is archived" },
        { 50278, 0, false, ERR_REFUSED, "the bot shares no server with this person" },
        { 90001, 0, false, ERR_REFUSED, "the person has blocked the bot" },
        { 130000, 0, true, ERR_NET, NULL },
        { 160004, THREAD, false, ERR_CONFLICT, "the message has a thread already" },
        { 160005, 0, false, ERR_REFUSED, "the thread is locked" },
        { 160006, 0, false, ERR_LIMIT, "the server has too many active threads" },
        { 180000, 0, false, ERR_CONFLICT, "the event is over or was cancelled in Discord" },
        { 200000, 0, false, ERR_REFUSED, "the server's AutoMod has blocked the text" },
        { 240000, 0, false, ERR_REFUSED, "Discord considers a link in it harmful" },
};
/* clang-format on */

static const struct code_row *find_code(int code)
{
        for (size_t i = 0; i < COUNT(codes); i++)
                if (codes[i].code == code)
                        return &codes[i];
        return NULL;
}

const char *dc_outcome_advice(int code)
{
        const struct code_row *row = find_code(code);

        return row ? row->advice : NULL;
}

void dc_outcome_error(const struct dc_answer *a, struct error *err)
{
        const char *advice = dc_outcome_advice(a->code);

        error_set(err,
                  a->status == 404   ? ERR_MISSING
                  : a->status == 429 ? ERR_LIMIT
                  : a->status > 0    ? ERR_REFUSED
                  : a->kind          ? a->kind
                                     : ERR_NET,
                  "%s%s%s", a->why, advice ? ": " : "", advice ? advice : "");
}

void dc_outcome_read(enum delivery_kind kind, const struct dc_answer *a, struct send_result *out,
                     char *text, size_t size)
{
        const struct code_row *row = find_code(a->code);
        bool creates = kind == DELIVER_SEND || kind == DELIVER_UPLOAD;

        *out = (struct send_result){ .outcome = adapter_http_outcome(a->status, a->reach, !creates),
                                     .retry_after_ms = -1 };
        if (a->ok || (row && (row->done_for & (1u << kind)))) {
                out->outcome = SEND_DONE;
                return;
        }
        if (a->status == 0 && a->reach == HTTP_NOT_SENT &&
            (a->kind == ERR_INVALID || a->code != 0)) /* refused before it was made */
                out->outcome = SEND_REJECTED;
        else if (row && row->again)
                out->outcome = SEND_RETRY;
        out->kind = row ? row->kind : adapter_http_kind(a->status, a->kind);
        out->retry_after_ms = a->status == 401 ? ADAPTER_BAD_TOKEN_MS : a->retry_after_ms;
        out->freeze_adapter = a->global;
        /* a thread's name may change twice in ten minutes: nothing else of its chat waits */
        if (kind == DELIVER_CHANGE_THREAD && out->kind == ERR_LIMIT && !a->global)
                out->kind = ERR_NET;
        snprintf(text, size, "%s%s%s", a->why, row && row->advice ? ": " : "",
                 row && row->advice ? row->advice : "");
        out->why = text;
}
