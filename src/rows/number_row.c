#include "rows/number_row.h"

#include "store/sql.h"

int number_row_reserve(struct store_tx *tx, const char *name, int64_t count, int64_t *first,
                       struct error *err)
{
        int rc = sql_first(sql_query(tx,
                                     "UPDATE numbers SET next = next + ?2"
                                     " WHERE name = ?1"
                                     " RETURNING next - ?2",
                                     SQL_TEXT(name), SQL_INT(count)),
                           err, OUT_INT(first));

        if (rc == 0)
                return error_set(err, ERR_CORRUPT, "there are no numbers of '%s'", name);
        return rc < 0 ? -1 : 0;
}

int number_row_return(struct store_tx *tx, const char *name, int64_t first, int64_t end,
                      struct error *err)
{
        return sql_exec(tx, err, "UPDATE numbers SET next = ?2 WHERE name = ?1 AND next = ?3",
                        SQL_TEXT(name), SQL_INT(first), SQL_INT(end));
}
