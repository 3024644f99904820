#include "dispatch/access/access_rules.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/rules/rules.h"

#define USER_MAX 200

struct entry {
        struct access_rule rule; /* its strings are this struct's own */
        const char *pattern;     /* of rule.user, behind the platform; NULL: about a person */
        size_t platform_n;       /* bytes of rule.user that name the platform; 0: any */
        struct entry *next;      /* with the same key in the index */
};

struct access_rules {
        struct store *store;
        struct entry **items; /* by number */
        size_t count;
        struct map by_user;   /* id without platform → chain */
        struct map by_person; /* number, as it is now → chain */
        struct entry *globs;  /* chain */
        size_t glob_count;
        int64_t (*current)(void *arg, int64_t person);
        void *current_arg;
};

struct change {
        struct access_rules *rules;
        struct entry *entry; /* NULL: deleted */
        int64_t id;
        bool is_new;
        struct error refusal;
        access_rule_done_fn *done;
        void *arg;
};

/* ---- one rule ---- */

/* "telegram:7" → 8; ids with a colon of their own ("@ann:example.org") do not begin with a word. */
static size_t platform_length(const char *user)
{
        size_t n = 0;

        while (islower((unsigned char)user[n]))
                n++;
        return n > 0 && user[n] == ':' ? n : 0;
}

static struct entry *entry_new(const struct access_rule *r)
{
        struct entry *e = mem_zalloc(sizeof(*e));

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

static void entry_free(struct entry *e)
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

static bool is_glob(const struct entry *e)
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
                return error_set(
                        err, ERR_INVALID,
                        "platformUserId: expected an id of 1 to %d bytes, perhaps behind a "
                        "platform and a colon",
                        USER_MAX);
        if (r->place && strcmp(r->place, "dm") != 0 && strcmp(r->place, "group") != 0)
                return error_set(err, ERR_INVALID, "place: expected 'dm' or 'group'");
        if (r->message && !r->deny)
                return error_set(err, ERR_INVALID, "blockMessage: goes with a deny only");
        return 0;
}

/* ---- the index ---- */

static void chain(struct map *m, const char *key, struct entry *e)
{
        e->next = map_get(m, key);
        map_put(m, key, e);
}

static char *person_key(char out[24], int64_t person)
{
        snprintf(out, 24, "%lld", (long long)person);
        return out;
}

static void index_entry(struct access_rules *rs, struct entry *e)
{
        int64_t person = e->rule.person;
        char key[24];

        e->next = NULL;
        if (person > 0) {
                if (rs->current)
                        person = rs->current(rs->current_arg, person);
                chain(&rs->by_person, person_key(key, person), e);
        } else if (is_glob(e)) {
                e->next = rs->globs;
                rs->globs = e;
                rs->glob_count++;
        } else {
                chain(&rs->by_user, e->pattern, e);
        }
}

void access_rules_resolve(struct access_rules *rs)
{
        map_release(&rs->by_user);
        map_release(&rs->by_person);
        rs->globs = NULL;
        rs->glob_count = 0;
        for (size_t i = 0; i < rs->count; i++)
                index_entry(rs, rs->items[i]);
}

void access_rules_set_persons(struct access_rules *rs,
                              int64_t (*current)(void *arg, int64_t person), void *arg)
{
        rs->current = current;
        rs->current_arg = arg;
        access_rules_resolve(rs);
}

/* ---- judging ---- */

static bool holds(const struct entry *e, const struct access_who *who)
{
        const struct access_rule *r = &e->rule;

        return r->enabled && (r->expires_ms == 0 || r->expires_ms > who->now_ms) &&
               (!r->adapter || (who->adapter && strcmp(r->adapter, who->adapter) == 0)) &&
               (!r->place || (strcmp(r->place, "dm") == 0) == who->dm);
}

static bool names(const struct entry *e, const struct identity *identity)
{
        const char *platform = identity->platform ? identity->platform : "";

        if (e->platform_n > 0 && (strncmp(e->rule.user, platform, e->platform_n) != 0 ||
                                  platform[e->platform_n] != '\0'))
                return false;
        return identity->user && glob_match(e->pattern, identity->user);
}

