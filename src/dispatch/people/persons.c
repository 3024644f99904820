/*
 * What is in memory of persons. Most people have one identity: of them only is known whose it is
 * (whose.h). Of persons with several there is a list, and of merged persons an alias.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/people/identity_index.h"
#include "dispatch/people/person_change.h"
#include "dispatch/people/seen_cache.h"
#include "dispatch/tx_extra.h"

#define SEEN_MAX 4096

/* A person with several identities. */
struct linked {
        struct identity *identities; /* strings owned */
        size_t count;
};

struct persons {
        struct store *store;
        struct bus *bus;
        struct identity_index identities;
        struct seen_cache *seen;
        struct map linked;  /* person → struct linked */
        struct map aliases; /* person → int64_t: what it was merged into */
        bool full_told;
        void (*changed)(void *arg);
        void *changed_arg;
};

static char *person_key(char out[24], int64_t person)
{
        snprintf(out, 24, "%lld", (long long)person);
        return out;
}

int64_t person_parse_id(const char *text)
{
        return bus_event_seq(strncmp(text, "per-", 4) == 0 ? text + 4 : text);
}

/* ---- asking ---- */

int64_t persons_lookup(const struct persons *p, const char *platform, const char *user)
{
        return platform && user ? identity_index_get(&p->identities, platform, user) : 0;
}

size_t persons_other_identities(const struct persons *p, const char *platform, const char *user,
                                struct identity *out, size_t max)
{
        int64_t person = p->linked.count > 0 ? persons_lookup(p, platform, user) : 0;
        const struct linked *l;
        char key[24];
        size_t n = 0;

        l = person > 0 ? map_get(&p->linked, person_key(key, person)) : NULL;
        for (size_t i = 0; l && i < l->count && n < max; i++) {
                const struct identity *other = &l->identities[i];

                if (strcmp(other->platform, platform) != 0 || strcmp(other->user, user) != 0)
                        out[n++] = *other;
        }
        return n;
}

int64_t persons_current(const struct persons *p, int64_t person)
{
        char key[24];

        /* chains end: a merged person is never a target again before it is its own */
        for (size_t i = 0; i <= p->aliases.count; i++) {
                const int64_t *into = map_get(&p->aliases, person_key(key, person));

                if (!into)
                        break;
                person = *into;
        }
        return person;
}

size_t persons_identity_count(const struct persons *p)
{
        return p->identities.count;
}

void persons_detach_bus(struct persons *p)
{
        p->bus = NULL;
}

void persons_watch(struct persons *p, void (*changed)(void *arg), void *arg)
{
        p->changed = changed;
        p->changed_arg = arg;
}

/* ---- remembering ---- */

static void linked_free(struct linked *l)
{
        if (!l)
                return;
        for (size_t i = 0; i < l->count; i++) {
                free((char *)l->identities[i].platform);
                free((char *)l->identities[i].user);
        }
        free(l->identities);
        free(l);
}

static void unlink_person(struct persons *p, int64_t person)
{
        char key[24];

        linked_free(map_remove(&p->linked, person_key(key, person)));
}

/* rows[0..count) are all identities of one person. */
static void link_person(struct persons *p, const struct person_row *rows, size_t count)
{
        struct linked *l;
        char key[24];

        if (count < 2)
                return;
        l = mem_zalloc(sizeof(*l));
        l->identities = mem_array(count, sizeof(*l->identities));
        for (; l->count < count; l->count++)
                l->identities[l->count] = (struct identity){ mem_strdup(rows[l->count].platform),
                                                             mem_strdup(rows[l->count].user) };
        linked_free(map_put(&p->linked, person_key(key, rows[0].person), l));
}

/* Rows of a person stand together. */
static void learn_rows(struct persons *p, const struct person_row *rows, size_t count)
{
        size_t from = 0;

        for (size_t i = 0; i < count; i++) {
                identity_index_set(&p->identities, rows[i].platform, rows[i].user, rows[i].person);
                if (i + 1 < count && rows[i + 1].person == rows[i].person)
                        continue;
                link_person(p, rows + from, i + 1 - from);
                from = i + 1;
        }
}

static void set_alias(struct persons *p, int64_t person, int64_t into)
{
        char key[24];

        person_key(key, person);
        if (into > 0)
                free(map_put(&p->aliases, key, mem_dup(&into, sizeof(into))));
        else
                free(map_remove(&p->aliases, key));
}

