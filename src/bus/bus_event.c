/* Events as values: stream names, ids, copies, and the JSON that clients see. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"

static const struct {
        const char *word; /* first word of its event types */
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

static const struct {
        const char *word;
        enum bus_stream stream;
} others[] = {
        { "agent", STREAM_TURN }, /* agent.circuit_opened and the like */
        { "approval", STREAM_TURN },
        { "calendar", STREAM_SCHEDULE },
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
        if (*id == '\0' || (*id == '0' && id[1] != '\0'))
                return -1;
        for (; *id; id++) {
                if (*id < '0' || *id > '9' || seq > (INT64_MAX - 9) / 10)
                        return -1;
                seq = seq * 10 + (*id - '0');
        }
        return seq;
}

struct bus_event *bus_event_dup(const struct bus_event *e)
{
        static const size_t strings[] = {
                offsetof(struct bus_event, type),    offsetof(struct bus_event, adapter),
                offsetof(struct bus_event, channel), offsetof(struct bus_event, thread),
                offsetof(struct bus_event, trace),   offsetof(struct bus_event, key),
                offsetof(struct bus_event, payload),
        };

        return mem_dup_struct(e, sizeof(*e), strings, COUNT(strings));
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
