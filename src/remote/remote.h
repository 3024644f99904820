/*
 * remote: coding agents that run elsewhere, watched and steered.
 *
 *     program ──► events ──► journal (session.*) ──► who shows them
 *     people  ──► commands ──► rows ──► poll or stream ──► program, which acknowledges each
 *
 * A program reports with an API key, and what one key reported first is invisible to others. Rows
 * (rows/session_row.h) and journal events are one transaction. In memory there are the chats of
 * sessions (session_index.c), and the work on those that have something to show (session_view.h).
 *
 * The journal has, without an adapter: session.TYPE for every event of a program, its payload an
 * object of "sessionId", "content", and if given "toolName", "metadata", "timestamp", "eventId";
 * and session.chat.linked, session.approval.expired and session.state.archived. With the chat where
 * it was given, if any: session.command.STATE for every step of a command, see session_command.h.
 * Types of programs have no second dot, so they cannot pretend to be ours.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "road/road.h"
#include "road/road_remote.h"
#include "rows/session_row.h"

struct remote;

/* The section "sessions", explained in remote_conf.c. */
struct remote_conf {
        int64_t command_seconds; /* then a command that nobody fetched expires */
        int64_t archive_seconds; /* without an event, then a session is archived */
        int64_t active;          /* sessions */
        int64_t queued;          /* commands of one session */
        char *adapter, *channel; /* where sessions are shown that name no chat; may be NULL */
        bool threads;            /* a thread for each, where the chat has them */
        int64_t update_ms;       /* between two rounds of messages and edits of a session */
        struct setting_list people;
};
extern const struct setting remote_settings[];
/* Reports mistakes that the table cannot express. */
void remote_conf_check(const struct settings_source *src, const struct remote_conf *conf);

struct remote_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        /* 0: unknown person */
        int64_t (*person_of)(void *arg, const char *platform, const char *user);
        /* The i-th adapter's name and platform; false: there are no more. May be NULL. */
        bool (*adapter_at)(void *arg, size_t i, const char **name, const char **platform);
        void *arg;
};

/* It and remote_start block while reading where sessions are shown, and which are behind. */
struct remote *remote_open(const struct remote_env *env, const struct remote_conf *conf,
                           struct error *err);
void remote_set_conf(struct remote *r, const struct remote_conf *conf);
const struct remote_conf *remote_get_conf(const struct remote *r);
void remote_start(struct remote *r);
/* Starts nothing new. */
void remote_quiesce(struct remote *r);
void remote_close(struct remote *r);
/* Commands were queued, or sessions had events: looks for what expires. Cheap. */
void remote_wake(struct remote *r);

/* Chat commands and messages that steer (session_chat.c). */
void remote_contract(struct remote *r, struct road_remote *out);

struct remote_stats {
        uint64_t events, duplicates; /* taken since the start */
        uint64_t expired;            /* commands */
        size_t linked;               /* chats with a session */
        size_t views;                /* sessions whose chat is behind */
        uint64_t shown, edited;      /* messages, and edits of them */
};
void remote_get_stats(const struct remote *r, struct remote_stats *out);

/* ---- where sessions are shown ---- */

/* After a commit: the session is shown where its row says. Until it has ended, messages there steer
 * it. */
void remote_linked(struct remote *r, const struct session_row *row);

/* ---- people ---- */

/* Is the account ("discord:42") in `sessions.people`, or its person? */
bool remote_trusts(const struct remote *r, const char *platform, const char *user);

#endif
