/*
 * persons_private: what the files about persons share: the rows (person_rows.c) and what is in
 * memory of them (persons.c).
 */
#ifndef DISPATCH_PEOPLE_PERSON_CHANGE_H
#define DISPATCH_PEOPLE_PERSON_CHANGE_H

#include "dispatch/people/persons.h"

/* An identity with its person, as a row says. Strings are owned. */
struct person_row {
        char *platform, *user;
        int64_t person;
};

/*
 * What a change touched, read back in its transaction: memory becomes equal to it. Each time the
 * write is repeated it begins anew.
 */
struct person_news {
        int64_t persons[2];      /* whose identities are told */
        struct person_row *rows; /* all identities of these persons */
        size_t row_count;
        struct {
                int64_t person, into;
        } * aliases; /* into 0: it is none any more */
        size_t alias_count;
        struct bus_batch batch;
        struct person_changed result;
};
void person_news_reset(struct person_news *n);
void person_news_release(struct person_news *n);

/* What is noted about a sender. Strings are owned. */
struct person_sight {
        char *platform, *user, *name, *username, *adapter,
                *dm_channel; /* dm_channel NULL: it was no direct message */
        int64_t now_ms;
        int64_t person; /* result */
};

/*
 * Inside store functions. Notes the identity, with a person of its own when it is new; s->person
 * tells.
 */
int person_write_sight(struct store_tx *tx, struct person_sight *s, struct error *err);
/*
 * -1 with ERR_MISSING, ERR_CONFLICT or ERR_LIMIT when it cannot be done: nothing is changed then.
 */
int person_write_change(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                        struct person_news *news, struct error *err);

#endif
