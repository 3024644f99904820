/*
 * event_address: which chat an event file means.
 *
 * "adapter/channel" names it. A channel alone, as mom writes it, is accepted where exactly one
 * adapter can be meant. A file that lies in the folder of a chat means that chat and no other: its
 * agent wrote it, or somebody who talked to it.
 */
#ifndef SCHEDULE_EVENT_ADDRESS_H
#define SCHEDULE_EVENT_ADDRESS_H

#include <stddef.h>

#include "base/error.h"

struct event_adapter {
        const char *name, *platform;
};

/* home: of the folder; NULL: any chat may be named. id: "channelId", may be NULL with a home. */
struct event_address_query {
        const char *id;
        const struct event_adapter *adapters;
        size_t count;
        const char *home_adapter, *home_channel;
};

/*
 * *adapter is borrowed from the query, *channel from its id or home. -1: ERR_MISSING: the id names
 * an adapter that is not configured, others: the id is wrong.
 */
int event_address_find(const struct event_address_query *q, const char **adapter,
                       const char **channel, struct error *err);

#endif
