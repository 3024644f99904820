/*
 * platform: a kind of chat service; an adapter is one configured connection to it.
 *
 * platform_ops are the road's calls to a platform, adapter_* a platform's reports, adapters_* the
 * registry that the rest of the program sees. Adapters translate and do not decide.
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
struct attachment_limits;
struct attachment_queue;
struct attachment_source;

struct adapter_rate {
        int64_t turns, seconds; /* turns -1: a default, or no limit on a trusted platform */
};

/* Settings common to all adapters, explained in adapter_conf.c. */
struct adapter_common {
        bool enabled, commands;
        char *agent, *ca_file; /* may be NULL */
        int64_t debounce_ms, debounce_max_ms, max_age_seconds, max_hops, part_delay_ms;
        struct setting_list admins, dm, allow, block, channels;
        struct adapter_rate rate, ambient_rate;
        /* -1: as in platform_manners */
        int64_t conversation_seconds, dm_conversation_seconds, thread_chars, slow_ms;
        struct {
                double usd_per_day;
        } budget;
        struct {
                double per_second, per_chat_per_second, per_group_per_minute;
        } pace;
};
extern const struct setting adapter_common_settings[];

/* A platform's defaults for settings of the same name. */
struct platform_manners {
        int64_t conversation_seconds, dm_conversation_seconds, thread_chars, slow_ms;
};

/* ---- calls to a platform ---- */

/* All but id may be NULL. */
struct channel_info {
        const char *id, *name, *topic;
        const char *parent; /* the channel of a thread, the category of a channel */
        enum chat_kind kind;
        enum chat_threads threads;
        int64_t members; /* -1: not known */
};
struct user_info {
        const char *id, *username, *name;
        bool is_bot;
};
/* info is borrowed; NULL with an error, ERR_MISSING when there is none. */
typedef void channel_info_fn(void *arg, const struct channel_info *info, const struct error *err);
typedef void user_info_fn(void *arg, const struct user_info *info, const struct error *err);

struct platform_tool {
        struct road_tool tool;
        void (*call)(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                     void *arg);
        /* Instead of call, for a tool that sends: submits a delivery, see platform_tool.h. */
        void (*submit)(struct adapter *a, enum delivery_kind kind, unsigned needs,
                       const struct tool_request *q, platform_tool_fn *done, void *arg);
        enum delivery_kind kind;
        unsigned needs; /* enum tool_needs */
};

struct platform_ops {
        const char *name;  /* "telegram": in the configuration, the API and the journal */
        const char *title; /* "Telegram": for people */
        const char *help;
        const char *token_hint;      /* for adapter_bad_token: which token is right */
        const char *token_variable;  /* environment variable that may hold it; NULL: none */
        const char *command_help;    /* how people write /stop here; NULL: as it is */
        const char *command_prefix;  /* what precedes "stop" then; NULL: "/" */
        const char *user_link;       /* with an id a link to a user; NULL: `@id` mentions them */
        unsigned can;                /* ADAPTER_*; `abilities` may narrow it */
        enum chat_threads threads;   /* in every chat */
        struct markdown_limits text; /* dialect, unit, longest message and caption */
        int64_t upload_max;          /* bytes of a file, at best; with ADAPTER_FILES */
        bool as_written;   /* clients render Markdown: text passes unchanged, in one part */
        bool for_programs; /* programs write here: chat commands are text like any other */
        bool trusted;      /* senders have shown a key: no access rules, no mention needed */
        /* defaults of adapter_common */
        int64_t debounce_ms;
        struct platform_manners manners;
        struct pace_limits pace;
        const struct setting *settings; /* its own; NULL: none */
        size_t conf_size;               /* of the struct they fill in */
        /* May this be the id of a user, chat or role? NULL: any text may. */
        bool (*is_id)(const char *text);
        /* Does it need http.publicUrl to connect? NULL: no. */
        bool (*needs_public_url)(const void *conf);
        /* Checks that tables cannot express. May be NULL. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);

        /* Starts to connect; adapter_ready or adapter_lost follow. -1: it cannot even try. */
        int (*open)(struct adapter *a, struct error *err);
        void (*close)(struct adapter *a); /* may be NULL */

        /* delivery_result follows, never before this has returned. NULL with ADAPTER_JOURNALED. */
        void (*send)(struct adapter *a, const struct delivery *d);
        /* With ADAPTER_READBACK: finds out whether a delivery arrived; delivery_result follows. */
        void (*reconcile)(struct adapter *a, const struct delivery *d);
        /* What becomes of a message that may have arrived. NULL: UNSURE_REPORT. */
        enum unsure_policy (*when_unsure)(const struct adapter *a);
        /* As road_platforms.read_from. */
        void (*read_from)(struct adapter *a, const struct delivery *d, char *out, size_t size);
        /* NULL: `can`. */
        unsigned (*abilities)(const struct adapter *a);
        /* Milliseconds between edits of a draft there; 0, or NULL: the road's default. */
        int64_t (*draft_ms)(const struct adapter *a, const char *channel, const char *thread);
        /* With ADAPTER_TYPING: does it show there? thread may be NULL. NULL: everywhere. */
        bool (*shows_typing)(const struct adapter *a, const char *channel, const char *thread);
        /* Is the channel a group, which has a pace of its own? NULL: never. */
        bool (*is_group)(const struct adapter *a, const char *channel);
        /* The mention for `@name` or `@id`, see markdown_mention_fn. NULL: names stay text. */
        bool (*mention)(const struct adapter *a, struct slice name, struct buf *out);
        /* The id of a thread begun at this message. NULL: there are no threads. */
        const char *(*thread_at)(const struct adapter *a, const struct incoming *in);

