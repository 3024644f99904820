/*
 * Most persons have one identity, kept only in the identity index. Persons with several have a
 * list, and merged persons an alias.
 */
#include "dispatch/people/persons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/people/persons_private.h"
#include "store/write_through.h"

#define IDENTITIES_MAX 500000 /* beyond this, new senders are not recorded */
#define SEEN_MAX       4096
#define SEEN_MS        (10 * 60 * 1000) /* resolution of last_seen_ms */

struct linked_person {
        struct identity *identities; /* strings owned */
        size_t count;
};

struct persons {
        struct store *store;
        struct bus *bus;
        struct identity_index identities;
        struct seen_cache *seen;
        struct map linked;  /* person → struct linked_person */
        struct map aliases; /* person → int64_t merged into */
        bool full_logged;
        void (*changed)(void *arg);
        void *changed_arg;
};

static char *person_key(char out[24], int64_t person)
{
        snprintf(out, 24, "%lld", (long long)person);
        return out;
}

/* ---- lookups ---- */

int64_t person_parse_id(const char *text)
{
        if (strncmp(text, "per-", 4) == 0)
                text += 4;
        return strncmp(text, "evt-", 4) == 0 ? -1 : bus_event_seq(text);
}

int64_t persons_lookup(const struct persons *p, const char *platform, const char *user)
{
        return platform && user ? identity_index_get(&p->identities, platform, user) : 0;
}

size_t persons_other_identities(const struct persons *p, const char *platform, const char *user,
                                struct identity *out, size_t max)
{
        int64_t person = p->linked.count > 0 ? persons_lookup(p, platform, user) : 0;
        const struct linked_person *l;
        char key[24];
        size_t n = 0;

        l = person > 0 ? map_get(&p->linked, person_key(key, person)) : NULL;
        for (size_t i = 0; l && i < l->count && n < max; i++) {
                const struct identity *other = &l->identities[i];

                if (strcmp(other->platform, platform) != 0 || strcmp(other->user, user) != 0)
                        out[n++] = *other;
        }
        return n;
}

int64_t persons_current(const struct persons *p, int64_t person)
{
        char key[24];

        /* chains end: an alias is never the target of a merge */
        for (size_t i = 0; i <= p->aliases.count; i++) {
                const int64_t *into = map_get(&p->aliases, person_key(key, person));

                if (!into)
                        break;
                person = *into;
        }
        return person;
}

size_t persons_identity_count(const struct persons *p)
{
        return p->identities.count;
}

void persons_detach_bus(struct persons *p)
{
        p->bus = NULL;
}

void persons_watch(struct persons *p, void (*changed)(void *arg), void *arg)
{
        p->changed = changed;
        p->changed_arg = arg;
}

/* ---- updating memory ---- */

static void linked_free(struct linked_person *l)
{
        if (!l)
                return;
        for (size_t i = 0; i < l->count; i++) {
                free((char *)l->identities[i].platform);
                free((char *)l->identities[i].user);
        }
        free(l->identities);
        free(l);
}

/* rows[0..count) are all identities of a person. */
static void learn_person(struct persons *p, const struct person_identity *rows, size_t count)
{
        struct linked_person *l = NULL;
        char key[24];

        for (size_t i = 0; i < count; i++)
                identity_index_set(&p->identities, rows[i].identity.platform, rows[i].identity.user,
                                   rows[i].person);
        if (count < 2)
                return;
        l = mem_zalloc(sizeof(*l));
        l->identities = mem_array(count, sizeof(*l->identities));
        for (; l->count < count; l->count++)
                l->identities[l->count] =
                        (struct identity){ mem_strdup(rows[l->count].identity.platform),
                                           mem_strdup(rows[l->count].identity.user) };
        linked_free(map_put(&p->linked, person_key(key, rows[0].person), l));
}

static void set_alias(struct persons *p, int64_t person, int64_t into)
{
        char key[24];

        person_key(key, person);
        if (into > 0)
                free(map_put(&p->aliases, key, mem_dup(&into, sizeof(into))));
        else
                free(map_remove(&p->aliases, key));
}

