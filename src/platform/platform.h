/*
 * platform: a kind of place where people chat; an adapter is one configured connection to it.
 *
 * Three contracts kept apart: platform_ops is what the road may ask of a platform; the adapter_*
 * functions are what a platform may tell the road; the registry (adapters_*) is what the rest of
 * the program sees. An adapter translates; it does not decide. Waiting, retrying, pacing and
 * splitting live once, on the road and in this room's shared code.
 */
#ifndef PLATFORM_PLATFORM_H
#define PLATFORM_PLATFORM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "platform/markdown/markdown.h"
#include "road/road.h"

struct adapter;

/* Settings every adapter has besides its own. */
struct adapter_common {
        bool enabled;
        char *agent;         /* who answers when no rule says otherwise; NULL: the only agent */
        int64_t debounce_ms; /* -1: the platform's default */
        int64_t debounce_max_ms;
        int64_t max_age_seconds; /* older backlog is stored and marked expired; 0: no limit */
        struct setting_list admins, dm, allow, block,
                channels; /* who is answered; dispatch knows what they mean */
        struct {
                int64_t turns, seconds; /* turns -1: 5, or no limit on a trusted platform */
        } rate;
        int64_t max_hops; /* bots a message may have passed through */
                          /* Of a conversation and its answers; -1: the platform's default. */
        int64_t conversation_seconds, dm_conversation_seconds, thread_chars, slow_ms;
        int64_t part_delay_ms; /* between the messages of one answer */
        struct {
                double usd_per_day; /* 0: no limit */
        } budget;
        bool commands; /* /new, /stop ... are understood; not written: unless ops->for_programs */
        char *ca_file; /* certificates its connections trust; NULL: the system's */
        struct {
                /* -1: the platform's default */
                double per_second, per_chat_per_second, per_group_per_minute;
        } pace;
};
extern const struct setting adapter_common_settings[];

/* How a bot behaves where people chat; each may be set for an adapter. 0: never. */
struct platform_manners {
        /* after an exchange in a group, the same person is understood without a mention */
        int64_t conversation_seconds;
        /* a session in a DM ends so long after the last exchange */
        int64_t dm_conversation_seconds;
        int64_t thread_chars; /* longer answers in a group begin a thread */
        /* a message in a group is marked when its answer takes longer */
        int64_t slow_ms;
};

struct platform_ops {
        const char *name;  /* "telegram": in the configuration, the API and the journal */
        const char *title; /* "Telegram": for people */
        const char *help;
        /* for adapter_bad_token: which token is right, and the variable that may hold it, or NULL
         */
        const char *token_hint, *token_variable;
        /* ADAPTER_* of road.h; an adapter may narrow it by its settings */
        unsigned can;
        struct markdown_limits text; /* dialect, unit, longest message and caption */
        /* whoever reads here renders Markdown: the text passes unchanged, in one part */
        bool as_written;
        int64_t debounce_ms;             /* default */
        struct platform_manners manners; /* default */
        struct pace_limits pace;         /* default */
        /* not people but programs write here: chat commands are text like any other */
        bool for_programs;
        /* whoever can write here has shown a key already: no access rules, no mention needed */
        bool trusted;
        const struct setting *settings; /* own keys, into a struct of conf_size bytes */
        size_t conf_size;
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err); /* optional */
        /* begins; adapter_ready or adapter_lost follow */
        int (*open)(struct adapter *a, struct error *err);
        void (*close)(struct adapter *a);
        /* NULL with ADAPTER_JOURNALED */
        void (*send)(struct adapter *a, const struct delivery *d);
        void (*reconcile)(struct adapter *a, const struct delivery *d); /* with ADAPTER_READBACK */
        unsigned (*abilities)(const struct adapter *a);                 /* NULL: `can` */
        /* for pacing; NULL: never */
        bool (*is_group)(const struct adapter *a, const char *channel);
        /*
         * `@name` in a text we send becomes a mention: see markdown_mention_fn. NULL: names stay
         * text.
         */
        bool (*mention)(const struct adapter *a, struct slice name, struct buf *out);
        /*
         * A post to /api/v2/channels/<platform>/<adapter>/webhook; NULL: it takes none. Nobody has
         * asked for a key: the platform checks the post's own proof, and answers the exchange, now
         * or later.
         */
        void (*webhook)(struct adapter *a, struct http_exchange *x);
        /*
         * What the head of such a post proves, asked before its body is read and again before
         * `webhook`: strangers must not fill our memory. Answers and returns false when it is
         * refused. NULL: only the body can prove it.
         */
        bool (*webhook_admits)(struct adapter *a, struct http_exchange *x);
        /*
         * The last messages of a channel, asked of the platform now: one call of done, later. NULL:
         * it cannot.
         */
        void (*channel_history)(struct adapter *a, const char *channel, const char *thread,
                                unsigned limit, channel_history_fn *done, void *arg);
        /* The id a thread begun at this message would have. NULL: there are no threads. */
        const char *(*thread_at)(const struct adapter *a, const struct incoming *in);
        /* what agents and the API may call; ends with a NULL name; NULL: none */
        const struct platform_tool *tools;
};

/*
 * A function of a platform that answers at once instead of through the outbox: reading, listing,
 * looking up. What sends goes through the outbox all the same. One call of done, later: result is
 * JSON text, or err says why not.
 */
