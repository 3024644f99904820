#include "dispatch/limits/reaction_limit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

/*
 * A message and the reactions that made turns of it: the limit per message is also that of this
 * list.
 */
struct message {
        char *key;
        struct made {
                char *who; /* kind, person and emoji */
                int64_t time_ms;
        } made[REACTION_LIMIT_PER_MESSAGE];
        unsigned count;
        TAILQ_ENTRY(message) next;
};
TAILQ_HEAD(messages, message);

struct reaction_limits {
        struct map by_key;
        struct messages messages; /* whose last turn is oldest comes first */
        size_t max;
};

struct reaction_limits *reaction_limits_new(size_t max)
{
        struct reaction_limits *r = mem_zalloc(sizeof(*r));

        map_init(&r->by_key);
        TAILQ_INIT(&r->messages);
        r->max = max;
        return r;
}

static void forget(struct reaction_limits *r, struct message *m)
{
        map_remove(&r->by_key, m->key);
        TAILQ_REMOVE(&r->messages, m, next);
        for (unsigned i = 0; i < m->count; i++)
                free(m->made[i].who);
        free(m->key);
        free(m);
}

void reaction_limits_free(struct reaction_limits *r)
{
        struct message *m;

        if (!r)
                return;
        while ((m = TAILQ_FIRST(&r->messages)))
                forget(r, m);
        map_release(&r->by_key);
        free(r);
}

size_t reaction_limit_size(const struct reaction_limits *r)
{
        return r->by_key.count;
}

bool reaction_limit_applies(const struct incoming *in)
{
        return in->type && in->id && strncmp(in->type, "reaction.", 9) == 0;
}

static const char *shown(const char *text)
{
        return text ? text : "";
}

static char *message_key(const struct incoming *in)
{
        return mem_printf("%s\n%s\n%s", shown(in->adapter), shown(in->channel), shown(in->id));
}

static char *who_key(const struct incoming *in)
{
        return mem_printf("%s\n%s\n%s", shown(in->type), shown(in->sender_id), shown(in->emoji));
}

static struct message *find(const struct reaction_limits *r, const struct incoming *in)
{
        char *key = message_key(in);
        struct message *m = map_get(&r->by_key, key);

        free(key);
        return m;
}

static bool is_within(int64_t time_ms, int64_t span_ms, int64_t now_ms)
{
        return now_ms - time_ms < span_ms;
}

enum reaction_verdict reaction_limit_check(const struct reaction_limits *r,
                                           const struct incoming *in, int64_t now_ms)
{
        const struct message *m = find(r, in);
        char *who = who_key(in);
        unsigned counted = 0;
        bool repeated = false;

        for (unsigned i = 0; m && i < m->count; i++) {
                counted += is_within(m->made[i].time_ms, REACTION_LIMIT_COUNT_MS, now_ms);
                repeated = repeated ||
                           (is_within(m->made[i].time_ms, REACTION_LIMIT_SAME_MS, now_ms) &&
                            strcmp(m->made[i].who, who) == 0);
        }
        free(who);
        if (repeated)
                return REACTION_REPEATED;
        return counted >= REACTION_LIMIT_PER_MESSAGE ? REACTION_ONE_TOO_MANY : REACTION_NEW;
}

static struct message *touch(struct reaction_limits *r, const struct incoming *in)
{
        struct message *m = find(r, in);

        if (m) {
                TAILQ_REMOVE(&r->messages, m, next);
        } else {
                if (r->by_key.count >= r->max)
                        forget(r, TAILQ_FIRST(&r->messages));
                m = mem_zalloc(sizeof(*m));
                m->key = message_key(in);
                map_put(&r->by_key, m->key, m);
        }
        TAILQ_INSERT_TAIL(&r->messages, m, next);
        return m;
}

void reaction_limit_count(struct reaction_limits *r, const struct incoming *in, int64_t now_ms)
{
        struct message *m = touch(r, in);

        if (m->count == REACTION_LIMIT_PER_MESSAGE) {
                free(m->made[0].who);
                memmove(&m->made[0], &m->made[1],
                        (REACTION_LIMIT_PER_MESSAGE - 1) * sizeof(m->made[0]));
                m->count--;
        }
        m->made[m->count++] = (struct made){ who_key(in), now_ms };
}

/* ---- after a restart ---- */

struct restoring {
        struct reaction_limits *reactions;
        int64_t now_ms;
};

static void count_row(const struct restoring *r, struct store_stmt *s)
{
        struct bus_event e = { .seq = store_col_int(s, 0),
                               .type = store_col_text(s, 1),
                               .time_ms = store_col_int(s, 2),
                               .adapter = store_col_text(s, 3),
                               .channel = store_col_text(s, 4),
                               .payload = store_col_text(s, 5) };
        struct error err;
        struct incoming *in = incoming_parse(&e, &err);

        if (in)
                reaction_limit_count(r->reactions, in, e.time_ms);
        else
                log_warn("a reaction of the journal is not understood", LOG_I("event", e.seq),
                         LOG_S("why", err.text));
        incoming_free(in);
}

/* The newest ones, oldest first. */
static int read_rows(struct store_tx *tx, void *arg, struct error *err)
{
        const struct restoring *r = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT j.seq, j.type, t.time_ms, j.adapter, j.channel, j.payload FROM"
                " (SELECT event, time_ms FROM trigger_log"
                " WHERE event_type IN ('reaction.received', 'reaction.removed') AND turn IS NOT NULL"
                " AND time_ms > ?1 ORDER BY event DESC LIMIT ?2) AS t"
                " JOIN journal AS j ON j.seq = t.event ORDER BY j.seq");
        int rc;

        store_bind_int(s, 1, r->now_ms - REACTION_LIMIT_COUNT_MS);
        store_bind_int(s, 2, (int64_t)r->reactions->max);
        while ((rc = store_step(s, err)) == 1)
                count_row(r, s);
        return rc;
}

int reaction_limit_restore(struct reaction_limits *r, struct store *s, int64_t now_ms,
                           struct error *err)
{
        struct restoring restoring = { r, now_ms };

        return store_read_now(s, read_rows, &restoring, err);
}