/* After the commit of a merge or unlink. */
static void learn_effects(struct persons *p, struct person_effects *e)
{
        const struct person_identity *rows = e->identities;
        char key[24];

        linked_free(map_remove(&p->linked, person_key(key, e->result.person)));
        linked_free(map_remove(&p->linked, person_key(key, e->result.other)));
        for (size_t from = 0, to; from < e->identity_count; from = to) {
                for (to = from + 1; to < e->identity_count && rows[to].person == rows[from].person;)
                        to++;
                learn_person(p, rows + from, to - from);
        }
        for (size_t i = 0; i < e->alias_count; i++)
                set_alias(p, e->aliases[i].person, e->aliases[i].into);
        if (p->bus)
                bus_publish(p->bus, &e->batch);
        if (p->changed)
                p->changed(p->changed_arg);
}

/* ---- recording senders ---- */

struct sender_record {
        struct write_through base;
        struct persons *persons;
        struct person_sighting sighting; /* its strings are owned */
        int64_t person;                  /* result; 0: a replay stores nothing */
        bool wants_link;
        struct identity link_to; /* its strings are owned */
        bool linked;             /* result */
        struct person_effects effects;
};

static int write_record(struct store_tx *tx, void *change, struct error *err)
{
        struct sender_record *r = change;
        struct person_change link = { .what = PERSON_LINK,
                                      .a = r->link_to,
                                      .b = r->sighting.identity,
                                      .by = "the person",
                                      .reason = "a code" };

        if (person_change_record(tx, &r->sighting, &r->person, err) < 0)
                return -1;
        /* a refused link must not prevent the decision; a failed statement does anyway */
        r->linked = r->wants_link &&
                    person_change_write(tx, &link, r->sighting.now_ms, &r->effects, err) == 0;
        return 0;
}

static void apply_record(void *change)
{
        struct sender_record *r = change;
        const struct identity *sender = &r->sighting.identity;

        if (r->person > 0)
                identity_index_set(&r->persons->identities, sender->platform, sender->user,
                                   r->person);
        if (r->linked)
                learn_effects(r->persons, &r->effects);
}

static void release_record(void *change)
{
        struct sender_record *r = change;
        const struct person_sighting *s = &r->sighting;
        const char *const strings[] = { s->identity.platform, s->identity.user, s->name,
                                        s->username,          s->adapter,       s->dm_channel,
                                        r->link_to.platform,  r->link_to.user };

        for (size_t i = 0; i < COUNT(strings); i++)
                free((char *)strings[i]);
        person_change_release(&r->effects);
        free(r);
}

static const struct write_through_ops record_ops = { .write = write_record,
                                                     .apply = apply_record,
                                                     .release = release_record };

static struct sender_record *record_new(struct persons *p, const char *platform,
                                        const struct incoming *in, int64_t now_ms)
{
        struct sender_record *r = mem_zalloc(sizeof(*r));

        r->base.ops = &record_ops;
        r->persons = p;
        r->sighting = (struct person_sighting){
                .identity = { mem_strdup(platform), mem_strdup(in->sender_id) },
                .name = mem_strdup(in->sender_name),
                .username = mem_strdup(in->sender_username),
                .adapter = mem_strdup(in->adapter),
                .dm_channel = in->chat == CHAT_DM ? mem_strdup(in->channel) : NULL,
                .now_ms = now_ms
        };
        return r;
}

/* FNV-1a, to detect changes only. */
static uint64_t digest(uint64_t h, const char *text)
{
        for (; text && *text; text++)
                h = (h ^ (unsigned char)*text) * 1099511628211u;
        return (h ^ 0xff) * 1099511628211u;
}

void persons_record(struct persons *p, const char *platform, const struct incoming *in,
                    int64_t now_ms, struct decision *out)
{
        uint64_t h = digest(14695981039346656037u, in->sender_name);

        if (p->identities.count >= IDENTITIES_MAX &&
            persons_lookup(p, platform, in->sender_id) == 0) {
                if (!p->full_logged)
                        log_warn("person limit reached; new senders are not recorded",
                                 LOG_I("identities", IDENTITIES_MAX));
                p->full_logged = true;
                return;
        }
        h = digest(digest(h, in->sender_username), in->adapter);
        if (in->chat == CHAT_DM)
                h = digest(h, in->channel);
        if (seen_cache_update(p->seen, platform, in->sender_id, h, now_ms))
                evaluation_add_change(out, record_new(p, platform, in, now_ms));
}

