/*
 * What a decision has to do with conversations: whether the event goes on with one, which session
 * it has, and that it stays open.
 */
#include <string.h>

#include "dispatch/dispatch_private.h"
#include "dispatch/tx_extra.h"

/* What comes late, after we were away, is judged by the time at which it was said. */
static int64_t said_ms(const struct matter *m)
{
        return m->in->time_ms > 0 && m->in->time_ms < m->now_ms ? m->in->time_ms : m->now_ms;
}

void conversation_look(struct matter *m)
{
        const struct dispatch_adapter *a = m->adapter;
        struct dispatch *d = m->d;

        buf_clear(&d->place);
        if (!a)
                return;
        m->window_seconds =
                m->in->chat == CHAT_DM ? a->dm_conversation_seconds : a->conversation_seconds;
        if (m->window_seconds <= 0)
                return;
        chat_session_key(m->in, &d->place);
        m->live = chat_session_find(d->sessions, d->place.data, m->window_seconds, said_ms(m));
        m->situation.conversation = m->live != NULL;
}

static bool rule_is(const struct rule *r, enum reply_mode mode)
{
        return r && r->mode == mode;
}

/* What is answered in a thread of its own is a conversation of its own. */
static bool begins_thread(const struct matter *m)
{
        return rule_is(m->rule, MODE_THREAD) && m->in->chat != CHAT_DM && !m->in->thread;
}

void conversation_name(struct matter *m)
{
        struct buf *session = &m->d->session;

        /* who reads along talks with everybody */
        if (m->window_seconds <= 0 || rule_is(m->rule, MODE_AMBIENT))
                return;
        m->out->per_person = m->in->chat != CHAT_DM && !m->in->thread;
        buf_clear(session);
        if (m->live && !begins_thread(m))
                buf_addstr(session, m->live);
        else
                chat_session_name(m->adapter->platform, m->in, session);
        m->out->session = session->data;
}

void conversation_placed(struct matter *m)
{
        /* the place of a thread that will be begun is known when the answer begins it */
        const char *place = begins_thread(m) ? NULL : m->d->place.data;

        if (!m->out->session)
                return;
        chat_session_touch(m->d->sessions, place, m->out->session, !m->joins_turn, m->now_ms);
        if (place)
                tx_extra_add(m->out, chat_session_touch_extra(place, m->out->session, m->now_ms));
}

/* ---- the end of a turn ---- */

/* Where the conversation goes on from now on; NULL: where it was. */
static const char *place_after(struct dispatch *d, const struct turn_run *run,
                               const struct turn_outcome *outcome)
{
        if (!outcome->thread)
                return NULL;
        buf_clear(&d->place);
        chat_session_thread_key(run->adapter, run->channel, outcome->thread, &d->place);
        return d->place.data;
}

void dispatch_ending(struct dispatch *d, const struct turn_run *run,
                     const struct turn_outcome *outcome, struct tx_extra *extra)
{
        if (run->session)
                *extra = chat_session_ended_extra(run->session, place_after(d, run, outcome),
                                                  dispatch_now(d));
}

void dispatch_ended(struct dispatch *d, const struct turn_run *run,
                    const struct turn_outcome *outcome)
{
        budget_end(d->budget,
                   &(struct budget_turn){ run->trace, run->adapter, run->rule, run->agent },
                   outcome->cost_microusd, dispatch_now(d));
        if (run->session)
                chat_session_ended(d->sessions, run->session, place_after(d, run, outcome),
                                   dispatch_now(d));
}
