/* Events as values: their names, numbers, copies and the form clients see. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"

static const struct {
        const char *word; /* how event types of the stream begin */
        const char *name;
} streams[STREAM_COUNT] = {
        [STREAM_MESSAGE] = { "message", "MESSAGE" },
        [STREAM_REACTION] = { "reaction", "REACTION" },
        [STREAM_TURN] = { "turn", "TURN" },
        [STREAM_DELIVERY] = { "delivery", "DELIVERY" },
        [STREAM_SESSION] = { "session", "SESSION" },
        [STREAM_ADAPTER] = { "adapter", "ADAPTER" },
        [STREAM_SCHEDULE] = { "schedule", "SCHEDULE" },
        [STREAM_CUSTOM] = { "custom", "CUSTOM" },
        [STREAM_IDENTITY] = { "identity", "IDENTITY" },
};

/* Further words of a stream. */
static const struct {
        const char *word;
        enum bus_stream stream;
} others[] = {
        { "agent", STREAM_TURN }, /* what happens to agents stands beside what they do */
};

int bus_stream_of(const char *type)
{
        size_t n = strcspn(type, ".");

        for (int i = 0; i < STREAM_COUNT; i++)
                if (strlen(streams[i].word) == n && memcmp(streams[i].word, type, n) == 0)
                        return i;
        for (size_t i = 0; i < COUNT(others); i++)
                if (strlen(others[i].word) == n && memcmp(others[i].word, type, n) == 0)
                        return (int)others[i].stream;
        return -1;
}

const char *bus_stream_name(enum bus_stream s)
{
        return streams[s].name;
}

char *bus_event_id(int64_t seq, char out[BUS_ID_SIZE])
{
        snprintf(out, BUS_ID_SIZE, "evt-%" PRId64, seq);
        return out;
}

int64_t bus_event_seq(const char *id)
{
        int64_t seq = 0;

        if (strncmp(id, "evt-", 4) == 0)
                id += 4;
        if (*id == '\0')
                return -1;
        for (; *id; id++) {
                if (*id < '0' || *id > '9' || seq > (INT64_MAX - 9) / 10)
                        return -1;
                seq = seq * 10 + (*id - '0');
        }
        return seq;
}

/* The strings of an event, so that they can be copied in a loop. */
#define STRINGS 7
static void strings_of(struct bus_event *e, const char **at[STRINGS])
{
        const char **all[STRINGS] = { &e->type,  &e->adapter, &e->channel, &e->thread,
                                      &e->trace, &e->key,     &e->payload };

        memcpy(at, all, sizeof(all));
}

struct bus_event *bus_event_dup(const struct bus_event *e)
{
        struct bus_event plan = *e;
        struct bus_event *copy;
        const char **at[STRINGS];
        size_t size[STRINGS];
        size_t total = sizeof(*copy);
        char *to;

        strings_of(&plan, at);
        for (int i = 0; i < STRINGS; i++) {
                size[i] = *at[i] ? strlen(*at[i]) + 1 : 0;
                total += size[i];
        }
        copy = mem_alloc(total);
        to = (char *)(copy + 1);
        for (int i = 0; i < STRINGS; i++) {
                if (!*at[i])
                        continue;
                *at[i] = memcpy(to, *at[i], size[i]);
                to += size[i];
        }
        *copy = plan;
        return copy;
}

void bus_event_json(const struct bus_event *e, struct buf *out)
{
        char id[BUS_ID_SIZE];

        jsonw_open(out, '{');
        jsonw_str(out, "id", bus_event_id(e->seq, id));
        jsonw_str(out, "type", e->type);
        jsonw_int(out, "timestamp", e->time_ms);
        jsonw_str(out, "instanceId", e->adapter);
        jsonw_str(out, "channel", e->channel);
        jsonw_str(out, "threadId", e->thread);
        jsonw_str(out, "traceId", e->trace);
        jsonw_raw(out, "payload", e->payload);
        jsonw_close(out, '}');
}
