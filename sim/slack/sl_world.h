/*
 * world: the workspaces, users, conversations, messages, files and apps of the simulated Slack.
 *
 * Everything lives until the world is freed, except messages: a conversation keeps the last
 * keep_messages. An app is installed in one workspace; the person in a direct message with it,
 * and people of other workspaces in a shared channel (Slack Connect), are users like others.
 *
 * A message is named by its ts: unique in its conversation and growing. A thread is the messages
 * with the thread_ts of its first message, the root, which has one only once it is answered.
 */
#ifndef SIM_SLACK_SL_WORLD_H
#define SIM_SLACK_SL_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "net/loop.h"
#include "sim/journal.h"
#include "sim/world_base.h"

struct slack_app;
struct slack_links;
struct slack_rates;
struct world;

#define SL_ID_SIZE 16
#define SL_TS_SIZE 24 /* "1700000000.000100" */

struct slack_team {
        char id[SL_ID_SIZE];
        char *name, *domain;
        struct slack_team *next;
};

struct slack_user {
        char id[SL_ID_SIZE];
        struct slack_team *team;
        char *name, *real_name, *display_name; /* name: the handle; display_name may be "" */
        char *tz;
        bool deleted;
        bool guest;            /* is_restricted */
        struct slack_app *app; /* of a bot user; NULL: a person */
        struct slack_user *next;
};

enum slack_channel_kind { SLACK_PUBLIC, SLACK_PRIVATE, SLACK_IM, SLACK_MPIM };

struct slack_channel {
        char id[SL_ID_SIZE];
        enum slack_channel_kind kind;
        struct slack_team *team;
        char *name; /* "" of direct messages */
        char *topic, *purpose;
        bool archived, general;
        bool shared; /* with another workspace */
        struct slack_user **members;
        size_t member_count;
        struct slack_user *creator;
        struct slack_user *person; /* of direct messages */
        struct slack_app *app;     /* of direct messages */
        int64_t created_s;
        struct slack_message **messages; /* oldest first */
        size_t count, room;
        int64_t last_us;      /* the newest ts, in microseconds */
        int64_t forgotten_us; /* messages up to this time are not kept */
        char last_read[SL_TS_SIZE];
        struct map assistant; /* thread_ts -> json_t object: status, title, prompts */
        struct slack_channel *next;
};

enum slack_stream { SLACK_WHOLE, SLACK_STREAMING, SLACK_STREAMED };

struct slack_message {
        char ts[SL_TS_SIZE];
        char thread_ts[SL_TS_SIZE]; /* "": no thread; of a root its own ts */
        int64_t us;                 /* ts as a number */
        struct slack_channel *channel;
        struct slack_user *user; /* who wrote it; of an app its bot user */
        struct slack_app *app;   /* NULL: a person wrote it */
        char *subtype;           /* NULL: none */
        char *text;
        char *client_msg_id;          /* NULL: none */
        char *username;               /* chat:write.customize, or NULL */
        json_t *blocks, *attachments; /* NULL: none */
        json_t *files;                /* ids as text; NULL: none */
        json_t *metadata;             /* NULL: none */
        json_t *extra;                /* further members, or NULL */
        char edited_ts[SL_TS_SIZE];   /* "": never */
        struct slack_user *edited_by;
        bool tombstone; /* a deleted root with replies */
        bool broadcast; /* of a reply: also in the channel */
        bool pinned;
        /* of a root */
        unsigned reply_count;
        char latest_reply[SL_TS_SIZE];
        json_t *reply_users; /* ids as text, at most 5; NULL: none */
        json_t *reactions;   /* name -> array of user ids; NULL: none */
        enum slack_stream stream;
        int64_t stream_at_ms; /* the last append, of the monotonic clock */
        int64_t stream_from_ms;
        bool stopped;   /* by a person; set SLACK_STREAMED, too */
        json_t *chunks; /* tasks and plans of a stream; NULL: none */
};

