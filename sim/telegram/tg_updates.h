/*
 * updates: a bot's queue of unconfirmed updates, and its long poll.
 */
#ifndef SIM_TELEGRAM_TG_UPDATES_H
#define SIM_TELEGRAM_TG_UPDATES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"

struct bot;
struct call;
struct lane;

struct update {
        int64_t id;
        int64_t chat;
        char *text; /* the whole object */
        size_t n;
        bool again;        /* a fault: deliver it again after it is confirmed */
        bool ghost;        /* delivered again */
        struct lane *lane; /* while a webhook is set */
        TAILQ_ENTRY(update) next, lane_next;
};

TAILQ_HEAD(update_list, update);

struct updates *tg_updates_new(struct bot *b);
void tg_updates_free(struct updates *u);
/* Adds an update; member is its content as JSON text. False: not in allowed_updates. */
bool tg_updates_push(struct bot *b, const char *kind, int64_t chat, const char *member);
size_t tg_updates_pending(const struct updates *u);
void tg_updates_forget_all(struct updates *u);
/* Sets allowed_updates; NULL changes nothing, an empty list sets the default. */
void tg_updates_allow(struct updates *u, const json_t *kinds);
/* Writes a member "allowed_updates", unless it is the default. */
void tg_updates_write_allowed(const struct updates *u, struct buf *b);
/* For the webhook: in order. */
struct update *tg_updates_first(const struct updates *u);
void tg_updates_remove(struct updates *u, struct update *one);

/* The method getUpdates. */
int tg_updates_get(struct call *c);
/* Ends a waiting poll with 409. */
void tg_updates_interrupt(struct updates *u, const char *why);

#endif
