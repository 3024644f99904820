#include "api/core/keyring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"

#define SECRET_CHARS  32
#define NOTE_EVERY_MS 60000
#define KEEP_MS       (90 * 86400000LL) /* revoked keys are shown so long */

struct keyring {
        struct store *store;
        struct timer *note;   /* when keys were used is written now and then */
        struct map by_prefix; /* → struct key, one reference each */
        struct key **all;     /* by id */
        size_t count, cap;
        LIST_HEAD(, change) arriving; /* new keys on their way to the store */
        unsigned adding;              /* how many these are */
        /* changes on their way to the store; the ring outlives them */
        unsigned changing;
        bool used, closed;
};

/* A change on its way to the store. */
struct change {
        struct keyring *ring;
        LIST_ENTRY(change) next; /* of a new key */
        struct key *key;         /* a reference */
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

static size_t live_count(const struct keyring *r)
{
        int64_t now_ms = clock_wall_ms();
        size_t n = 0;

        for (size_t i = 0; i < r->count; i++)
                n += key_is_live(r->all[i], now_ms);
        return n;
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
        const struct change *c;

        for (size_t i = 0; i < r->count; i++)
                if (key_is_live(r->all[i], now_ms) && strcmp(r->all[i]->name, name) == 0)
                        return r->all[i];
        LIST_FOREACH(c, &r->arriving, next)
                if (strcmp(c->key->name, name) == 0)
                        return c->key;
        return NULL;
}

void keyring_each(const struct keyring *r, void (*fn)(void *arg, const struct key *k), void *arg)
{
        for (size_t i = 0; i < r->count; i++)
                fn(arg, r->all[i]);
}

void keyring_used(struct keyring *r, struct key *k, int64_t now_ms)
{
        k->used_ms = now_ms;
        k->used = true;
        r->used = true;
        if (!timer_active(r->note))
                timer_start(r->note, NOTE_EVERY_MS);
}

/* ---- when they were used ---- */

struct use {
        int64_t id, used_ms;
};
struct uses {
        size_t count;
        struct use list[];
};

static int write_uses(struct store_tx *tx, void *arg, struct error *err)
{
        const struct uses *u = arg;

        for (size_t i = 0; i < u->count; i++) {
                struct store_stmt *s =
                        store_prepare(tx, "UPDATE keys SET used_ms = ?2 WHERE id = ?1");

                store_bind_int(s, 1, u->list[i].id);
                store_bind_int(s, 2, u->list[i].used_ms);
                if (store_run(s, err) < 0)
                        return -1;
        }
        return 0;
}

/* A failure is no loss worth a word: the next use is noted again. */
static void on_noted(void *arg, const struct error *err)
{
        (void)err;
        free(arg);
}

static void note_uses(void *arg)
{
        struct keyring *r = arg;
        struct uses *u;

        if (!r->used)
                return;
        u = mem_zalloc(sizeof(*u) + r->count * sizeof(u->list[0]));
        for (size_t i = 0; i < r->count; i++) {
                struct key *k = r->all[i];

                if (k->used)
                        u->list[u->count++] = (struct use){ k->id, k->used_ms };
                k->used = false;
        }
        r->used = false;
        store_write(r->store, write_uses, on_noted, u);
}

/* ---- opening ---- */

static void from_hex(const char *hex, unsigned char out[SHA256_SIZE])
{
        for (size_t i = 0; i < SHA256_SIZE; i++) {
                char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

                out[i] = (unsigned char)strtoul(pair, NULL, 16);
        }
}

static struct key *from_row(struct store_stmt *s)
{
        struct key *k = key_new(store_col_text(s, 1), store_col_text(s, 4), store_col_text(s, 5));

        k->id = store_col_int(s, 0);
        snprintf(k->prefix, sizeof(k->prefix), "%s", store_col_text(s, 2));
        from_hex(store_col_text(s, 3), k->hash);
        k->created_ms = store_col_int(s, 6);
        k->expires_ms = store_col_int(s, 7);
        k->used_ms = store_col_int(s, 8);
        k->revoked_ms = store_col_int(s, 9);
        k->rate_limit = store_col_int(s, 10);
        return k;
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT id, name, prefix, hash, scopes, adapters, created_ms, expires_ms, used_ms,"
                " revoked_ms, rate_limit FROM keys WHERE length(hash) = 64 ORDER BY id");
        int rc;

        while ((rc = store_step(s, err)) == 1)
                put(arg, from_row(s));
        return rc;
}