struct slack_file {
        char id[SL_ID_SIZE];
        struct slack_team *team;
        struct slack_user *user;
        char *name, *title, *mimetype, *filetype, *alt_text;
        char *upload_token; /* of the upload_url; NULL: not by an upload */
        char *data;
        size_t n;
        int64_t created_s, length; /* length: as announced for the upload */
        bool uploaded, complete, deleted;
        json_t *shares; /* {"public":{"C1":[{"ts":..}]},"private":{}} */
        struct slack_file *next;
};

/* An installed app; it calls with token, and opens connections with app_token. */
struct slack_app {
        struct slack_world *world;
        char id[SL_ID_SIZE], bot_id[SL_ID_SIZE];
        struct slack_team *team;
        struct slack_user *user; /* its bot user */
        char *token, *app_token, *signing_secret;
        char *token_error;     /* Slack's error to every call: "token_revoked"; NULL: none */
        char *app_token_error; /* the same of the app-level token */
        char *request_url;     /* of events; NULL: Socket Mode */
        char *interactive_url, *command_url; /* NULL: as request_url */
        json_t *scopes;                      /* the granted ones, as text */
        json_t *events;                      /* subscribed ones, as text; NULL: all */
        bool assistant;                      /* has the Assistant view */
        bool socket_off;                     /* Socket Mode is switched off */
        bool disabled;                       /* its URL failed too often */
        uint64_t posts, posts_failed;        /* to its URL within an hour */
        int64_t posts_since_ms;
        struct slack_app *next;
};

/* A modal or the home tab of one person. */
struct slack_view {
        char id[SL_ID_SIZE];
        struct slack_app *app;
        struct slack_user *user;
        json_t *view; /* as the app sent it */
        char *hash;
        char root_id[SL_ID_SIZE], previous_id[SL_ID_SIZE]; /* previous "": none */
        struct slack_view *next;                           /* newest first */
};

struct slack_settings {
        double posts_per_second; /* chat.postMessage in one channel */
        int64_t post_burst;
        int64_t tier_percent;               /* of Slack's limits; 100: as Slack's */
        int64_t history_per_minute;         /* 0: tier 3; 1: as for other than internal apps */
        int64_t stream_idle_ms, stream_ms;  /* a stream ends by itself */
        int64_t trigger_ms;                 /* life of a trigger_id */
        int64_t page_max;                   /* items of a page; 0: as many as asked for */
        int64_t share_ms;                   /* until an uploaded file appears */
        int64_t response_uses, response_ms; /* of a response_url */
        int64_t ack_ms;                     /* an envelope is retried after this */
        int64_t retry_1_ms, retry_2_ms, retry_3_ms;
        int64_t ping_ms;       /* of connections */
        int64_t connection_ms; /* life of a connection; 0: no end */
        int64_t max_connections;
        int64_t disable_after; /* posts in an hour, if nearly all fail */
        bool streams;          /* chat.startStream exists; else unknown_method */
        bool assistants;       /* assistant.threads.* exist */
        bool history_forward;  /* pages after `oldest` alone begin there */
};

struct slack_world {
        struct world_base base; /* first */
        struct slack_settings settings;
        struct slack_team *teams;
        struct slack_app *apps; /* in order of creation */
        struct map users;       /* id -> struct slack_user */
        struct map channels;    /* id -> struct slack_channel */
        struct slack_user *first_user;
        struct slack_channel *first_channel;
        struct slack_user **users_end;
        struct slack_channel **channels_end;
        struct map files;    /* id -> struct slack_file */
        struct map uploads;  /* upload token -> struct slack_file */
        struct map triggers; /* trigger_id -> struct slack_trigger (sl_interactions.c) */
        struct map hooks;    /* secret of a response_url -> struct slack_hook */
        struct slack_view *views;
        struct slack_links *links; /* sl_push.h */
        struct slack_rates *rates;
        struct journal *link_log; /* GET /sim/links */
        uint64_t event_count, limited_count, edit_count;
        uint64_t next_id;
        size_t file_bytes;
        char base_url[200]; /* "http://127.0.0.1:8084" */
};

/* The control API passes a struct world. */
static inline struct slack_world *sl_world_of(struct world *w)
{
        return (struct slack_world *)w;
}

