/*
 * sl_catchup: reads back messages that arrived while the link was down.
 *
 * Slack repeats an event for a few minutes only. The channels to read are those of recent
 * conversations in the store, with their threads, and then all that the app is a member of, DMs
 * included. conversations.history has no replies: a thread is read as well when its first message
 * is on a page that is read, and a reply is newer than the gap.
 *
 * The age and the number of messages are bounded. Dedup keys recognise repeats. A gap stays on disk
 * until everything in it is stored, so that a restart begins with it again. Edits, deletions and
 * reactions cannot be read back.
 */
#ifndef PLATFORM_SLACK_SL_CATCHUP_H
#define PLATFORM_SLACK_SL_CATCHUP_H

#include <stdint.h>

#include "platform/intake.h"
#include "platform/slack/slack.h"

/* Milliseconds; 0: the default in the comment. Tests shorten them. */
struct sl_catchup_times {
        int64_t wait_ms;  /* 250: the first wait while Slack is unavailable; doubles */
        int64_t hold_ms;  /* 30000: live events of a channel wait no longer for the missed ones */
        int64_t done_ms;  /* 3000: how often it is checked whether catch-up is over */
        int64_t again_ms; /* 300000: the next attempt after giving up */
        int64_t save_ms;  /* 1000: how late the file may be */
};

/* Text outlives it. */
struct sl_catchup_options {
        struct adapter *adapter;
        struct intake *window;
        const char *team, *user, *bot; /* ours; bot may be NULL */
        int64_t messages;              /* of each channel and thread */
        int64_t seconds;               /* how old they may be; 0: no catch-up */
        struct sl_catchup_times times;
};

struct sl_catchup_hooks {
        void *ctx;
        /* As sl_api_ask; no answer follows sl_catchup_free. */
        void (*ask)(void *ctx, const struct sl_request *q, sl_answer_fn *done, void *arg);
        int64_t (*now_ms)(void *ctx); /* Slack's clock */
        /* As sl_intake_missed. */
        void (*missed)(void *ctx, const char *channel, json_t *message);
};

struct sl_catchup *sl_catchup_new(const struct sl_catchup_options *options,
                                  const struct sl_catchup_hooks *hooks);
/* NULL is fine. */
void sl_catchup_free(struct sl_catchup *c);
/* The link was down until now. */
void sl_catchup_begin(struct sl_catchup *c);
/* A message with this ts is committed. */
void sl_catchup_note(struct sl_catchup *c, const char *ts);
bool sl_catchup_is_over(const struct sl_catchup *c);

#endif
