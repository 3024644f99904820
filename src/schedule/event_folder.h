/*
 * event_folder: the files of a folder of events, on the disk.
 *
 *     events/NAME.json          waits, or is repeated
 *     events/done/NAME.json     was run
 *     events/broken/NAME.json   could not be understood; NAME.json.txt beside it says why
 *
 * Agents write in these folders at any time, so every access goes through base/beneath.h. All calls
 * block: they run on the thread pool.
 */
#ifndef SCHEDULE_EVENT_FOLDER_H
#define SCHEDULE_EVENT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "schedule/event_file.h"

#define EVENT_FOLDER_MOST   1000 /* files that are read at a time */
#define EVENT_FOLDER_SETTLE 1000 /* ms without a change, after which a broken file is complete */

/* Where one is: path is relative to root, the workspace. */
struct event_folder {
        int root;
        const char *path; /* "events" or "channels/tg/42/events" */
        bool is_agents;   /* files that we make there belong to the agent's user */
};

enum event_entry_state {
        EVENT_ENTRY_READ,
        EVENT_ENTRY_BROKEN,   /* problem says why */
        EVENT_ENTRY_SETTLING, /* broken, but perhaps still being written */
};

struct event_entry {
        char *name;
        enum event_entry_state state;
        char mark[17]; /* of these bytes, written at this time */
        struct event_file file;
        struct buf problem; /* a line or more */
};

struct event_listing {
        struct event_entry *items; /* by name */
        size_t count;
        bool more;     /* there were too many */
        bool settling; /* look again after EVENT_FOLDER_SETTLE */
};

/* only: the one name to look at; NULL: all. A missing folder is empty. */
int event_folder_read(const struct event_folder *f, const char *only, int64_t now_ms,
                      struct event_listing *out, struct error *err);
void event_listing_release(struct event_listing *l);
/* Has the listing an entry of this name? */
bool event_listing_has(const struct event_listing *l, const char *name);

/*
 * Moves a file to `to` ("done", "broken"), under another name if that one is taken. note (NULL:
 * none) is written beside it. 1; 0: the file is gone; -1.
 */
int event_folder_move(const struct event_folder *f, const char *name, const char *to,
                      const char *note, struct error *err);
/* Deletes what is done: older than before_ms, or beyond the newest `most`. How many. */
size_t event_folder_prune(const struct event_folder *f, int64_t before_ms, size_t most);

/*
 * Calls each() for every channels/ADAPTER/CHANNEL/events that has files, with the names of the two
 * folders.
 */
void event_folder_find(int root, void (*each)(void *arg, const char *adapter, const char *channel),
                       void *arg);

#endif
