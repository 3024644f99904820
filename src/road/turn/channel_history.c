/*
 * channel_history: a channel's latest messages, fetched from the platform for an ambient agent.
 *
 * An adapter that never answers must not block the channel; a late answer finds no turn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

#define FETCH_SECONDS 30

struct history_fetch {
        struct turn *turn; /* NULL: abandoned */
        struct timer *timer;
};

/* The adapter's answer frees the fetch. */
void channel_history_forget(struct turn *t)
{
        struct history_fetch *f = t->progress.fetch;

        if (!f)
                return;
        timer_free(f->timer);
        f->timer = NULL;
        f->turn = NULL;
        t->progress.fetch = NULL;
}

/* Nothing is posted: the next message tries again. */
static void fail(struct turn *t, enum error_kind kind, const char *why)
{
        char *error;

        if (t->cancel.why) {
                turn_hand_over(t); /* ends the turn */
                return;
        }
        error = mem_printf("cannot read the channel history: %s", why);
        turn_finish(&t->run, &(struct turn_reply){ .kind = kind, .error = error });
        free(error);
}

static void on_timeout(void *arg)
{
        struct turn *t = ((struct history_fetch *)arg)->turn;

        channel_history_forget(t);
        fail(t, ERR_TIMEOUT, "the platform did not answer in time");
}

static bool is_input(const struct turn *t, const struct channel_message *m)
{
        for (unsigned i = 0; m->id && i < t->run.input_count; i++) {
                if (t->inputs[i]->id && strcmp(t->inputs[i]->id, m->id) == 0)
                        return true;
        }
        return false;
}

static void on_fetched(void *arg, const struct channel_message *messages, size_t count,
                       const struct error *err)
{
        struct history_fetch *f = arg;
        struct turn *t = f->turn;
        struct transcript_line *lines;
        const char *platform;
        unsigned n = 0;

        if (t)
                channel_history_forget(t);
        free(f);
        if (!t)
                return;
        if (err) {
                fail(t, err->kind, err->text);
                return;
        }
        platform = t->inputs[0]->platform ? t->inputs[0]->platform : t->run.adapter;
        lines = arena_alloc(&t->arena, (count + 1) * sizeof(*lines));
        for (size_t i = 0; i < count; i++) {
                const struct channel_message *m = &messages[i];

                if (!m->text || m->text[0] == '\0' || is_input(t, m))
                        continue;
                lines[n++] = (struct transcript_line){
                        .role = m->is_own ? "assistant" : "user",
                        .name = m->sender_id
                                        ? arena_printf(&t->arena, "%s:%s", platform, m->sender_id)
                                        : NULL,
                        .display = arena_strdup(&t->arena, m->sender_name),
                        .text = arena_strdup(&t->arena, m->text),
                        .time_ms = m->time_ms,
                };
        }
        t->run.history = lines;
        t->run.history_count = n;
        turn_hand_over(t);
}

void channel_history_begin(struct turn *t)
{
        struct road *r = t->road;
        int64_t seconds = r->limits.turn_seconds;
        struct history_fetch *f = mem_zalloc(sizeof(*f));

        f->turn = t;
        f->timer = timer_new(r->loop, on_timeout, f);
        timer_start(f->timer, (seconds < FETCH_SECONDS ? seconds : FETCH_SECONDS) * 1000);
        t->progress.fetch = f;
        r->platforms.channel_history(r->platforms.adapters, t->run.adapter, t->run.channel,
                                     t->run.thread, (unsigned)t->policy.channel_messages,
                                     on_fetched, f);
}
