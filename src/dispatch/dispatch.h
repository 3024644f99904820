/*
 * dispatch: decides whether an event triggers an agent, and which.
 *
 * One evaluator serves the road, listings and dry runs. It looks at the event, the adapter's settings and the rules, in order; the
 * first rule that matches wins, and every rule that did not can say why. It changes nothing.
 */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "road/road.h"

struct dispatch;

/* What dispatch must know about an adapter; filled by whoever knows platforms. */
struct dispatch_adapter {
        char *name;
        char *platform;
        char *agent;            /* may be NULL */
        bool trusted;
        int64_t debounce_ms, debounce_max_ms, max_age_seconds;
};

/* One element of "rules". All conditions hold together; a list means any of its members; dm, mention and reply are alternatives. `*` globs. */
struct rule {
        char *name;
        struct setting_list adapter, platform, channel, thread, event, sender;
        bool dm, mention, reply;
        char *agent;
        char *mode;             /* "reply" or "off" */
        int64_t debounce_ms;    /* -1: the adapter's */
};
int rule_read(struct settings_source *src, size_t index, const json_t *object, struct rule *out, struct error *err);
void rule_release(struct rule *r);
extern const struct setting rule_settings[], rule_when_settings[]; /* for schema and documentation */

struct dispatch *dispatch_new(void);
void dispatch_free(struct dispatch *d);
/* Replaces what it knows; takes everything over (arrays are malloc'd). only_agent: the agent that answers when nothing else says so; may be NULL. */
void dispatch_set(struct dispatch *d, struct dispatch_adapter *adapters, size_t adapter_count, struct rule *rules, size_t rule_count,
                  const char *only_agent);
/* The road's decide hook. Strings of *out live until the next dispatch_set or dispatch_decide. */
void dispatch_decide(void *dispatch, const struct incoming *in, struct decision *out);
/* The same with the whole reasoning as JSON: {"decision": ..., "rules": [{"name", "matched", "why"}]}. */
void dispatch_explain(struct dispatch *d, const struct incoming *in, struct buf *json);

#endif
