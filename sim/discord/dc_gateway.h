/*
 * gateway: the WebSocket side of the simulated Discord, version 10 in JSON.
 *
 * A link is a connection; a session begins with IDENTIFY. A session outlives its link for a while,
 * keeps the events it sent, and continues with RESUME.
 */
#ifndef SIM_DISCORD_DC_GATEWAY_H
#define SIM_DISCORD_DC_GATEWAY_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/discord/dc_world.h"
#include "sim/ws.h"

#define INTENT_GUILDS       (1ull << 0)
#define INTENT_MEMBERS      (1ull << 1)
#define INTENT_PRESENCES    (1ull << 8)
#define INTENT_MESSAGES     (1ull << 9)
#define INTENT_REACTIONS    (1ull << 10)
#define INTENT_TYPING       (1ull << 11)
#define INTENT_DM           (1ull << 12)
#define INTENT_DM_REACTIONS (1ull << 13)
#define INTENT_DM_TYPING    (1ull << 14)
#define INTENT_CONTENT      (1ull << 15)
#define INTENT_EVENTS       (1ull << 16)
#define INTENTS_PRIVILEGED  (INTENT_MEMBERS | INTENT_PRESENCES | INTENT_CONTENT)
#define INTENTS_ALL         0x331ffffull

struct gateway *dc_gateway_new(struct world *w);
int dc_gateway_listen(struct gateway *g, const struct ws_options *o, struct error *err);
/* Ends the connections; run it before the world is freed. */
void dc_gateway_free(struct gateway *g);
/* "ws://127.0.0.1:40123", borrowed. */
const char *dc_gateway_url(const struct gateway *g);

/* An event, and which sessions get it. */
struct gateway_event {
        const char *event;                /* "MESSAGE_CREATE" */
        const struct channel *channel;    /* of bots that may view it; NULL: see guild */
        const struct guild *guild;        /* of its members; NULL: shard 0 of all bots */
        const struct bot *bot;            /* of this one only; NULL: of all */
        uint64_t guild_intent, dm_intent; /* with this intent; 0: any */
};
/* d is the event as JSON text. Returns the number of sessions that got it. */
unsigned dc_session_publish(struct world *w, const struct gateway_event *t, const char *d);
/* The same for a message; without the content intent a session gets no text. */
unsigned dc_session_publish_message(struct world *w, const char *event, const struct message *m);

/* POST /sim/gateway: {"action":"cut"}; see docs/SIMULATORS.md. */
int dc_gateway_control(struct world *w, const json_t *request, struct buf *out, struct error *err);
/* Writes a member "sessions". */
void dc_gateway_control_write(const struct gateway *g, struct buf *b);

#endif
