/*
 * event_reader: reads the daemon's event stream and reconnects.
 *
 * Resumes with Last-Event-ID, so journal events arrive once each and in order. Transient events
 * (turn.delta, turn.aside, turn.progress) are lost during a break.
 */
#ifndef CLI_EVENT_READER_H
#define CLI_EVENT_READER_H

#include "cli/client.h"

struct event_reader;

struct event_reader_options {
        const char *query;  /* "channel=x&types=turn.*", escaped; NULL: everything */
        const char *after;  /* "evt-12"; NULL: now */
        int64_t give_up_ms; /* without a connection; 0: 30 s */
};

struct event_reader_handlers {
        void (*on_open)(void *arg); /* connected or reconnected; may be NULL */
        void (*on_event)(void *arg, const char *type, const json_t *event); /* borrowed */
        void (*on_lost)(void *arg); /* disconnected, reconnecting; may be NULL */
        /* Gave up, or the daemon refuses. Free the reader. */
        void (*on_failed)(void *arg, const struct error *err);
};

struct event_reader *event_reader_new(struct client *c, const struct event_reader_options *options,
                                      const struct event_reader_handlers *handlers, void *arg);
/* Also inside handlers. */
void event_reader_free(struct event_reader *r);

#endif
