/*
 * interactions: slash commands, buttons and forms.
 *
 * They go to the bot's gateway, or signed to its endpoint if it has one. The bot answers with a
 * callback (or in the endpoint's response) within seconds; then the token is valid for follow-ups
 * for 15 minutes.
 */
#ifndef SIM_DISCORD_DC_INTERACTIONS_H
#define SIM_DISCORD_DC_INTERACTIONS_H

#include "sim/discord/dc_call.h"
#include "sim/discord/dc_world.h"

#define INTERACTION_TOKEN_MS (15 * 60 * 1000)

enum interaction_type {
        INTERACTION_PING = 1,
        INTERACTION_COMMAND = 2,
        INTERACTION_COMPONENT = 3,
        INTERACTION_AUTOCOMPLETE = 4,
        INTERACTION_MODAL = 5,
};

enum callback_type {
        CALLBACK_PONG = 1,
        CALLBACK_MESSAGE = 4,
        CALLBACK_DEFER = 5,
        CALLBACK_DEFER_UPDATE = 6,
        CALLBACK_UPDATE = 7,
        CALLBACK_CHOICES = 8,
        CALLBACK_MODAL = 9,
};

struct interaction {
        struct world *world;
        struct bot *bot;
        uint64_t id;
        char token[65];
        enum interaction_type type;
        struct channel *channel;
        struct user *user;
        json_t *data;
        uint64_t message_id;  /* with the pressed button; 0: none */
        uint64_t original_id; /* the answer; 0: none yet */
        int answered;         /* a callback_type; 0: not yet */
        int64_t made_ms;
        char *body; /* as sent to the bot */
        struct http_call *posting;
};

/* Takes over data. Sends it to the bot; counts the sessions that got it (1 for an endpoint). */
struct interaction *dc_interaction_make(struct bot *b, enum interaction_type type,
                                        struct channel *c, struct user *u, json_t *data,
                                        const struct message *on, unsigned *sessions);
struct interaction *dc_interaction_find(const struct world *w, const char *token);
/* dc_op_interactions.c: applies {"type":..,"data":..}. -1 after dc_call_fail. */
int dc_op_interaction_answer(struct call *c, struct interaction *i, const json_t *answer);
/* Checks the endpoint as the portal does; the journal gets "endpoint" entries. */
void dc_interaction_ping(struct bot *b);
/* Frees those of a channel about to be removed; NULL: those with an expired token. */
void dc_interactions_forget(struct world *w, const struct channel *c);
void dc_interactions_release(struct world *w);

#endif
