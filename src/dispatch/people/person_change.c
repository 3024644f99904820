#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/people/persons_private.h"

#define ALIAS_DEPTH_MAX 64 /* chains of aliases; merges keep them short */

/* ---- collecting effects ---- */

static void reset_effects(struct person_effects *e)
{
        for (size_t i = 0; i < e->identity_count; i++) {
                free((char *)e->identities[i].identity.platform);
                free((char *)e->identities[i].identity.user);
        }
        free(e->identities);
        free(e->aliases);
        e->identities = NULL;
        e->aliases = NULL;
        e->identity_count = e->alias_count = 0;
        bus_batch_reset(&e->batch);
}

void person_change_release(struct person_effects *e)
{
        reset_effects(e);
        bus_batch_release(&e->batch);
}

static int read_effects(struct store_tx *tx, struct person_effects *e, struct error *err)
{
        int64_t a = e->result.person, b = e->result.other;
        struct store_stmt *s = person_row_list_identities(tx, a, b);
        struct person_identity row;
        struct person_alias alias;
        int rc;

        while ((rc = person_row_next_identity(s, &row.identity, &row.person, err)) == 1) {
                e->identities = mem_realloc(e->identities, (e->identity_count + 1) * sizeof(row));
                e->identities[e->identity_count++] =
                        (struct person_identity){ { mem_strdup(row.identity.platform),
                                                    mem_strdup(row.identity.user) },
                                                  row.person };
        }
        if (rc < 0)
                return -1;
        s = person_row_list_aliases(tx, a, b);
        while ((rc = person_row_next_alias(s, &alias.person, &alias.into, err)) == 1) {
                e->aliases = mem_realloc(e->aliases, (e->alias_count + 1) * sizeof(alias));
                e->aliases[e->alias_count++] = alias;
        }
        return rc;
}

static int journal(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                   struct person_effects *e, struct error *err)
{
        const char *type = c->what == PERSON_UNLINK ? "identity.unlinked" : "identity.merged";
        struct buf payload;
        char id[32];
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        snprintf(id, sizeof(id), "per-%lld", (long long)e->result.person);
        jsonw_str(&payload, "personId", id);
        snprintf(id, sizeof(id), "per-%lld", (long long)e->result.other);
        jsonw_str(&payload, "otherPersonId", id);
        jsonw_open_member(&payload, "identities", '[');
        for (size_t i = 0; i < e->identity_count; i++) {
                const struct person_identity *p = &e->identities[i];
                char *name = mem_printf("%s:%s", p->identity.platform, p->identity.user);

                if (p->person == e->result.person)
                        jsonw_str(&payload, NULL, name);
                free(name);
        }
        jsonw_close(&payload, ']');
        jsonw_str(&payload, "by", c->by);
        jsonw_str(&payload, "reason", c->reason);
        jsonw_close(&payload, '}');
        rc = bus_append(
                tx, &e->batch,
                &(struct bus_event){ .type = type, .time_ms = now_ms, .payload = payload.data },
                NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* ---- recording a sender ---- */

int person_change_record(struct store_tx *tx, const struct person_sighting *s, int64_t *person,
                         struct error *err)
{
        struct identity_row row = { 0 };
        int rc = person_row_get_identity(tx, &s->identity, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0 &&
            (person_row_insert(tx, s->now_ms, &row.person, err) < 0 ||
             person_row_add_identity(tx, &s->identity, row.person, s->now_ms, &row.id, err) < 0))
                return -1;
        *person = row.person;
        return person_row_update_identity(tx, row.id, s, err);
}

/* ---- merging and splitting ---- */

static int need_identity(struct store_tx *tx, const struct identity *identity,
                         struct identity_row *out, struct error *err)
{
        int rc = person_row_get_identity(tx, identity, out, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "'%.40s:%.60s' has never written here",
                                 identity->platform, identity->user);
        return rc < 0 ? -1 : 0;
}

/* Replaces *person by its merge target. */
static int follow_aliases(struct store_tx *tx, int64_t *person, struct error *err)
{
        int64_t asked = *person, into;

        for (int i = 0; i < ALIAS_DEPTH_MAX; i++) {
                int rc = person_row_get_alias(tx, *person, &into, err);

                if (rc < 0)
                        return -1;
                if (rc == 0)
                        return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                         (long long)asked);
                if (into == 0)
                        return 0;
                *person = into;
        }
        return error_set(err, ERR_CORRUPT, "person 'per-%lld' is an alias of itself",
                         (long long)asked);
}

static int merge(struct store_tx *tx, int64_t source, int64_t target, int64_t now_ms,
                 struct person_effects *e, struct error *err)
{
        int64_t a, b;

        if (follow_aliases(tx, &source, err) < 0 || follow_aliases(tx, &target, err) < 0)
                return -1;
        if (source == target)
                return error_set(err, ERR_CONFLICT, "they are the same person already, 'per-%lld'",
                                 (long long)target);
        a = person_row_count_identities(tx, source, err);
        b = person_row_count_identities(tx, target, err);
        if (a < 0 || b < 0)
                return -1;
        if (a + b > PERSON_MAX_IDENTITIES)
                return error_set(err, ERR_LIMIT, "a person has at most %d identities",
                                 PERSON_MAX_IDENTITIES);
        e->result = (struct person_changed){ target, source };
        if (person_row_move_identities(tx, source, target, err) < 0)
                return -1;
        return person_row_set_alias(tx, source, target, now_ms, err);
}

/*
 * Returns the identity to its home with all others of that home; persons merged into the home
 * before stay. One already at home gets a new person, and the others keep theirs.
 */
static int unlink_identity(struct store_tx *tx, const struct identity *identity, int64_t now_ms,
                           struct person_effects *e, struct error *err)
{
        struct identity_row row = { 0 };
        int64_t count;

        if (need_identity(tx, identity, &row, err) < 0)
                return -1;
        count = person_row_count_identities(tx, row.person, err);
        if (count < 0)
                return -1;
        if (count < 2)
                return error_set(err, ERR_CONFLICT, "'%.40s:%.60s' is not linked to another one",
                                 identity->platform, identity->user);
        e->result = (struct person_changed){ row.home, row.person };
        if (row.home == row.person) {
                if (person_row_insert(tx, now_ms, &e->result.person, err) < 0)
                        return -1;
                return person_row_rehome_identity(tx, row.id, e->result.person, err);
        }
        if (person_row_return_identities(tx, row.home, row.person, err) < 0 ||
            person_row_move_aliases(tx, row.home, row.person, now_ms, err) < 0)
                return -1;
        return person_row_set_alias(tx, row.home, 0, now_ms, err);
}

int person_change_write(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                        struct person_effects *out, struct error *err)
{
        struct identity_row a = { 0 }, b = { 0 };
        int rc = -1;

        reset_effects(out);
        switch (c->what) {
        case PERSON_MERGE:
                rc = merge(tx, c->source, c->target, now_ms, out, err);
                break;
        case PERSON_LINK:
                if (need_identity(tx, &c->a, &a, err) == 0 &&
                    need_identity(tx, &c->b, &b, err) == 0)
                        rc = merge(tx, b.person, a.person, now_ms, out, err);
                break;
        case PERSON_UNLINK:
                rc = unlink_identity(tx, &c->a, now_ms, out, err);
                break;
        }
        if (rc < 0 || read_effects(tx, out, err) < 0)
                return -1;
        return journal(tx, c, now_ms, out, err);
}
