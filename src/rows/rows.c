#include "rows/rows.h"

#include "base/mem.h"
#include "store/sql.h"

#define SEPARATOR "\x1f" /* never part of a platform's ids */

void rows_end(struct store_stmt *s)
{
        sql_end(s);
}

char *chat_key_text(const struct chat_key *key)
{
        return mem_printf("%s" SEPARATOR "%s" SEPARATOR "%s", key->adapter ? key->adapter : "",
                          key->channel ? key->channel : "", key->thread ? key->thread : "");
}
