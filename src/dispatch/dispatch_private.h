/* dispatch_private: shared by dispatch's files. */
#ifndef DISPATCH_DISPATCH_PRIVATE_H
#define DISPATCH_DISPATCH_PRIVATE_H

#include "base/map.h"
#include "dispatch/dispatch.h"

#define RULE_WHY_BYTES 300 /* recorded of why one rule did not match */

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *file_rules;
        size_t file_rule_count;
        struct rule *rules; /* in force; contents borrowed from file and store */
        size_t rule_count;
        struct map rules_by_name; /* → first struct rule of that name */
        char *only_agent;
        struct rate_limits *rates;
        struct chat_sessions *sessions;
        struct reaction_limits *reactions;
        struct budget *budget;
        struct bot_loops *loops;
        int64_t clock_ms;              /* 0: the real one */
        struct runtime_policy *policy; /* may be NULL */
        struct road_schedule schedule; /* zeroed: none */
        struct road_remote remote;     /* the same */
        /* of the current evaluation; chat: the chat session key, "" without sessions */
        struct buf reason, notice, session, chat;
        struct buf rules_tried; /* of the current evaluation: a JSON list without its end, or "" */
        size_t rules_omitted;   /* from it, because it would become too long */
        struct buf rule_why;    /* scratch */
};

int64_t dispatch_now(const struct dispatch *d);

struct evaluation {
        struct dispatch *d;
        const struct incoming *in;
        const struct placement_query *query; /* may be NULL */
        const char *type;
        const struct dispatch_adapter *adapter; /* NULL: not configured */
        struct rule_context context;
        const struct rule *rule; /* the deciding one; NULL: none */
        int64_t now_ms;
        int64_t session_seconds;            /* lifetime of a session here; 0: none */
        const char *live_session;           /* continued by the event; may be NULL */
        const struct chat_command *command; /* to carry out; may be NULL */
        const char *command_args;
        const char *link_code;        /* of /link; "": asks for a code; NULL: not that command */
        bool is_stranger, is_allowed; /* set by the access check */
        bool counts_command;          /* counts towards the rate limit of commands */
        bool joins_turn;              /* joins a queued turn */
        bool dry;                     /* dry run */
        const char *guard;            /* the refusing one; NULL: none */
        struct decision *out;
};

/*
 * Runs the guards. The caller sets d, in, query, dry and out, and releases the context. The reason
 * of a refusal is in d->reason.
 */
void evaluation_run(struct evaluation *e);
/* Adds to the reason for the trigger log. Returns false. */
bool evaluation_refuse(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Adds to the notice for the sender. */
void evaluation_notify(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Not for bots, which would continue a loop, nor in modes that do not answer in the chat. */
bool evaluation_may_notify(const struct evaluation *e);
/* Appends a write to the decision's transaction. */
void evaluation_add_write(struct decision *out, struct tx_extra extra);
/* The same for a change (write_through.h). */
void evaluation_add_change(struct decision *out, void *change);

/* Guards return true, or false after evaluation_refuse. They only change claimed notices. */
bool account_link_guard(struct evaluation *e);
bool access_check_guard(struct evaluation *e);
bool command_guard(struct evaluation *e);
bool rule_select_guard(struct evaluation *e);
bool evaluation_age_guard(struct evaluation *e);
bool handover_guard(struct evaluation *e);
bool rate_limit_guard(struct evaluation *e);
bool reaction_limit_guard(struct evaluation *e);
bool bot_loop_guard(struct evaluation *e);
bool budget_guard(struct evaluation *e);

/*
 * Does the rule only listen to the event, which is not addressed to the bot? Such turns have a
 * limit of their own, so that they never use up the one for direct requests.
 */
bool rate_limit_is_ambient(const struct incoming *in, const struct rule *r);
/* The rate in force and whose turns it counts; the rule may be NULL. */
struct turn_rate rate_limit_of(const struct dispatch_adapter *a, const struct rule *r,
                               bool ambient);
struct turn_rate rate_limit_of_event(const struct evaluation *e);
struct rate_key rate_limit_key(const struct incoming *in, const struct rule *r);
int rate_limit_restore(struct dispatch *d, struct store_tx *tx, struct error *err);
/* {"name", "matched", "why"} of each rule that was tried, a JSON list; NULL: none. */
const char *rule_select_tried(struct dispatch *d);
/* NULL: none named. */
const char *rule_select_agent(const struct evaluation *e);
void account_link_run(struct evaluation *e);

/*
 * commands: "/stop", "/stop@mybot", "@mybot /stop" as the whole message, or "/remind 30m tea" with
 * what it asks for. It must be meant for the bot: in a direct chat, addressed to it, in a live
 * session, or where a rule would answer, and naming no other bot. A near miss is answered with the
 * right command.
 */
struct chat_command {
        const char *name; /* without the slash */
        const char *help;
        /* COMMAND_HANDLED: done here, COMMAND_EFFECT: by the schedule or the sessions */
        enum road_command does;
        bool admins_only;
        bool of_sessions;
};

/* The command in the text, with its arguments in *args ("" for none); NULL: none. */
const struct chat_command *command_parse(const char *text, const char **args);
/* The command probably meant; NULL: none, or the text is one. */
const struct chat_command *command_suggest(const char *text);
bool command_rate_guard(struct evaluation *e);
void command_count(struct evaluation *e);
void command_run(struct evaluation *e);

/*
 * chat_sessions: after talking with the bot, a sender need not address it again for a while. This
 * holds per chat key: a direct chat, a person in a channel, or a thread, shared by everyone in it.
 * A thread started by an answer continues the session it came from, and they keep each other alive.
 * A session is live while a turn of it is open, and for some seconds after the last activity of
 * either side. At `max`, the least recently active is evicted.
 */
struct chat_sessions;

struct chat_sessions *chat_sessions_new(size_t max);
void chat_sessions_free(struct chat_sessions *cs);
/* Sessions idle for longer than any caller asks for may be evicted. */
void chat_sessions_set_longest(struct chat_sessions *cs, int64_t seconds);
size_t chat_sessions_count(const struct chat_sessions *cs);
/* The live session of a chat key, borrowed until the next change; NULL: none. */
const char *chat_session_find(const struct chat_sessions *cs, const char *key, int64_t seconds,
                              int64_t now_ms);
/*
 * Marks the session active and adds the chat key unless NULL. turns: 1 when one begins, which keeps
 * the session live until it ends, -1.
 */
void chat_session_touch(struct chat_sessions *cs, const char *key, const char *session, int turns,
                        int64_t now_ms);
int chat_session_restore(struct chat_sessions *cs, struct store_tx *tx, int64_t now_ms,
                         struct error *err);

void chat_session_continue(struct evaluation *e); /* finds the session the event continues */
void chat_session_assign(struct evaluation *e);   /* names the decision's session */
void chat_session_open(struct evaluation *e);     /* the decision triggers */
void chat_session_restart(struct evaluation *e);  /* starts a new one with the next message */
/* Stores the turn's session as active now, also in a thread started by the answer. */
struct tx_extra chat_session_ending(struct dispatch *d, const struct turn_run *run,
                                    const struct turn_outcome *outcome);
void chat_session_ended(struct dispatch *d, const struct turn_run *run,
                        const struct turn_outcome *outcome);

#endif
