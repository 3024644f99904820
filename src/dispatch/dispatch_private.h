/*
 * dispatch_private: what the files of the evaluator share. An event that is being decided is a
 * matter; it passes guard after guard.
 */
#ifndef DISPATCH_DISPATCH_PRIVATE_H
#define DISPATCH_DISPATCH_PRIVATE_H

#include "base/map.h"
#include "dispatch/commands.h"
#include "dispatch/dispatch.h"
#include "dispatch/limits/bot_loop.h"
#include "dispatch/limits/budget.h"
#include "dispatch/limits/reaction_limit.h"
#include "dispatch/rules/rules.h"
#include "dispatch/sessions/chat_sessions.h"

#define PEOPLE_MAX   20000 /* whose turns are counted at the same time */
#define SESSIONS_MAX 20000 /* conversations that are open at the same time */
#define REACTED_MAX  20000 /* messages whose reactions are remembered */
#define LOOPS_MAX    1000  /* channels in which bots talk with each other at the same time */

struct dispatch {
        struct dispatch_adapter *adapters;
        size_t adapter_count;
        struct map by_name; /* → struct dispatch_adapter */
        struct rule *file_rules;
        size_t file_rule_count;
        /* in force: the file's and stored ones; what is inside belongs to others */
        struct rule *rules;
        size_t rule_count;
        struct map rules_by_name; /* → struct rule: the first of that name */
        char *only_agent;
        struct rate_limits *rates;
        struct chat_sessions *sessions;
        struct reaction_limits *reactions;
        struct budget *budget;
        struct bot_loops *loops;
        int64_t clock_ms;                   /* 0: the real one */
        struct runtime_policy *policy;      /* may be NULL */
        struct buf reason, notice, session; /* of the last decision */
        /* of the matter at hand; "" where there are no conversations */
        struct buf place;
        const char *guard; /* who said no; NULL: nobody */
};

/* One event on its way through the guards. */
struct matter {
        struct dispatch *d;
        const struct incoming *in;
        struct situation situation;             /* as rules see it */
        const struct dispatch_adapter *adapter; /* NULL: it is not configured */
        const struct rule *rule;                /* that decides; NULL: none */
        int64_t now_ms;
        /* how long a conversation stays open here; 0: there are none */
        int64_t window_seconds;
        const char *live;                   /* the session it goes on with; NULL: none */
        const struct chat_command *command; /* that it is; NULL: none */
        const char *command_rest;           /* what follows the command */
        bool joins_turn;                    /* a queued turn takes the message */
        bool dry;                           /* nobody is told and nothing is counted */
        struct decision *out;
};

/*
 * A guard lets a matter pass, or returns what matter_refuse does. It changes nothing but the
 * matter's decision, and remembers whom it told.
 */
struct guard {
        const char *name; /* NULL ends a list */
        bool (*passes)(struct matter *m);
};
extern const struct guard dispatch_guards[];    /* decide: may this event trigger, and whom? */
extern const struct guard dispatch_admission[]; /* admit: may this turn be placed now? */

void matter_init(struct matter *m, struct dispatch *d, const struct incoming *in,
                 struct decision *out);
void matter_release(struct matter *m);
/* Asks one after the other. False: one refused; d->guard has its name and out->reason why. */
bool matter_pass(struct matter *m, const struct guard *guards);
/* "No", and a sentence for a person. Returns false. */
bool matter_refuse(struct matter *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What the sender is told besides, in the channel. */
void matter_notice(struct matter *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int64_t dispatch_now(const struct dispatch *d);
const char *event_type(const struct incoming *in);
const struct dispatch_adapter *dispatch_adapter_of(const struct dispatch *d,
                                                   const struct incoming *in);
const struct rule *dispatch_rule(const struct dispatch *d, const char *name);

/* guards.c */
struct turn_rate guard_rate(const struct dispatch_adapter *a, const struct rule *r);
struct rate_key guard_rate_key(const struct incoming *in);

/* conversation.c */
void conversation_look(struct matter *m);   /* does it go on with one? */
void conversation_name(struct matter *m);   /* whose it is, and its session */
void conversation_placed(struct matter *m); /* it is open from now on */

/* commands.c */
bool command_is_heard(struct matter *m);  /* false: the sender gave too many. Counts it */
void command_carry_out(struct matter *m); /* after everything has been decided */

/* choose.c */
bool rule_select_passes(struct matter *m);
const char *rule_select_agent(const struct matter *m); /* who answers; NULL: nobody is named */
bool age_passes(struct matter *m);
/*
 * Which rules can concern an adapter, so that not all are asked for each event. After the rules or
 * adapters changed.
 */
void rule_select_index(struct dispatch *d);

/* rule_policy.c */
void rule_policy_fill(const struct matter *m); /* how the turn runs and posts */

#endif
