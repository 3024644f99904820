/* dc_send: one delivery on its way to Discord. dc_payload.c makes the call, dc_send.c sends it. */
#ifndef PLATFORM_DISCORD_DC_SEND_H
#define PLATFORM_DISCORD_DC_SEND_H

#include "platform/discord/dc_window.h"
#include "platform/discord/discord.h"

struct dc_send;

struct dc_send_kind {
        bool creates; /* a message: repeating it needs care */
        enum dc_priority priority;
        int64_t wait_ms;
        /* Fills method, route, args and body. args[0] stays NULL when a DM must be opened first. */
        int (*make)(struct dc_send *s, const struct delivery *d, struct error *err);
};

struct dc_send {
        struct adapter *adapter;
        struct discord *dc;
        const struct dc_send_kind *kind;
        enum delivery_kind delivery_kind;
        int64_t delivery, fence, created_ms;
        int attempt;
        char *channel, *thread;
        char *message;
        char *root; /* the message whose thread it is in, which it answers where there is none */
        char *interaction; /* whose placeholder it goes to; NULL: to a channel */
        char *reply_to;
        json_t *payload;
        const char *method, *route; /* constants */
        char *args[DC_ARGS_MAX];
        json_t *body;
        struct http_file file; /* fd -1: none */
        char *file_name, *file_mime;
        struct dc_call *call;
        struct timer *later; /* reports `early` */
        struct send_result early;
        char why[300];
        bool needless;
        bool reopened;   /* its thread was archived */
        bool has_window; /* false: of a version that did not store it */
        struct dc_window window;
        char *command;    /* whose placeholder an earlier attempt may have filled; NULL: none */
        int64_t began_ms; /* clock_boot_ms */
        bool looked;
        unsigned pages;
        int64_t page_ms; /* Discord's clock when the last page was asked for */
        TAILQ_ENTRY(dc_send) next;
};

void dc_send_add_nonce(struct discord *dc, const char *nonce);

/* ---- dc_payload.c ---- */

extern const struct dc_send_kind dc_payload_kinds[]; /* by enum delivery_kind */
/* After its placeholder was lost. */
int dc_payload_for_channel(struct dc_send *s, struct error *err);
/* The card, which the body has, becomes text. */
void dc_payload_card_as_text(struct dc_send *s);
/* "<:name:id>", "name:id" or the emoji itself as routes want it; yours to free. */
char *dc_payload_emoji(const char *emoji);
/* Notifies only people mentioned in the text. */
json_t *dc_payload_mentions(const char *text, bool replied_user);

#endif
