#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/store_private.h"

/* --- the store's own state --- */

static int info_get(struct store_tx *tx, const char *key, int *value, struct error *err)
{
        return sql_first(sql_query(tx,
                                   "SELECT CAST(value AS BIGINT) FROM store_info WHERE key = ?1",
                                   SQL_TEXT(key)),
                         err, OUT_INT32(value));
}

static int info_set(struct store_tx *tx, const char *key, int value, struct error *err)
{
        char *text = mem_printf("%d", value);
        int rc = sql_exec(tx, err,
                          "INSERT INTO store_info(key, value) VALUES(?1, ?2)"
                          " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                          SQL_TEXT(key), SQL_TEXT(text));

        free(text);
        return rc;
}

static int run_script(struct store_tx *tx, const char *sql, struct error *err)
{
        char *spelled = store_migrate_spell(tx->driver, sql);
        int rc = tx->driver->script(tx->conn, spelled, err);

        free(spelled);
        return rc;
}

static int read_state(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_state *state = arg;
        int clean = 1;

        if (state->create && run_script(tx,
                                        "CREATE TABLE IF NOT EXISTS"
                                        " store_info(key TEXT PRIMARY KEY, value TEXT NOT NULL)",
                                        err) != 0)
                return -1;
        state->version = 0;
        if (info_get(tx, "version", &state->version, err) < 0 ||
            info_get(tx, "clean", &clean, err) < 0)
                return -1;
        state->unclean = clean == 0;
        return 0;
}

int store_migrate_read_state(struct store_tx *tx, struct store_state *state, struct error *err)
{
        if (store_tx_run(tx, read_state, state, err) == 0)
                return 0;
        if (!state->create && err && err->kind == ERR_INTERNAL)
                return error_set(err, ERR_MISSING,
                                 "the database holds no store of ours: run the daemon once");
        return -1;
}

static int mark(struct store_tx *tx, void *arg, struct error *err)
{
        return info_set(tx, "clean", *(const bool *)arg ? 1 : 0, err);
}

int store_migrate_mark_clean(struct store_tx *tx, bool clean, struct error *err)
{
        return store_tx_run(tx, mark, &clean, err);
}

/* --- steps --- */

int store_migrate_check(const struct store_migration *steps, int version, struct error *err)
{
        int last = 0;

        for (; steps->version; steps++)
                last = steps->version;
        if (version <= last)
                return version < last;
        return error_set(err, ERR_INVALID,
                         "the store was written by a newer version of the program (schema %d, this "
                         "one knows %d): use that version, or restore an older backup",
                         version, last);
}

char *store_migrate_spell(const struct store_driver *driver, const char *sql)
{
        const struct {
                const char *word, *spelling;
        } words[] = { { "AUTOKEY", driver->auto_key },
                      { "INTKEY", driver->int_key },
                      { "TEXT", driver->text_type } };
        struct buf out;

        buf_init(&out, 0);
        while (*sql) {
                const char *text = sql;
                size_t n = 0;

                while (isalnum((unsigned char)sql[n]) || sql[n] == '_')
                        n++;
                if (n == 0)
                        n = 1;
                sql += n;
                for (size_t i = 0; i < COUNT(words); i++) {
                        if (strlen(words[i].word) != n || memcmp(words[i].word, text, n) != 0)
                                continue;
                        text = words[i].spelling;
                        n = strlen(text);
                        break;
                }
                buf_add(&out, text, n);
        }
        return buf_take(&out);
}

struct pending {
        const struct store_migration *steps;
        int version; /* of the store */
};

static int apply_pending(struct store_tx *tx, void *arg, struct error *err)
{
        const struct pending *p = arg;
        int last = p->version;

        for (int i = 0; p->steps[i].version; i++) {
                const struct store_migration *step = &p->steps[i];

                assert(step->version == i + 1);
                if (step->version <= p->version)
                        continue;
                if (run_script(tx, step->sql, err) != 0)
                        return error_prefix(err, "cannot bring the store to schema %d '%s'",
                                            step->version, step->name);
                last = step->version;
        }
        return last > p->version ? info_set(tx, "version", last, err) : 0;
}

/* One transaction: a step that fails leaves a store that the previous program can still open. */
int store_migrate(struct store_tx *tx, const struct store_migration *steps, int version,
                  struct error *err)
{
        struct pending p = { steps, version };

        return store_tx_run(tx, apply_pending, &p, err);
}
