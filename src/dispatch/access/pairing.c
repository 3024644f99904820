#include "dispatch/access/pairing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/human_code.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/tx_extra.h"

#define BREAK "\x1f"

/* A code that waits, or is about to be decided. */
struct waiting {
        struct pairing r; /* its strings are this struct's own */
        char code[HUMAN_CODE_SIZE];
        bool stored;   /* its number is known */
        bool deciding; /* the operator's word is on its way to the disk */
};

struct pairings {
        struct store *store;
        struct access_rules *rules;
        struct map by_sender; /* adapter and sender → struct waiting */
};

/* ---- those who wait ---- */

static char *key_of(const char *adapter, const char *sender)
{
        return mem_printf("%s" BREAK "%s", adapter, sender ? sender : "");
}

static struct waiting *waiting_new(const struct pairing *r)
{
        struct waiting *w = mem_zalloc(sizeof(*w));

        w->r = *r;
        if (r->code)
                snprintf(w->code, sizeof(w->code), "%s", r->code);
        w->r.code = w->code;
        w->r.adapter = mem_strdup(r->adapter);
        w->r.platform = mem_strdup(r->platform);
        w->r.sender = mem_strdup(r->sender);
        w->r.name = mem_strdup(r->name);
        w->r.state = "waiting";
        w->r.by = NULL;
        return w;
}

static void waiting_free(struct waiting *w)
{
        if (!w)
                return;
        free((char *)w->r.adapter);
        free((char *)w->r.platform);
        free((char *)w->r.sender);
        free((char *)w->r.name);
        free(w);
}

static void keep(struct pairings *p, struct waiting *w)
{
        char *key = key_of(w->r.adapter, w->r.sender);

        waiting_free(map_put(&p->by_sender, key, w));
        free(key);
}

static void drop(struct pairings *p, const struct waiting *w)
{
        char *key = key_of(w->r.adapter, w->r.sender);

        if (map_get(&p->by_sender, key) == w)
                waiting_free(map_remove(&p->by_sender, key));
        free(key);
}

static bool is_over(const struct waiting *w, int64_t now_ms)
{
        return w->r.expires_ms <= now_ms && w->stored && !w->deciding;
}

/* Drops what is over; how many wait on this adapter. At most PAIRING_TOTAL_MAX are looked at. */
static size_t sweep(struct pairings *p, const char *adapter, int64_t now_ms)
{
        size_t n = 0;
        void *value;

        for (size_t i = 0; map_each(&p->by_sender, &i, NULL, &value);) {
                struct waiting *w = value;

                if (is_over(w, now_ms))
                        drop(p, w);
                else if (strcmp(w->r.adapter, adapter) == 0)
                        n++;
        }
        return n;
}

static struct waiting *find_code(const struct pairings *p, const char *code, int64_t now_ms)
{
        void *value;

        for (size_t i = 0; map_each(&p->by_sender, &i, NULL, &value);) {
                struct waiting *w = value;

                if (w->stored && !w->deciding && w->r.expires_ms > now_ms &&
                    strcmp(w->code, code) == 0)
                        return w;
        }
        return NULL;
}

/* ---- offering a code ---- */

/* What is written with the decision: a copy, because the one in memory may be gone by then. */
struct offer {
        struct pairings *pairing;
        struct waiting *copy;
        int64_t id;
};

static int write_offer(struct store_tx *tx, void *arg, struct error *err)
{
        struct offer *o = arg;
        const struct pairing *r = &o->copy->r;
        struct store_stmt *s =
                store_prepare(tx, "DELETE FROM pairings WHERE state = 'waiting' AND "
                                  "(expires_ms <= ?1 OR (adapter = ?2 AND sender = ?3))");

        store_bind_int(s, 1, r->created_ms);
        store_bind_text(s, 2, r->adapter);
        store_bind_text(s, 3, r->sender);
        if (store_run(s, err) < 0)
                return -1;
        s = store_prepare(
                tx,
                "INSERT INTO pairings(code, adapter, platform, sender, name, state, created_ms, expires_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, 'waiting', ?6, ?7)");
        store_bind_text(s, 1, r->code);
        store_bind_text(s, 2, r->adapter);
        store_bind_text(s, 3, r->platform);
        store_bind_text(s, 4, r->sender);
        store_bind_text(s, 5, r->name);
        store_bind_int(s, 6, r->created_ms);
        store_bind_int(s, 7, r->expires_ms);
        return store_insert(s, &o->id, err) < 0 ? -1 : 0;
}

static void on_offered(void *arg)
{
        struct offer *o = arg;

        o->copy->r.id = o->id;
        o->copy->stored = true;
        keep(o->pairing, o->copy);
        free(o);
}

static void write_with(struct pairings *p, const struct waiting *w, struct decision *out)
{
        struct offer *o = mem_zalloc(sizeof(*o));

        o->pairing = p;
        o->copy = waiting_new(&w->r);
        tx_extra_add(out, (struct tx_extra){ .fn = write_offer, .done = on_offered, .arg = o });
}

