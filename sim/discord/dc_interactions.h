/*
 * interactions: slash commands, buttons and forms that people use, on their way to a bot and back.
 *
 * They go to the bot's gateway, or to its endpoint when it has one, signed. The answer comes as a
 * callback (or in the endpoint's answer), within seconds; afterwards the token is good for
 * follow-ups for a quarter of an hour.
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
        uint64_t message_id;  /* whose button was pressed; 0: none */
        uint64_t original_id; /* the message that answers it; 0: none yet */
        int answered;         /* a callback_type; 0: not yet */
        int64_t made_ms;
        char *body; /* as told to the bot */
        struct http_call *posting;
};

/*
 * Takes over data. Tells the bot; `told` is set to how many sessions learned of it (1 for an
 * endpoint).
 */
struct interaction *dc_interaction_make(struct bot *b, enum interaction_type type,
                                        struct channel *c, struct user *u, json_t *data,
                                        const struct message *on, unsigned *told);
struct interaction *dc_interaction_find(const struct world *w, const char *token);
/*
 * op_interactions.c: an answer of type and data, in the callback or the endpoint's answer. -1 after
 * call_fail.
 */
int dc_op_interaction_answer(struct call *c, struct interaction *i, const json_t *answer);
/* Asks the endpoint whether it is one; the result is in the journal as "endpoint". */
void dc_interaction_ping(struct bot *b);
/* Those of a channel that is about to go; NULL: those whose token is worth nothing any more. */
void dc_interactions_forget(struct world *w, const struct channel *c);
void dc_interactions_release(struct world *w);

#endif
