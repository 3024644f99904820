/*
 * world_events: change the world and send the gateway events.
 *
 * Each returns the number of sessions that got the event.
 */
#ifndef SIM_DISCORD_DC_WORLD_EVENTS_H
#define SIM_DISCORD_DC_WORLD_EVENTS_H

#include "sim/discord/dc_world.h"

/* Takes over m. */
unsigned dc_world_event_message(struct world *w, struct message *m);
/* m has changed already. */
unsigned dc_world_event_edit(struct world *w, struct message *m);
/* Frees m. */
unsigned dc_world_event_delete(struct world *w, struct message *m);
unsigned dc_world_event_react(struct world *w, struct message *m, const struct emoji *e,
                              struct user *u);
unsigned dc_world_event_unreact(struct world *w, struct message *m, const struct emoji *e,
                                struct user *u);
/* All reactions, or all of one emoji when it is not NULL. */
unsigned dc_world_event_clear(struct world *w, struct message *m, const struct emoji *e);
unsigned dc_world_event_typing(struct world *w, const struct channel *c, const struct user *u);
/* The channel or thread has changed already; event is "CREATE", "UPDATE" or "DELETE". */
unsigned dc_world_event_channel(struct world *w, const struct channel *c, const char *event);
unsigned dc_world_event_guild(struct world *w, const struct guild *g, const char *event);
unsigned dc_world_event_member(struct world *w, const struct guild *g, const struct user *u,
                               const char *event);
/* A thread on a message, with its id; `on` NULL: without one. */
struct channel *dc_world_event_thread(struct world *w, struct channel *parent, struct message *on,
                                      enum channel_type type, const char *name, struct user *owner);
/* Renames and posts a message about it. */
unsigned dc_world_event_rename(struct world *w, struct channel *c, const char *name,
                               struct user *by);

#endif
