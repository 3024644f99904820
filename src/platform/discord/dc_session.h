/*
 * dc_session: how far a shard has come in its session with Discord.
 *
 * Two sequence numbers are kept. `seq` is the last one received: a resume within this run continues
 * there, because everything up to it is still in memory. `committed.seq` is the last one stored,
 * together with everything before it. Only that one goes to disk and into heartbeats, so Discord
 * keeps what a crash could lose.
 *
 * A new session may begin before everything of the previous one is committed. Until then it is
 * `next`, and the file holds the previous one, which a restart can still resume.
 */
#ifndef PLATFORM_DISCORD_DC_SESSION_H
#define PLATFORM_DISCORD_DC_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/discord/dc_gateway.h"

/*
 * A session as its file has it. Times come from the ids of messages where there were any, because
 * our clock may jump.
 */
struct dc_session_record {
        char *id, *resume_url; /* NULL: it cannot be resumed */
        int64_t seq;           /* everything up to here is committed */
        int64_t seen_ms;       /* nothing is missing up to then; 0: there was no session before */
        bool seen_message;     /* seen_ms is the time of a message */
        /* an earlier session was lost then, and catch-up has not finished; 0: it has */
        int64_t missing_ms;
        char *user_id, *username, *application_id;
};

/* A received dispatch, as far as its commit matters. */
struct dc_session_event {
        int64_t seq;
        int64_t message_ms; /* the time of a message; 0: it is not one */
        bool begins;        /* READY of a new session */
};

struct dc_session {
        char *id, *resume_url; /* of the current session; NULL: none */
        int64_t seq;           /* received */
        struct dc_session_record committed, next;
        /* the ack window: events from being received until they and all before are committed */
        struct {
                struct dc_session_slot *ring;
                size_t cap, count;
                size_t open;    /* of them, not committed */
                uint64_t first; /* number of the oldest */
        } window;
        bool full; /* the window is: read nothing more */
        struct state_file *file;
        unsigned intents, shards;
        char token[17]; /* the beginning of its digest */
        char *written;  /* id of the session last handed to the file */
};

/*
 * Zeroed before. Reads the file of an earlier run if it is of this bot; its session also has to
 * have the same intents and number of shards.
 */
void dc_session_open(struct dc_session *s, const struct dc_gateway_options *o, unsigned shard,
                     unsigned shards);
/* The file is up to date when this returns. */
void dc_session_release(struct dc_session *s);
/* The session cannot be resumed. What is missing since stays known. */
void dc_session_drop(struct dc_session *s);
/* READY: returns since when something may be missing; 0: there was no session before. */
int64_t dc_session_begin(struct dc_session *s, const char *resume_url, const json_t *ready,
                         int64_t seq);
/* Returns the event's number in the window. */
uint64_t dc_session_received(struct dc_session *s, const struct dc_session_event *e);
/*
 * The event of this number is committed, in any order. complete_ms: nothing is missing up to then
 * if the window is empty; 0: unknown.
 */
void dc_session_committed(struct dc_session *s, uint64_t number, int64_t complete_ms);
/* Discord has acknowledged a heartbeat. */
void dc_session_alive(struct dc_session *s, int64_t complete_ms);
/* Everything earlier sessions missed is stored. */
void dc_session_caught_up(struct dc_session *s);
/* The sequence for a heartbeat; -1: none yet. */
int64_t dc_session_heartbeat(const struct dc_session *s);
/* The current session with the identity READY named. */
const struct dc_session_record *dc_session_current(const struct dc_session *s);

#endif
