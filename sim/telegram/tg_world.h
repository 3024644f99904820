/*
 * world: the users, chats, messages and bots of the simulated Telegram.
 *
 * Everything lives until the world is freed, except messages: a chat keeps the last keep_messages.
 * A private chat belongs to one bot and has the id of its user; groups and channels are shared by
 * the bots that are members.
 *
 * Message ids count as on Telegram: one sequence per bot account for its private chats and basic
 * groups, one per chat for supergroups and channels. Messages that a bot cannot see use ids too,
 * and deleted ones leave gaps.
 */
#ifndef SIM_TELEGRAM_TG_WORLD_H
#define SIM_TELEGRAM_TG_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "net/loop.h"
#include "sim/token_bucket.h"
#include "sim/world_base.h"

struct files;
struct updates;
struct webhook;
struct rich_text;

struct user {
        int64_t id;
        bool is_bot;
        char *first_name, *last_name, *username, *language;
};

enum chat_type { CHAT_PRIVATE, CHAT_GROUP, CHAT_SUPERGROUP, CHAT_CHANNEL };
enum standing { STANDING_LEFT, STANDING_KICKED, STANDING_MEMBER, STANDING_ADMIN, STANDING_CREATOR };

struct member {
        struct user *user;
        struct bot *bot; /* NULL: a person */
        enum standing standing;
        bool no_topics; /* an administrator without the right can_manage_topics */
        struct member *next;
};

struct topic {
        int64_t id;
        char *name;
        int64_t color;
        const struct user *creator; /* may change it without the right */
        bool closed;
        struct topic *next;
};

struct message {
        int64_t id, date, edit_date, thread_id;
        struct chat *chat;
        struct user *from;                   /* NULL: sent as the chat, as in channels */
        const struct media_kind *media_kind; /* NULL: text or a service message */
        char *media;                         /* its member as JSON text: "photo":[...] */
        char *text, *entities; /* entities is JSON text or NULL; with media they are the caption */
        char *markup;          /* inline keyboard as JSON text, or NULL */
        /* more members as JSON text: forward_origin, media_group_id, services */
        char *extra;
        int64_t reply_to;  /* 0: none */
        json_t *reactions; /* user id -> list of reaction types; NULL: none */
};

struct chat {
        int64_t id;
        enum chat_type type;
        char *title, *username;
        bool forum, blocked;
        struct user *user; /* of a private chat */
        struct bot *bot;   /* of a private chat */
        int64_t migrated_to;
        struct member *members;
        struct topic *topics;
        struct message **ring; /* the n-th message is at n % ring_n; NULL: deleted */
        size_t ring_n, posted;
        int64_t last_id;
        struct token_bucket pace, minute;
        struct chat *next;
};

struct bot {
        struct world *world;
        struct user user;
        char *token;
        int64_t last_id; /* of its private chats and basic groups */
        bool privacy;    /* in groups it gets only messages addressed to it */
        bool logged_out; /* until the next start */
        struct map private_chats;
        struct updates *updates;
        struct webhook *webhook;
        struct map commands;  /* scope and language -> json_t array */
        struct map texts;     /* name, description, ... by language -> char * */
        struct map callbacks; /* ids of pressed buttons without an answer */
        struct token_bucket pace;
        struct bot *next;
};

struct world_settings {
        double per_second, per_chat_second, chat_burst, per_group_minute;
        /* contrary to Telegram, for tests of what relies on it */
        bool ids_per_chat; /* a sequence for each private chat and basic group */
        int64_t id_step;   /* between two ids; negative: they fall */
};

struct world {
        struct world_base base; /* first */
        struct world_settings settings;
        struct bot *bots;         /* in order of creation */
        struct map bots_by_token; /* token -> struct bot */
        struct map users;         /* id -> struct user */
        struct map chats;         /* id -> struct chat; not the private ones */
        struct map names;         /* lower-case username of a group or channel -> struct chat */
        struct files *files;
        uint64_t edit_count, update_count, flood_count;
        const char *data_dir; /* NULL: files stay in memory */
        int64_t next_user, next_group;
        uint64_t next_token; /* for unique ids */
};

/* An id as the key of a map. */
struct tg_world_key {
        char text[24];
};

/* ---- tg_world.c ---- */
struct world *tg_world_new(struct loop *l);
/* Ends waiting calls, so call it while the server can still answer. */
void tg_world_free(struct world *w);

struct tg_world_key tg_world_key(int64_t id);
/* The bot of this token, made if missing. NULL with an error: not of the form "1001:abc". */
struct bot *tg_world_make_bot(struct world *w, const char *token, struct error *err);
struct bot *tg_world_bot_by_token(const struct world *w, const char *token);
/* By id, username or token; NULL gives the first. */
struct bot *tg_world_bot_by_name(const struct world *w, const char *text);
struct user *tg_world_user(const struct world *w, int64_t id);
/* The user of this id, made if missing; 0 makes a new one. Names that are not NULL are set. */
struct user *tg_world_make_user(struct world *w, int64_t id, const char *first_name,
                                const char *username);
struct user *tg_world_user_by_username(const struct world *w, const char *username);

/* ---- tg_chat.c ---- */
struct chat *tg_chat_private(struct bot *b, struct user *u, bool make);
struct chat *tg_chat_group(const struct world *w, int64_t id);
/* id 0: the next free one. NULL: the id is taken or does not fit the type. */
struct chat *tg_chat_make(struct world *w, int64_t id, enum chat_type type, const char *title);
void tg_chat_set_username(struct world *w, struct chat *c, const char *username);
void tg_chat_free(struct chat *c);
const char *tg_chat_type_name(enum chat_type t);
struct member *tg_chat_member(const struct chat *c, int64_t user_id);
struct member *tg_chat_set_member(struct chat *c, struct user *u, struct bot *b, enum standing s);
const char *tg_chat_standing_name(enum standing s);
struct topic *tg_chat_topic(const struct chat *c, int64_t id);
struct topic *tg_chat_add_topic(struct chat *c, int64_t id, const char *name);

struct message *tg_chat_message_new(struct chat *c, struct user *from);
void tg_chat_message_free(struct message *m);
/* Takes over m, sets its id and date; drops the oldest when the chat is full. */
struct message *tg_chat_post(struct world *w, struct chat *c, struct message *m);
struct message *tg_chat_find_message(const struct chat *c, int64_t id);
/* The kept messages, oldest first, with holes: i from 0 to ring_n - 1. */
struct message *tg_chat_message_at(const struct chat *c, size_t i);
/* Takes over m, which replaces the message of the same id. */
void tg_chat_replace(struct chat *c, struct message *m);
void tg_chat_delete(struct chat *c, struct message *m);
/* Moves text and entities out of r. */
void tg_chat_message_set_text(struct message *m, struct rich_text *r);

/* ---- tg_render.c: JSON values; key NULL inside arrays and at the root ---- */
void tg_render_user(struct buf *b, const char *key, const struct user *u);
void tg_render_chat(struct buf *b, const char *key, const struct chat *c);
void tg_render_message(struct buf *b, const char *key, const struct message *m);
void tg_render_member(struct buf *b, const char *key, const struct member *m);

#endif
