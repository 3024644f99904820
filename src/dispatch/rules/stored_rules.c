#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/rules/rules.h"
#include "store/write_through.h"

#define RULES_MAX      1000
#define RULE_MAX_BYTES 65536
#define NAME_MAX_BYTES 200

struct stored_entry {
        struct stored_rule shown; /* its strings are owned */
        struct rule rule;
        struct error mistake; /* why it is rejected */
};

struct stored_rules {
        struct store *store;
        struct stored_entry **items; /* by position */
        size_t count;
        void (*changed)(void *arg);
        void *changed_arg;
};

/* ---- parsing ---- */

static int parse_rule(const char *name, const json_t *object, struct rule *out, struct error *err)
{
        json_t *copy = json_deep_copy(object), *root = json_pack("{s:O}", "rule", copy);
        const char *own = json_str(object, "name", name);
        struct settings_source *src;
        char *text;
        int rc = -1;

        rule_conf_rename_aliases(copy);
        text = json_text(root);
        src = settings_source_new(NULL, NULL, text, strlen(text), err);

        if (src && strlen(text) > RULE_MAX_BYTES)
                error_set(err, ERR_INVALID, "rule: longer than %d bytes", RULE_MAX_BYTES);
        else if (src && (!*name || strlen(name) > NAME_MAX_BYTES))
                error_set(err, ERR_INVALID, "rule.name: expected 1 to %d bytes", NAME_MAX_BYTES);
        else if (src && strcmp(own, name) != 0)
                error_set(err, ERR_INVALID,
                          "rule.name: '%.60s' differs from the name it is stored under, '%.60s'",
                          own, name);
        else if (src)
                rc = rule_conf_read_at(
                        src, "rule", json_object_get(settings_source_root(src), "rule"), out, err);
        if (rc == 0 && !out->name)
                out->name = mem_strdup(name);
        settings_source_free(src);
        free(text);
        json_decref(root);
        json_decref(copy);
        return rc;
}

int stored_rules_check(const char *name, const json_t *object, struct error *err)
{
        struct rule r;

        if (parse_rule(name, object, &r, err) < 0)
                return -1;
        rule_conf_release(&r);
        return 0;
}

static struct stored_entry *entry_new(const struct rule_row *r)
{
        struct stored_entry *e = mem_zalloc(sizeof(*e));
        json_t *object = json_read(r->json, strlen(r->json), &e->mistake);

        e->shown.row = *r;
        e->shown.row.name = mem_strdup(r->name);
        e->shown.row.json = mem_strdup(r->json);
        if (object && parse_rule(r->name, object, &e->rule, &e->mistake) == 0)
                e->shown.rule = &e->rule;
        else
                e->shown.why = e->mistake.text;
        json_decref(object);
        return e;
}

static void entry_free(struct stored_entry *e)
{
        if (!e)
                return;
        if (e->shown.rule)
                rule_conf_release(&e->rule);
        free((char *)e->shown.row.name);
        free((char *)e->shown.row.json);
        free(e);
}

/* ---- the list ---- */

static int by_position(const void *a, const void *b)
{
        const struct rule_row *x = &(*(struct stored_entry *const *)a)->shown.row;
        const struct rule_row *y = &(*(struct stored_entry *const *)b)->shown.row;

        if (x->position != y->position)
                return x->position < y->position ? -1 : 1;
        return strcmp(x->name, y->name);
}

static size_t index_of(const struct stored_rules *rs, const char *name)
{
        size_t i = 0;

        while (i < rs->count && strcmp(rs->items[i]->shown.row.name, name) != 0)
                i++;
        return i;
}

/* Inserts or replaces the entry of that name (takes e), or removes it (NULL); sorts. */
static void set_entry(struct stored_rules *rs, const char *name, struct stored_entry *e)
{
        size_t i = index_of(rs, name);

        if (i < rs->count) {
                entry_free(rs->items[i]);
                rs->items[i] = rs->items[--rs->count];
        }
        if (e) {
                rs->items = mem_realloc(rs->items, (rs->count + 1) * sizeof(*rs->items));
                rs->items[rs->count++] = e;
        }
        if (rs->count > 0)
                qsort(rs->items, rs->count, sizeof(*rs->items), by_position);
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
        int64_t last = rs->count > 0 ? rs->items[rs->count - 1]->shown.row.position : -1;

        return last < 0 ? 0 : last + 1;
}

void stored_rules_watch(struct stored_rules *rs, void (*changed)(void *arg), void *arg)
{
        rs->changed = changed;
        rs->changed_arg = arg;
}

/* ---- changes ---- */

struct stored_rule_change {
        struct write_through base;
        struct stored_rules *rules;
        struct stored_entry *entry; /* NULL: delete */
        char *name;
        enum stored_rule_put how;
};

