/*
 * The rows of persons and identities, and how they change. Everything here runs inside store
 * functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/people/person_change.h"

#define CHAIN_MAX 64 /* aliases of aliases; merges keep the chains short */

/* ---- what a change touched ---- */

void person_news_reset(struct person_news *n)
{
        for (size_t i = 0; i < n->row_count; i++) {
                free(n->rows[i].platform);
                free(n->rows[i].user);
        }
        free(n->rows);
        free(n->aliases);
        n->rows = NULL;
        n->aliases = NULL;
        n->row_count = n->alias_count = 0;
        bus_batch_reset(&n->batch);
}

void person_news_release(struct person_news *n)
{
        person_news_reset(n);
        bus_batch_release(&n->batch);
}

static int read_rows(struct store_tx *tx, struct person_news *n, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT platform, user_id, person FROM identities WHERE "
                                  "person IN (?1, ?2) ORDER BY person, id");
        int rc;

        store_bind_int(s, 1, n->persons[0]);
        store_bind_int(s, 2, n->persons[1]);
        while ((rc = store_step(s, err)) == 1) {
                n->rows = mem_realloc(n->rows, (n->row_count + 1) * sizeof(*n->rows));
                n->rows[n->row_count++] = (struct person_row){ mem_strdup(store_col_text(s, 0)),
                                                               mem_strdup(store_col_text(s, 1)),
                                                               store_col_int(s, 2) };
        }
        return rc;
}

static int read_aliases(struct store_tx *tx, struct person_news *n, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT id, merged_into FROM persons WHERE id IN (?1, ?2) OR merged_into IN (?1, ?2)");
        int rc;

        store_bind_int(s, 1, n->persons[0]);
        store_bind_int(s, 2, n->persons[1]);
        while ((rc = store_step(s, err)) == 1) {
                n->aliases = mem_realloc(n->aliases, (n->alias_count + 1) * sizeof(*n->aliases));
                n->aliases[n->alias_count].person = store_col_int(s, 0);
                n->aliases[n->alias_count++].into = store_col_int(s, 1);
        }
        return rc;
}

/* ---- small steps ---- */

static int new_person(struct store_tx *tx, int64_t now_ms, int64_t *id, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "INSERT INTO persons(created_ms, updated_ms) VALUES(?1, ?1)");

        store_bind_int(s, 1, now_ms);
        return store_insert(s, id, err) < 0 ? -1 : 0;
}

struct identity_row {
        int64_t id, person, home;
};

/* 1, 0 when it was never seen, -1. */
static int find_identity(struct store_tx *tx, const struct identity *a, struct identity_row *out,
                         struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT id, person, home FROM identities WHERE platform = ?1 AND user_id = ?2");
        int rc;

        store_bind_text(s, 1, a->platform);
        store_bind_text(s, 2, a->user);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        *out = (struct identity_row){ store_col_int(s, 0), store_col_int(s, 1),
                                      store_col_int(s, 2) };
        store_reset(s);
        return 1;
}

static int need_identity(struct store_tx *tx, const struct identity *a, struct identity_row *out,
                         struct error *err)
{
        int rc = find_identity(tx, a, out, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "'%.40s:%.60s' has never written here",
                                 a->platform, a->user);
        return rc < 0 ? -1 : 0;
}

/* Who the person is now: *person changes along the aliases. */
static int follow(struct store_tx *tx, int64_t *person, struct error *err)
{
        int64_t asked = *person;

        for (int i = 0; i < CHAIN_MAX; i++) {
                struct store_stmt *s =
                        store_prepare(tx, "SELECT merged_into FROM persons WHERE id = ?1");
                int64_t into;
                int rc;

                store_bind_int(s, 1, *person);
                rc = store_step(s, err);
                if (rc < 0)
                        return -1;
                if (rc == 0)
                        return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                         (long long)asked);
                into = store_col_int(s, 0);
                store_reset(s);
                if (into == 0)
                        return 0;
                *person = into;
        }
        return error_set(err, ERR_CORRUPT, "person 'per-%lld' is an alias of itself",
                         (long long)asked);
}

static int64_t count_identities(struct store_tx *tx, int64_t person, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT count(*) FROM identities WHERE person = ?1");
        int64_t n = -1;

        store_bind_int(s, 1, person);
        if (store_step(s, err) == 1)
                n = store_col_int(s, 0);
        store_reset(s);
        return n;
}