static void say_code(const struct waiting *w, struct buf *notice)
{
        char shown[HUMAN_CODE_TEXT_SIZE];

        buf_addf(notice,
                 "I do not know you yet. Give this code to whoever runs me, and you will be let "
                 "in: %s. It is valid for an hour.",
                 human_code_format(w->code, shown));
}

void pairing_offer(struct pairings *p, const char *platform, const struct incoming *in,
                   struct decision *out, struct pairing_words words)
{
        int64_t now_ms = clock_wall_ms();
        size_t others = sweep(p, in->adapter, now_ms);
        char *key = key_of(in->adapter, in->sender_id);
        struct waiting *w = map_get(&p->by_sender, key);

        free(key);
        if (w) {
                buf_addstr(words.why, "; a code was told, and waits for the operator (pairing)");
                return;
        }
        if (others >= PAIRING_WAITING_MAX || p->by_sender.count >= PAIRING_TOTAL_MAX) {
                buf_addf(
                        words.why,
                        "; %zu codes wait on this adapter already, no further one is told (pairing)",
                        others);
                return;
        }
        w = waiting_new(
                &(struct pairing){ .adapter = in->adapter,
                                   .platform = platform,
                                   .sender = in->sender_id,
                                   .name = in->sender_name ? in->sender_name : in->sender_username,
                                   .created_ms = now_ms,
                                   .expires_ms = now_ms + PAIRING_VALID_MS });
        human_code_new(w->code);
        keep(p, w);
        write_with(p, w, out);
        say_code(w, words.notice);
        buf_addstr(words.why, "; a code was told (pairing)");
}

/* ---- the operator's word ---- */

struct verdict {
        struct pairings *pairing;
        struct waiting *subject; /* a copy; NULL: by number */
        struct access_rule rule; /* of an approval or denial */
        char *user, *by, *reason;
        bool revoke, full; /* full: there is no room for another rule */
        int64_t id, rule_id;
        int64_t now_ms;
        pairing_done_fn *done;
        void *arg;
};

static void verdict_free(struct verdict *v)
{
        waiting_free(v->subject);
        free(v->user);
        free(v->by);
        free(v->reason);
        free(v);
}

static int write_verdict(struct store_tx *tx, struct verdict *v, struct error *err)
{
        struct store_stmt *s;

        if (access_rule_insert(tx, &v->rule, &v->rule_id, err) < 0)
                return -1;
        s = store_prepare(tx,
                          "UPDATE pairings SET state = ?2, rule = ?3, decided_ms = ?4, by_whom = ?5"
                          " WHERE id = ?1 AND state = 'waiting'");
        store_bind_int(s, 1, v->id);
        store_bind_text(s, 2, v->rule.deny ? "denied" : "approved");
        store_bind_int(s, 3, v->rule_id);
        store_bind_int(s, 4, v->now_ms);
        store_bind_text(s, 5, v->by);
        if (store_run(s, err) < 0)
                return -1;
        if (store_changes(tx) == 0)
                return error_set(err, ERR_MISSING, "this code does not wait any more");
        return 0;
}

static int write_revocation(struct store_tx *tx, struct verdict *v, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT rule FROM pairings WHERE id = ?1");
        int rc;

        store_bind_int(s, 1, v->id);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no pairing 'pair-%lld'",
                                 (long long)v->id);
        v->rule_id = store_col_int(s, 0);
        store_reset(s);
        if (v->rule_id > 0 && access_rule_remove(tx, v->rule_id, err) < 0)
                return -1;
        s = store_prepare(tx, "DELETE FROM pairings WHERE id = ?1");
        store_bind_int(s, 1, v->id);
        return store_run(s, err);
}

static int write_word(struct store_tx *tx, void *arg, struct error *err)
{
        struct verdict *v = arg;

        if (v->full)
                return error_set(err, ERR_LIMIT, "there are %d access rules already; delete some",
                                 ACCESS_RULES_MAX);
        if (v->id == 0)
                return error_set(err, ERR_MISSING,
                                 "no such code waits; it may be over, or decided already");
        return v->revoke ? write_revocation(tx, v, err) : write_verdict(tx, v, err);
}

static struct waiting *find_id(const struct pairings *p, int64_t id)
{
        void *value;

        for (size_t i = 0; map_each(&p->by_sender, &i, NULL, &value);) {
                struct waiting *w = value;

                if (w->stored && w->r.id == id)
                        return w;
        }
        return NULL;
}

static void apply(struct verdict *v, struct pairing *result)
{
        struct waiting *w = find_id(v->pairing, v->id);

        if (w)
                drop(v->pairing, w);
        result->id = v->id;
        result->rule = v->rule_id;
        if (v->revoke) {
                result->state = "revoked";
                if (v->rule_id > 0)
                        access_rules_unlearn(v->pairing->rules, v->rule_id);
                return;
        }
        result->state = v->rule.deny ? "denied" : "approved";
        result->decided_ms = v->now_ms;
        result->by = v->by;
        v->rule.id = v->rule_id;
        access_rules_learn(v->pairing->rules, &v->rule);
}

