/*
 * session_progress: what became of a command, shown where it was given.
 *
 *     ⏳ queued    📨 delivered    👀 seen    a sentence: failed, expired
 *
 * Reactions on the message that gave it, where the platform has them; each is a delivery, named by
 * the command and its state, so that none is shown twice. What was not shown when the last run
 * ended is shown at the start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "remote/session_text.h"

#define PREFIX     "session.command."
#define SAID_CHARS 300 /* of an error, or of what the command said */
#define RECENT_MS  ((int64_t)86400000)
#define RECENT_MAX 200 /* commands, the newest */

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        if (receipt->error.kind != ERR_NONE)
                log_warn("cannot show what became of a command", LOG_S("why", receipt->error.text));
}

/* Texts of programs and people, as they are. */
static void add_said(struct buf *out, const char *before, const char *text)
{
        char *line = session_text_line(text, SAID_CHARS);

        if (line) {
                buf_addstr(out, before);
                session_text_add_plain(out, line);
        }
        free(line);
}

/* emoji NULL: a sentence says it. */
static void submit(struct remote *r, const struct session_command_given *p, const char *emoji,
                   const char *sentence)
{
        char key[100];
        struct buf text;
        struct outgoing out = { .adapter = p->chat.adapter,
                                .channel = p->chat.channel,
                                .thread = p->chat.thread,
                                .kind = DELIVER_SEND,
                                .trace = p->trace,
                                .request_key = key };

        if (emoji &&
            (!p->message || !(road_abilities(r->env.road, p->chat.adapter) & ADAPTER_REACTIONS)))
                return;
        snprintf(key, sizeof(key), "session-command:%.40s:%s", p->command,
                 session_command_state_name(p->state));
        buf_init(&text, 0);
        if (emoji) {
                out.kind = DELIVER_REACT;
                out.class = PACE_EDIT;
                out.message_id = p->message;
                out.emoji = emoji;
        } else {
                buf_addstr(&text, sentence);
                add_said(&text, ": ", p->error);
                add_said(&text, "\n> ", p->content);
                out.text = text.data;
                out.reply_to = p->message;
        }
        outbox_submit(r->env.road, &out, on_submitted, NULL);
        buf_release(&text);
}

static void show(struct remote *r, const struct session_command_given *p)
{
        switch (p->state) {
        case SESSION_COMMAND_QUEUED:
                submit(r, p, "⏳", NULL);
                break;
        case SESSION_COMMAND_DELIVERED:
                submit(r, p, "📨", NULL);
                break;
        case SESSION_COMMAND_SEEN:
                submit(r, p, "👀", NULL);
                break;
        case SESSION_COMMAND_FAILED:
                submit(r, p, NULL, "❌ The agent could not take it");
                break;
        case SESSION_COMMAND_EXPIRED:
                submit(r, p, NULL, "⌛ The agent did not fetch it in time, so it has expired");
                break;
        case SESSION_COMMAND_SUPERSEDED:
                break;
        }
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct remote *r = arg;
        struct session_command_given p = { .chat = { e->adapter, e->channel, e->thread },
                                           .trace = e->trace };
        json_t *said;

        if (!e->adapter || !r->env.road || r->quiet ||
            strncmp(e->type, PREFIX, strlen(PREFIX)) != 0 ||
            !session_command_state_parse(e->type + strlen(PREFIX), &p.state))
                return;
        said = json_loads(e->payload, 0, NULL);
        p.command = json_str(said, "commandId", "");
        p.message = json_str(said, "message", NULL);
        p.content = json_str(said, "content", NULL);
        p.error = json_str(said, "error", NULL);
        show(r, &p);
        json_decref(said);
}

void session_progress_open(struct remote *r)
{
        r->progress = bus_listen(r->env.bus, 1u << STREAM_SESSION, on_event, r);
}

void session_progress_close(struct remote *r)
{
        bus_unlisten(r->env.bus, r->progress);
}

/* ---- the start ---- */

struct given_list {
        struct remote *remote;
        struct arena arena;
        struct session_command_given items[RECENT_MAX];
        size_t count;
};

static int read_recent(struct store_tx *tx, void *arg, struct error *err)
{
        struct given_list *all = arg;
        struct arena *a = &all->arena;
        struct store_stmt *s =
                session_command_row_list_given(tx, clock_wall_ms() - RECENT_MS, RECENT_MAX);
        struct session_command_given row;
        int rc;

        while ((rc = session_command_row_next_given(s, &row, err)) == 1)
                all->items[all->count++] = (struct session_command_given){
                        .command = arena_strdup(a, row.command),
                        .content = arena_strdup(a, row.content),
                        .error = arena_strdup(a, row.error),
                        .state = row.state,
                        .chat = { arena_strdup(a, row.chat.adapter),
                                  arena_strdup(a, row.chat.channel),
                                  arena_strdup(a, row.chat.thread) },
                        .message = arena_strdup(a, row.message),
                        .trace = arena_strdup(a, row.trace),
                };
        return rc;
}

static void on_recent(void *arg, const struct error *err)
{
        struct given_list *all = arg;
        struct remote *r = all->remote;

        r->writes--;
        if (err)
                log_error("cannot read which commands of sessions are to be shown",
                          LOG_S("why", err->text));
        for (size_t i = all->count; i > 0 && !r->quiet; i--)
                show(r, &all->items[i - 1]);
        arena_release(&all->arena);
        free(all);
}

void session_progress_start(struct remote *r)
{
        struct given_list *all;

        if (!r->env.road)
                return;
        all = mem_zalloc(sizeof(*all));
        arena_init(&all->arena);
        all->remote = r;
        r->writes++;
        store_read(r->env.store, read_recent, on_recent, all);
}
