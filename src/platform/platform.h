/*
 * platform: a kind of chat service; an adapter is one configured connection to it.
 *
 * Three contracts are kept apart: platform_ops is what the road may ask of a platform; the
 * adapter_* functions are what a platform may report; the registry (adapters_*) is what the rest of
 * the program sees. An adapter translates; it does not decide. What platforms share is in this
 * room: intake.h (updates on their way to the inbox), attachment_fetch.h, send_outcome.h,
 * adapter_file.h, markdown/.
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
        char *agent;         /* answers where no rule names another; NULL: the only agent */
        int64_t debounce_ms; /* -1: the platform's default */
        int64_t debounce_max_ms;
        int64_t max_age_seconds; /* older backlog is stored and marked expired; 0: no limit */
        /* access; dispatch knows what the entries mean */
        struct setting_list admins, dm, allow, block, channels;
        struct {
                int64_t turns, seconds; /* turns -1: 5, or no limit on a trusted platform */
        } rate;
        int64_t max_hops; /* bots a message may have passed through */
        /* -1: the platform's default, see platform_manners */
        int64_t conversation_seconds, dm_conversation_seconds, thread_chars, slow_ms;
        int64_t part_delay_ms; /* between the messages of one answer */
        struct {
                double usd_per_day; /* 0: no limit */
        } budget;
        bool commands; /* /new, /stop ... are for us; default: unless ops->for_programs */
        char *ca_file; /* certificates its connections trust; NULL: the system's */
        struct {
                /* -1: the platform's default */
                double per_second, per_chat_per_second, per_group_per_minute;
        } pace;
};
extern const struct setting adapter_common_settings[];

/* Defaults of how a bot behaves in chats. 0: never. */
struct platform_manners {
        /* in a group: the same person needs no mention for so long after an exchange */
        int64_t conversation_seconds;
        /* in a DM: a session ends so long after the last exchange */
        int64_t dm_conversation_seconds;
        int64_t thread_chars; /* in a group: longer answers begin a thread */
        int64_t slow_ms;      /* in a group: a message is marked when its answer takes longer */
};

/* ---- what may be asked of a platform ---- */

struct channel_info {
        const char *id;
        enum chat_kind kind;
        const char *name;   /* NULL: it has none */
        const char *topic;  /* NULL: none */
        const char *parent; /* the channel of a thread, the category of a channel; NULL: none */
        int64_t members;    /* -1: not known */
};
struct user_info {
        const char *id;
        const char *username; /* NULL: none */
        const char *name;     /* as people see it; NULL: none */
        bool is_bot;
};
/* info is borrowed; NULL with an error, of kind ERR_MISSING when there is none. */
typedef void channel_info_fn(void *arg, const struct channel_info *info, const struct error *err);
typedef void user_info_fn(void *arg, const struct user_info *info, const struct error *err);

/*
 * A function of a platform that answers at once instead of through the outbox: reading, listing,
 * looking up. Calls done once, later: result is JSON text, or err says why there is none.
 */
typedef void platform_tool_fn(void *arg, const char *result, const struct error *err);
struct platform_tool {
        const char *name;       /* "discord_read" */
        const char *help;       /* one sentence for a model */
        const char *parameters; /* JSON Schema of the arguments, an object */
        void (*call)(struct adapter *a, const json_t *arguments, platform_tool_fn *done, void *arg);
};

/* A slot that says so may be NULL. */
struct platform_ops {
        const char *name;  /* "telegram": in the configuration, the API and the journal */
        const char *title; /* "Telegram": for people */
        const char *help;
        const char *token_hint;      /* for adapter_bad_token: which token is right */
        const char *token_variable;  /* environment variable that may hold it; NULL: none */
        unsigned can;                /* ADAPTER_*; `abilities` may narrow it */
        struct markdown_limits text; /* dialect, unit, longest message and caption */
        bool as_written;   /* clients render Markdown: text passes unchanged, in one part */
        bool for_programs; /* programs write here: chat commands are text like any other */
        bool trusted;      /* senders have shown a key: no access rules, no mention needed */
        /* defaults of adapter_common */
        int64_t debounce_ms;
        struct platform_manners manners;
        struct pace_limits pace;
        /* the platform's own settings, into a struct of conf_size bytes; NULL: none */
        const struct setting *settings;
        size_t conf_size;
        /* Checks what a table of settings cannot. May be NULL. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);

        /* Starts to connect; adapter_ready or adapter_lost follow. -1: it cannot even try. */
        int (*open)(struct adapter *a, struct error *err);
        /* May be NULL. */
        void (*close)(struct adapter *a);