/* Memory becomes what the rows say of the persons a change touched. */
static void learn(struct persons *p, struct person_news *n)
{
        unlink_person(p, n->persons[0]);
        unlink_person(p, n->persons[1]);
        learn_rows(p, n->rows, n->row_count);
        for (size_t i = 0; i < n->alias_count; i++)
                set_alias(p, n->aliases[i].person, n->aliases[i].into);
        if (p->bus)
                bus_publish(p->bus, &n->batch);
        if (p->changed)
                p->changed(p->changed_arg);
}

/* ---- noting ---- */

struct noting {
        struct persons *persons;
        struct person_sight sight;
        /* with a link: */
        bool links;
        char *platform, *user; /* of the one it is linked to */
        struct person_news news;
        bool linked; /* result */
};

static void noting_free(struct noting *n)
{
        struct person_sight *s = &n->sight;
        char *const strings[] = { s->platform, s->user,       s->name,     s->username,
                                  s->adapter,  s->dm_channel, n->platform, n->user };

        for (size_t i = 0; i < COUNT(strings); i++)
                free(strings[i]);
        person_news_release(&n->news);
        free(n);
}

static struct noting *noting_new(struct persons *p, const char *platform, const struct incoming *in,
                                 int64_t now_ms)
{
        struct noting *n = mem_zalloc(sizeof(*n));

        n->persons = p;
        n->sight =
                (struct person_sight){ .platform = mem_strdup(platform),
                                       .user = mem_strdup(in->sender_id),
                                       .name = mem_strdup(in->sender_name),
                                       .username = mem_strdup(in->sender_username),
                                       .adapter = mem_strdup(in->adapter),
                                       .dm_channel =
                                               in->chat == CHAT_DM ? mem_strdup(in->channel) : NULL,
                                       .now_ms = now_ms };
        return n;
}

static int write_noting(struct store_tx *tx, void *arg, struct error *err)
{
        struct noting *n = arg;
        struct person_change link = { .what = PERSON_LINK,
                                      .a = { n->platform, n->user },
                                      .b = { n->sight.platform, n->sight.user },
                                      .by = "the person",
                                      .reason = "a code" };

        if (person_write_sight(tx, &n->sight, err) < 0)
                return -1;
        /*
         * a link that cannot be made must not keep the decision from being stored; a statement that
         * failed does so all the same
         */
        n->linked = n->links && person_write_change(tx, &link, n->sight.now_ms, &n->news, err) == 0;
        return 0;
}

static void on_noted(void *arg)
{
        struct noting *n = arg;

        if (n->sight.person > 0) /* 0: a replay, which stores nothing */
                identity_index_set(&n->persons->identities, n->sight.platform, n->sight.user,
                                   n->sight.person);
        if (n->linked)
                learn(n->persons, &n->news);
        noting_free(n);
}

/* FNV-1a; only to see that something changed. */
static uint64_t digest(uint64_t h, const char *text)
{
        for (; text && *text; text++)
                h = (h ^ (unsigned char)*text) * 1099511628211u;
        return (h ^ 0xff) * 1099511628211u;
}

static uint64_t look_of(const struct incoming *in)
{
        uint64_t h = digest(14695981039346656037u, in->sender_name);

        h = digest(digest(h, in->sender_username), in->adapter);
        return in->chat == CHAT_DM ? digest(h, in->channel) : h;
}

static bool is_full(struct persons *p)
{
        if (p->identities.count < PERSONS_MAX_IDENTITIES)
                return false;
        if (!p->full_told)
                log_warn("so many people are known that no further one is noted",
                         LOG_I("people", PERSONS_MAX_IDENTITIES));
        p->full_told = true;
        return true;
}

void persons_record(struct persons *p, const char *platform, const struct incoming *in,
                    int64_t now_ms, struct decision *out)
{
        if (persons_lookup(p, platform, in->sender_id) == 0 && is_full(p))
                return;
        if (!seen_cache_update(p->seen, platform, in->sender_id, look_of(in), now_ms))
                return;
        tx_extra_add(out, (struct tx_extra){ .fn = write_noting,
                                             .done = on_noted,
                                             .arg = noting_new(p, platform, in, now_ms) });
}

/* ---- who is who ---- */

