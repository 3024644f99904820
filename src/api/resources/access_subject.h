/*
 * access_subject: whom an access rule names. Ids are stored as they are; a name is looked up among
 * the people the store knows.
 */
#ifndef API_RESOURCES_ACCESS_SUBJECT_H
#define API_RESOURCES_ACCESS_SUBJECT_H

#include "api/core/api_core.h"
#include "store/store.h"

#define ACCESS_SUBJECT_PLATFORMS 8

struct access_subject {
        /* asked for, borrowed; one of user and person */
        const char *user;
        int64_t person;
        /* found by access_subject_read */
        char *found;          /* "telegram:7", to free; or NULL and found_person */
        int64_t found_person; /* several accounts of one person have the name */
        unsigned count;       /* of different people */
        struct buf others;    /* several candidates, or similar names */
        struct buf details;   /* the same for programs: members of an error's details */
        /* of accounts that may be meant; none: all */
        const char *platforms[ACCESS_SUBJECT_PLATFORMS];
        size_t platform_count;
};

void access_subject_release(struct access_subject *s);
/*
 * 1: it can be stored as it is; 0: ask the store (access_subject_read), then
 * access_subject_found; -1: an error that begins with the field. adapter NULL: all.
 */
int access_subject_check(struct access_subject *s, struct adapters *all, const char *adapter,
                         struct error *err);
int access_subject_read(struct store_tx *tx, void *subject, struct error *err);
/* 0, or -1: no one or several people have the name. */
int access_subject_found(const struct access_subject *s, struct error *err);

#endif