/* An UPDATE whose parameters are numbers. */
static int change_rows(struct store_tx *tx, const char *sql, const int64_t *numbers, int count,
                       struct error *err)
{
        struct store_stmt *s = store_prepare(tx, sql);

        for (int i = 0; i < count; i++)
                store_bind_int(s, i + 1, numbers[i]);
        return store_run(s, err);
}

static int tell(struct store_tx *tx, const char *type, const struct person_change *c,
                int64_t now_ms, struct person_news *n, struct error *err)
{
        char id[32];
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        snprintf(id, sizeof(id), "per-%lld", (long long)n->result.person);
        jsonw_str(&payload, "personId", id);
        snprintf(id, sizeof(id), "per-%lld", (long long)n->result.other);
        jsonw_str(&payload, "otherPersonId", id);
        jsonw_open_member(&payload, "identities", '[');
        for (size_t i = 0; i < n->row_count; i++) {
                char *name = mem_printf("%s:%s", n->rows[i].platform, n->rows[i].user);

                if (n->rows[i].person == n->result.person)
                        jsonw_str(&payload, NULL, name);
                free(name);
        }
        jsonw_close(&payload, ']');
        jsonw_str(&payload, "by", c->by);
        jsonw_str(&payload, "reason", c->reason);
        jsonw_close(&payload, '}');
        rc = bus_append(
                tx, &n->batch,
                &(struct bus_event){ .type = type, .time_ms = now_ms, .payload = payload.data },
                NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* Both persons as they are now, for memory and the journal. */
static int finish(struct store_tx *tx, const char *type, const struct person_change *c,
                  int64_t now_ms, struct person_news *n, struct error *err)
{
        n->persons[0] = n->result.person;
        n->persons[1] = n->result.other;
        if (read_rows(tx, n, err) < 0 || read_aliases(tx, n, err) < 0)
                return -1;
        return tell(tx, type, c, now_ms, n, err);
}

/* ---- noting ---- */

static int note_new(struct store_tx *tx, struct person_sight *t, struct identity_row *out,
                    struct error *err)
{
        struct store_stmt *s;

        if (new_person(tx, t->now_ms, &out->person, err) < 0)
                return -1;
        s = store_prepare(
                tx,
                "INSERT INTO identities(platform, user_id, person, home, first_seen_ms, last_seen_ms)"
                " VALUES(?1, ?2, ?3, ?3, ?4, ?4)");
        store_bind_text(s, 1, t->platform);
        store_bind_text(s, 2, t->user);
        store_bind_int(s, 3, out->person);
        store_bind_int(s, 4, t->now_ms);
        return store_insert(s, &out->id, err) < 0 ? -1 : 0;
}

static int note_chat(struct store_tx *tx, const struct person_sight *t, int64_t identity,
                     struct error *err)
{
        struct store_stmt *s;

        if (!t->dm_channel)
                return 0;
        s = store_prepare(
                tx,
                "INSERT INTO identity_chats(identity, adapter, channel, seen_ms) VALUES(?1, ?2, ?3, ?4)"
                " ON CONFLICT(identity, adapter) DO UPDATE SET channel = ?3, seen_ms = ?4");
        store_bind_int(s, 1, identity);
        store_bind_text(s, 2, t->adapter);
        store_bind_text(s, 3, t->dm_channel);
        store_bind_int(s, 4, t->now_ms);
        return store_run(s, err);
}

int person_write_sight(struct store_tx *tx, struct person_sight *t, struct error *err)
{
        struct identity_row found = { 0 };
        struct store_stmt *s;
        int rc = find_identity(tx, &(struct identity){ t->platform, t->user }, &found, err);

        if (rc < 0 || (rc == 0 && note_new(tx, t, &found, err) < 0))
                return -1;
        t->person = found.person;
        s = store_prepare(
                tx,
                "UPDATE identities SET name = COALESCE(?2, name), username = COALESCE(?3, username),"
                " adapter = ?4, last_seen_ms = ?5 WHERE id = ?1");
        store_bind_int(s, 1, found.id);
        store_bind_text(s, 2, t->name);
        store_bind_text(s, 3, t->username);
        store_bind_text(s, 4, t->adapter);
        store_bind_int(s, 5, t->now_ms);
        return store_run(s, err) < 0 ? -1 : note_chat(tx, t, found.id, err);
}

/* ---- who is who ---- */

static int merge(struct store_tx *tx, int64_t source, int64_t target, int64_t now_ms,
                 struct person_news *n, struct error *err)
{
        int64_t a, b;

        if (follow(tx, &source, err) < 0 || follow(tx, &target, err) < 0)
                return -1;
        if (source == target)
                return error_set(err, ERR_CONFLICT, "they are the same person already, 'per-%lld'",
                                 (long long)target);
        a = count_identities(tx, source, err);
        b = count_identities(tx, target, err);
        if (a < 0 || b < 0)
                return -1;
        if (a + b > PERSON_MAX_IDENTITIES)
                return error_set(err, ERR_LIMIT, "a person has at most %d identities",
                                 PERSON_MAX_IDENTITIES);
        n->result = (struct person_changed){ target, source };
        if (change_rows(tx, "UPDATE identities SET person = ?2 WHERE person = ?1",
                        (int64_t[]){ source, target }, 2, err) < 0)
                return -1;
        return change_rows(tx, "UPDATE persons SET merged_into = ?2, updated_ms = ?3 WHERE id = ?1",
                           (int64_t[]){ source, target, now_ms }, 3, err);
}

/*
 * It goes home, with all that came from there; what had been merged into its home before stays
 * where it is.
 */
static int go_home(struct store_tx *tx, const struct identity_row *i, int64_t now_ms,
                   struct error *err)
{
        const int64_t moved[] = { i->home, i->person, now_ms }, back[] = { i->home, now_ms };

        if (change_rows(tx, "UPDATE identities SET person = ?1 WHERE home = ?1 AND person = ?2",
                        moved, 2, err) < 0 ||
            change_rows(
                    tx,
                    "UPDATE persons SET merged_into = ?2, updated_ms = ?3 WHERE merged_into = ?1",
                    moved, 3, err) < 0)
                return -1;
        return change_rows(tx,
                           "UPDATE persons SET merged_into = NULL, updated_ms = ?2 WHERE id = ?1",
                           back, 2, err);
}

/* It was at home where it is: it gets a new home, and the others keep the old one. */
static int move_out(struct store_tx *tx, const struct identity_row *i, int64_t now_ms,
                    int64_t *person, struct error *err)
{
        if (new_person(tx, now_ms, person, err) < 0)
                return -1;
        return change_rows(tx, "UPDATE identities SET person = ?2, home = ?2 WHERE id = ?1",
                           (int64_t[]){ i->id, *person }, 2, err);
}

static int unlink_identity(struct store_tx *tx, const struct identity *a, int64_t now_ms,
                           struct person_news *n, struct error *err)
{
        struct identity_row found = { 0 };
        int64_t count;

        if (need_identity(tx, a, &found, err) < 0)
                return -1;
        count = count_identities(tx, found.person, err);
        if (count < 0)
                return -1;
        if (count < 2)
                return error_set(err, ERR_CONFLICT, "'%.40s:%.60s' is linked to nobody",
                                 a->platform, a->user);
        n->result = (struct person_changed){ found.home, found.person };
        if (found.home != found.person)
                return go_home(tx, &found, now_ms, err);
        return move_out(tx, &found, now_ms, &n->result.person, err);
}

static int link_identities(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                           struct person_news *n, struct error *err)
{
        struct identity_row a = { 0 }, b = { 0 };

        if (need_identity(tx, &c->a, &a, err) < 0 || need_identity(tx, &c->b, &b, err) < 0)
                return -1;
        return merge(tx, b.person, a.person, now_ms, n, err);
}

int person_write_change(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                        struct person_news *n, struct error *err)
{
        int rc = -1;

        person_news_reset(n);
        switch (c->what) {
        case PERSON_MERGE:
                rc = merge(tx, c->source, c->target, now_ms, n, err);
                break;
        case PERSON_LINK:
                rc = link_identities(tx, c, now_ms, n, err);
                break;
        case PERSON_UNLINK:
                rc = unlink_identity(tx, &c->a, now_ms, n, err);
                break;
        }
        if (rc < 0)
                return -1;
        return finish(tx, c->what == PERSON_UNLINK ? "identity.unlinked" : "identity.merged", c,
                      now_ms, n, err);
}