/* The better of the two: a deny beats an allow, and what was found first stays. */
static const struct entry *better(const struct entry *found, const struct entry *other)
{
        return !found || (other->rule.deny && !found->rule.deny) ? other : found;
}

/* Another identity of the same person can only keep him out. */
static const struct entry *judge_identity(const struct access_rules *rs,
                                          const struct access_who *who, size_t index,
                                          const struct entry *found)
{
        const struct identity *identity = &who->identities[index];
        const struct entry *lists[] = { identity->user ? map_get(&rs->by_user, identity->user)
                                                       : NULL,
                                        rs->globs };

        for (size_t i = 0; i < COUNT(lists); i++) {
                for (const struct entry *e = lists[i]; e; e = e->next) {
                        if ((index == 0 || e->rule.deny) && holds(e, who) && names(e, identity))
                                found = better(found, e);
                }
        }
        return found;
}

const struct access_rule *access_rules_match(const struct access_rules *rs,
                                             const struct access_who *who)
{
        const struct entry *found = NULL;
        char key[24];

        if (rs->count == 0)
                return NULL;
        for (size_t i = 0; i < who->identity_count; i++)
                found = judge_identity(rs, who, i, found);
        if (who->person > 0) {
                for (const struct entry *e = map_get(&rs->by_person, person_key(key, who->person));
                     e; e = e->next)
                        found = holds(e, who) ? better(found, e) : found;
        }
        return found ? &found->rule : NULL;
}

/* ---- the list ---- */

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

/* Takes e over. Numbers grow, so a new one belongs at the end. */
static void put_in(struct access_rules *rs, struct entry *e)
{
        size_t i = index_of(rs, e->rule.id);

        if (i < rs->count) {
                entry_free(rs->items[i]);
        } else {
                rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(struct entry *));
                rs->count++;
        }
        rs->items[i] = e;
}

static void take_out(struct access_rules *rs, int64_t id)
{
        size_t i = index_of(rs, id);

        if (i == rs->count)
                return;
        entry_free(rs->items[i]);
        rs->count--;
        memmove(&rs->items[i], &rs->items[i + 1], (rs->count - i) * sizeof(struct entry *));
}

/* ---- changing ---- */

static void bind_rule(struct store_stmt *s, const struct access_rule *r)
{
        store_bind_text(s, 1, r->adapter);
        store_bind_text(s, 2, r->deny ? "deny" : "allow");
        store_bind_text(s, 3, r->user);
        if (r->person > 0)
                store_bind_int(s, 4, r->person);
        else
                store_bind_null(s, 4);
        store_bind_text(s, 5, r->place);
        store_bind_int(s, 6, r->enabled);
        store_bind_text(s, 7, r->reason);
        store_bind_text(s, 8, r->message);
        store_bind_int(s, 9, r->expires_ms);
        store_bind_text(s, 10, r->by);
        store_bind_int(s, 11, r->updated_ms);
}

int access_rule_insert(struct store_tx *tx, const struct access_rule *r, int64_t *id,
                       struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO access_rules(adapter, effect, platform_user, person, place, enabled,"
                " reason, message, expires_ms, by_whom, updated_ms, created_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)");

        bind_rule(s, r);
        return store_insert(s, id, err) < 0 ? -1 : 0;
}

static int write_changed(struct store_tx *tx, struct change *c, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE access_rules SET adapter = ?1, effect = ?2, platform_user = ?3, person = ?4, place = "
                "?5,"
                " enabled = ?6, reason = ?7, message = ?8, expires_ms = ?9, by_whom = ?10, updated_ms = ?11"
                " WHERE id = ?12");

        bind_rule(s, &c->entry->rule);
        store_bind_int(s, 12, c->id);
        return store_run(s, err);
}

int access_rule_remove(struct store_tx *tx, int64_t id, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "DELETE FROM access_rules WHERE id = ?1");

        store_bind_int(s, 1, id);
        return store_run(s, err);
}

static int write_change(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;

        if (c->refusal.kind != ERR_NONE) {
                *err = c->refusal;
                return -1;
        }
        if (c->is_new)
                return access_rule_insert(tx, &c->entry->rule, &c->id, err);
        if ((c->entry ? write_changed(tx, c, err) : access_rule_remove(tx, c->id, err)) < 0)
                return -1;
        if (store_changes(tx) == 0)
                return error_set(err, ERR_MISSING, "there is no access rule 'acr-%lld'",
                                 (long long)c->id);
        return 0;
}

