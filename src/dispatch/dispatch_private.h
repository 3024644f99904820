/* dispatch_private: what the files of dispatch share. */
#ifndef DISPATCH_DISPATCH_PRIVATE_H
#define DISPATCH_DISPATCH_PRIVATE_H

#include "base/map.h"
#include "dispatch/dispatch.h"

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *file_rules;
        size_t file_rule_count;
        struct rule *rules; /* in force; contents are borrowed from file and store */
        size_t rule_count;
        struct map rules_by_name; /* → the first struct rule of that name */
        char *only_agent;
        struct rate_limits *rates;
        struct chat_sessions *sessions;
        struct reaction_limits *reactions;
        struct budget *budget;
        struct bot_loops *loops;
        int64_t clock_ms;              /* 0: the real one */
        struct runtime_policy *policy; /* may be NULL */
        /* of the current evaluation; chat is the chat session key, "" without sessions */
        struct buf reason, notice, session, chat;
};

int64_t dispatch_now(const struct dispatch *d);

/* One event on its way through the guards. */
struct evaluation {
        struct dispatch *d;
        const struct incoming *in;
        const struct placement_query *query; /* may be NULL */
        const char *type;
        const struct dispatch_adapter *adapter; /* NULL: not configured */
        struct rule_context context;
        const struct rule *rule; /* that decides; NULL: none */
        int64_t now_ms;
        int64_t session_seconds;            /* how long a session stays live here; 0: none */
        const char *live_session;           /* that the event continues; may be NULL */
        const struct chat_command *command; /* to carry out; may be NULL */
        const char *command_args;
        const char *link_code;        /* of /link; "": asks for a code; NULL: not that command */
        bool is_stranger, is_allowed; /* by the access check */
        bool counts_command;          /* towards the rate limit of commands */
        bool joins_turn;              /* a queued turn takes the message */
        bool dry;                     /* explain only */
        const char *guard;            /* that refused; NULL: none */
        struct decision *out;
};

void evaluation_init(struct evaluation *e, struct dispatch *d, const struct incoming *in,
                     struct decision *out);
/* Runs the guards and fills the decision; unless dry, also counts, records and carries out. */
void evaluation_run(struct evaluation *e);
/* Adds to the reason for the trigger log. Returns false. */
bool evaluation_refuse(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Adds to the notice for the sender. */
void evaluation_notify(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Not bots, which would continue their loop, nor in modes that do not answer in the chat. */
bool evaluation_may_notify(const struct evaluation *e);
/* Adds a write to the transaction of the decision, after those it has. */
void evaluation_add_write(struct decision *out, struct tx_extra extra);
/* The same for a change (write_through.h). */
void evaluation_add_change(struct decision *out, void *change);

/* Guards return true, or false after evaluation_refuse. They change nothing but claimed notices. */
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

/* The rate in force, and whose turns it counts. */
struct turn_rate rate_limit_of(const struct dispatch_adapter *a, const struct rule *r);
struct rate_key rate_limit_key(const struct incoming *in);
int rate_limit_restore(struct dispatch *d, struct store_tx *tx, struct error *err);
/* NULL: none is named. */
const char *rule_select_agent(const struct evaluation *e);
void account_link_run(struct evaluation *e);

/*
 * commands: "/stop", "/stop@mybot", "@mybot /stop" and nothing else in the message, which must be
 * meant for the bot: in a direct chat, addressed to it, in a live session, or where a rule would
 * answer. A word that is almost a command is answered with the right one.
 */
struct chat_command {
        const char *name; /* without the slash */
        const char *help;
        enum road_command does; /* COMMAND_HANDLED: carried out here */
        bool admins_only;
};

/* The command the text is, with what follows it in *args ("" for nothing); NULL: none. */
const struct chat_command *command_parse(const char *text, const char **args);
/* The command that was probably meant; NULL: none, or the text is one. */
const struct chat_command *command_suggest(const char *text);
bool command_rate_guard(struct evaluation *e);
void command_count(struct evaluation *e);
void command_run(struct evaluation *e);

/*
 * chat_sessions: after talking with the bot, a sender need not address it again for a while. This
 * holds per chat key: a direct chat, a person in a channel, or a thread, which everyone in it
 * shares. A thread that an answer began continues the session it came from, and both keep each
 * other alive. A session is live while one of its turns is open, and for some seconds after either
 * side was last active. When there are `max`, the one that was quiet longest is evicted.
 */
struct chat_sessions;

struct chat_sessions *chat_sessions_new(size_t max);
void chat_sessions_free(struct chat_sessions *cs);
/* Sessions that were quiet longer than any caller asks for may be evicted. */
void chat_sessions_set_longest(struct chat_sessions *cs, int64_t seconds);
size_t chat_sessions_count(const struct chat_sessions *cs);
/* The live session of a chat key, borrowed until the next change; NULL: none. */
const char *chat_session_find(const struct chat_sessions *cs, const char *key, int64_t seconds,
                              int64_t now_ms);
/*
 * The session is active, and has the chat key unless NULL. turns 1: one begins, which keeps the
 * session live until it ends, -1.
 */
void chat_session_touch(struct chat_sessions *cs, const char *key, const char *session, int turns,
                        int64_t now_ms);
int chat_session_restore(struct chat_sessions *cs, struct store_tx *tx, int64_t now_ms,
                         struct error *err);

void chat_session_continue(struct evaluation *e); /* which one does the event continue? */
void chat_session_assign(struct evaluation *e);   /* names the decision's session */
void chat_session_open(struct evaluation *e);     /* the decision triggers */
void chat_session_restart(struct evaluation *e);  /* the next message has a new one */
/* The turn's session was active until now, also in a thread that the answer began. */
struct tx_extra chat_session_ending(struct dispatch *d, const struct turn_run *run,
                                    const struct turn_outcome *outcome);
void chat_session_ended(struct dispatch *d, const struct turn_run *run,
                        const struct turn_outcome *outcome);

#endif
