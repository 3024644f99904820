#include "api/core/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"
#include "rows/key_row.h"
#include "store/write_through.h"

#define SECRET_CHARS   32
#define STORE_EVERY_MS 60000             /* for last uses */
#define KEEP_MS        (90 * 86400000LL) /* revoked keys */

struct keyring {
        struct store *store;
        struct timer *uses_timer; /* stores last uses */
        struct map by_prefix;     /* → struct key */
        struct key **all;         /* by id; one reference each */
        size_t count, cap;
        LIST_HEAD(, key_change) adding; /* new keys being stored */
        unsigned adding_count;
        unsigned changes; /* in flight; the last frees a closed ring */
        bool used, closed;
};

struct key_change {
        struct write_through base;
        struct keyring *ring;
        LIST_ENTRY(key_change) next; /* of a new key */
        struct key *key;             /* a reference */
        char *scopes, *adapters, *agents;
        keyring_done_fn *done;
        void *arg;
};

/* ---- keys in memory ---- */

static void put(struct keyring *r, struct key *k)
{
        if (r->count == r->cap) {
                r->cap = r->cap ? r->cap * 2 : 16;
                r->all = mem_realloc(r->all, r->cap * sizeof(struct key *));
        }
        r->all[r->count++] = k;
        map_put(&r->by_prefix, k->prefix, k);
}

struct key *keyring_find(const struct keyring *r, const char *text,
                         const unsigned char hash[SHA256_SIZE])
{
        char prefix[KEY_PREFIX_SIZE];
        size_t n = strnlen(text, KEYRING_TEXT_SIZE);
        struct key *k;

        if (n < KEY_PREFIX_SIZE || n == KEYRING_TEXT_SIZE)
                return NULL;
        memcpy(prefix, text, sizeof(prefix) - 1);
        prefix[sizeof(prefix) - 1] = '\0';
        k = map_get(&r->by_prefix, prefix);
        return k && crypto_equal(hash, SHA256_SIZE, k->hash, sizeof(k->hash)) ? k : NULL;
}