/* ---- sl_world.c ---- */

struct slack_world *sl_world_new(struct loop *l);
/* Ends waiting calls, so call it while the server can still answer. */
void sl_world_free(struct slack_world *w);
/* A new id with this first letter. */
void sl_world_id(struct slack_world *w, char letter, char out[SL_ID_SIZE]);

/* By id, name or domain; NULL gives the first. */
struct slack_team *sl_team_find(const struct slack_world *w, const char *text);
/* id NULL: a new one. */
struct slack_team *sl_team_make(struct slack_world *w, const char *id, const char *name);

/*
 * The app of this bot token, made if missing, in a team (NULL: the first). The app-level token is
 * the same with xapp- instead of xoxb-.
 */
struct slack_app *sl_app_make(struct slack_world *w, const char *token, struct slack_team *t);
struct slack_app *sl_app_by_token(const struct slack_world *w, const char *token);
struct slack_app *sl_app_by_app_token(const struct slack_world *w, const char *token);
/* By id, bot id, user id, handle or token; NULL gives the first. */
struct slack_app *sl_app_find(const struct slack_world *w, const char *text);
bool sl_app_has_scope(const struct slack_app *a, const char *scope);
bool sl_app_subscribes(const struct slack_app *a, const char *event);

struct slack_user *sl_user_find(const struct slack_world *w, const char *id);
/* The user of this id, made if missing; NULL makes a new one. Names that are not NULL are set. */
struct slack_user *sl_user_make(struct slack_world *w, struct slack_team *t, const char *id,
                                const char *name, const char *real_name);
/* By id or handle. */
struct slack_user *sl_user_by_name(const struct slack_world *w, const char *text);

/* ---- sl_channel.c ---- */

struct slack_channel *sl_channel_find(const struct slack_world *w, const char *id);
/* By id or name, also "#general"; NULL: none. */
struct slack_channel *sl_channel_by_name(const struct slack_world *w, const char *text);
/* id NULL: a new one. The creator becomes a member. */
struct slack_channel *sl_channel_make(struct slack_world *w, struct slack_team *t, const char *id,
                                      enum slack_channel_kind kind, const char *name,
                                      struct slack_user *creator);
/* The direct messages of an app and a person; NULL: there are none, and `make` is false. */
struct slack_channel *sl_channel_im(struct slack_app *a, struct slack_user *u, bool make);
/* The group direct messages of exactly these people and the app. */
struct slack_channel *sl_channel_mpim(struct slack_app *a, struct slack_user **users, size_t n,
                                      bool make);
bool sl_channel_has(const struct slack_channel *c, const struct slack_user *u);
/* False: they were in already; or were not. */
bool sl_channel_join(struct slack_channel *c, struct slack_user *u);
bool sl_channel_leave(struct slack_channel *c, const struct slack_user *u);
/* channel_type of events: "channel", "group", "im", "mpim" */
const char *sl_channel_type(const struct slack_channel *c);
void sl_channel_free(struct slack_channel *c);

/* ---- sl_message.c ---- */

/* With a ts of its own, not posted yet. user NULL: the system's. */
struct slack_message *sl_message_new(struct slack_channel *c, struct slack_user *u,
                                     const char *text);
void sl_message_free(struct slack_message *m);
/*
 * Takes over m and counts it in its thread; drops the oldest messages when the channel is full.
 * Sends no event: see sl_event_posted.
 */
void sl_message_post(struct slack_world *w, struct slack_message *m);
struct slack_message *sl_message_find(const struct slack_channel *c, const char *ts);
/* Of any channel of the world. */
struct slack_message *sl_message_search(const struct slack_world *w, const char *ts);
/* The index of the first message with this time or later. */
size_t sl_message_index(const struct slack_channel *c, int64_t us);
/* Takes it out of its thread and frees it. False: a root with replies is a tombstone now. */
bool sl_message_remove(struct slack_message *m);
/* Marks it edited now. */
void sl_message_edited(struct slack_message *m, struct slack_user *by);
/* False: it was there already; or was not. */
bool sl_message_react(struct slack_message *m, const char *name, const struct slack_user *u);
bool sl_message_unreact(struct slack_message *m, const char *name, const struct slack_user *u);
/* Microseconds of "1700000000.000100"; -1: malformed. */
int64_t sl_message_parse_ts(const char *ts);

