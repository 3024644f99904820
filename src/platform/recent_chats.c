#include "platform/recent_chats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "rows/conversation_row.h"

#define DAYS 30
#define PAGE 500

struct recent_chats {
        recent_chats_fn *done; /* NULL: no longer wanted */
        void *arg;
        char *adapter;
        int64_t from_ms, before;
        struct recent_chat chats[PAGE];
        size_t count;
        int64_t last; /* smallest id of the page; 0: no further page */
};

static int read_page(struct store_tx *tx, void *arg, struct error *err)
{
        struct recent_chats *p = arg;
        struct store_stmt *s =
                conversation_row_list_recent(tx, p->adapter, p->from_ms, p->before, PAGE);
        const char *channel, *thread;
        size_t rows = 0;
        int rc;

        p->count = 0;
        while ((rc = conversation_row_next_recent(s, &p->last, &channel, &thread, err)) == 1) {
                struct recent_chat *chat = &p->chats[p->count];

                rows++;
                if (p->count == PAGE || strlen(channel) >= RECENT_CHAT_SIZE ||
                    (thread && strlen(thread) >= RECENT_CHAT_SIZE))
                        continue;
                snprintf(chat->channel, sizeof(chat->channel), "%s", channel);
                snprintf(chat->thread, sizeof(chat->thread), "%s", thread ? thread : "");
                p->count++;
        }
        if (rows < PAGE)
                p->last = 0;
        return rc;
}

static void on_page(void *arg, const struct error *err)
{
        struct recent_chats *p = arg;

        if (p->done && err)
                log_warn("cannot read recent conversations", LOG_S("adapter", p->adapter),
                         LOG_S("why", err->text));
        if (p->done)
                p->done(p->arg, p->chats, err ? 0 : p->count, err ? 0 : p->last, err);
        free(p->adapter);
        free(p);
}

struct recent_chats *recent_chats_read(const struct adapter *a, int64_t before,
                                       recent_chats_fn *done, void *arg)
{
        struct recent_chats *p = mem_zalloc(sizeof(*p));

        p->done = done;
        p->arg = arg;
        p->adapter = mem_strdup(a->name);
        p->before = before;
        p->from_ms = clock_wall_ms() - (int64_t)DAYS * 86400000;
        store_read(a->store, read_page, on_page, p);
        return p;
}

void recent_chats_drop(struct recent_chats *p)
{
        if (p)
                p->done = NULL;
}
