/*
 * schedule_fired: the schedule speaks. A tick becomes an event of its chat.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/road_schedule.h"
#include "road/road_state.h"
#include "rows/journal_row.h"

#define MESSAGES_READ 100 /* of the chat, until one of a person is found */
#define NAME_BYTES    100

struct fired {
        struct road *road;
        struct schedule_fired what; /* its strings live in the arena */
        struct arena arena;
        inbox_ack_fn *ack;
        void *arg;
        struct incoming *last; /* of the chat; NULL: there is no message */
};

int schedule_fired_last(struct store_tx *tx, const char *adapter, const char *channel,
                        struct incoming **out, struct error *err)
{
        struct store_stmt *s = journal_row_scan(tx, &(struct journal_range){ .before = INT64_MAX,
                                                                             .adapter = adapter,
                                                                             .channel = channel });
        struct incoming *last = NULL;
        struct journal_row row;
        int rc = 1;

        for (int i = 0; i < MESSAGES_READ && !last; i++) {
                rc = journal_row_next(s, &row, err);
                if (rc != 1)
                        break;
                if (strcmp(row.type, EVENT_MESSAGE_RECEIVED) != 0)
                        continue;
                journal_row_read_payload(s, &row);
                last = incoming_from_row(&row, NULL); /* NULL: only its key is left */
                if (last && (last->is_own || last->sender_is_bot)) {
                        incoming_free(last);
                        last = NULL;
                }
        }
        if (rc == 1)
                rows_end(s);
        *out = last;
        return rc < 0 ? -1 : 0;
}

static int read_chat(struct store_tx *tx, void *arg, struct error *err)
{
        struct fired *f = arg;

        incoming_free(f->last);
        return schedule_fired_last(tx, f->what.adapter, f->what.channel, &f->last, err);
}

/* Without characters that could fake the end of the mark, or another one. */
static void add_mark(struct buf *out, const char *text, const char *breaks)
{
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, NAME_BYTES);

        for (size_t i = 0; i < n; i++)
                buf_addch(out,
                          (unsigned char)text[i] < ' ' || strchr(breaks, text[i]) ? ' ' : text[i]);
}

static void add_text(const struct schedule_fired *w, struct buf *out)
{
        buf_addstr(out, "[EVENT:");
        add_mark(out, w->name, "[]:");
        buf_addf(out, ":%s:", w->kind);
        add_mark(out, w->info, "[]");
        buf_addf(out, "] %s", w->text);
}

static void on_chat(void *arg, const struct error *err)
{
        struct fired *f = arg;
        const struct schedule_fired *w = &f->what;
        const struct incoming *last = f->last;
        char key[40], id[ROAD_KEY_SIZE];
        struct incoming in = { .type = EVENT_SCHEDULE_FIRED,
                               .adapter = w->adapter,
                               .platform = w->platform,
                               .key = key,
                               .channel = w->channel,
                               .thread = w->thread,
                               .chat = w->direct ? CHAT_DM : CHAT_GROUP,
                               .sender_id = w->person ? w->person : SCHEDULE_SENDER,
                               .sender_username = road_key("sch", w->schedule, id),
                               .sender_name = w->name,
                               .raw_text = w->text,
                               .is_mention = true,
                               .is_command = true,
                               .metadata = w->metadata,
                               .agent = w->agent,
                               .trace = w->trace };
        struct buf text;

        f->road->writes--;
        if (err)
                log_warn("cannot read the chat of a schedule", LOG_S("why", err->text));
        if (last) {
                in.chat = w->direct ? CHAT_DM : last->chat;
                in.chat_name = last->chat_name;
                in.guild = last->guild;
                if (in.chat == CHAT_DM && !w->person && last->sender_id)
                        in.sender_id = last->sender_id;
        }
        snprintf(key, sizeof(key), "tick:%lld", (long long)w->tick);
        buf_init(&text, 0);
        add_text(w, &text);
        in.text = text.data;
        inbox_receive(f->road, &in, f->ack, f->arg);
        buf_release(&text);
        incoming_free(f->last);
        arena_release(&f->arena);
        free(f);
}

void schedule_fired_receive(struct road *r, const struct schedule_fired *what, inbox_ack_fn *ack,
                            void *arg)
{
        struct fired *f = mem_zalloc(sizeof(*f));
        const char **strings[] = { &f->what.name,    &f->what.kind,     &f->what.info,
                                   &f->what.adapter, &f->what.platform, &f->what.channel,
                                   &f->what.thread,  &f->what.person,   &f->what.agent,
                                   &f->what.text,    &f->what.metadata, &f->what.trace };

        arena_init(&f->arena);
        f->road = r;
        f->what = *what;
        for (size_t i = 0; i < COUNT(strings); i++)
                *strings[i] = arena_strdup(&f->arena, *strings[i]);
        f->ack = ack;
        f->arg = arg;
        r->writes++;
        store_read(r->store, read_chat, on_chat, f);
}
