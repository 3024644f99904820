/*
 * dc_where: what kind of place something happened in, and which roles we have there, asked of
 * Discord when nobody has told.
 *
 * A session that is resumed introduces no guilds, and the cache is bounded. Not now is no answer: a
 * thread that passes for a channel would be out of its channel's rules, so what happened there
 * waits for a better one, most of a minute. What Discord refuses to tell is a channel like any
 * other; what it could not tell is taken for one this time, and asked for again the next. A place
 * that may be a DM is asked for until Discord answers.
 */
#ifndef PLATFORM_DISCORD_DC_WHERE_H
#define PLATFORM_DISCORD_DC_WHERE_H

#include <stdbool.h>

#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_inbound.h"

struct dc_where;

/*
 * known: the cache has the place now; else it is in no guild we know of, and Discord says nothing
 * about it.
 */
typedef void dc_where_fn(void *arg, const char *place, bool known);

struct dc_where *dc_where_new(const struct dc_inbound_options *options,
                              const struct dc_inbound_hooks *hooks, struct dc_cache *cache,
                              dc_where_fn *answered, void *arg);
/* No answer follows. NULL is fine. */
void dc_where_free(struct dc_where *w);
/* Who we are: whose roles count. */
void dc_where_set_self(struct dc_where *w, const char *user_id);
/* Is all known that counts? guild NULL: our roles do not. */
bool dc_where_knows(const struct dc_where *w, const char *place, const char *guild);
/*
 * `answered` follows, once for each place however often it is asked meanwhile. guild NULL: not
 * known.
 */
void dc_where_ask(struct dc_where *w, const char *place, const char *guild);

#endif
