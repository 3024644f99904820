#include "cli/local_store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "config/config.h"
#include "rows/schema.h"

struct store *local_store_open(const char *dir, struct error *err)
{
        char *state = mem_printf("%s/state", dir), *url = config_store_url(dir);
        struct store_options options = { .url = url,
                                         .dir = state,
                                         .migrations = schema_steps,
                                         .read_only = true,
                                         .skip_check = true };
        struct store *s = store_open(NULL, &options, err);

        free(url);
        free(state);
        return s;
}

int local_store_has_daemon(const char *dir)
{
        char *state = mem_printf("%s/state", dir), *url = config_store_url(dir);
        struct store_options options = { .url = url, .dir = state };
        int rc = store_has_writer(&options);

        free(url);
        free(state);
        return rc;
}

int local_store_read(const char *dir, store_fn *fn, void *arg, struct error *err)
{
        struct store *s = local_store_open(dir, err);
        int rc = s ? store_read_now(s, fn, arg, err) : -1;

        store_close(s);
        return rc;
}