typedef void platform_tool_fn(void *arg, const char *result, const struct error *err);
struct platform_tool {
        const char *name;       /* "discord_read" */
        const char *help;       /* one sentence for a model */
        const char *parameters; /* JSON Schema of the arguments, an object */
        void (*call)(struct adapter *a, const json_t *arguments, platform_tool_fn *done, void *arg);
};

/* NULL-terminated: the table of platforms */
extern const struct platform_ops *const platform_kinds[];

enum adapter_state { ADAPTER_OFF, ADAPTER_CONNECTING, ADAPTER_UP, ADAPTER_LOST, ADAPTER_STOPPED };

struct adapter {
        const struct platform_ops *ops;
        const char *name;
        const struct adapter_common *common;
        const void *conf;
        struct adapters *all;
        struct loop *loop;
        struct http_client *http;
        struct road *road;
        const char *dir;
        const char *public_url; /* how the API is reached from outside; NULL: not at all */
        enum adapter_state state;
        char why[200];                 /* of LOST and STOPPED, for a person */
        int64_t since_ms;              /* wall clock of the last change of state */
        unsigned failures;             /* attempts to connect in a row */
        char bot_name[64], bot_id[64]; /* on the platform; "": not known yet */
        void *self;                    /* the platform's own */
};

/* ---- what a platform may report ---- */

/* The bot's name and id, shown to people so that they know which bot they have connected. */
void adapter_set_profile(struct adapter *a, const char *name, const char *id);
void adapter_ready(struct adapter *a);
/* The connection is gone; the platform tries again by itself. */
void adapter_lost(struct adapter *a, const char *why);
/*
 * The same after a failed attempt to connect: returns how long to wait before the next one, with
 * backoff and jitter, at least retry_after_ms.
 */
int64_t adapter_retry(struct adapter *a, const char *why, int64_t retry_after_ms);
/* Trying again makes no sense: the operator has to act. */
void adapter_stopped(struct adapter *a, const char *why);
/* The same for a token that the platform does not accept. */
void adapter_bad_token(struct adapter *a);
/* Hands over an event; adapter and platform are filled in. */
void adapter_received(struct adapter *a, struct incoming *in, inbox_ack_fn *ack, void *arg);
/* The outcome of a delivery that `send` began. */
void adapter_sent(struct adapter *a, int64_t delivery, int64_t fence,
                  const struct send_result *result);
/* `send` cannot begin this delivery: the outcome is reported later, from the loop. */
void adapter_refuse(struct adapter *a, const struct delivery *d, enum send_outcome outcome,
                    enum error_kind kind, const char *why);

/* ---- configuration ---- */

struct adapter_conf {
        char *name;
        const struct platform_ops *ops;
        struct adapter_common common;
        void *conf;
        json_t *raw;
};
struct adapter_conf *adapter_conf_read(struct settings_source *src, const char *name,
                                       const json_t *object, struct error *err);
struct adapter_conf *adapter_conf_make(const char *name, const char *type, const char *json,
                                       struct error *err);
void adapter_conf_free(struct adapter_conf *c);

/* ---- the registry: implements the road's adapter hooks ---- */

struct adapters;
struct adapters *adapters_new(struct loop *l, struct http_client *http, const char *dir);
/*
 * The road comes later: it needs our hooks to be opened. Before adapters_apply; NULL when the road
 * is about to close.
 */
void adapters_set_road(struct adapters *as, struct road *r);
/* http.publicUrl, copied; NULL: there is none. Adapters that are opened afterwards see it. */
void adapters_set_public_url(struct adapters *as, const char *url);
/*
 * Where changes of state are journaled (adapter.connected, adapter.lost, adapter.stopped). Without
 * it, or with NULL, they are only logged.
 */
void adapters_set_journal(struct adapters *as, struct store *s, struct bus *b);
/* Closes the connections. Sends in flight are not reported: the next road_open resumes them. */
void adapters_free(struct adapters *as);
/*
 * Reconciles: starts what is new, stops what is gone, restarts what changed, leaves the rest
 * connected. Takes the confs over: each element is NULL afterwards. An adapter that cannot be
 * opened is STOPPED and says why; the others are not harmed. -1, with nothing changed: a name is
 * there twice.
 */
int adapters_apply(struct adapters *as, struct adapter_conf **confs, size_t count,
                   struct error *err);
struct adapter *adapters_find(struct adapters *as, const char *name);
void adapters_each(struct adapters *as, void (*fn)(void *arg, struct adapter *a), void *arg);

unsigned adapters_abilities(struct adapters *as, const char *adapter);
bool adapters_ready(struct adapters *as, const char *adapter);
void adapters_limits(struct adapters *as, const char *adapter, struct pace_limits *out);
bool adapters_channel_is_group(struct adapters *as, const char *adapter, const char *channel);
int adapters_render(struct adapters *as, const char *adapter, const char *text,
                    struct rendered *out, struct error *err);
int adapters_caption(struct adapters *as, const char *adapter, const char *text,
                     struct rendered *out, struct error *err);
void adapters_send(struct adapters *as, const struct delivery *d);
void adapters_reconcile(struct adapters *as, const struct delivery *d);
void adapters_channel_history(struct adapters *as, const char *adapter, const char *channel,
                              const char *thread, unsigned limit, channel_history_fn *done,
                              void *arg);
const char *adapters_thread_at(struct adapters *as, const struct incoming *in);

const char *adapter_state_name(enum adapter_state s);

#endif
