/*
 * recall: what an agent that reads along is shown: the last messages of the channel, fresh from the
 * platform.
 *
 * An adapter that does not answer must not keep the channel waiting for ever, and one that answers
 * late finds nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/road_private.h"

#define RECALL_SECONDS 30

struct recalling {
        struct turn *turn; /* NULL: nobody waits any more */
        struct timer *timer;
};

void recall_forget(struct turn *t)
{
        struct recalling *w = t->recalling;

        if (!w)
                return;
        timer_free(w->timer);
        w->timer = NULL;
        w->turn = NULL; /* freed by the answer */
        t->recalling = NULL;
}

/* Nothing is posted: the next message is another chance. */
static void fail(struct turn *t, enum error_kind kind, const char *why)
{
        char *error = mem_printf("cannot read what was said in the channel: %s", why);
        struct turn_reply reply = { .kind = kind, .error = error };

        if (t->cancel_why)
                turn_hand_over(t); /* where it is cancelled */
        else
                turn_end(t, &reply);
        free(error);
}

static void on_late(void *arg)
{
        struct recalling *w = arg;
        struct turn *t = w->turn;

        recall_forget(t);
        fail(t, ERR_TIMEOUT, "the platform gave no answer in time");
}

/* What the turn is about stands in its inputs already. */
static bool is_input(const struct turn *t, const struct channel_message *line)
{
        for (unsigned i = 0; line->id && i < t->input_count; i++) {
                if (t->inputs[i]->id && strcmp(t->inputs[i]->id, line->id) == 0)
                        return true;
        }
        return false;
}

static void keep_lines(struct turn *t, const struct channel_message *lines, size_t count)
{
        struct transcript_line *kept = arena_alloc(&t->arena, (count + 1) * sizeof(*kept));
        const char *platform = t->inputs[0]->platform ? t->inputs[0]->platform : t->adapter;
        unsigned n = 0;

        for (size_t i = 0; i < count; i++) {
                const struct channel_message *l = &lines[i];

                if (!l->text || l->text[0] == '\0' || is_input(t, l))
                        continue;
                kept[n++] = (struct transcript_line){
                        .role = l->is_own ? "assistant" : "user",
                        .name = l->sender_id
                                        ? arena_printf(&t->arena, "%s:%s", platform, l->sender_id)
                                        : NULL,
                        .display = arena_strdup(&t->arena, l->sender_name),
                        .text = arena_strdup(&t->arena, l->text),
                        .time_ms = l->time_ms,
                };
        }
        t->run.history = kept;
        t->run.history_count = n;
}

static void on_recalled(void *arg, const struct channel_message *lines, size_t count,
                        const struct error *err)
{
        struct recalling *w = arg;
        struct turn *t = w->turn;

        if (t)
                recall_forget(t);
        free(w);
        if (!t)
                return;
        if (err) {
                fail(t, err->kind, err->text);
                return;
        }
        keep_lines(t, lines, count);
        turn_hand_over(t);
}

void recall_begin(struct turn *t, unsigned limit)
{
        struct road *r = t->road;
        struct recalling *w = mem_zalloc(sizeof(*w));
        int64_t seconds =
                r->limits.turn_seconds < RECALL_SECONDS ? r->limits.turn_seconds : RECALL_SECONDS;

        w->turn = t;
        w->timer = timer_new(r->loop, on_late, w);
        timer_start(w->timer, seconds * 1000);
        t->recalling = w;
        r->platforms.channel_history(r->platforms.adapters, t->adapter, t->channel, t->thread,
                                     limit, on_recalled, w);
}
