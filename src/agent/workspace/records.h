/*
 * records: the section "workspace" of the configuration, and the files that are kept for it.
 */
#ifndef AGENT_WORKSPACE_RECORDS_H
#define AGENT_WORKSPACE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"
#include "bus/bus.h"
#include "net/loop.h"
#include "store/store.h"

struct workspace_conf {
        char *user;
        char *records; /* "auto", "on" or "off" */
        int64_t log_bytes, context_bytes;
};
extern const struct setting workspace_settings[];

/* log_file.h and context_file.h together. */
struct records;
struct records *records_new(struct loop *l, struct store *s, struct bus *b, const char *dir);
/* Before bus_close. NULL is fine. */
void records_free(struct records *r);
/* has_builtin: is there an agent that has a workspace? */
void records_apply(struct records *r, const struct workspace_conf *conf, bool has_builtin);

#endif