void persons_link_sender(struct persons *p, const char *platform, const struct incoming *in,
                         const struct identity *identity, int64_t now_ms, struct decision *out)
{
        struct sender_record *r = record_new(p, platform, in, now_ms);

        r->wants_link = true;
        r->link_to =
                (struct identity){ mem_strdup(identity->platform), mem_strdup(identity->user) };
        evaluation_add_change(out, r);
}

/* ---- merging and splitting ---- */

struct person_job {
        struct write_through base;
        struct persons *persons;
        struct person_change change; /* its strings are owned */
        int64_t now_ms;
        struct person_effects effects;
        person_done_fn *done;
        void *arg;
};

static int write_job(struct store_tx *tx, void *change, struct error *err)
{
        struct person_job *j = change;

        return person_change_write(tx, &j->change, j->now_ms, &j->effects, err);
}

static void apply_job(void *change)
{
        struct person_job *j = change;

        learn_effects(j->persons, &j->effects);
}

static void job_done(void *change, const struct error *err)
{
        const struct person_job *j = change;

        j->done(j->arg, &j->effects.result, err);
}

static void release_job(void *change)
{
        struct person_job *j = change;

        free((char *)j->change.a.platform);
        free((char *)j->change.a.user);
        free((char *)j->change.b.platform);
        free((char *)j->change.b.user);
        free((char *)j->change.by);
        free((char *)j->change.reason);
        person_change_release(&j->effects);
        free(j);
}

static const struct write_through_ops job_ops = { write_job, apply_job, job_done, release_job };

void persons_change(struct persons *p, const struct person_change *change, person_done_fn *done,
                    void *arg)
{
        struct person_job *j = mem_zalloc(sizeof(*j));

        j->base.ops = &job_ops;
        j->persons = p;
        j->change = *change;
        j->change.a =
                (struct identity){ mem_strdup(change->a.platform), mem_strdup(change->a.user) };
        j->change.b =
                (struct identity){ mem_strdup(change->b.platform), mem_strdup(change->b.user) };
        j->change.by = mem_strdup(change->by);
        j->change.reason = mem_strdup(change->reason);
        j->now_ms = clock_wall_ms();
        j->done = done;
        j->arg = arg;
        write_through_submit(p->store, j);
}

/* ---- opening ---- */

/* Learns the rows of one person and empties the list. */
static void flush_person(struct persons *p, struct person_identity *rows, size_t *count)
{
        learn_person(p, rows, *count);
        for (; *count > 0; --*count) {
                free((char *)rows[*count - 1].identity.platform);
                free((char *)rows[*count - 1].identity.user);
        }
}

static int read_persons(struct store_tx *tx, void *arg, struct error *err)
{
        struct persons *p = arg;
        struct person_identity rows[PERSON_MAX_IDENTITIES], row;
        struct store_stmt *s = person_row_list_all_identities(tx);
        int64_t person, into;
        size_t n = 0;
        int rc;

        while ((rc = person_row_next_identity(s, &row.identity, &row.person, err)) == 1) {
                if (n == COUNT(rows) || (n > 0 && rows[0].person != row.person))
                        flush_person(p, rows, &n);
                rows[n++] = (struct person_identity){ { mem_strdup(row.identity.platform),
                                                        mem_strdup(row.identity.user) },
                                                      row.person };
        }
        flush_person(p, rows, &n);
        if (rc < 0)
                return -1;
        s = person_row_list_all_aliases(tx);
        while ((rc = person_row_next_alias(s, &person, &into, err)) == 1)
                set_alias(p, person, into);
        return rc;
}

struct persons *persons_open(struct store *s, struct bus *b, struct error *err)
{
        struct persons *p = mem_zalloc(sizeof(*p));

        p->store = s;
        p->bus = b;
        p->seen = seen_cache_new(SEEN_MAX, SEEN_MS);
        map_init(&p->linked);
        map_init(&p->aliases);
        if (store_read_now(s, read_persons, p, err) == 0)
                return p;
        persons_free(p);
        return NULL;
}

void persons_free(struct persons *p)
{
        void *value;

        if (!p)
                return;
        for (size_t i = 0; map_each(&p->linked, &i, NULL, &value);)
                linked_free(value);
        for (size_t i = 0; map_each(&p->aliases, &i, NULL, &value);)
                free(value);
        identity_index_release(&p->identities);
        seen_cache_free(p->seen);
        map_release(&p->linked);
        map_release(&p->aliases);
        free(p);
}
