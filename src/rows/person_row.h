/*
 * person_row: persons, their identities, and their direct chats.
 *
 * A merged person stays as an alias (merged_into). An identity remembers its home, the person it
 * belonged to before any merge, so that a merge can be undone.
 */
#ifndef ROWS_PERSON_ROW_H
#define ROWS_PERSON_ROW_H

#include "rows/rows.h"

/* An account on a platform. Borrowed strings. */
struct identity {
        const char *platform, *user;
};

struct identity_row {
        int64_t id, person, home;
};

/* What a message says about its sender. NULL members keep the stored value. */
struct person_sighting {
        struct identity identity;
        const char *name, *username, *adapter;
        const char *dm_channel; /* NULL: not a direct message */
        int64_t now_ms;
};

int person_row_insert(struct store_tx *tx, int64_t now_ms, int64_t *id, struct error *err);
/* 1 with the merge target (0: none); 0: no such person; -1. */
int person_row_get_alias(struct store_tx *tx, int64_t person, int64_t *into, struct error *err);
/* into 0: no longer an alias. */
int person_row_set_alias(struct store_tx *tx, int64_t person, int64_t into, int64_t now_ms,
                         struct error *err);
/* Redirects aliases of one person to another. */
int person_row_move_aliases(struct store_tx *tx, int64_t from, int64_t to, int64_t now_ms,
                            struct error *err);

int person_row_get_identity(struct store_tx *tx, const struct identity *identity,
                            struct identity_row *out, struct error *err);
/* Adds an identity whose home is this person. */
int person_row_add_identity(struct store_tx *tx, const struct identity *identity, int64_t person,
                            int64_t now_ms, int64_t *id, struct error *err);
int person_row_update_identity(struct store_tx *tx, int64_t id, const struct person_sighting *s,
                               struct error *err);
/* How many, or -1. */
int64_t person_row_count_identities(struct store_tx *tx, int64_t person, struct error *err);
/* Moves all identities to another person. */
int person_row_move_identities(struct store_tx *tx, int64_t from, int64_t to, struct error *err);
/* Returns identities whose home is elsewhere. */
int person_row_return_identities(struct store_tx *tx, int64_t home, int64_t from,
                                 struct error *err);
/* Makes `person` the identity's home and owner. */
int person_row_rehome_identity(struct store_tx *tx, int64_t id, int64_t person, struct error *err);

/* Identities of two persons, or all; grouped by person. */
struct store_stmt *person_row_list_identities(struct store_tx *tx, int64_t person, int64_t other);
struct store_stmt *person_row_list_all_identities(struct store_tx *tx);
/* Seen by the adapter, but not in a direct chat; latest first. */
struct store_stmt *person_row_list_met(struct store_tx *tx, const char *platform,
                                       const char *adapter, int64_t limit);
int person_row_next_identity(struct store_stmt *s, struct identity *out, int64_t *person,
                             struct error *err);

/* Two persons and their aliases, or all aliases. */
struct store_stmt *person_row_list_aliases(struct store_tx *tx, int64_t person, int64_t other);
struct store_stmt *person_row_list_all_aliases(struct store_tx *tx);
int person_row_next_alias(struct store_stmt *s, int64_t *person, int64_t *into, struct error *err);

/* ---- details for the API ---- */

struct person_row {
        char *name; /* the operator's, else the latest identity's; yours to free; may be NULL */
        int64_t created_ms, updated_ms;
};
/* 1; 0: no such person; -1. */
int person_row_get(struct store_tx *tx, int64_t person, struct person_row *out, struct error *err);
/* name NULL: use the identity's. 1; 0: no such person; -1. */
int person_row_set_name(struct store_tx *tx, int64_t person, const char *name, int64_t now_ms,
                        struct error *err);
/*
 * Persons (no aliases) below `before`, newest first, at most max. search: part of a name or
 * username, or a platform id; NULL: all.
 */
int person_row_find(struct store_tx *tx, const char *search, int64_t before, int64_t *ids,
                    size_t max, size_t *count, struct error *err);

/* Aliases of a person, by number. */
struct store_stmt *person_row_list_merged(struct store_tx *tx, int64_t person);
int person_row_next_merged(struct store_stmt *s, int64_t *alias, struct error *err);

struct identity_details {
        int64_t id, home;
        struct identity identity;
        const char *username, *name, *adapter;
        int64_t first_seen_ms, last_seen_ms;
};
/* By number. */
struct store_stmt *person_row_list_details(struct store_tx *tx, int64_t person);
int person_row_next_details(struct store_stmt *s, struct identity_details *out, struct error *err);

/*
 * Accounts whose name or username this is, or whose person is named so, ignoring case, latest
 * first, at most 20. similar: whose name contains it. Grouped by person.
 */
struct identity_named {
        struct identity identity;
        const char *username, *name; /* may be NULL */
        int64_t person;
};
struct store_stmt *person_row_list_named(struct store_tx *tx, const char *name, bool similar);
int person_row_next_named(struct store_stmt *s, struct identity_named *out, struct error *err);

/* An identity's direct chats, latest first. */
struct store_stmt *person_row_list_chats(struct store_tx *tx, int64_t identity);
int person_row_next_chat(struct store_stmt *s, const char **adapter, const char **channel,
                         struct error *err);
/*
 * Where a person can be reached: their direct chats, latest first; then accounts without one, whose
 * id may name a direct chat (by_user).
 */
struct person_address {
        const char *adapter, *channel;
        bool by_user;
};
struct store_stmt *person_row_list_addresses(struct store_tx *tx, int64_t person);
int person_row_next_address(struct store_stmt *s, struct person_address *out, struct error *err);
/* Is this a direct chat of somebody? 1; 0; -1. */
int person_row_is_direct(struct store_tx *tx, const char *adapter, const char *channel,
                         struct error *err);
/* The person's latest direct chat on an adapter. 1: yours to free; 0: none; -1. */
int person_row_get_chat(struct store_tx *tx, int64_t person, const char *adapter, char **channel,
                        struct error *err);

/* ---- how a person wants to be reached ---- */

struct person_reach {
        const char *timezone, *quiet_hours; /* NULL: that of everybody; quiet hours "off": none */
        const char *reach_at; /* "adapter/channel" or "adapter"; NULL: the latest chat */
        int64_t daily_cap;    /* -1: that of everybody */
};
int person_row_get_reach(struct store_tx *tx, int64_t person, struct person_reach **out,
                         struct error *err);
/* 1; 0: no such person; -1. */
int person_row_set_reach(struct store_tx *tx, int64_t person, const struct person_reach *reach,
                         int64_t now_ms, struct error *err);
/* What they want to hear of coding sessions ("errors"); yours to free, NULL: not said. */
int person_row_get_notify(struct store_tx *tx, int64_t person, char **out, struct error *err);
int person_row_set_notify(struct store_tx *tx, int64_t person, const char *notify, int64_t now_ms,
                          struct error *err);
/* Counts an unasked message on this day. 1; 0: there were `cap` of them, or no such person; -1. */
int person_row_count_notice(struct store_tx *tx, int64_t person, int64_t day, int64_t cap,
                            struct error *err);

#endif
