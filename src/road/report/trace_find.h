/*
 * trace_find: the rows that an id given by a person means. In store functions.
 */
#ifndef ROAD_REPORT_TRACE_FIND_H
#define ROAD_REPORT_TRACE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

#define TRACE_REFS_MAX 20
#define TRACE_NEWEST   20000 /* rows searched where there is no index */

enum trace_kind { TRACE_EVENT, TRACE_TURN, TRACE_DELIVERY };

struct trace_ref {
        enum trace_kind kind;
        int64_t id;
};

struct trace_refs {
        struct trace_ref items[TRACE_REFS_MAX];
        size_t count;
};

/*
 * The id is evt-12, trn-7, dlv-9, a trace id, the platform's id of a message, the same as
 * ADAPTER/CHAT/ID, or ADAPTER/CHAT for the last messages of a chat. Several messages may have it:
 * Telegram counts from 1 in each chat, and clients repeat trace ids. adapters (",api,tg,"; NULL:
 * all) hides messages of others.
 */
int trace_find(struct store_tx *tx, const char *id, const char *adapters, struct trace_refs *out,
               struct error *err);

/* A message of the bot itself, as its adapter journaled it → the delivery that sent it; 0: none. */
int trace_find_own(struct store_tx *tx, const char *adapter, const char *chat, const char *id,
                   int64_t *delivery, struct error *err);

/* adapter NULL: belongs to none, so only those who may see all. */
bool trace_find_allows(const char *adapters, const char *adapter);

#endif
