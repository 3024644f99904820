#include "rows/meta_row.h"

#include "store/sql.h"

int meta_row_get(struct store_tx *tx, const char *key, char **value, struct error *err)
{
        *value = NULL;
        return sql_first(sql_query(tx, "SELECT value FROM meta WHERE key = ?1", SQL_TEXT(key)), err,
                         OUT_DUP(value));
}

int meta_row_put(struct store_tx *tx, const char *key, const char *value, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO meta(key, value) VALUES(?1, ?2)"
                        " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                        SQL_TEXT(key), SQL_TEXT(value));
}

int meta_row_put_new(struct store_tx *tx, const char *key, const char *value, struct error *err)
{
        return sql_exec(tx, err,
                        "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO NOTHING",
                        SQL_TEXT(key), SQL_TEXT(value));
}
