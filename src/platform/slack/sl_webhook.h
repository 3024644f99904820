/*
 * sl_webhook: receives over HTTP. Slack posts events, interactions and slash commands to
 * /api/v2/channels/slack/<adapter>/events, signed with the app's signing secret.
 *
 * A post is answered with 200 once it is stored; Slack waits three seconds and repeats events that
 * were not answered so. Slack posts events as JSON, the others as forms.
 */
#ifndef PLATFORM_SLACK_SL_WEBHOOK_H
#define PLATFORM_SLACK_SL_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "platform/slack/slack.h"

struct sl_webhook_options {
        struct loop *loop;
        const char *name;            /* of the adapter; outlives it */
        const struct secret *secret; /* the signing secret; outlives it */
        int64_t answer_ms;           /* 0: 2700; when a post that is not stored yet is refused */
};

/* As sl_intake_take and sl_intake_is_full. */
struct sl_webhook_handlers {
        void (*take)(void *arg, enum sl_arrival kind, json_t *payload, int retry,
                     sl_stored_fn *stored, void *stored_arg);
        bool (*is_full)(void *arg);
        /* The first posts had a wrong signature (false); one has the right one after all (true). */
        void (*proved)(void *arg, bool right);
};

struct sl_webhook *sl_webhook_new(const struct sl_webhook_options *options,
                                  const struct sl_webhook_handlers *handlers, void *arg);
/* Answers open posts with 503. NULL is fine. */
void sl_webhook_free(struct sl_webhook *w);
/* Checks the head. False: refused, and answered. */
bool sl_webhook_admit(const struct sl_webhook *w, struct http_exchange *x);
/* Answers, now or later. */
void sl_webhook_post(struct sl_webhook *w, struct http_exchange *x);

/* Is this Slack's signature ("v0=...") of the raw body and the timestamp? Constant time. */
bool sl_webhook_is_signed(const struct secret *secret, const char *timestamp, const char *signature,
                          const char *body, size_t n);
enum sl_posted {
        SL_POSTED_OTHER,     /* nothing that Slack posts */
        SL_POSTED_CHALLENGE, /* url_verification: answer payload's "challenge" */
        SL_POSTED_NOTICE,    /* nothing to store */
        SL_POSTED_PAYLOAD,   /* of this kind */
};
/* Reads a body, as JSON or as a form. *payload is yours; NULL with SL_POSTED_OTHER. */
enum sl_posted sl_webhook_read(const char *body, size_t n, bool form, json_t **payload,
                               enum sl_arrival *kind);

#endif
