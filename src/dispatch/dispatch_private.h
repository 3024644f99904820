/*
 * dispatch_private: what the files of the evaluator share.
 */
#ifndef DISPATCH_DISPATCH_PRIVATE_H
#define DISPATCH_DISPATCH_PRIVATE_H

#include "base/map.h"
#include "dispatch/chat_sessions.h"
#include "dispatch/commands.h"
#include "dispatch/dispatch.h"
#include "dispatch/limits/bot_loop.h"
#include "dispatch/limits/budget.h"
#include "dispatch/limits/reaction_limit.h"

#define RATES_MAX     20000 /* senders whose turns are counted */
#define SESSIONS_MAX  20000 /* live sessions */
#define REACTIONS_MAX 20000 /* messages whose reactions are counted */
#define LOOPS_MAX     1000  /* chats in which bots answer each other */

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *file_rules;
        size_t file_rule_count;
        struct rule *rules; /* in force: file and stored ones; contents are borrowed */
        size_t rule_count;
        struct map rules_by_name; /* → struct rule: the first of that name */
        char *only_agent;
        struct rate_limits *rates;
        struct chat_sessions *sessions;
        struct reaction_limits *reactions;
        struct budget *budget;
        struct bot_loops *loops;
        int64_t clock_ms;              /* 0: the real one */
        struct runtime_policy *policy; /* may be NULL */
        /* of the current evaluation; chat is its chat session key, "" without sessions */
        struct buf reason, notice, session, chat;
};

/* One event on its way through the guards. */
struct evaluation {
        struct dispatch *d;
        const struct incoming *in;
        const char *type;                       /* of the event */
        const struct dispatch_adapter *adapter; /* NULL: not configured */
        struct rule_context context;
        const struct rule *rule; /* that decides; NULL: none */
        int64_t now_ms;
        int64_t session_seconds;            /* how long a session stays live here; 0: none */
        const char *live_session;           /* that the event continues; NULL: none */
        const struct chat_command *command; /* to carry out; NULL: none */
        const char *command_args;
        const char *link_code; /* of /link; "": asks for a code; NULL: not that command */
        bool is_stranger;      /* result of the access check */
        bool is_allowed;
        bool counts_command; /* towards the rate limit of commands */
        bool joins_turn;     /* a queued turn takes the message */
        bool dry;            /* explain only: no notices */
        const char *guard;   /* that refused; NULL: none */
        struct decision *out;
};

/* A guard returns true, or false after evaluation_refuse. It records nothing. */
struct guard {
        const char *name;
        bool (*check)(struct evaluation *e);
};

void evaluation_init(struct evaluation *e, struct dispatch *d, const struct incoming *in,
                     struct decision *out);
void evaluation_release(struct evaluation *e);
/* Runs the guards up to the rule and handover, or those that count turns. False: one refused. */
bool evaluation_decide(struct evaluation *e);
bool evaluation_admit(struct evaluation *e);
/* Adds to the reason for the trigger log. Returns false. */
bool evaluation_refuse(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Adds to the notice for the sender. */
void evaluation_notify(struct evaluation *e, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Copies reason and notice into the decision. */
void evaluation_finish(struct evaluation *e);

int64_t dispatch_now(const struct dispatch *d);
const struct dispatch_adapter *dispatch_adapter_of(const struct dispatch *d,
                                                   const struct incoming *in);
const struct rule *dispatch_rule(const struct dispatch *d, const char *name);

/* guards.c */
bool guard_adapter(struct evaluation *e);
bool guard_own(struct evaluation *e);
bool guard_content(struct evaluation *e);
bool guard_access(struct evaluation *e);
bool guard_age(struct evaluation *e);
bool guard_handover(struct evaluation *e);
bool guard_rate(struct evaluation *e);
bool guard_reaction(struct evaluation *e);
bool guard_loop(struct evaluation *e);
bool guard_budget(struct evaluation *e);
/* The rate of turns in force, and whose turns it counts. */
struct turn_rate guard_turn_rate(const struct dispatch_adapter *a, const struct rule *r);
struct rate_key guard_rate_key(const struct incoming *in);

/* commands.c */
bool command_guard(struct evaluation *e);
bool command_is_within_rate(struct evaluation *e); /* refuses when not */
void command_count(struct evaluation *e);
void command_run(struct evaluation *e);

/* people/account_link.c */
bool account_link_guard(struct evaluation *e);
void account_link_run(struct evaluation *e);

/* rules/rule_select.c */
bool rule_select_guard(struct evaluation *e);
const char *rule_select_agent(const struct evaluation *e); /* NULL: none is named */
/* After rules or adapters changed: which rules can concern which adapter. */
void rule_select_index(struct dispatch *d);

/* rules/rule_policy.c */
void rule_policy_fill(const struct evaluation *e); /* the decision's reply policy */

/* sessions/decision_session.c */
void decision_session_find(struct evaluation *e);    /* which one does the event continue? */
void decision_session_assign(struct evaluation *e);  /* names the decision's session */
void decision_session_open(struct evaluation *e);    /* the decision triggers */
void decision_session_restart(struct evaluation *e); /* the next message has a new one */

#endif
