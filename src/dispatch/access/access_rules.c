#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/rules/pattern.h"
#include "dispatch/rules/rules.h"
#include "store/write_through.h"

#define USER_MAX  200
#define GLOBS_MAX 1000 /* rules with `*` are tried one by one */

struct access_entry {
        struct access_rule rule;   /* its strings are owned */
        const char *pattern;       /* rule.user without platform; NULL: names a person */
        size_t platform_n;         /* length of the platform in rule.user; 0: any */
        struct access_entry *next; /* same key in the index */
};

struct access_rules {
        struct store *store;
        const struct persons *persons;
        struct access_entry **items; /* by number */
        size_t count;
        struct map by_user;         /* id without platform → chain */
        struct map by_person;       /* current person → chain */
        struct access_entry *globs; /* chain */
        size_t glob_count;
};

/* ---- rules ---- */

/* "telegram:7" → 8. Ids with a colon of their own ("@ann:example.org") do not begin with a word. */
static size_t platform_length(const char *user)
{
        size_t n = 0;

        while (islower((unsigned char)user[n]))
                n++;
        return n > 0 && user[n] == ':' ? n : 0;
}

static struct access_entry *entry_new(const struct access_rule *r)
{
        struct access_entry *e = mem_zalloc(sizeof(*e));

        e->rule = *r;
        e->rule.adapter = mem_strdup(r->adapter);
        e->rule.user = mem_strdup(r->user);
        e->rule.place = mem_strdup(r->place);
        e->rule.reason = mem_strdup(r->reason);
        e->rule.message = mem_strdup(r->message);
        e->rule.by = mem_strdup(r->by);
        if (r->user) {
                e->platform_n = platform_length(r->user);
                e->pattern = e->rule.user + (e->platform_n > 0 ? e->platform_n + 1 : 0);
        }
        return e;
}

static void entry_free(struct access_entry *e)
{
        if (!e)
                return;
        free((char *)e->rule.adapter);
        free((char *)e->rule.user);
        free((char *)e->rule.place);
        free((char *)e->rule.reason);
        free((char *)e->rule.message);
        free((char *)e->rule.by);
        free(e);
}

static bool is_glob(const struct access_entry *e)
{
        return e->pattern && strchr(e->pattern, '*');
}

int access_rule_check(const struct access_rule *r, struct error *err)
{
        const char *user = r->user ? r->user : "";
        size_t n = platform_length(user);

        if (!r->user == (r->person == 0))
                return error_set(err, ERR_INVALID,
                                 "platformUserId: a rule names either a user, such as '7' or "
                                 "'telegram:7', or a person (personId)");
        if (r->user && (user[n > 0 ? n + 1 : 0] == '\0' || strlen(user) > USER_MAX))
                return error_set(err, ERR_INVALID,
                                 "platformUserId: expected an id of 1 to %d bytes, optionally "
                                 "after a platform and a colon",
                                 USER_MAX);
        if (r->place && strcmp(r->place, "dm") != 0 && strcmp(r->place, "group") != 0)
                return error_set(err, ERR_INVALID, "place: expected 'dm' or 'group'");
        if (r->message && !r->deny)
                return error_set(err, ERR_INVALID, "blockMessage: only a deny rule may have one");
        return 0;
}

/* ---- index ---- */

static char *person_key(char out[24], int64_t person)
{
        snprintf(out, 24, "%lld", (long long)person);
        return out;
}

void access_rules_reindex(struct access_rules *rs)
{
        map_release(&rs->by_user);
        map_release(&rs->by_person);
        rs->globs = NULL;
        rs->glob_count = 0;
        for (size_t i = 0; i < rs->count; i++) {
                struct access_entry *e = rs->items[i];
                int64_t person = e->rule.person;
                char key[24];

                if (person > 0)
                        person = persons_current(rs->persons, person);
                if (person > 0) {
                        e->next = map_put(&rs->by_person, person_key(key, person), e);
                } else if (is_glob(e)) {
                        e->next = rs->globs;
                        rs->globs = e;
                        rs->glob_count++;
                } else {
                        e->next = map_put(&rs->by_user, e->pattern, e);
                }
        }
}