        /*
         * A post to /api/v2/channels/<platform>/<adapter>/webhook, without an API key: checks its
         * proof and answers, now or later. NULL: 404.
         */
        void (*webhook)(struct adapter *a, struct http_exchange *x);
        /*
         * Checks the head of a post, so that strangers cannot fill our memory with bodies. False:
         * refused, and answered. NULL: only the body can prove it.
         */
        bool (*webhook_admits)(struct adapter *a, struct http_exchange *x);

        /* The latest messages of a channel; calls done once, later. NULL: it cannot. */
        void (*channel_history)(struct adapter *a, const char *channel, const char *thread,
                                unsigned limit, channel_history_fn *done, void *arg);
        /* The same for one message. NULL: it cannot. */
        void (*message)(struct adapter *a, const char *channel, const char *thread, const char *id,
                        channel_history_fn *done, void *arg);
        /* 0: done is called once, later, also when the adapter closes. -1: a malformed id. */
        int (*channel_info)(struct adapter *a, const char *channel, channel_info_fn *done,
                            void *arg, struct error *err);
        int (*user_info)(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                         struct error *err);
        /* For agents and the API; ends with a NULL name. NULL: none. */
        const struct platform_tool *tools;
        /* How files that people send are fetched, see attachment_fetch.h. NULL: they are not. */
        const struct attachment_source *files;
};

extern const struct platform_ops api_platform, cli_platform, discord_platform, slack_platform,
        telegram_platform;
/* All of them, NULL-terminated. */
extern const struct platform_ops *const platform_kinds[];
const struct platform_ops *platform_find(const char *name); /* or NULL */

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
        struct store *store; /* NULL: none */
        const char *dir;
        const char *public_url; /* the API's address from outside; NULL: none */
        enum adapter_state state;
        char why[200];                  /* of LOST and STOPPED */
        int64_t since_ms;               /* wall clock of the last state change */
        int64_t down_ms;                /* wall clock: not UP since then; 0: it is, or is OFF */
        char trouble[200];              /* it is UP but does not work as it should; "": it does */
        unsigned failures;              /* to connect, in a row */
        char bot_name[64], bot_id[64];  /* "": not known yet */
        struct attachment_queue *files; /* NULL: closed, or the platform fetches none */
        void *self;                     /* the platform's own */
};

/* ---- reports of a platform ---- */

void adapter_set_profile(struct adapter *a, const char *name, const char *id);
void adapter_ready(struct adapter *a);
/* The connection is lost; the platform reconnects by itself. */
void adapter_lost(struct adapter *a, const char *why);
/* The same; returns the wait before the next attempt, at least retry_after_ms. */
int64_t adapter_retry(struct adapter *a, const char *why, int64_t retry_after_ms);
/* The same while it never was connected: `base`, where it tries to reach the API, may be wrong. */
int64_t adapter_retry_first(struct adapter *a, const char *why, const char *base,
                            int64_t retry_after_ms);
/* Connected, but it does not work as it should; NULL: it does again. */
void adapter_degraded(struct adapter *a, const char *why);
/* Permanent: the operator has to act. */
void adapter_stopped(struct adapter *a, const char *why);
void adapter_bad_token(struct adapter *a);
/* Hands over an event; fills in adapter and platform. */
void adapter_received(struct adapter *a, struct incoming *in, inbox_ack_fn *ack, void *arg);
/*
 * The message that a pressed button sends for the person: "yes" if its data is "say:yes". NULL: it
 * is an event for rules.
 */
const char *adapter_button_text(const char *data);
/* `send` cannot begin this delivery; reports the outcome later, from the loop. */
void adapter_refuse(struct adapter *a, const struct delivery *d, enum send_outcome outcome,
                    enum error_kind kind, const char *why);

/*
 * Is the timestamp of a signed post, in seconds, so close to now? Platforms post at once: an older
 * one is a recorded one. Also forgives our clock.
 */
#define ADAPTER_POST_SECONDS 300
bool adapter_post_is_recent(const char *timestamp);

/*
 * Names a delivery in its message: the same for every attempt, unique among databases. Hexadecimal
 * digits.
 */
#define ADAPTER_NONCE_SIZE 24
void adapter_nonce(const struct adapter *a, int64_t delivery, int64_t created_ms,
                   char out[ADAPTER_NONCE_SIZE + 1]);