        /* Carries out a delivery; adapter_sent follows, never before this has returned. NULL with
         * ADAPTER_JOURNALED. */
        void (*send)(struct adapter *a, const struct delivery *d);
        /* With ADAPTER_READBACK: finds out whether a delivery arrived; adapter_sent follows. */
        void (*reconcile)(struct adapter *a, const struct delivery *d);
        /* NULL: `can`. */
        unsigned (*abilities)(const struct adapter *a);
        /* Is the channel a group, which has a pace of its own? NULL: never. */
        bool (*is_group)(const struct adapter *a, const char *channel);
        /* The platform's mention for `@name`, see markdown_mention_fn. NULL: names stay text. */
        bool (*mention)(const struct adapter *a, struct slice name, struct buf *out);
        /* The id of a thread begun at this message. NULL: there are no threads. */
        const char *(*thread_at)(const struct adapter *a, const struct incoming *in);

        /*
         * A post to /api/v2/channels/<platform>/<adapter>/webhook. No API key was asked for: the
         * platform checks the post's own proof and answers the exchange, now or later. NULL: 404.
         */
        void (*webhook)(struct adapter *a, struct http_exchange *x);
        /*
         * Checks the head of such a post, before its body is read and again before `webhook`, so
         * that strangers cannot fill our memory. Answers and returns false when it is refused.
         * NULL: only the body can prove it.
         */
        bool (*webhook_admits)(struct adapter *a, struct http_exchange *x);

        /* The latest messages of a channel. Calls done once, later. NULL: it cannot. */
        void (*channel_history)(struct adapter *a, const char *channel, const char *thread,
                                unsigned limit, channel_history_fn *done, void *arg);
        /*
         * Look up a channel or a user. 0: done is called once, later, also when the adapter closes
         * meanwhile. -1: the id makes no sense, and done is not called. NULL: it cannot.
         */
        int (*channel_info)(struct adapter *a, const char *channel, channel_info_fn *done,
                            void *arg, struct error *err);
        int (*user_info)(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                         struct error *err);
        /* For agents and the API; ends with a NULL name. NULL: none. */
        const struct platform_tool *tools;
};

extern const struct platform_ops api_platform, cli_platform, discord_platform, telegram_platform;
/* All of them, NULL-terminated. */
extern const struct platform_ops *const platform_kinds[];
/* The platform with this name, or NULL. */
const struct platform_ops *platform_find(const char *name);

/* ---- an adapter ---- */

enum adapter_state { ADAPTER_OFF, ADAPTER_CONNECTING, ADAPTER_UP, ADAPTER_LOST, ADAPTER_STOPPED };
const char *adapter_state_name(enum adapter_state s);

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
        const char *public_url; /* the API's address from outside; NULL: none */
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
/* Reads a member of "adapters". NULL with an error that names the place. */
struct adapter_conf *adapter_conf_read(struct settings_source *src, const char *name,
                                       const json_t *object, struct error *err);
/* The same from JSON text (NULL: {}) without "type". */
struct adapter_conf *adapter_conf_make(const char *name, const char *type, const char *json,
                                       struct error *err);
void adapter_conf_free(struct adapter_conf *c);

/* ---- the registry: implements the road's contract with platforms ---- */

struct adapters *adapters_new(struct loop *l, struct http_client *http, const char *dir);
/*
 * Before adapters_apply: the road needs the registry to be opened. NULL when the road is about to
 * close.
 */
void adapters_set_road(struct adapters *as, struct road *r);
/* http.publicUrl, copied; NULL: none. */
void adapters_set_public_url(struct adapters *as, const char *url);
/*
 * Where changes of state are journaled (adapter.connected, adapter.lost, adapter.stopped). NULL:
 * they are only logged.
 */
void adapters_set_journal(struct adapters *as, struct store *s, struct bus *b);
/* Closes the connections. Sends in flight are not reported: the next road_open resumes them. */
void adapters_free(struct adapters *as);
/*
 * Reconciles: starts what is new, stops what is gone, restarts what changed, leaves the rest
 * connected. Takes the confs over: each element is NULL afterwards. An adapter that cannot be
 * opened is STOPPED and says why; the others are not affected. -1, with nothing changed: two confs
 * have the same name.
 */
int adapters_apply(struct adapters *as, struct adapter_conf **confs, size_t count,
                   struct error *err);
struct adapter *adapters_find(struct adapters *as, const char *name);
void adapters_each(struct adapters *as, void (*fn)(void *arg, struct adapter *a), void *arg);

/* struct road_platforms of road/delivery.h */
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

/* As the platform's functions. -1 also: no such adapter, not connected, or it cannot. */
int adapters_channel_info(struct adapters *as, const char *adapter, const char *channel,
                          channel_info_fn *done, void *arg, struct error *err);
int adapters_user_info(struct adapters *as, const char *adapter, const char *user,
                       user_info_fn *done, void *arg, struct error *err);

#endif