/* ---- matching ---- */

/* The better of `found` and the chain's matching entries: a deny, else the first. */
static const struct access_entry *search(const struct access_entry *e,
                                         const struct access_request *q,
                                         const struct identity *identity, bool denies_only,
                                         const struct access_entry *found)
{
        for (; e; e = e->next) {
                const struct access_rule *r = &e->rule;
                const char *platform = identity && identity->platform ? identity->platform : "";

                if (!r->enabled || (r->expires_ms != 0 && r->expires_ms <= q->now_ms) ||
                    (r->adapter && (!q->adapter || strcmp(r->adapter, q->adapter) != 0)) ||
                    (r->place && (strcmp(r->place, "dm") == 0) != q->dm) ||
                    (denies_only && !r->deny))
                        continue;
                if (identity && e->platform_n > 0 &&
                    (strncmp(r->user, platform, e->platform_n) != 0 ||
                     platform[e->platform_n] != '\0'))
                        continue;
                if (identity && (!identity->user || !pattern_glob(e->pattern, identity->user)))
                        continue;
                if (!found || (r->deny && !found->rule.deny))
                        found = e;
        }
        return found;
}

const struct access_rule *access_rules_match(const struct access_rules *rs,
                                             const struct access_request *q)
{
        const struct access_entry *found = NULL, *e;
        char key[24];

        if (rs->count == 0)
                return NULL;
        for (size_t i = 0; i < q->identity_count; i++) {
                const struct identity *identity = &q->identities[i];

                /* the person's other identities can only deny */
                e = identity->user ? map_get(&rs->by_user, identity->user) : NULL;
                found = search(e, q, identity, i > 0, found);
                found = search(rs->globs, q, identity, i > 0, found);
        }
        e = q->person > 0 ? map_get(&rs->by_person, person_key(key, q->person)) : NULL;
        found = search(e, q, NULL, false, found);
        return found ? &found->rule : NULL;
}

/* ---- list ---- */

static size_t index_of(const struct access_rules *rs, int64_t id)
{
        size_t i = 0;

        while (i < rs->count && rs->items[i]->rule.id != id)
                i++;
        return i;
}

size_t access_rules_count(const struct access_rules *rs)
{
        return rs->count;
}

const struct access_rule *access_rules_at(const struct access_rules *rs, size_t index)
{
        return &rs->items[index]->rule;
}

const struct access_rule *access_rules_find(const struct access_rules *rs, int64_t id)
{
        size_t i = index_of(rs, id);

        return i < rs->count ? &rs->items[i]->rule : NULL;
}

/* Numbers grow, so a new rule goes to the end. */
void access_rules_add(struct access_rules *rs, const struct access_rule *r)
{
        size_t i = index_of(rs, r->id);

        if (i < rs->count) {
                entry_free(rs->items[i]);
        } else {
                rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(*rs->items));
                rs->count++;
        }
        rs->items[i] = entry_new(r);
        access_rules_reindex(rs);
}

void access_rules_remove(struct access_rules *rs, int64_t id)
{
        size_t i = index_of(rs, id);

        if (i == rs->count)
                return;
        entry_free(rs->items[i]);
        rs->count--;
        memmove(&rs->items[i], &rs->items[i + 1], (rs->count - i) * sizeof(*rs->items));
        access_rules_reindex(rs);
}

/* ---- changes ---- */

struct access_rule_change {
        struct write_through base;
        struct access_rules *rules;
        struct access_entry *entry; /* NULL: delete */
        int64_t id;                 /* 0: new, not written yet */
        bool is_new;
        access_rule_done_fn *done;
        void *arg;
};

