/*
 * sl_push: how the simulated Slack reaches an app, over Socket Mode or at its request URL.
 *
 * Callers give the inner event or the payload; the envelope, its ids, its retries and the choice of
 * a connection are made here. What no app acknowledges is retried three times, then dropped.
 */
#ifndef SIM_SLACK_SL_PUSH_H
#define SIM_SLACK_SL_PUSH_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/ws.h"

#define SL_PUSH_TOKEN "simulated-verification" /* the old proof of origin, in every payload */

struct slack_links;
struct slack_world;

struct slack_links *sl_push_new(struct slack_world *w);
/* Ends the connections; run it before the world is freed. NULL is fine. */
void sl_push_free(struct slack_links *links);
/* Opens the listener of Socket Mode. */
int sl_push_listen(struct slack_links *links, const struct ws_options *o, struct error *err);
/* The URL of apps.connections.open, good for one connection; yours to free. */
char *sl_push_ticket(struct slack_links *links, const char *app_id);

/* These take over the JSON and return how many apps get it. */

/*
 * The inner event: "type", "channel", "user", ...; "event_ts" is added if it is missing. With
 * "app", which is removed, only that one gets it.
 */
unsigned sl_push_event(struct slack_world *w, json_t *event);
/* block_actions, view_submission, ... */
unsigned sl_push_interactive(struct slack_world *w, json_t *payload);
/* A slash command. */
unsigned sl_push_command(struct slack_world *w, json_t *payload);

/* Writes members of GET /sim/state. */
void sl_link_control_write(const struct slack_links *links, struct buf *b);

#endif
