/*
 * access: who may talk to the bot of an adapter, and where.
 *
 * Closed by default: what no list opens is shut. Five lists, as the settings write them:
 *
 *     block     beats everything, admins too
 *     admins    are let in everywhere
 *     dm        opens direct messages: "everyone", "none" or people; "pairing" gives strangers a
 *               code (pairing.h)
 *     channels  opens groups: channels where everybody may talk to the bot
 *     allow     opens both: people, roles, channels, guilds; "*" is everybody
 *
 * An entry is "user:ID", "person:ID" (persons.h), "role:ID", "channel:ID" or "guild:ID"; a plain id
 * is a user or a channel; "*" is any. A list that is not written and an empty one let nobody in.
 * There is one difference: where "dm" is not written, an allow of "*" opens direct messages too;
 * where it is, only people and roles that allow names are let in besides.
 *
 * Roles are the member "roles", a list of ids, of the event's metadata. Where that has
 * "rolesUnknown" instead, the platform could not tell them: then allow of a role lets nobody in,
 * and block of one keeps everybody out.
 */
#ifndef DISPATCH_ACCESS_ACCESS_H
#define DISPATCH_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/settings.h"
#include "road/incoming.h"

struct access;
struct persons;

/* Borrowed from the configuration. */
struct access_lists {
        const struct setting_list *admins, *dm, *allow, *block, *channels;
};

/*
 * Is everything in the lists understood? When not: false, the key in *key, and what is wrong with
 * which entry in `why`.
 */
bool access_validate(const struct access_lists *lists, const char **key, struct buf *why);

/* Copies what it needs. Lists that access_check refuses open nothing. */
struct access *access_new(const struct access_lists *lists);
void access_free(struct access *a);

/* May the sender of this event be answered there? When not, `why` (may be NULL) gets a sentence. */
bool access_allows(const struct access *a, const struct incoming *in, struct buf *why);
/* Persons named in the lists follow merges; call it again after each. a may be NULL. */
void access_resolve(struct access *a, const struct persons *persons);
/* Is the sender, or the place, in "block"? `why` as above. */
bool access_blocks(const struct access *a, const struct incoming *in, struct buf *why);
/* Do strangers who write a direct message get a code? */
bool access_pairs(const struct access *a);
/*
 * Is the sender one of the admins? Admins are people: a channel that happens to have an admin's id
 * is not one.
 */
bool access_is_admin(const struct access *a, const struct incoming *in);
/* Is anybody let in at all? */
bool access_is_open(const struct access *a);
/* "DMs from nobody but 1 admin; groups: none". */
void access_describe(const struct access *a, struct buf *out);

#endif
