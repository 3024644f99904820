/* adapters: the inside of the registry, for the files that implement it. */
#ifndef PLATFORM_ADAPTERS_H
#define PLATFORM_ADAPTERS_H

#include <sys/queue.h>

#include "base/map.h"
#include "platform/platform.h"

/* A delivery that was not even begun; its outcome is reported from the loop. */
struct refused_delivery {
        int64_t delivery, fence;
        struct send_result result;
        char why[200];
        STAILQ_ENTRY(refused_delivery) next;
};

struct adapters {
        struct loop *loop;
        struct http_client *http;
        struct road *road;
        struct store *store;
        struct bus *bus;
        LIST_HEAD(, adapter_event) events; /* being written */
        char *dir;
        char *public_url;
        struct adapter_entry **entries; /* in the order of the configuration */
        size_t count;
        struct map by_name; /* → struct adapter_entry */
        STAILQ_HEAD(, refused_delivery) refused;
        struct timer *refuse;
};

struct adapter_entry {
        struct adapter adapter; /* first: platforms know only this part */
        struct adapter_conf *conf;
        struct http_client *http; /* its own, with caFile; NULL: the shared one */
        bool open;                /* ops->open worked, ops->close is due */
};

/* Events still being written are not published: the bus may go. */
void adapter_events_forget(struct adapters *as);
/* The only way to another state: logs and journals it. why may be NULL. */
void adapter_enter(struct adapter *a, enum adapter_state state, const char *why);

#endif
