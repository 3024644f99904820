/*
 * dc_connection: one connection to the gateway. Its messages are inflated, parsed and handed over
 * in order; it sends the frames of a shard and keeps the heartbeat.
 *
 * It is used once: after it has closed, the shard opens another one.
 */
#ifndef PLATFORM_DISCORD_DC_CONNECTION_H
#define PLATFORM_DISCORD_DC_CONNECTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/websocket.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_session.h"

enum dc_op {
        DC_OP_DISPATCH = 0,
        DC_OP_HEARTBEAT = 1,
        DC_OP_IDENTIFY = 2,
        DC_OP_RESUME = 6,
        DC_OP_RECONNECT = 7,
        DC_OP_INVALID = 9,
        DC_OP_HELLO = 10,
        DC_OP_ACK = 11,
};

struct dc_connection;

enum dc_connection_event {
        DC_CONNECTION_OPENED,
        DC_CONNECTION_SILENT,     /* the last heartbeat was not acknowledged */
        DC_CONNECTION_UNREADABLE, /* why: of a message */
        DC_CONNECTION_WAS_LARGE,  /* a large payload has been handled */
};

/* Each may free the connection. */
struct dc_connection_handlers {
        void (*event)(void *arg, enum dc_connection_event event, const char *why);
        void (*payload)(void *arg, json_t *payload); /* an object; borrowed */
        void (*closed)(void *arg, const struct websocket_end *end);
};

/*
 * Options, session and handlers must outlive it. The session gives heartbeats their sequence. url
 * without a query; NULL: there is no socket, and dc_connection_feed plays its part (a fuzzer).
 */
struct dc_connection *dc_connection_open(const struct dc_gateway_options *o, const char *url,
                                         const struct dc_session *session,
                                         const struct dc_connection_handlers *handlers, void *arg);
/* No handler follows. NULL is fine. */
void dc_connection_free(struct dc_connection *c);
/* Closes with a code that keeps the session alive; `closed` follows. */
void dc_connection_close(struct dc_connection *c);
/* A message of the socket. */
void dc_connection_feed(void *connection, bool binary, const char *bytes, size_t n);

void dc_connection_identify(struct dc_connection *c, unsigned shard, unsigned shards);
void dc_connection_resume(struct dc_connection *c, const char *session, int64_t seq);
/* The first heartbeat comes at a random moment of the first interval. */
void dc_connection_beat_every(struct dc_connection *c, int64_t ms);
/* Discord asks for a heartbeat now, or has acknowledged one. */
void dc_connection_beat(struct dc_connection *c);
void dc_connection_acked(struct dc_connection *c);
/* Reads nothing more while held. NULL is fine. */
void dc_connection_hold(struct dc_connection *c, bool held);
/* Of the last heartbeat; -1: unknown. NULL is fine. */
int64_t dc_connection_ping_ms(const struct dc_connection *c);

#endif
