#include "dispatch/dry_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static int check(const json_t *event, struct error *err)
{
        const char *type = json_str(event, "type", EVENT_MESSAGE_RECEIVED);
        const json_t *payload = json_object_get(event, "payload");

        if (!json_is_object(event))
                return error_set(err, ERR_INVALID, "an event is an object");
        if (!json_str(event, "instanceId", NULL) || !json_str(event, "channel", NULL))
                return error_set(err, ERR_INVALID,
                                 "an event has an 'instanceId' (the adapter) and a 'channel'");
        if (payload && !json_is_object(payload))
                return error_set(err, ERR_INVALID, "'payload' is not an object");
        if (!event_is_inbound(type))
                return error_set(err, ERR_INVALID, "rules do not look at events of type '%.60s'",
                                 type);
        return 0;
}

struct incoming *dry_run_event(const json_t *event, struct error *err)
{
        const json_t *payload = json_object_get(event, "payload");
        struct incoming *in;
        char *text;

        if (check(event, err) < 0)
                return NULL;
        text = payload ? json_text(payload) : NULL;
        in = incoming_parse(
                &(struct bus_event){ .type = json_str(event, "type", EVENT_MESSAGE_RECEIVED),
                                     .time_ms = json_int(event, "timestamp", 0),
                                     .adapter = json_str(event, "instanceId", NULL),
                                     .channel = json_str(event, "channel", NULL),
                                     .thread = json_str(event, "threadId", NULL),
                                     .trace = json_str(event, "traceId", NULL),
                                     .payload = text ? text : "{}" },
                err);
        free(text);
        return in;
}

struct finding {
        int64_t seq;
        struct incoming *in;
        struct error *err;
};

static void on_event(void *arg, const struct bus_event *e)
{
        struct finding *f = arg;

        if (e->seq != f->seq || strcmp(e->payload, "{}") == 0) /* only its key is kept, see bus.h */
                return;
        if (event_is_inbound(e->type))
                f->in = incoming_parse(e, f->err);
        else
                error_set(f->err, ERR_INVALID, "rules do not look at events of type '%s'", e->type);
}

struct incoming *dry_run_find(struct store_tx *tx, int64_t seq, struct error *err)
{
        struct bus_filter filter = { .after = seq - 1 };
        struct finding f = { .seq = seq, .err = err };

        error_set(err, ERR_MISSING,
                  "there is no event 'evt-%lld'; it may be older than what is kept",
                  (long long)seq);
        if (bus_read(tx, &filter, 1, on_event, &f, NULL, err) < 0)
                return NULL;
        return f.in;
}
