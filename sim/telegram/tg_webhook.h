/*
 * webhook: posts updates to the bot.
 *
 * Updates of one chat go in order, those of different chats in parallel, up to max_connections.
 * After an answer other than 2xx it retries with backoff. The answer may hold one method call.
 */
#ifndef SIM_TELEGRAM_TG_WEBHOOK_H
#define SIM_TELEGRAM_TG_WEBHOOK_H

#include <stdbool.h>

struct bot;
struct call;
struct update;
struct webhook;

struct webhook *tg_webhook_new(struct bot *b);
void tg_webhook_free(struct webhook *w);
bool tg_webhook_is_set(const struct webhook *w);
/* Adds an update; only while set. */
void tg_webhook_offer(struct webhook *w, struct update *u);
/* The update is about to be freed. */
void tg_webhook_withdraw(struct webhook *w, struct update *u);

/* The methods. */
int tg_webhook_set(struct call *c);
int tg_webhook_delete(struct call *c);
int tg_webhook_info(struct call *c);

#endif
