/*
 * access: who may talk to the bot of an adapter, and where, as configured.
 *
 * Closed by default. Five lists, as the settings write them:
 *
 *     block     beats everything, admins too
 *     admins    are allowed everywhere
 *     dm        direct messages: "everyone", "none" or people; "pairing" gives strangers a code
 *     channels  groups: channels in which everyone may talk to the bot
 *     allow     both: people, roles, channels, guilds; "*" is everyone
 *
 * An entry is "user:ID", "person:ID", "role:ID", "channel:ID" or "guild:ID"; a plain id is a user
 * or a channel; "*" is any. When "dm" is missing, an allow of "*" includes direct messages.
 *
 * Roles come with the event's metadata. While the platform has not provided them ("rolesUnknown"),
 * allowing a role allows no one, and blocking a role blocks everyone.
 */
#ifndef DISPATCH_ACCESS_ACCESS_H
#define DISPATCH_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/settings.h"
#include "road/incoming.h"

struct access;
struct dispatch;
struct dispatch_adapter;
struct persons;
struct runtime_policy;

/* Borrowed from the configuration. */
struct access_lists {
        const struct setting_list *admins, *dm, *allow, *block, *channels;
        /* May this be an id of the platform? NULL: any text may. */
        bool (*is_id)(const char *text);
        const char *platform; /* for people: "Telegram"; with is_id */
};

/* An invalid entry of the list `key`. */
typedef void access_mistake_fn(void *arg, const char *key, const char *why);
/* Reports every invalid entry (report may be NULL). False: there are some. */
bool access_validate(const struct access_lists *lists, access_mistake_fn *report, void *arg);
/* Copies. Lists that access_validate refuses allow no one. */
struct access *access_new(const struct access_lists *lists);
void access_free(struct access *a);
/* Follows merges of persons in the lists; call again after each. a may be NULL. */
void access_resolve(struct access *a, const struct persons *persons);

/* If false, `why` (may be NULL) gets a sentence. */
bool access_allows(const struct access *a, const struct incoming *in, struct buf *why);
/* Does "block" name the sender or the chat? If so, `why` (may be NULL) gets a sentence. */
bool access_blocks(const struct access *a, const struct incoming *in, struct buf *why);
/* Only people match: a channel with an admin's id is no admin. */
bool access_is_admin(const struct access *a, const struct incoming *in);
/* Do strangers who write a direct message get a code? */
bool access_pairs(const struct access *a);
/* "DMs: 1 admin; groups: none" */
void access_describe(const struct access *a, struct buf *out);

/*
 * access_check: tries in order "block", deny rules for any identity of the person, the adapter's
 * other lists, allow rules. An unmatched sender is a stranger.
 */
struct access_verdict {
        enum { ACCESS_ALLOWED, ACCESS_STRANGER, ACCESS_DENIED } outcome;
        const struct access_rule *rule; /* the deciding rule, borrowed; NULL: none */
};

/* policy may be NULL. Unless the sender is allowed, `why` gets a sentence. */
struct access_verdict access_check_sender(const struct runtime_policy *policy,
                                          const struct dispatch_adapter *a,
                                          const struct incoming *in, int64_t now_ms,
                                          struct buf *why);
/* The same on the event's adapter. False: unknown adapter. */
bool access_check_event(const struct dispatch *d, const struct incoming *in,
                        struct access_verdict *out, struct buf *why);
/* May the sender change the bot's behaviour? On a trusted adapter everyone may. */
bool access_check_is_admin(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                           const struct incoming *in);

#endif