void access_rules_learn(struct access_rules *rs, const struct access_rule *r)
{
        put_in(rs, entry_new(r));
        access_rules_resolve(rs);
}

void access_rules_unlearn(struct access_rules *rs, int64_t id)
{
        take_out(rs, id);
        access_rules_resolve(rs);
}

static void apply(struct change *c)
{
        struct access_rules *rs = c->rules;
        const struct access_rule *before = access_rules_find(rs, c->id);

        if (c->entry) {
                c->entry->rule.id = c->id;
                if (before)
                        c->entry->rule.created_ms = before->created_ms;
                put_in(rs, c->entry);
                c->entry = NULL;
        } else {
                take_out(rs, c->id);
        }
        access_rules_resolve(rs);
}

static void on_changed(void *arg, const struct error *err)
{
        struct change *c = arg;

        if (!err)
                apply(c);
        if (c->done)
                c->done(c->arg, c->id, err);
        entry_free(c->entry);
        free(c);
}

static void check_room(struct change *c)
{
        struct access_rules *rs = c->rules;

        if (c->is_new && rs->count >= ACCESS_RULES_MAX)
                error_set(&c->refusal, ERR_LIMIT, "there are %d access rules already; delete some",
                          ACCESS_RULES_MAX);
        else if (is_glob(c->entry) && rs->glob_count >= ACCESS_RULES_GLOBS_MAX)
                error_set(&c->refusal, ERR_LIMIT,
                          "there are %d access rules with a '*' already; delete some",
                          ACCESS_RULES_GLOBS_MAX);
}

static struct change *change_new(struct access_rules *rs, int64_t id, access_rule_done_fn *done,
                                 void *arg)
{
        struct change *c = mem_zalloc(sizeof(*c));

        *c = (struct change){ .rules = rs, .id = id, .done = done, .arg = arg };
        return c;
}

void access_rules_put(struct access_rules *rs, const struct access_rule *r,
                      access_rule_done_fn *done, void *arg)
{
        struct change *c = change_new(rs, r->id, done, arg);

        c->is_new = r->id == 0;
        c->entry = entry_new(r);
        c->entry->rule.created_ms = c->entry->rule.updated_ms = clock_wall_ms();
        if (access_rule_check(r, &c->refusal) == 0)
                check_room(c);
        store_write(rs->store, write_change, on_changed, c);
}

void access_rules_delete(struct access_rules *rs, int64_t id, access_rule_done_fn *done, void *arg)
{
        store_write(rs->store, write_change, on_changed, change_new(rs, id, done, arg));
}

/* ---- opening ---- */

static int read_rules(struct store_tx *tx, void *arg, struct error *err)
{
        struct access_rules *rs = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT id, adapter, effect, platform_user, person, place, enabled, reason, message,"
                " expires_ms, by_whom, created_ms, updated_ms FROM access_rules ORDER BY id");
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct access_rule r = { .id = store_col_int(s, 0),
                                         .adapter = store_col_text(s, 1),
                                         .deny = strcmp(store_col_text(s, 2), "allow") != 0,
                                         .user = store_col_text(s, 3),
                                         .person = store_col_int(s, 4),
                                         .place = store_col_text(s, 5),
                                         .enabled = store_col_int(s, 6) != 0,
                                         .reason = store_col_text(s, 7),
                                         .message = store_col_text(s, 8),
                                         .expires_ms = store_col_int(s, 9),
                                         .by = store_col_text(s, 10),
                                         .created_ms = store_col_int(s, 11),
                                         .updated_ms = store_col_int(s, 12) };

                rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(struct entry *));
                rs->items[rs->count++] = entry_new(&r);
        }
        return rc;
}

struct access_rules *access_rules_open(struct store *s, struct error *err)
{
        struct access_rules *rs = mem_zalloc(sizeof(*rs));

        rs->store = s;
        map_init(&rs->by_user);
        map_init(&rs->by_person);
        if (store_read_now(s, read_rules, rs, err) < 0) {
                access_rules_free(rs);
                return NULL;
        }
        access_rules_resolve(rs);
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
