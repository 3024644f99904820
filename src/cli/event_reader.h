/*
 * follow: reads the daemon's event stream for as long as wanted.
 *
 * When the connection breaks it comes back with Last-Event-ID: journal events arrive once each and
 * in order. Transient events (turn.delta, turn.progress) of a break are lost, which on_lost says.
 */
#ifndef CLI_EVENT_READER_H
#define CLI_EVENT_READER_H

#include "cli/client.h"

struct event_reader;

struct event_reader_options {
        const char *query;  /* "channel=x&types=turn.*", escaped; NULL: everything */
        const char *after;  /* begin after this event ("evt-12"); NULL: now */
        int64_t give_up_ms; /* without a connection for so long; 0: 30 s */
};

struct event_reader_handlers {
        void (*on_open)(void *arg); /* may be NULL; each time a connection stands */
        /* event: the envelope, borrowed. */
        void (*on_event)(void *arg, const char *type, const json_t *event);
        void (*on_lost)(void *arg); /* may be NULL; trying again */
        /* Gave up, or the daemon refuses; nothing follows. Free it. */
        void (*on_failed)(void *arg, const struct error *err);
};

struct event_reader *event_reader_new(struct client *c, const struct event_reader_options *options,
                                      const struct event_reader_handlers *handlers, void *arg);
/* Allowed inside handlers. NULL is fine. */
void event_reader_free(struct event_reader *f);

#endif
