/*
 * person_change: recording, merging and splitting persons inside a transaction. persons.c submits
 * these writes and then updates its copy in memory.
 */
#ifndef DISPATCH_PEOPLE_PERSON_CHANGE_H
#define DISPATCH_PEOPLE_PERSON_CHANGE_H

#include "dispatch/people/persons.h"

struct person_identity {
        struct identity identity; /* its strings are owned */
        int64_t person;
};

struct person_alias {
        int64_t person, into; /* into 0: not an alias */
};

/* The two persons of a change as their rows are afterwards; memory is made equal to this. */
struct person_effects {
        struct person_changed result;
        struct person_identity *identities; /* those of one person follow each other */
        size_t identity_count;
        struct person_alias *aliases;
        size_t alias_count;
        struct bus_batch batch;
};
void person_effects_reset(struct person_effects *e);
void person_effects_release(struct person_effects *e);

/* Stores what is new about a sender; an unknown identity gets a person of its own. */
int person_change_record(struct store_tx *tx, const struct person_sighting *s, int64_t *person,
                         struct error *err);
/* ERR_MISSING, ERR_CONFLICT, ERR_LIMIT when it cannot be done; then nothing is changed. */
int person_change_write(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                        struct person_effects *out, struct error *err);

#endif