/* ---- sl_render.c: new JSON values as the API shows them ---- */

enum slack_render_how {
        SLACK_RENDER_PLAIN = 0,
        SLACK_RENDER_METADATA = 1, /* with the metadata */
        SLACK_RENDER_EVENT = 2,    /* with channel, channel_type, event_ts */
};
json_t *sl_render_message(const struct slack_world *w, const struct slack_message *m, unsigned how);
json_t *sl_render_user(const struct slack_user *u);
/* viewer: the app that asks, for is_member; may be NULL. */
json_t *sl_render_channel(const struct slack_channel *c, const struct slack_app *viewer);
json_t *sl_render_file(const struct slack_world *w, const struct slack_file *f);
json_t *sl_render_view(const struct slack_view *v);
json_t *sl_render_reactions(const struct slack_message *m); /* NULL: none */
json_t *sl_render_bot(const struct slack_app *a);           /* bot_profile */
char *sl_render_permalink(const struct slack_message *m);   /* yours to free */

/* ---- sl_events.c: events by sl_push_event; each returns how many apps get it ---- */

/* message and, for each mentioned app, app_mention (with "app", its id, for sl_push_event) */
unsigned sl_event_posted(struct slack_world *w, const struct slack_message *m);
/* message_changed; previous: the message rendered before the change, taken over */
unsigned sl_event_changed(struct slack_world *w, const struct slack_message *m, json_t *previous);
/* Removes m: message_deleted, or message_changed to a tombstone. */
unsigned sl_event_delete(struct slack_world *w, struct slack_message *m);
unsigned sl_event_reaction(struct slack_world *w, const struct slack_message *m, const char *name,
                           const struct slack_user *u, bool added);
/* member_joined_channel, member_left_channel */
unsigned sl_event_member(struct slack_world *w, const struct slack_channel *c,
                         const struct slack_user *u, bool joined);
unsigned sl_event_file_shared(struct slack_world *w, const struct slack_file *f,
                              const struct slack_channel *c, const struct slack_user *u);

/* ---- sl_file.c ---- */

struct slack_file *sl_file_find(const struct slack_world *w, const char *id);
/* A file that a person uploads; data is copied. */
struct slack_file *sl_file_add(struct slack_world *w, struct slack_user *u, const char *name,
                               const char *mimetype, const void *data, size_t n);
/* Adds it to the shares; m has its id already. */
void sl_file_share(struct slack_file *f, const struct slack_message *m);
void sl_files_release(struct slack_world *w);

/* ---- sl_interactions.c: what lets an app answer a press or a command ---- */

/* A trigger_id, yours to free. */
char *sl_trigger_new(struct slack_world *w, struct slack_app *a, struct slack_user *u);
/* A response_url, yours to free; m NULL: of a command. */
char *sl_hook_new(struct slack_world *w, struct slack_app *a, struct slack_channel *c,
                  struct slack_user *u, const struct slack_message *m);
void sl_interactions_release(struct slack_world *w);

/* ---- sl_view.c ---- */

struct slack_view *sl_view_find(const struct slack_world *w, const char *id);
/* The modal on top of what this person sees; NULL: none. */
struct slack_view *sl_view_top(const struct slack_world *w, const struct slack_user *u);
/* on: the view below it; NULL: a modal or home tab of its own. */
struct slack_view *sl_view_open(struct slack_world *w, struct slack_app *a, struct slack_user *u,
                                const json_t *view, const struct slack_view *on);
void sl_view_change(struct slack_view *v, const json_t *view);
/* The app's answer to view_submission: response_action; NULL closes the view. */
int sl_view_respond(struct slack_world *w, struct slack_view *v, const json_t *response,
                    struct error *err);
/* Closes this view, or all of its stack. */
void sl_view_close(struct slack_world *w, struct slack_view *v, bool all);
void sl_views_release(struct slack_world *w);

#endif
