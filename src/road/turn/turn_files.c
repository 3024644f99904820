/*
 * turn_files: a turn's own files, fetched after the decision and before its claim.
 *
 * A message is stored, acknowledged and decided without its files; only a turn needs them. The turn
 * waits in its queue, at most limits.fileSeconds for each message. After a crash it is still
 * queued, and its files are fetched again or found where they are. Turns of other people in the
 * same lane do not wait (lane.c).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

struct turn_file {
        struct turn *turn;
        int64_t event;
        struct held_files *held;
        struct timer *timer; /* NULL: nothing is being fetched */
        bool hurried;
        TAILQ_ENTRY(turn_file) next;
};

bool turn_files_needed(const struct road *r, const struct incoming *in)
{
        for (size_t i = 0; r->platforms.hold_files && i < in->attachment_count; i++)
                if (in->attachments[i].source && !in->attachments[i].path)
                        return true;
        return false;
}

static void settle(struct turn_file *f)
{
        if (!f->timer)
                return;
        timer_free(f->timer);
        f->timer = NULL;
        f->turn->files.pending--;
}

static void on_ready(void *arg)
{
        struct turn_file *f = arg;

        settle(f);
        lane_pump(f->turn->road, f->turn->lane);
}

static void on_too_late(void *arg)
{
        struct turn_file *f = arg;
        struct road *r = f->turn->road;
        char why[100];

        if (f->hurried)
                snprintf(why, sizeof(why), "an edit added it to a turn with messages of others");
        else
                snprintf(why, sizeof(why), "it did not arrive within %lld s (limits.fileSeconds)",
                         (long long)r->limits.file_seconds);
        r->platforms.stop_files(f->held, why);
        on_ready(f);
}

void turn_files_want(struct turn *t, const struct incoming *in)
{
        struct road *r = t->road;
        struct turn_file *f;

        if (t->cancel.why || !turn_files_needed(r, in))
                return;
        f = mem_zalloc(sizeof(*f));
        f->turn = t;
        f->event = in->event;
        f->held = r->platforms.hold_files(r->platforms.adapters, in, on_ready, f);
        if (!f->held) {
                free(f);
                return;
        }
        TAILQ_INSERT_TAIL(&t->files.list, f, next);
        if (f->held->ready)
                return;
        t->files.pending++;
        f->timer = timer_new(r->loop, on_too_late, f);
        timer_start(f->timer, r->limits.file_seconds * 1000);
}

void turn_files_hurry(struct turn *t, int64_t event)
{
        struct turn_file *f;

        TAILQ_FOREACH(f, &t->files.list, next) {
                if (f->event != event || !f->timer)
                        continue;
                f->hurried = true;
                timer_start(f->timer, 0);
        }
}

static void file_free(struct turn_file *f)
{
        struct turn *t = f->turn;

        settle(f);
        TAILQ_REMOVE(&t->files.list, f, next);
        t->road->platforms.release_files(f->held);
        free(f);
}

void turn_files_forget(struct turn *t, int64_t event)
{
        struct turn_file *f, *after;

        for (f = TAILQ_FIRST(&t->files.list); f; f = after) {
                after = TAILQ_NEXT(f, next);
                if (f->event == event)
                        file_free(f);
        }
}

void turn_files_move(struct turn *from, struct turn *to)
{
        struct turn_file *f;

        TAILQ_FOREACH(f, &from->files.list, next)
                f->turn = to;
        TAILQ_CONCAT(&to->files.list, &from->files.list, next);
}

void turn_files_release(struct turn *t)
{
        struct turn_file *f;

        while ((f = TAILQ_FIRST(&t->files.list)))
                file_free(f);
}

void turn_files_apply(struct turn *t)
{
        const struct turn_file *f;

        TAILQ_FOREACH(f, &t->files.list, next) {
                for (unsigned i = 0; i < t->run.input_count; i++) {
                        struct incoming *old = t->inputs[i], now = *old;

                        if (old->event != f->event)
                                continue;
                        now.attachments = f->held->items;
                        now.attachment_count = f->held->count;
                        t->inputs[i] = incoming_dup(&now);
                        incoming_free(old);
                }
        }
}

void turn_files_write(const struct turn *t, struct buf *json)
{
        const struct turn_file *f;
        char id[BUS_ID_SIZE];

        if (TAILQ_EMPTY(&t->files.list))
                return;
        jsonw_open_member(json, "files", '[');
        TAILQ_FOREACH(f, &t->files.list, next) {
                for (size_t i = 0; i < f->held->count; i++) {
                        const struct attachment *a = &f->held->items[i];

                        jsonw_open(json, '{');
                        jsonw_str(json, "eventId", bus_event_id(f->event, id));
                        jsonw_opt(json, "name", a->name);
                        jsonw_opt(json, "path", a->path);
                        if (a->path)
                                jsonw_int(json, "size", a->size);
                        jsonw_opt(json, "error", a->error);
                        jsonw_close(json, '}');
                }
        }
        jsonw_close(json, ']');
}