static void on_word(void *arg, const struct error *err)
{
        struct verdict *v = arg;
        struct pairing result = v->subject ? v->subject->r : (struct pairing){ 0 };
        struct waiting *w = err ? find_id(v->pairing, v->id) : NULL;

        if (w)
                w->deciding = false;
        if (!err)
                apply(v, &result);
        if (v->done)
                v->done(v->arg, &result, err);
        verdict_free(v);
}

static struct verdict *verdict_new(struct pairings *p, pairing_done_fn *done, void *arg)
{
        struct verdict *v = mem_zalloc(sizeof(*v));

        v->pairing = p;
        v->now_ms = clock_wall_ms();
        v->done = done;
        v->arg = arg;
        return v;
}

/*
 * The rule that lets him in where he asked: direct messages of this adapter; or that keeps him out
 * of it.
 */
static void make_rule(struct verdict *v, const struct pairing_decision *d)
{
        const struct pairing *r = &v->subject->r;

        v->user = mem_printf("%s:%s", r->platform, r->sender);
        v->by = mem_strdup(d->by);
        v->reason = mem_printf("pairing of %s", r->name ? r->name : r->sender);
        v->rule = (struct access_rule){ .deny = d->deny,
                                        .adapter = r->adapter,
                                        .user = v->user,
                                        .place = d->deny ? NULL : "dm",
                                        .enabled = true,
                                        .reason = v->reason,
                                        .by = v->by,
                                        .expires_ms = d->expires_ms,
                                        .created_ms = v->now_ms,
                                        .updated_ms = v->now_ms };
}

void pairing_decide(struct pairings *p, const struct pairing_decision *d, pairing_done_fn *done,
                    void *arg)
{
        struct verdict *v = verdict_new(p, done, arg);
        char code[HUMAN_CODE_SIZE];
        struct waiting *w = human_code_parse(d->code, code) ? find_code(p, code, v->now_ms) : NULL;

        v->full = w && access_rules_count(p->rules) >= ACCESS_RULES_MAX;
        if (w) {
                w->deciding = true;
                v->id = w->r.id;
                v->subject = waiting_new(&w->r);
                make_rule(v, d);
        }
        store_write(p->store, write_word, on_word, v);
}

void pairing_revoke(struct pairings *p, int64_t id, pairing_done_fn *done, void *arg)
{
        struct verdict *v = verdict_new(p, done, arg);

        v->id = id;
        v->revoke = true;
        store_write(p->store, write_word, on_word, v);
}

/* ---- reading ---- */

#define COLUMNS                                                                                              \
        "SELECT id, code, adapter, platform, sender, name, state, rule, created_ms, expires_ms, decided_ms," \
        " by_whom FROM pairings "

static struct pairing row_of(struct store_stmt *s)
{
        return (struct pairing){ .id = store_col_int(s, 0),
                                 .code = store_col_text(s, 1),
                                 .adapter = store_col_text(s, 2),
                                 .platform = store_col_text(s, 3),
                                 .sender = store_col_text(s, 4),
                                 .name = store_col_text(s, 5),
                                 .state = store_col_text(s, 6),
                                 .rule = store_col_int(s, 7),
                                 .created_ms = store_col_int(s, 8),
                                 .expires_ms = store_col_int(s, 9),
                                 .decided_ms = store_col_int(s, 10),
                                 .by = store_col_text(s, 11) };
}

int pairing_each(struct store_tx *tx, int64_t before, int64_t limit,
                 void (*each)(void *arg, const struct pairing *r), void *arg, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, COLUMNS
                "WHERE id < ?1 AND (state <> 'waiting' OR expires_ms > ?2) ORDER BY id DESC LIMIT ?3");
        int n = 0, rc;

        store_bind_int(s, 1, before);
        store_bind_int(s, 2, clock_wall_ms());
        store_bind_int(s, 3, limit);
        while ((rc = store_step(s, err)) == 1) {
                struct pairing r = row_of(s);

                each(arg, &r);
                n++;
        }
        return rc < 0 ? -1 : n;
}

static int read_waiting(struct store_tx *tx, void *arg, struct error *err)
{
        struct pairings *p = arg;
        struct store_stmt *s =
                store_prepare(tx, COLUMNS "WHERE state = 'waiting' AND expires_ms > ?1");
        int rc;

        store_bind_int(s, 1, clock_wall_ms());
        while ((rc = store_step(s, err)) == 1) {
                struct pairing r = row_of(s);
                struct waiting *w = waiting_new(&r);

                w->stored = true;
                keep(p, w);
        }
        return rc;
}

struct pairings *pairing_open(struct store *s, struct access_rules *rules, struct error *err)
{
        struct pairings *p = mem_zalloc(sizeof(*p));

        p->store = s;
        p->rules = rules;
        map_init(&p->by_sender);
        if (store_read_now(s, read_waiting, p, err) == 0)
                return p;
        pairing_free(p);
        return NULL;
}

void pairing_free(struct pairings *p)
{
        void *value;

        if (!p)
                return;
        for (size_t i = 0; map_each(&p->by_sender, &i, NULL, &value);)
                waiting_free(value);
        map_release(&p->by_sender);
        free(p);
}
