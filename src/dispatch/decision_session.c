/*
 * The chat session of a decision: which one the event continues, and that it stays live.
 */
#include <string.h>

#include "dispatch/dispatch_private.h"
#include "dispatch/tx_extra.h"

void decision_session_find(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct incoming *in = e->in;
        struct dispatch *d = e->d;
        /* an event that arrives late counts at the time it was written */
        int64_t time_ms = in->time_ms > 0 && in->time_ms < e->now_ms ? in->time_ms : e->now_ms;

        buf_clear(&d->chat);
        if (!a)
                return;
        e->session_seconds =
                in->chat == CHAT_DM ? a->dm_conversation_seconds : a->conversation_seconds;
        if (e->session_seconds <= 0)
                return;
        chat_session_key(in, &d->chat);
        e->live_session = chat_session_find(d->sessions, d->chat.data, e->session_seconds, time_ms);
        e->context.in_session = e->live_session != NULL;
}

/* A message that is answered in a new thread begins a new session. */
static bool begins_thread(const struct evaluation *e)
{
        return e->rule && e->rule->mode == MODE_THREAD && e->in->chat != CHAT_DM && !e->in->thread;
}

void decision_session_assign(struct evaluation *e)
{
        struct buf *session = &e->d->session;

        /* an ambient agent talks with everyone in the channel */
        if (e->session_seconds <= 0 || (e->rule && e->rule->mode == MODE_AMBIENT))
                return;
        e->out->per_person = e->in->chat != CHAT_DM && !e->in->thread;
        buf_clear(session);
        if (e->live_session && !begins_thread(e))
                buf_addstr(session, e->live_session);
        else
                chat_session_name(e->adapter->platform, e->in, session);
        e->out->session = session->data;
}

void decision_session_open(struct evaluation *e)
{
        /* a thread gets its key when the answer begins it */
        const char *chat = begins_thread(e) ? NULL : e->d->chat.data;
        const char *session = e->out->session;

        if (!session)
                return;
        chat_session_touch(e->d->sessions, chat, session, !e->joins_turn, e->now_ms);
        if (chat)
                tx_extra_add(e->out, chat_session_touch_extra(chat, session, e->now_ms));
}

void decision_session_restart(struct evaluation *e)
{
        struct dispatch *d = e->d;

        if (e->session_seconds <= 0)
                return;
        buf_clear(&d->session);
        chat_session_name(e->adapter->platform, e->in, &d->session);
        chat_session_touch(d->sessions, d->chat.data, d->session.data, false, e->now_ms);
        tx_extra_add(e->out, chat_session_touch_extra(d->chat.data, d->session.data, e->now_ms));
}
