#include "dispatch/rules/stored_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/rules/rules.h"

#define NAME_MAX_BYTES 200

struct entry {
        struct stored_rule shown; /* its strings are this struct's own */
        struct rule rule;
        struct error mistake; /* why it is not understood */
};

struct stored_rules {
        struct store *store;
        struct entry **items; /* by position */
        size_t count;
        void (*changed)(void *arg);
        void *changed_arg;
};

/* A change on its way to the disk. */
struct change {
        struct stored_rules *rules;
        struct entry *entry; /* NULL: deleted */
        char *name;
        enum stored_rule_put how;
        struct error refusal;
        store_done_fn *done;
        void *arg;
};

/* ---- reading ---- */

/* {"rule": ...} in our words; yours to free. */
static char *text_of(const json_t *object)
{
        json_t *ours = json_deep_copy(object), *root = json_pack("{s:O}", "rule", ours);
        char *text;

        rule_rename_aliases(ours);
        text = json_text(root);
        json_decref(root);
        json_decref(ours);
        return text;
}

static int read_rule(const char *name, const json_t *object, struct rule *out, struct error *err)
{
        char *text = text_of(object);
        struct settings_source *src = settings_source_new(NULL, NULL, text, strlen(text), err);
        const char *own = json_str(object, "name", name);
        int rc = -1;

        if (src && strlen(text) > STORED_RULE_MAX_BYTES)
                error_set(err, ERR_INVALID, "rule: longer than %d bytes", STORED_RULE_MAX_BYTES);
        else if (src && (!*name || strlen(name) > NAME_MAX_BYTES))
                error_set(err, ERR_INVALID, "rule.name: expected 1 to %d bytes", NAME_MAX_BYTES);
        else if (src && strcmp(own, name) != 0)
                error_set(err, ERR_INVALID,
                          "rule.name: '%.60s' is not the name it is stored by, '%.60s'", own, name);
        else if (src)
                rc = rule_read_at(src, "rule", json_object_get(settings_source_root(src), "rule"),
                                  out, err);
        if (rc == 0 && !out->name)
                out->name = mem_strdup(name);
        settings_source_free(src);
        free(text);
        return rc;
}

int stored_rules_check(const char *name, const json_t *object, struct error *err)
{
        struct rule r;

        if (read_rule(name, object, &r, err) < 0)
                return -1;
        rule_release(&r);
        return 0;
}

static struct entry *entry_new(const struct stored_rule *r)
{
        struct entry *e = mem_zalloc(sizeof(*e));
        json_t *object = json_read(r->json, strlen(r->json), &e->mistake);

        e->shown = *r;
        e->shown.name = mem_strdup(r->name);
        e->shown.json = mem_strdup(r->json);
        e->shown.rule = NULL;
        e->shown.why = NULL;
        if (object && read_rule(r->name, object, &e->rule, &e->mistake) == 0)
                e->shown.rule = &e->rule;
        else
                e->shown.why = e->mistake.text;
        json_decref(object);
        return e;
}

static void entry_free(struct entry *e)
{
        if (!e)
                return;
        if (e->shown.rule)
                rule_release(&e->rule);
        free((char *)e->shown.name);
        free((char *)e->shown.json);
        free(e);
}

/* ---- the list ---- */

static int by_position(const void *a, const void *b)
{
        const struct stored_rule *x = &(*(struct entry *const *)a)->shown;
        const struct stored_rule *y = &(*(struct entry *const *)b)->shown;

        if (x->position != y->position)
                return x->position < y->position ? -1 : 1;
        return strcmp(x->name, y->name);
}

static size_t index_of(const struct stored_rules *rs, const char *name)
{
        size_t i = 0;

        while (i < rs->count && strcmp(rs->items[i]->shown.name, name) != 0)
                i++;
        return i;
}

static void take_out(struct stored_rules *rs, const char *name)
{
        size_t i = index_of(rs, name);

        if (i == rs->count)
                return;
        entry_free(rs->items[i]);
        rs->items[i] = rs->items[--rs->count];
}

/* Takes e over. */
static void put_in(struct stored_rules *rs, struct entry *e)
{
        take_out(rs, e->shown.name);
        rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(struct entry *));
        rs->items[rs->count++] = e;
}

static void sort(struct stored_rules *rs)
{
        if (rs->count > 0)
                qsort(rs->items, rs->count, sizeof(struct entry *), by_position);
}

size_t stored_rules_count(const struct stored_rules *rs)
{
        return rs->count;
}

const struct stored_rule *stored_rules_at(const struct stored_rules *rs, size_t index)
{
        return &rs->items[index]->shown;
}

const struct stored_rule *stored_rules_find(const struct stored_rules *rs, const char *name)
{
        size_t i = index_of(rs, name);

        return i < rs->count ? &rs->items[i]->shown : NULL;
}

int64_t stored_rules_end(const struct stored_rules *rs)
{
        int64_t last = rs->count > 0 ? rs->items[rs->count - 1]->shown.position : -1;

        return last < 0 ? 0 : last + 1;
}

void stored_rules_watch(struct stored_rules *rs, void (*changed)(void *arg), void *arg)
{
        rs->changed = changed;
        rs->changed_arg = arg;
}

/* ---- changing ---- */

