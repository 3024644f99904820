/*
 * sl_link: the parts of sl_push: deliveries (sl_push.c), connections (sl_socket.c) and posts to
 * request URLs (sl_post.c).
 *
 * A delivery lives until it is acknowledged or given up. Every attempt has an envelope id of its
 * own, as Slack's may have; the ack of any of them counts.
 */
#ifndef SIM_SLACK_SL_LINK_H
#define SIM_SLACK_SL_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "net/http_client.h"
#include "sim/slack/sl_push.h"
#include "sim/slack/sl_world.h"

#define SLACK_RETRIES       3
#define SLACK_ENVELOPE_SIZE 37 /* a UUID and the NUL */

enum slack_delivery_kind { SLACK_EVENT, SLACK_INTERACTIVE, SLACK_COMMAND };

/* Only enter() of sl_push.c writes it. */
enum slack_delivery_state {
        SLACK_HELD,     /* by a fault, until a timer or the next delivery */
        SLACK_QUEUED,   /* behind a post of the same conversation */
        SLACK_SENT,     /* awaits its ack */
        SLACK_RETRYING, /* waits for its next attempt */
};

struct slack_delivery {
        struct slack_world *world;
        struct slack_app *app;
        enum slack_delivery_kind kind;
        enum slack_delivery_state state;
        char what[64];         /* the type of the event or interaction */
        char lane[SL_ID_SIZE]; /* its conversation, or "" */
        json_t *payload;       /* as in the envelope */
        int attempt;           /* 0, or the number of the retry */
        const char *reason;    /* of the last failure; a constant */
        bool again;            /* a fault: deliver it once more after its ack */
        char envelopes[SLACK_RETRIES + 2][SLACK_ENVELOPE_SIZE];
        int envelope_count;
        struct slack_link *link; /* that got it; NULL: none, or gone */
        struct http_call *post;
        struct timer *timer;
        int64_t sent_ms;
        TAILQ_ENTRY(slack_delivery) next;
};

TAILQ_HEAD(slack_delivery_list, slack_delivery);

/* One connection of Socket Mode. */
struct slack_link {
        struct slack_links *links;
        struct slack_app *app; /* NULL: its ticket is not valid */
        struct ws *ws;
        uint64_t number;
        bool greeted; /* hello is sent */
        bool closing;
        struct timer *ping, *life;
        int64_t life_ms; /* 0: no end */
        bool warned, muted;
        LIST_ENTRY(slack_link) next;
};

LIST_HEAD(slack_link_list, slack_link);

struct slack_probe;
TAILQ_HEAD(slack_probe_list, slack_probe);

struct slack_links {
        struct slack_world *world;
        struct ws_server *server;
        char *url;
        struct slack_link_list list; /* newest first */
        uint64_t link_count, turn;   /* turn: of the links, for the next delivery */
        struct map tickets;          /* -> struct slack_app */
        struct slack_delivery_list deliveries;
        struct map envelopes; /* id -> struct slack_delivery */
        struct map posting;   /* "APP CHANNEL" -> the delivery being posted */
        struct slack_probe_list probes;
        struct slack_delivery *held; /* goes after the next one */
        uint64_t event_count;
};

/* ---- sl_push.c ---- */

/* An event for one app only, whatever its subscriptions; taken over. */
void sl_push_to(struct slack_app *a, json_t *event);
/* payload is the whole of it, taken over: for what has no event_callback around it. */
void sl_push_raw(struct slack_app *a, enum slack_delivery_kind kind, json_t *payload);
/* The attempt succeeded; response is borrowed, NULL: none. May free d. */
void sl_push_acked(struct slack_delivery *d, const json_t *response);
/* It failed. final: no retry. May free d. */
void sl_push_failed(struct slack_delivery *d, const char *reason, bool final);
/* Forgets what this app (NULL: any) has not acknowledged. */
void sl_push_forget(struct slack_links *links, const struct slack_app *a);
/* Opens an entry of GET /sim/links about d; add members, then journal_close. */
struct buf *sl_push_entry(const struct slack_delivery *d, const char *kind);
/* A fresh envelope id for this attempt; borrowed. */
const char *sl_push_envelope(struct slack_delivery *d);
/* Starts the time to acknowledge. */
void sl_push_sent(struct slack_delivery *d);
/* Waits behind another post. */
void sl_push_queued(struct slack_delivery *d);
/* Its HTTP call has its own deadline. */
void sl_push_posting(struct slack_delivery *d);

/* ---- sl_socket.c ---- */

/* Sends it to one of the app's connections. False: there is none. */
bool sl_socket_send(struct slack_delivery *d);
/*
 * Sends a disconnect message and closes the connection: after ms, which is announced by "warning",
 * or at once.
 */
void sl_socket_disconnect(struct slack_link *l, const char *reason, int64_t ms);
/* How many connections the app has. */
size_t sl_socket_count(const struct slack_app *a);
void sl_socket_release(struct slack_links *links);

/* ---- sl_post.c ---- */

/* Posts it to the app's URL, after those of its conversation that are on the way. */
void sl_post(struct slack_delivery *d);
/* The delivery is about to be freed. */
void sl_post_withdraw(struct slack_delivery *d);

/* What is wrong with a forged request. */
enum slack_forgery { SLACK_GENUINE, SLACK_BAD_SIGNATURE, SLACK_OLD, SLACK_UNSIGNED };
/*
 * Posts url_verification, as when the URL is entered in the app's settings, or a forged event. GET
 * /sim/links gets "verified" or "forged" with the status.
 */
void sl_post_probe(struct slack_app *a, enum slack_forgery forgery);
void sl_post_release(struct slack_links *links);

#endif