void persons_link_sender(struct persons *p, const char *platform, const struct incoming *in,
                         const struct identity *a, int64_t now_ms, struct decision *out)
{
        struct noting *n = noting_new(p, platform, in, now_ms);

        n->links = true;
        n->platform = mem_strdup(a->platform);
        n->user = mem_strdup(a->user);
        tx_extra_add(out, (struct tx_extra){ .fn = write_noting, .done = on_noted, .arg = n });
}

struct changing {
        struct persons *persons;
        struct person_change change; /* its strings are owned */
        int64_t now_ms;
        struct person_news news;
        person_done_fn *done;
        void *arg;
};

static int write_changing(struct store_tx *tx, void *arg, struct error *err)
{
        struct changing *c = arg;

        return person_write_change(tx, &c->change, c->now_ms, &c->news, err);
}

static void on_changed(void *arg, const struct error *err)
{
        struct changing *c = arg;

        if (!err)
                learn(c->persons, &c->news);
        c->done(c->arg, &c->news.result, err);
        free((char *)c->change.a.platform);
        free((char *)c->change.a.user);
        free((char *)c->change.b.platform);
        free((char *)c->change.b.user);
        free((char *)c->change.by);
        free((char *)c->change.reason);
        person_news_release(&c->news);
        free(c);
}

static struct identity identity_dup(const struct identity *i)
{
        return (struct identity){ mem_strdup(i->platform), mem_strdup(i->user) };
}

void persons_change(struct persons *p, const struct person_change *change, person_done_fn *done,
                    void *arg)
{
        struct changing *c = mem_zalloc(sizeof(*c));

        *c = (struct changing){
                .persons = p, .change = *change, .now_ms = clock_wall_ms(), .done = done, .arg = arg
        };
        c->change.a = identity_dup(&change->a);
        c->change.b = identity_dup(&change->b);
        c->change.by = mem_strdup(change->by);
        c->change.reason = mem_strdup(change->reason);
        store_write(p->store, write_changing, on_changed, c);
}

/* ---- opening ---- */

static int read_identities(struct store_tx *tx, struct persons *p, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT platform, user_id, person FROM identities ORDER BY person, id");
        struct person_row rows[PERSON_MAX_IDENTITIES] = { 0 };
        size_t n = 0;
        int rc;

        while ((rc = store_step(s, err)) >= 0) {
                int64_t person = rc == 1 ? store_col_int(s, 2) : 0;

                if (n > 0 && (rows[0].person != person || n == COUNT(rows))) {
                        learn_rows(p, rows, n);
                        for (; n > 0; n--) {
                                free(rows[n - 1].platform);
                                free(rows[n - 1].user);
                        }
                }
                if (rc == 0)
                        break;
                rows[n++] = (struct person_row){ mem_strdup(store_col_text(s, 0)),
                                                 mem_strdup(store_col_text(s, 1)), person };
        }
        return rc;
}

static int read_persons(struct store_tx *tx, void *arg, struct error *err)
{
        struct persons *p = arg;
        struct store_stmt *s;
        int rc;

        if (read_identities(tx, p, err) < 0)
                return -1;
        s = store_prepare(tx, "SELECT id, merged_into FROM persons WHERE merged_into IS NOT NULL");
        while ((rc = store_step(s, err)) == 1)
                set_alias(p, store_col_int(s, 0), store_col_int(s, 1));
        return rc;
}

struct persons *persons_open(struct store *s, struct bus *b, struct error *err)
{
        struct persons *p = mem_zalloc(sizeof(*p));

        p->store = s;
        p->bus = b;
        identity_index_init(&p->identities);
        p->seen = seen_cache_new(SEEN_MAX, PERSONS_SEEN_MS);
        map_init(&p->linked);
        map_init(&p->aliases);
        if (store_read_now(s, read_persons, p, err) == 0)
                return p;
        persons_free(p);
        return NULL;
}

void persons_free(struct persons *p)
{
        void *value;

        if (!p)
                return;
        for (size_t i = 0; map_each(&p->linked, &i, NULL, &value);)
                linked_free(value);
        for (size_t i = 0; map_each(&p->aliases, &i, NULL, &value);)
                free(value);
        identity_index_release(&p->identities);
        seen_cache_free(p->seen);
        map_release(&p->linked);
        map_release(&p->aliases);
        free(p);
}