struct key *keyring_by_id(const struct keyring *r, int64_t id)
{
        size_t low = 0, high = r->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (r->all[middle]->id == id)
                        return r->all[middle];
                if (r->all[middle]->id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

struct key *keyring_by_name(const struct keyring *r, const char *name, int64_t now_ms)
{
        const struct key_change *c;

        for (size_t i = 0; i < r->count; i++)
                if (key_is_live(r->all[i], now_ms) && strcmp(r->all[i]->name, name) == 0)
                        return r->all[i];
        LIST_FOREACH(c, &r->adding, next)
                if (strcmp(c->key->name, name) == 0)
                        return c->key;
        return NULL;
}

const struct key *const *keyring_all(const struct keyring *r, size_t *count)
{
        *count = r->count;
        return (const struct key *const *)r->all;
}

/* ---- last uses ---- */

struct key_uses {
        size_t count;
        struct {
                int64_t id, used_ms;
        } list[];
};

static int write_uses(struct store_tx *tx, void *arg, struct error *err)
{
        const struct key_uses *u = arg;

        for (size_t i = 0; i < u->count; i++)
                if (key_row_set_used(tx, u->list[i].id, u->list[i].used_ms, err) < 0)
                        return -1;
        return 0;
}

/* Ignores failures: the next use is stored again. */
static void on_uses_written(void *arg, const struct error *err)
{
        (void)err;
        free(arg);
}

static void store_uses(void *arg)
{
        struct keyring *r = arg;
        struct key_uses *u;

        if (!r->used)
                return;
        u = mem_zalloc(sizeof(*u) + r->count * sizeof(u->list[0]));
        for (size_t i = 0; i < r->count; i++) {
                struct key *k = r->all[i];

                if (k->used) {
                        u->list[u->count].id = k->id;
                        u->list[u->count++].used_ms = k->used_ms;
                }
                k->used = false;
        }
        r->used = false;
        store_write(r->store, write_uses, on_uses_written, u);
}

void keyring_used(struct keyring *r, struct key *k, int64_t now_ms)
{
        k->used_ms = now_ms;
        k->used = true;
        r->used = true;
        if (!timer_active(r->uses_timer))
                timer_start(r->uses_timer, STORE_EVERY_MS);
}

/* ---- opening and closing ---- */

static struct key *key_of(const struct key_row *row)
{
        struct key *k = key_new(row->name, row->scopes, row->adapters);

        k->id = row->id;
        snprintf(k->prefix, sizeof(k->prefix), "%s", row->prefix);
        for (size_t i = 0; i < SHA256_SIZE; i++) {
                char hex[3] = { row->hash[2 * i], row->hash[2 * i + 1], '\0' };

                k->hash[i] = (unsigned char)strtoul(hex, NULL, 16);
        }
        k->created_ms = row->created_ms;
        k->expires_ms = row->expires_ms;
        k->used_ms = row->used_ms;
        k->revoked_ms = row->revoked_ms;
        k->rate_limit = row->rate_limit;
        k->made_by = row->made_by;
        key_set_agents(k, row->agents);
        return k;
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = key_row_list(tx);
        struct key_row row;
        int rc;

        while ((rc = key_row_next(s, &row, err)) == 1)
                put(arg, key_of(&row));
        return rc;
}

static int delete_ended(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return key_row_delete_ended(tx, clock_wall_ms() - KEEP_MS, err);
}

struct keyring *keyring_open(struct loop *l, struct store *s, struct error *err)
{
        struct keyring *r = mem_zalloc(sizeof(*r));

        r->store = s;
        map_init(&r->by_prefix);
        r->uses_timer = timer_new(l, store_uses, r);
        timer_unref(r->uses_timer);
        if (store_write_now(s, delete_ended, NULL, err) < 0 ||
            store_read_now(s, read_all, r, err) < 0) {
                error_prefix(err, "cannot read the keys");
                keyring_free(r);
                return NULL;
        }
        return r;
}

static void free_ring(struct keyring *r)
{
        for (size_t i = 0; i < r->count; i++)
                key_unref(r->all[i]);
        free(r->all);
        map_release(&r->by_prefix);
        free(r);
}

void keyring_free(struct keyring *r)
{
        if (!r)
                return;
        store_uses(r);
        timer_free(r->uses_timer);
        r->closed = true;
        if (r->changes == 0)
                free_ring(r);
}

/* ---- changes ---- */

static void revoke_if_made_by_revoked(struct keyring *r, struct key *k);

static int write_added(struct store_tx *tx, void *change, struct error *err)
{
        struct key_change *c = change;
        struct key *k = c->key;
        char hex[SHA256_HEX_SIZE];
        struct key_row row = { .name = k->name,
                               .prefix = k->prefix,
                               .hash = crypto_hex(k->hash, sizeof(k->hash), hex),
                               .scopes = c->scopes,
                               .adapters = c->adapters,
                               .agents = c->agents,
                               .made_by = k->made_by,
                               .created_ms = k->created_ms,
                               .expires_ms = k->expires_ms,
                               .rate_limit = k->rate_limit };

        return key_row_insert(tx, &row, &k->id, err);
}

static void apply_added(void *change)
{
        struct key_change *c = change;

        put(c->ring, key_ref(c->key));
}

static void on_added(void *change, const struct error *err)
{
        struct key_change *c = change;

        LIST_REMOVE(c, next);
        c->ring->adding_count--;
        c->done(c->arg, c->key, err);
        if (!err)
                revoke_if_made_by_revoked(c->ring, c->key);
}

static int write_revoked(struct store_tx *tx, void *change, struct error *err)
{
        struct key_change *c = change;

        return key_row_set_revoked(tx, c->key->id, c->key->revoked_ms, err);
}

/* Already refused since keyring_revoke. */
static void apply_revoked(void *change)
{
        (void)change;
}

static void on_revoked(void *change, const struct error *err)
{
        struct key_change *c = change;

        if (err)
                c->key->revoked_ms = 0;
        if (c->done)
                c->done(c->arg, c->key, err);
}

static void release_change(void *change)
{
        struct key_change *c = change;
        struct keyring *r = c->ring;

        key_unref(c->key);
        free(c->scopes);
        free(c->adapters);
        free(c->agents);
        free(c);
        if (--r->changes == 0 && r->closed)
                free_ring(r);
}

static struct key_change *change_new(struct keyring *r, struct key *k,
                                     const struct write_through_ops *ops, keyring_done_fn *done,
                                     void *arg)
{
        struct key_change *c = mem_zalloc(sizeof(*c));

        c->base.ops = ops;
        c->ring = r;
        c->key = k;
        c->done = done;
        c->arg = arg;
        r->changes++;
        return c;
}

int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err)
{
        static const struct write_through_ops ops = { write_added, apply_added, on_added,
                                                      release_change };
        char random[KEY_PREFIX_SIZE + SECRET_CHARS];
        size_t live = r->adding_count;
        struct key_change *c;
        struct buf scopes;

        for (size_t i = 0; i < r->count; i++)
                live += key_is_live(r->all[i], clock_wall_ms());
        if (live >= KEYRING_MAX || r->count + r->adding_count >= KEYRING_ALL) {
                key_unref(k);
                return error_set(err, ERR_LIMIT,
                                 "there are %zu keys, including recently revoked ones; at most "
                                 "%d may be valid",
                                 r->count, KEYRING_MAX);
        }
        do {
                snprintf(text, KEYRING_TEXT_SIZE, KEY_PREFIX "%s",
                         id_random_text(random,
                                        KEY_PREFIX_SIZE - sizeof(KEY_PREFIX) + SECRET_CHARS));
                snprintf(k->prefix, sizeof(k->prefix), "%.*s", KEY_PREFIX_SIZE - 1, text);
        } while (map_get(&r->by_prefix, k->prefix));
        explicit_bzero(random, sizeof(random));
        crypto_sha256(text, strlen(text), k->hash);
        c = change_new(r, k, &ops, done, arg);
        buf_init(&scopes, 0);
        for (size_t i = 0; i < k->scope_count; i++) {
                buf_addstr(&scopes, i > 0 ? " " : "");
                key_scope_write(&scopes, &k->scopes[i]);
        }
        c->scopes = buf_take(&scopes);
        if (k->adapters)
                c->adapters = mem_strndup(k->adapters + 1, strlen(k->adapters) - 2);
        if (k->agents)
                c->agents = mem_strndup(k->agents + 1, strlen(k->agents) - 2);
        LIST_INSERT_HEAD(&r->adding, c, next);
        r->adding_count++;
        write_through_submit(r->store, c);
        return 0;
}

static void revoke_one(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg)
{
        static const struct write_through_ops ops = { write_revoked, apply_revoked, on_revoked,
                                                      release_change };

        k->revoked_ms = clock_wall_ms();
        write_through_submit(r->store, change_new(r, key_ref(k), &ops, done, arg));
}

static void revoke_if_made_by_revoked(struct keyring *r, struct key *k)
{
        const struct key *maker = k->made_by > 0 ? keyring_by_id(r, k->made_by) : NULL;

        if (maker && maker->revoked_ms > 0 && k->revoked_ms == 0)
                revoke_one(r, k, NULL, NULL);
}

void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg)
{
        revoke_one(r, k, done, arg);
        /* makers come before the keys they made, so one pass finds the whole family */
        for (size_t i = 0; i < r->count; i++)
                revoke_if_made_by_revoked(r, r->all[i]);
}
