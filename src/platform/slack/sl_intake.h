/*
 * sl_intake: the path of Slack's events to the inbox.
 *
 *     socket, webhook ──► whose names are missing? ──► read ──► intake: order, store
 *     catch-up ─────────┘ (sl_cache)                   (sl_event)        │
 *                                                       acknowledged after the commit
 *
 * Events of one channel are stored in order; commands, buttons and forms do not wait, because a
 * person sees an error after three seconds. An app that is installed in several workspaces may get
 * an event over the connection of another adapter: it is passed on to the one of its workspace.
 */
#ifndef PLATFORM_SLACK_SL_INTAKE_H
#define PLATFORM_SLACK_SL_INTAKE_H

#include "platform/intake.h"
#include "platform/slack/slack.h"

struct sl_response_url;

struct sl_intake {
        struct slack *sl;
        struct intake window;                       /* sl_catchup holds channels in it */
        struct {                                    /* of sl_interaction.c */
                TAILQ_HEAD(, sl_response_url) list; /* oldest first */
                size_t count;
        } urls;
};

/* ---- sl_interaction.c ---- */

/* The response_url of a command with this id; NULL: Slack gave none. Before it is stored. */
void sl_interaction_remember(struct sl_intake *in, const char *id, const char *url);
/* An interaction is stored: opens the form that a button asks for. */
void sl_interaction_stored(struct slack *sl, const json_t *payload);
void sl_interaction_close(struct sl_intake *in);

#endif