static int write_change(struct store_tx *tx, void *change, struct error *err)
{
        struct access_rule_change *c = change;
        int rc;

        if (c->is_new)
                return access_rule_row_insert(tx, &c->entry->rule, &c->id, err);
        rc = c->entry ? access_rule_row_update(tx, &c->entry->rule, err)
                      : access_rule_row_delete(tx, c->id, err);
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no access rule 'acr-%lld'",
                                 (long long)c->id);
        return rc < 0 ? -1 : 0;
}

static void apply_change(void *change)
{
        struct access_rule_change *c = change;
        const struct access_rule *before = access_rules_find(c->rules, c->id);

        if (!c->entry) {
                access_rules_remove(c->rules, c->id);
                return;
        }
        c->entry->rule.id = c->id;
        if (before)
                c->entry->rule.created_ms = before->created_ms;
        access_rules_add(c->rules, &c->entry->rule);
}

static void change_done(void *change, const struct error *err)
{
        const struct access_rule_change *c = change;

        if (c->done)
                c->done(c->arg, c->id, err);
}

static void release_change(void *change)
{
        struct access_rule_change *c = change;

        entry_free(c->entry);
        free(c);
}

static const struct write_through_ops change_ops = { write_change, apply_change, change_done,
                                                     release_change };

static struct access_rule_change *change_new(struct access_rules *rs, int64_t id,
                                             access_rule_done_fn *done, void *arg)
{
        struct access_rule_change *c = mem_zalloc(sizeof(*c));

        c->base.ops = &change_ops;
        c->rules = rs;
        c->id = id;
        c->done = done;
        c->arg = arg;
        return c;
}

void access_rules_put(struct access_rules *rs, const struct access_rule *r,
                      access_rule_done_fn *done, void *arg)
{
        struct access_rule_change *c = change_new(rs, r->id, done, arg);
        struct error *refusal = &c->base.refusal;

        c->is_new = r->id == 0;
        c->entry = entry_new(r);
        c->entry->rule.created_ms = c->entry->rule.updated_ms = clock_wall_ms();
        if (access_rule_check(r, refusal) == 0) {
                if (c->is_new && rs->count >= ACCESS_RULES_MAX)
                        error_set(refusal, ERR_LIMIT,
                                  "there are %d access rules already; delete some",
                                  ACCESS_RULES_MAX);
                else if (is_glob(c->entry) && rs->glob_count >= GLOBS_MAX)
                        error_set(refusal, ERR_LIMIT,
                                  "there are %d access rules with a '*' already; delete some",
                                  GLOBS_MAX);
        }
        write_through_submit(rs->store, c);
}

void access_rules_delete(struct access_rules *rs, int64_t id, access_rule_done_fn *done, void *arg)
{
        write_through_submit(rs->store, change_new(rs, id, done, arg));
}

/* ---- opening ---- */

static int read_table(struct store_tx *tx, void *arg, struct error *err)
{
        struct access_rules *rs = arg;
        struct store_stmt *s = access_rule_row_list(tx);
        struct access_rule r;
        int rc;

        while ((rc = access_rule_row_next(s, &r, err)) == 1) {
                rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(*rs->items));
                rs->items[rs->count++] = entry_new(&r);
        }
        return rc;
}

struct access_rules *access_rules_open(struct store *s, const struct persons *persons,
                                       struct error *err)
{
        struct access_rules *rs = mem_zalloc(sizeof(*rs));

        rs->store = s;
        rs->persons = persons;
        map_init(&rs->by_user);
        map_init(&rs->by_person);
        if (store_read_now(s, read_table, rs, err) < 0) {
                access_rules_free(rs);
                return NULL;
        }
        access_rules_reindex(rs);
        return rs;
}

void access_rules_free(struct access_rules *rs)
{
        if (!rs)
                return;
        for (size_t i = 0; i < rs->count; i++)
                entry_free(rs->items[i]);
        map_release(&rs->by_user);
        map_release(&rs->by_person);
        free(rs->items);
        free(rs);
}