/*
 * Default outcome of a delivery whose HTTP answer does not confirm it. status 0: no answer.
 * repeatable: repeating it does no harm.
 */
enum send_outcome adapter_http_outcome(int status, enum http_reach reach, bool repeatable);
enum error_kind adapter_http_kind(int status, enum error_kind transport);
/* retry_after_ms of a delivery that failed for a bad token: the adapter is about to stop. */
#define ADAPTER_BAD_TOKEN_MS 60000

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
/* Before adapters_apply; NULL when the road is about to close. */
void adapters_set_road(struct adapters *as, struct road *r);
/* http.publicUrl, copied; NULL: none. */
void adapters_set_public_url(struct adapters *as, const char *url);
/* The section "attachments". */
void adapters_set_attachment_limits(struct adapters *as, const struct attachment_limits *limits);
/* Where state changes are journaled; NULL: only logged. */
void adapters_set_journal(struct adapters *as, struct store *s, struct bus *b);
/* Closes the connections. Sends in flight are not reported: the next road_open resumes them. */
void adapters_free(struct adapters *as);
/*
 * Starts new adapters, stops removed ones, restarts changed ones. Takes over the confs, leaving
 * NULLs. An adapter that fails to open is STOPPED. -1, with nothing changed: two confs share a
 * name.
 */
int adapters_apply(struct adapters *as, struct adapter_conf **confs, size_t count,
                   struct error *err);
struct adapter *adapters_find(struct adapters *as, const char *name);
/* NULL: there are no more. */
struct adapter *adapters_at(struct adapters *as, size_t i);
void adapters_each(struct adapters *as, void (*fn)(void *arg, struct adapter *a), void *arg);

/* struct road_platforms of road/outbox/delivery.h */
unsigned adapters_abilities(struct adapters *as, const char *adapter);
bool adapters_ready(struct adapters *as, const char *adapter);
void adapters_limits(struct adapters *as, const char *adapter, struct pace_limits *out);
bool adapters_channel_is_group(struct adapters *as, const char *adapter, const char *channel);
int adapters_render(struct adapters *as, const char *adapter, const char *text, bool caption,
                    struct rendered *out, struct error *err);
int adapters_render_card(struct adapters *as, const char *adapter, const char *text,
                         const struct card *card, struct rendered *out, struct error *err);
void adapters_send(struct adapters *as, const struct delivery *d);
void adapters_reconcile(struct adapters *as, const struct delivery *d);
enum unsure_policy adapters_when_unsure(struct adapters *as, const char *adapter,
                                        const struct setting_list **admins);
void adapters_read_from(struct adapters *as, const struct delivery *d, char *out, size_t size);
void adapters_channel_history(struct adapters *as, const char *adapter, const char *channel,
                              const char *thread, unsigned limit, channel_history_fn *done,
                              void *arg);
void adapters_message(struct adapters *as, const char *adapter, const char *channel,
                      const char *thread, const char *id, channel_history_fn *done, void *arg);
const char *adapters_thread_at(struct adapters *as, const struct incoming *in);
struct held_files *adapters_hold_files(struct adapters *as, const struct incoming *in,
                                       files_ready_fn *done, void *arg);
void adapters_stop_files(struct held_files *held, const char *why);
void adapters_release_files(struct held_files *held);
/*
 * A file that software sent along with a message, saved where the turn of the message looks for it,
 * before the message is handed over; its `source` is an ATTACHMENT_SAVED. Takes the bytes. Calls
 * done once, later, unless dropped: size -1: it could not be saved.
 */
typedef void file_saved_fn(void *arg, int64_t size, const char *why);
struct attachment_job;
struct attachment_job *adapters_save_file(struct adapters *as, const struct incoming *in, size_t i,
                                          char *bytes, size_t n, file_saved_fn *done, void *arg);
void adapters_drop_saving(struct attachment_job *j); /* NULL is fine */
const struct road_tool *adapters_tool_at(struct adapters *as, const char *adapter, size_t i);
int64_t adapters_upload_max(struct adapters *as, const char *adapter);
void adapters_threads(struct adapters *as, const char *adapter, const char *channel,
                      chat_threads_fn *done, void *arg);
const char *adapters_command_prefix(struct adapters *as, const char *adapter);
const char *adapters_user_link(struct adapters *as, const char *adapter);
int64_t adapters_draft_ms(struct adapters *as, const char *adapter, const char *channel,
                          const char *thread);
bool adapters_shows_typing(struct adapters *as, const char *adapter, const char *channel,
                           const char *thread);

/* As in platform_ops. -1 also: no such adapter, not connected, or it cannot. */
int adapters_channel_info(struct adapters *as, const char *adapter, const char *channel,
                          channel_info_fn *done, void *arg, struct error *err);
int adapters_user_info(struct adapters *as, const char *adapter, const char *user,
                       user_info_fn *done, void *arg, struct error *err);

#endif
