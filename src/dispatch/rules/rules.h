/*
 * rules: whether a rule matches an event. A new condition is a field of struct rule, a row of
 * rule_when_settings (rule_conf.c) and a row of the table in rules.c.
 */
#ifndef DISPATCH_RULES_RULES_H
#define DISPATCH_RULES_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hours.h"
#include "base/settings.h"
#include "dispatch/limits/limits.h"
#include "road/incoming.h"
#include "road/turn/reply_policy.h"

struct pattern;
struct persons;

/*
 * One element of "rules". All conditions must hold; a list means any of its members; dm, mention,
 * reply, conversation and mentionPattern are alternatives. `*` globs.
 */
struct rule {
        char *name;
        struct setting_list adapter, platform, guild, channel, thread, event, sender, role,
                reaction, schedule;
        struct setting_list text, mention_pattern; /* regular expressions */
        struct setting_list hours;
        char *timezone; /* NULL: the system's */
        char *bots;     /* "none", "mentions" or "all" */
        bool dm, mention, reply, conversation;
        char *agent;
        char *mode_text, *reply_in; /* as written; mode and off are their meaning */
        enum reply_mode mode;
        bool off; /* no agent answers, later rules are not tried */
        int64_t history;
        char *prompt; /* may be NULL */
        struct setting_list silence;
        int64_t silence_chars;
        int64_t debounce_ms, debounce_max_ms; /* each -1: the adapter's */
        int64_t max_age_seconds;              /* -1: the adapter's */
        struct turn_rate rate;                /* each member -1: the adapter's */
        struct {
                double usd_per_day; /* 0: no limit */
        } budget;
        struct {
                struct pattern **text, **mention; /* parallel to the lists */
                struct hours *hours;
                struct time_zone *zone; /* NULL: the system's */
        } compiled;
};

/* An element of the file's list; unnamed rules are called by number. */
int rule_conf_read(struct settings_source *src, size_t index, const json_t *object,
                   struct rule *out, struct error *err);
/* For an object at any path; the name may stay NULL. */
int rule_conf_read_at(struct settings_source *src, const char *path, const json_t *object,
                      struct rule *out, struct error *err);
void rule_conf_release(struct rule *r);
/* Renames conditions spelled as in other gateways (triggerEvents, ...), for the API. */
void rule_conf_rename_aliases(json_t *rule);
/* for schema and documentation */
extern const struct setting rule_settings[], rule_when_settings[];

struct rule_context {
        const struct incoming *in;
        const char *platform;          /* of the adapter */
        const struct persons *persons; /* NULL: none known */
        bool in_session;               /* the event continues a chat session */
        json_t *metadata;              /* parsed on first use */
        bool parsed;
};
void rule_context_release(struct rule_context *c);

/* Do all conditions hold? If not, `why` (may be NULL) gets the first that fails. */
bool rule_matches(const struct rule *r, struct rule_context *c, struct buf *why);
/* Do the conditions on adapter and platform hold? */
bool rule_concerns(const struct rule *r, const char *adapter, const char *platform);
/* Does `wide` match everything that `narrow` matches? In doubt false. */
bool rule_covers(const struct rule *wide, const struct rule *narrow);
/* Ignores skin tones. */
bool rule_same_emoji(const char *a, const char *b);

#endif