static int drop_old(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "DELETE FROM keys WHERE (revoked_ms > 0 AND revoked_ms < "
                                  "?1) OR (expires_ms > 0 AND expires_ms < ?1)");

        (void)arg;
        store_bind_int(s, 1, clock_wall_ms() - KEEP_MS);
        return store_run(s, err);
}

struct keyring *keyring_open(struct loop *l, struct store *s, struct error *err)
{
        struct keyring *r = mem_zalloc(sizeof(*r));

        r->store = s;
        map_init(&r->by_prefix);
        r->note = timer_new(l, note_uses, r);
        timer_unref(r->note);
        if (store_write_now(s, drop_old, NULL, err) < 0 ||
            store_read_now(s, read_all, r, err) < 0) {
                error_prefix(err, "cannot read the keys");
                keyring_free(r);
                return NULL;
        }
        return r;
}

static void end(struct keyring *r)
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
        note_uses(r);
        timer_free(r->note);
        r->closed = true;
        if (r->changing == 0)
                end(r);
}

/* ---- changes ---- */

static void begin_change(struct change *c, store_fn *fn, store_done_fn *done)
{
        c->ring->changing++;
        store_write(c->ring->store, fn, done, c);
}

static void end_change(struct change *c)
{
        struct keyring *r = c->ring;

        key_unref(c->key);
        free(c->scopes);
        free(c->adapters);
        free(c);
        if (--r->changing == 0 && r->closed)
                end(r);
}

/* "read turns:write" */
static char *scopes_text(const struct key *k)
{
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < k->scope_count; i++) {
                const struct key_scope *s = &k->scopes[i];

                buf_addf(&b, "%s%s%s%s", i > 0 ? " " : "", s->space ? s->space : "",
                         s->space ? ":" : "", route_scope_name(s->level));
        }
        return buf_take(&b);
}

static int write_new(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;
        struct key *k = c->key;
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO keys(name, prefix, hash, scopes, adapters, created_ms, expires_ms, rate_limit)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        char hex[SHA256_HEX_SIZE];

        store_bind_text(s, 1, k->name);
        store_bind_text(s, 2, k->prefix);
        store_bind_text(s, 3, crypto_hex(k->hash, sizeof(k->hash), hex));
        store_bind_text(s, 4, c->scopes);
        store_bind_text(s, 5, c->adapters);
        store_bind_int(s, 6, k->created_ms);
        store_bind_int(s, 7, k->expires_ms);
        store_bind_int(s, 8, k->rate_limit);
        return store_insert(s, &k->id, err) < 0 ? -1 : 0;
}

static void on_new(void *arg, const struct error *err)
{
        struct change *c = arg;

        LIST_REMOVE(c, next);
        c->ring->adding--;
        if (!err)
                put(c->ring, key_ref(c->key));
        c->done(c->arg, c->key, err);
        end_change(c);
}

int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err)
{
        struct change *c;
        char random[KEY_PREFIX_SIZE + SECRET_CHARS];

        if (live_count(r) + r->adding >= KEYRING_MAX || r->count + r->adding >= KEYRING_ALL) {
                key_unref(k);
                return error_set(
                        err, ERR_LIMIT,
                        "there are %zu keys already, with those that were revoked lately; %d may be valid",
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
        c = mem_zalloc(sizeof(*c));
        *c = (struct change){
                .ring = r, .key = k, .scopes = scopes_text(k), .done = done, .arg = arg
        };
        if (k->adapters)
                c->adapters = mem_strndup(k->adapters + 1, strlen(k->adapters) - 2);
        LIST_INSERT_HEAD(&r->arriving, c, next);
        r->adding++;
        begin_change(c, write_new, on_new);
        return 0;
}

static int write_revoked(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;
        struct store_stmt *s = store_prepare(tx, "UPDATE keys SET revoked_ms = ?2 WHERE id = ?1");

        store_bind_int(s, 1, c->key->id);
        store_bind_int(s, 2, c->key->revoked_ms);
        return store_run(s, err);
}

static void on_revoked(void *arg, const struct error *err)
{
        struct change *c = arg;

        if (err)
                c->key->revoked_ms = 0;
        c->done(c->arg, c->key, err);
        end_change(c);
}

void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg)
{
        struct change *c = mem_zalloc(sizeof(*c));

        k->revoked_ms = clock_wall_ms();
        *c = (struct change){ .ring = r, .key = key_ref(k), .done = done, .arg = arg };
        begin_change(c, write_revoked, on_revoked);
}
