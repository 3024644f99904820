/* adapters: the inside of the registry, for the files that implement it. */
#ifndef PLATFORM_ADAPTERS_H
#define PLATFORM_ADAPTERS_H

#include <sys/queue.h>

#include "base/map.h"
#include "platform/attachment_files.h"
#include "platform/platform.h"

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
        struct attachment_files *attachments;
        struct map known_chats; /* "ADAPTER/CHANNEL" → struct known_chat of chat_threads.c */
};

void chat_threads_forget(struct adapters *as);

/* Events still being written are not published: the bus may go. */
void adapter_events_forget(struct adapters *as);
/* The only way to another state: logs and journals it. why may be NULL. */
void adapter_enter(struct adapter *a, enum adapter_state state, const char *why);

#endif