static int write_change(struct store_tx *tx, void *change, struct error *err)
{
        const struct stored_rule_change *c = change;
        const struct rule_row *row = c->entry ? &c->entry->shown.row : NULL;
        int rc = 0;

        if (!row)
                rc = rule_row_delete(tx, c->name, err);
        if (row && c->how != RULE_CREATE)
                rc = rule_row_update(tx, row, err);
        if (row && rc == 0 && c->how != RULE_REPLACE)
                rc = rule_row_insert(tx, row, err);
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        if (row && c->how == RULE_CREATE)
                return error_set(err, ERR_CONFLICT, "there is a stored rule '%.60s' already",
                                 c->name);
        return error_set(err, ERR_MISSING, "there is no stored rule '%.60s'", c->name);
}

static void apply_change(void *change)
{
        struct stored_rule_change *c = change;
        struct stored_rules *rs = c->rules;
        const struct stored_rule *before = stored_rules_find(rs, c->name);

        if (c->entry && before)
                c->entry->shown.row.created_ms = before->row.created_ms;
        set_entry(rs, c->name, c->entry);
        c->entry = NULL;
        if (rs->changed)
                rs->changed(rs->changed_arg);
}

static void release_change(void *change)
{
        struct stored_rule_change *c = change;

        entry_free(c->entry);
        free(c->name);
        free(c);
}

static const struct write_through_ops change_ops = { .write = write_change,
                                                     .apply = apply_change,
                                                     .release = release_change };

static struct stored_rule_change *change_new(struct stored_rules *rs, const char *name,
                                             store_done_fn *done, void *arg)
{
        struct stored_rule_change *c = mem_zalloc(sizeof(*c));

        c->base.ops = &change_ops;
        c->rules = rs;
        c->name = mem_strdup(name);
        c->base.done = done;
        c->base.arg = arg;
        return c;
}

void stored_rules_put(struct stored_rules *rs, const struct rule_row *row, enum stored_rule_put how,
                      store_done_fn *done, void *arg)
{
        struct stored_rule_change *c = change_new(rs, row->name, done, arg);

        c->how = how;
        c->entry = entry_new(row);
        c->entry->shown.row.created_ms = c->entry->shown.row.updated_ms = clock_wall_ms();
        if (c->entry->shown.why)
                error_set(&c->base.refusal, ERR_INVALID, "%s", c->entry->shown.why);
        else if (rs->count >= RULES_MAX && !stored_rules_find(rs, row->name))
                error_set(&c->base.refusal, ERR_LIMIT, "%d rules are stored already; delete some",
                          RULES_MAX);
        write_through_submit(rs->store, c);
}

void stored_rules_delete(struct stored_rules *rs, const char *name, store_done_fn *done, void *arg)
{
        write_through_submit(rs->store, change_new(rs, name, done, arg));
}

/* ---- merging ---- */

static void add_if_in_force(const struct stored_rule *r, const struct rule *file, size_t file_count,
                            struct rule *all, size_t *count)
{
        if (!r->row.enabled || !r->rule)
                return;
        for (size_t i = 0; i < file_count; i++) {
                if (strcmp(file[i].name, r->row.name) == 0)
                        return;
        }
        all[(*count)++] = *r->rule;
}

struct rule *stored_rules_merge(const struct stored_rules *rs, const struct rule *file,
                                size_t file_count, size_t *count)
{
        size_t stored = rs ? rs->count : 0, i = 0;
        struct rule *all = mem_array(file_count + stored + 1, sizeof(*all));

        *count = 0;
        for (; i < stored && rs->items[i]->shown.row.position < 0; i++)
                add_if_in_force(&rs->items[i]->shown, file, file_count, all, count);
        for (size_t k = 0; k < file_count; k++)
                all[(*count)++] = file[k];
        for (; i < stored; i++)
                add_if_in_force(&rs->items[i]->shown, file, file_count, all, count);
        return all;
}

/* ---- opening ---- */

static int read_table(struct store_tx *tx, void *arg, struct error *err)
{
        struct stored_rules *rs = arg;
        struct store_stmt *s = rule_row_list(tx);
        struct rule_row row;
        int rc;

        while ((rc = rule_row_next(s, &row, err)) == 1)
                set_entry(rs, row.name, entry_new(&row));
        return rc;
}

struct stored_rules *stored_rules_open(struct store *s, struct error *err)
{
        struct stored_rules *rs = mem_zalloc(sizeof(*rs));

        rs->store = s;
        if (store_read_now(s, read_table, rs, err) == 0)
                return rs;
        stored_rules_free(rs);
        return NULL;
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
