/* Who wrote in a channel, from the journal. */
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/prompt.h"
#include "base/mem.h"
#include "rows/journal_row.h"

#define MESSAGES_READ 300

struct people {
        struct prompt_person *out;
        size_t count, max;
};

static const char *key_of(const struct prompt_person *p)
{
        return p->username ? p->username : p->name;
}

static bool is_known(const struct people *all, const struct prompt_person *p)
{
        for (size_t i = 0; i < all->count; i++)
                if (strcmp(key_of(&all->out[i]), key_of(p)) == 0)
                        return true;
        return false;
}

static void add_sender(struct people *all, const struct incoming *in)
{
        struct prompt_person p = { .username = in->sender_username,
                                   .name = in->sender_name,
                                   .is_bot = in->sender_is_bot };

        if (in->is_own || (!p.username && !p.name) || is_known(all, &p))
                return;
        p.username = mem_strdup(p.username);
        p.name = mem_strdup(p.name);
        all->out[all->count++] = p;
}

static int by_key(const void *a, const void *b)
{
        return strcmp(key_of(a), key_of(b));
}

int prompt_people_read(struct store_tx *tx, const char *adapter, const char *channel,
                       struct prompt_person *out, size_t max, struct error *err)
{
        struct journal_range range = { .before = INT64_MAX,
                                       .adapter = adapter,
                                       .channel = channel };
        struct store_stmt *s = journal_row_scan(tx, &range);
        struct people all = { out, 0, max };
        struct journal_row row;
        int rc = 1;

        for (unsigned i = 0; i < MESSAGES_READ && all.count < max; i++) {
                struct incoming *in;

                rc = journal_row_next(s, &row, err);
                if (rc != 1)
                        break;
                if (strcmp(row.type, EVENT_MESSAGE_RECEIVED) != 0)
                        continue;
                journal_row_read_payload(s, &row);
                in = incoming_from_row(&row, NULL); /* NULL: only its key is left */
                if (in)
                        add_sender(&all, in);
                incoming_free(in);
        }
        if (rc == 1)
                rows_end(s);
        if (rc < 0) {
                prompt_people_release(out, all.count);
                return -1;
        }
        if (all.count > 0)
                qsort(out, all.count, sizeof(*out), by_key);
        return (int)all.count;
}

void prompt_people_release(struct prompt_person *people, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                free((char *)people[i].username);
                free((char *)people[i].name);
        }
}
