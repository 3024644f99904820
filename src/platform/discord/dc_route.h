/*
 * dc_route: paths of Discord's API and the templates they are made of. Nothing that is no id gets
 * into a path where an id belongs.
 */
#ifndef PLATFORM_DISCORD_DC_ROUTE_H
#define PLATFORM_DISCORD_DC_ROUTE_H

#include "base/buf.h"
#include "base/error.h"
#include "platform/discord/dc_rest.h"

#define DC_ID_SIZE 24 /* 20 digits, a NUL and some air */

/*
 * The route with its braces filled, and the top-level id that is part of the bucket's name;
 * webhooks count with their token. 0 or -1.
 */
int dc_route_fill(const struct dc_request *q, struct buf *path, struct buf *major,
                  struct error *err);
/*
 * The other way: "/channels/12/messages/34" is "/channels/{channel_id}/messages/{message_id}" and
 * its ids.
 */
void dc_route_of(const char *path, struct buf *route, char ids[DC_ARGS_MAX][DC_ID_SIZE],
                 const char *args[DC_ARGS_MAX]);

#endif