static int write_entry(struct store_tx *tx, struct change *c, struct error *err)
{
        const struct stored_rule *r = &c->entry->shown;
        struct store_stmt *s;

        if (c->how == RULE_REPLACE)
                s = store_prepare(
                        tx,
                        "UPDATE rules SET position = ?2, enabled = ?3, rule = ?4, updated_ms = ?5"
                        " WHERE name = ?1");
        else if (c->how == RULE_CREATE)
                s = store_prepare(
                        tx,
                        "INSERT INTO rules(name, position, enabled, rule, created_ms, updated_ms)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT(name) DO NOTHING");
        else
                s = store_prepare(
                        tx,
                        "INSERT INTO rules(name, position, enabled, rule, created_ms, updated_ms)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT(name) DO UPDATE SET"
                        " position = ?2, enabled = ?3, rule = ?4, updated_ms = ?5");
        store_bind_text(s, 1, r->name);
        store_bind_int(s, 2, r->position);
        store_bind_int(s, 3, r->enabled);
        store_bind_text(s, 4, r->json);
        store_bind_int(s, 5, r->updated_ms);
        if (store_run(s, err) < 0)
                return -1;
        if (store_changes(tx) > 0)
                return 0;
        if (c->how == RULE_CREATE)
                return error_set(err, ERR_CONFLICT, "there is a stored rule '%.60s' already",
                                 r->name);
        return error_set(err, ERR_MISSING, "there is no stored rule '%.60s'", r->name);
}

static int write_deletion(struct store_tx *tx, struct change *c, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "DELETE FROM rules WHERE name = ?1");

        store_bind_text(s, 1, c->name);
        if (store_run(s, err) < 0)
                return -1;
        if (store_changes(tx) == 0)
                return error_set(err, ERR_MISSING, "there is no stored rule '%.60s'", c->name);
        return 0;
}

static int write_change(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;

        if (c->refusal.kind != ERR_NONE) {
                *err = c->refusal;
                return -1;
        }
        return c->entry ? write_entry(tx, c, err) : write_deletion(tx, c, err);
}

static void apply(struct change *c)
{
        struct stored_rules *rs = c->rules;
        const struct stored_rule *before = stored_rules_find(rs, c->name);

        if (c->entry && before)
                c->entry->shown.created_ms = before->created_ms;
        if (c->entry)
                put_in(rs, c->entry);
        else
                take_out(rs, c->name);
        c->entry = NULL;
        sort(rs);
        if (rs->changed)
                rs->changed(rs->changed_arg);
}

static void on_changed(void *arg, const struct error *err)
{
        struct change *c = arg;

        if (!err)
                apply(c);
        if (c->done)
                c->done(c->arg, err);
        entry_free(c->entry);
        free(c->name);
        free(c);
}

static void submit(struct stored_rules *rs, struct change *c, store_done_fn *done, void *arg)
{
        c->rules = rs;
        c->done = done;
        c->arg = arg;
        store_write(rs->store, write_change, on_changed, c);
}

void stored_rules_put(struct stored_rules *rs, const struct stored_rule *rule,
                      enum stored_rule_put how, store_done_fn *done, void *arg)
{
        struct change *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(rule->name);
        c->how = how;
        c->entry = entry_new(rule);
        c->entry->shown.created_ms = c->entry->shown.updated_ms = clock_wall_ms();
        if (c->entry->shown.why)
                error_set(&c->refusal, ERR_INVALID, "%s", c->entry->shown.why);
        else if (rs->count >= STORED_RULES_MAX && !stored_rules_find(rs, rule->name))
                error_set(&c->refusal, ERR_LIMIT, "%d rules are stored already; delete some",
                          STORED_RULES_MAX);
        submit(rs, c, done, arg);
}

void stored_rules_delete(struct stored_rules *rs, const char *name, store_done_fn *done, void *arg)
{
        struct change *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(name);
        submit(rs, c, done, arg);
}

/* ---- merging ---- */

static bool has_name(const struct rule *rules, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++) {
                if (strcmp(rules[i].name, name) == 0)
                        return true;
        }
        return false;
}

static void add_if_held(const struct stored_rule *r, const struct rule *file, size_t file_count,
                        struct rule *all, size_t *count)
{
        if (r->enabled && r->rule && !has_name(file, file_count, r->name))
                all[(*count)++] = *r->rule;
}

struct rule *stored_rules_merge(const struct stored_rules *rs, const struct rule *file,
                                size_t file_count, size_t *count)
{
        size_t stored = rs ? rs->count : 0, i = 0;
        struct rule *all = mem_array(file_count + stored + 1, sizeof(*all));

        *count = 0;
        for (; i < stored && rs->items[i]->shown.position < 0; i++)
                add_if_held(&rs->items[i]->shown, file, file_count, all, count);
        for (size_t k = 0; k < file_count; k++)
                all[(*count)++] = file[k];
        for (; i < stored; i++)
                add_if_held(&rs->items[i]->shown, file, file_count, all, count);
        return all;
}

/* ---- opening ---- */

static int read_rules(struct store_tx *tx, void *arg, struct error *err)
{
        struct stored_rules *rs = arg;
        struct store_stmt *s = store_prepare(
                tx, "SELECT name, position, enabled, rule, created_ms, updated_ms FROM rules");
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct stored_rule r = { .name = store_col_text(s, 0),
                                         .position = store_col_int(s, 1),
                                         .enabled = store_col_int(s, 2) != 0,
                                         .json = store_col_text(s, 3),
                                         .created_ms = store_col_int(s, 4),
                                         .updated_ms = store_col_int(s, 5) };

                put_in(rs, entry_new(&r));
        }
        return rc;
}

struct stored_rules *stored_rules_open(struct store *s, struct error *err)
{
        struct stored_rules *rs = mem_zalloc(sizeof(*rs));

        rs->store = s;
        if (store_read_now(s, read_rules, rs, err) < 0) {
                stored_rules_free(rs);
                return NULL;
        }
        sort(rs);
        return rs;
}

void stored_rules_free(struct stored_rules *rs)
{
        if (!rs)
                return;
        for (size_t i = 0; i < rs->count; i++)
                entry_free(rs->items[i]);
        free(rs->items);
        free(rs);
}
