/*
 * event_pass: one look at a folder of events, from its files to rows.
 *
 *     read (thread pool) ──► addresses (loop) ──► rows (store) ──► files are moved (thread pool)
 *
 * A file's request key is "file:FOLDER/NAME#MARK". An immediate or one-shot event is moved to done
 * only after its row is committed; a file whose key is known has run, so it is only moved.
 */
#ifndef SCHEDULE_EVENT_PASS_H
#define SCHEDULE_EVENT_PASS_H

#include "bus/bus.h"
#include "schedule/event_address.h"
#include "schedule/event_folder.h"
#include "schedule/schedule.h"

enum event_verdict {
        EVENT_KEEP,   /* it waits for its time, or settles */
        EVENT_DONE,   /* its row is there, or it has ended */
        EVENT_BROKEN, /* note says why */
        EVENT_LATER,  /* there are too many schedules, or its adapter is gone for now */
};

/* What becomes of an entry of the listing. */
struct event_plan {
        const char *adapter, *channel; /* borrowed; NULL: unknown */
        bool has_folder;               /* the chat's folder is there, so it is known */
        struct error problem;          /* of the address; kind ERR_NONE: none */
        enum event_verdict verdict;
        struct buf note;
};

struct event_pass {
        void *owner; /* of event_files.c */
        struct event_folder folder;
        char *path;
        char *home_adapter, *home_channel; /* NULL: the operator's folder */
        char *only;                        /* NULL: all files */
        struct event_adapter *adapters;    /* copies */
        size_t adapter_count;
        const struct schedule_conf *conf;
        int64_t now_ms;
        struct event_listing listing;
        struct event_plan *plans; /* parallel to it */
        struct error err;         /* the folder could not be read */
        /* of the store function */
        bool added; /* a row that may be due */
        size_t cancelled;
        struct bus_batch batch;
};

/* Copies what it is given; root is borrowed. */
struct event_pass *event_pass_new(int root, const char *path, const char *home_adapter,
                                  const char *home_channel, const char *only);
void event_pass_free(struct event_pass *p);

/* On the thread pool. */
void event_pass_read(struct event_pass *p);
void event_pass_add_adapter(struct event_pass *p, const char *name, const char *platform);
/* On the loop, once all adapters are added: which chats are meant. */
void event_pass_address(struct event_pass *p);
/* The store function. */
int event_pass_write(struct store_tx *tx, void *pass, struct error *err);
/* On the thread pool: moves what is done or broken. */
void event_pass_move(struct event_pass *p, int64_t done_before_ms);

/* The folder's part of a request key, yours to free; NULL: the key is none of a file. */
char *event_pass_folder_of(const char *request_key);

#endif
