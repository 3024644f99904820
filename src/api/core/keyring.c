#include "api/core/keyring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"
#include "rows/key_row.h"

#define SECRET_CHARS   32
#define STORE_EVERY_MS 60000             /* how often last uses are stored */
#define KEEP_MS        (90 * 86400000LL) /* how long revoked keys are kept */

struct keyring {
        struct store *store;
        struct timer *uses_timer; /* stores last uses */
        struct map by_prefix;     /* → struct key */
        struct key **all;         /* by id; one reference each */
        size_t count, cap;
        LIST_HEAD(, key_write) adding; /* new keys that are being stored */
        unsigned adding_count;
        unsigned writes; /* under way; the ring is freed after the last one */
        bool used, closed;
};

/* A key that is being stored, or revoked. */
struct key_write {
        struct keyring *ring;
        LIST_ENTRY(key_write) next; /* of a new key */
        struct key *key;            /* a reference */
        char *scopes, *adapters;
        keyring_done_fn *done;
        void *arg;
};

/* ---- in memory ---- */

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
        for (size_t i = 0; i < r->count; i++)
                if (r->all[i]->id == id)
                        return r->all[i];
        return NULL;
}

struct key *keyring_by_name(const struct keyring *r, const char *name, int64_t now_ms)
{
        const struct key_write *w;

        for (size_t i = 0; i < r->count; i++)
                if (key_is_live(r->all[i], now_ms) && strcmp(r->all[i]->name, name) == 0)
                        return r->all[i];
        LIST_FOREACH(w, &r->adding, next)
                if (strcmp(w->key->name, name) == 0)
                        return w->key;
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

/* A failure is not reported: the next use is stored again. */
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

static void on_row(void *arg, const struct key_row *row)
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
        put(arg, k);
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        return key_row_each(tx, on_row, arg, err);
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
        if (r->writes == 0)
                free_ring(r);
}

/* ---- changes ---- */

static struct key_write *write_new(struct keyring *r, struct key *k, keyring_done_fn *done,
                                   void *arg)
{
        struct key_write *w = mem_zalloc(sizeof(*w));

        *w = (struct key_write){ .ring = r, .key = k, .done = done, .arg = arg };
        r->writes++;
        return w;
}

static void write_end(struct key_write *w, const struct error *err)
{
        struct keyring *r = w->ring;

        w->done(w->arg, w->key, err);
        key_unref(w->key);
        free(w->scopes);
        free(w->adapters);
        free(w);
        if (--r->writes == 0 && r->closed)
                free_ring(r);
}

static int write_added(struct store_tx *tx, void *arg, struct error *err)
{
        struct key_write *w = arg;
        struct key *k = w->key;
        char hex[SHA256_HEX_SIZE];
        struct key_row row = { .name = k->name,
                               .prefix = k->prefix,
                               .hash = crypto_hex(k->hash, sizeof(k->hash), hex),
                               .scopes = w->scopes,
                               .adapters = w->adapters,
                               .created_ms = k->created_ms,
                               .expires_ms = k->expires_ms,
                               .rate_limit = k->rate_limit };

        return key_row_add(tx, &row, &k->id, err);
}

static void on_added(void *arg, const struct error *err)
{
        struct key_write *w = arg;

        LIST_REMOVE(w, next);
        w->ring->adding_count--;
        if (!err)
                put(w->ring, key_ref(w->key));
        write_end(w, err);
}

static bool is_full(const struct keyring *r)
{
        int64_t now_ms = clock_wall_ms();
        size_t live = 0;

        for (size_t i = 0; i < r->count; i++)
                live += key_is_live(r->all[i], now_ms);
        return live + r->adding_count >= KEYRING_MAX || r->count + r->adding_count >= KEYRING_ALL;
}

int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err)
{
        char random[KEY_PREFIX_SIZE + SECRET_CHARS];
        struct key_write *w;
        struct buf scopes;

        if (is_full(r)) {
                key_unref(k);
                return error_set(err, ERR_LIMIT,
                                 "there are %zu keys already, with those that were revoked "
                                 "lately; %d may be valid",
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
        w = write_new(r, k, done, arg);
        buf_init(&scopes, 0);
        for (size_t i = 0; i < k->scope_count; i++) {
                buf_addstr(&scopes, i > 0 ? " " : "");
                key_scope_write(&scopes, &k->scopes[i]);
        }
        w->scopes = buf_take(&scopes);
        if (k->adapters)
                w->adapters = mem_strndup(k->adapters + 1, strlen(k->adapters) - 2);
        LIST_INSERT_HEAD(&r->adding, w, next);
        r->adding_count++;
        store_write(r->store, write_added, on_added, w);
        return 0;
}

static int write_revoked(struct store_tx *tx, void *arg, struct error *err)
{
        struct key_write *w = arg;

        return key_row_set_revoked(tx, w->key->id, w->key->revoked_ms, err);
}

static void on_revoked(void *arg, const struct error *err)
{
        struct key_write *w = arg;

        if (err)
                w->key->revoked_ms = 0;
        write_end(w, err);
}

void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg)
{
        k->revoked_ms = clock_wall_ms();
        store_write(r->store, write_revoked, on_revoked, write_new(r, key_ref(k), done, arg));
}
