#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/human_code.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "store/write_through.h"

#define VALID_MS  (3600 * 1000)
#define TOTAL_MAX 2000 /* codes on all adapters */

struct waiting_code {
        struct pairing p; /* its strings are owned */
        char code[HUMAN_CODE_SIZE];
        bool stored;   /* committed, so its number is known */
        bool deciding; /* the decision is being written */
};

struct pairings {
        struct store *store;
        struct access_rules *rules;
        struct map by_sender; /* adapter and sender → struct waiting_code */
};

/* ---- waiting codes ---- */

static char *sender_key(const char *adapter, const char *sender)
{
        return mem_printf("%s\n%s", adapter, sender ? sender : "");
}

static struct waiting_code *waiting_new(const struct pairing *p)
{
        struct waiting_code *w = mem_zalloc(sizeof(*w));

        w->p = *p;
        if (p->code)
                snprintf(w->code, sizeof(w->code), "%s", p->code);
        w->p.code = w->code;
        w->p.adapter = mem_strdup(p->adapter);
        w->p.platform = mem_strdup(p->platform);
        w->p.sender = mem_strdup(p->sender);
        w->p.name = mem_strdup(p->name);
        w->p.state = PAIRING_WAITING;
        w->p.by = NULL;
        return w;
}

static void waiting_free(struct waiting_code *w)
{
        if (!w)
                return;
        free((char *)w->p.adapter);
        free((char *)w->p.platform);
        free((char *)w->p.sender);
        free((char *)w->p.name);
        free(w);
}

/* Takes w; NULL: drops the sender's code. */
static void set(struct pairings *ps, const char *adapter, const char *sender,
                struct waiting_code *w)
{
        char *key = sender_key(adapter, sender);

        waiting_free(w ? map_put(&ps->by_sender, key, w) : map_remove(&ps->by_sender, key));
        free(key);
}

/* Drops expired codes; returns how many wait on this adapter. Visits all. */
static size_t sweep(struct pairings *ps, const char *adapter, int64_t now_ms)
{
        size_t n = 0;
        void *value;

        for (size_t i = 0; map_each(&ps->by_sender, &i, NULL, &value);) {
                struct waiting_code *w = value;

                if (w->p.expires_ms <= now_ms && w->stored && !w->deciding)
                        set(ps, w->p.adapter, w->p.sender, NULL);
                else if (strcmp(w->p.adapter, adapter) == 0)
                        n++;
        }
        return n;
}

/* The stored code with this number, or with these letters while undecided. */
static struct waiting_code *find(const struct pairings *ps, int64_t id, const char *code,
                                 int64_t now_ms)
{
        void *value;

        for (size_t i = 0; map_each(&ps->by_sender, &i, NULL, &value);) {
                struct waiting_code *w = value;

                if (w->stored &&
                    (code ? !w->deciding && w->p.expires_ms > now_ms && strcmp(w->code, code) == 0
                          : w->p.id == id))
                        return w;
        }
        return NULL;
}

/* ---- offering a code ---- */

/* A copy, because the code in memory may be gone when this is written. */
struct pairing_offer {
        struct write_through base;
        struct pairings *pairings;
        struct waiting_code *copy;
};

static int write_offer(struct store_tx *tx, void *change, struct error *err)
{
        struct pairing_offer *o = change;

        return pairing_row_insert(tx, &o->copy->p, &o->copy->p.id, err);
}

static void apply_offer(void *change)
{
        struct pairing_offer *o = change;

        o->copy->stored = true;
        set(o->pairings, o->copy->p.adapter, o->copy->p.sender, o->copy);
        o->copy = NULL;
}

static void release_offer(void *change)
{
        struct pairing_offer *o = change;

        waiting_free(o->copy);
        free(o);
}

static const struct write_through_ops offer_ops = { .write = write_offer,
                                                    .apply = apply_offer,
                                                    .release = release_offer };

void pairing_offer(struct evaluation *e)
{
        struct pairings *ps = e->d->policy->pairings;
        const struct incoming *in = e->in;
        size_t others = sweep(ps, in->adapter, e->now_ms);
        char *key = sender_key(in->adapter, in->sender_id), shown[HUMAN_CODE_TEXT_SIZE];
        struct waiting_code *w = map_get(&ps->by_sender, key);
        struct pairing_offer *o;

        free(key);
        if (w) {
                evaluation_refuse(e, "; their code waits for the operator (pairing)");
                return;
        }
        if (others >= PAIRING_WAITING_MAX || ps->by_sender.count >= TOTAL_MAX) {
                evaluation_refuse(e,
                                  "; no code was sent, %zu wait on this adapter already (pairing)",
                                  others);
                return;
        }
        w = waiting_new(
                &(struct pairing){ .adapter = in->adapter,
                                   .platform = e->adapter->platform,
                                   .sender = in->sender_id,
                                   .name = in->sender_name ? in->sender_name : in->sender_username,
                                   .created_ms = e->now_ms,
                                   .expires_ms = e->now_ms + VALID_MS });
        human_code_new(w->code);
        set(ps, in->adapter, in->sender_id, w);
        o = mem_zalloc(sizeof(*o));
        o->base.ops = &offer_ops;
        o->pairings = ps;
        o->copy = waiting_new(&w->p);
        evaluation_add_change(e->out, o);
        evaluation_notify(
                e,
                "I do not know you yet. To get access, give this code to the person who runs me: "
                "%s. It is valid for an hour.",
                human_code_format(w->code, shown));
        evaluation_refuse(e, "; a code was sent (pairing)");
}

/* ---- deciding ---- */

struct pairing_change {
        struct write_through base;
        struct pairings *pairings;
        struct waiting_code *subject; /* a copy; NULL: revoke by number */
        struct access_rule rule;      /* of an approval or denial */
        char *user, *by, *reason;     /* its strings */
        struct pairing result;
        pairing_done_fn *done;
        void *arg;
};

static int write_verdict(struct store_tx *tx, void *change, struct error *err)
{
        struct pairing_change *c = change;
        int rc;

        if (access_rule_row_insert(tx, &c->rule, &c->rule.id, err) < 0)
                return -1;
        c->result.rule = c->rule.id;
        rc = pairing_row_decide(tx, &c->result, err);
        if (rc == 0)
                return error_set(err, ERR_MISSING, "this code is no longer waiting");
        return rc < 0 ? -1 : 0;
}

static int write_revocation(struct store_tx *tx, void *change, struct error *err)
{
        struct pairing_change *c = change;
        int rc = pairing_row_get_rule(tx, c->result.id, &c->result.rule, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no pairing 'pair-%lld'",
                                 (long long)c->result.id);
        if (rc < 0 || (c->result.rule > 0 && access_rule_row_delete(tx, c->result.rule, err) < 0))
                return -1;
        return pairing_row_delete(tx, c->result.id, err);
}

static void apply_change(void *change)
{
        struct pairing_change *c = change;
        struct pairings *ps = c->pairings;
        const struct waiting_code *w = find(ps, c->result.id, NULL, 0);

        if (w)
                set(ps, w->p.adapter, w->p.sender, NULL);
        if (c->subject)
                access_rules_add(ps->rules, &c->rule);
        else if (c->result.rule > 0)
                access_rules_remove(ps->rules, c->result.rule);
}

static void change_done(void *change, const struct error *err)
{
        struct pairing_change *c = change;
        struct waiting_code *w = err ? find(c->pairings, c->result.id, NULL, 0) : NULL;

        if (w)
                w->deciding = false;
        if (c->done)
                c->done(c->arg, &c->result, err);
}

static void release_change(void *change)
{
        struct pairing_change *c = change;

        waiting_free(c->subject);
        free(c->user);
        free(c->by);
        free(c->reason);
        free(c);
}

static const struct write_through_ops verdict_ops = { write_verdict, apply_change, change_done,
                                                      release_change };
static const struct write_through_ops revocation_ops = { write_revocation, apply_change,
                                                         change_done, release_change };

static struct pairing_change *change_new(struct pairings *ps, const struct write_through_ops *ops,
                                         pairing_done_fn *done, void *arg)
{
        struct pairing_change *c = mem_zalloc(sizeof(*c));

        c->base.ops = ops;
        c->pairings = ps;
        c->done = done;
        c->arg = arg;
        return c;
}

void pairing_decide(struct pairings *ps, const struct pairing_verdict *v, pairing_done_fn *done,
                    void *arg)
{
        struct pairing_change *c = change_new(ps, &verdict_ops, done, arg);
        int64_t now_ms = clock_wall_ms();
        char code[HUMAN_CODE_SIZE];
        struct waiting_code *w = human_code_parse(v->code, code) ? find(ps, 0, code, now_ms) : NULL;
        const struct pairing *p;

        if (!w || access_rules_count(ps->rules) >= ACCESS_RULES_MAX) {
                if (!w)
                        error_set(&c->base.refusal, ERR_MISSING,
                                  "no such code is waiting; it may have expired or been decided");
                else
                        error_set(&c->base.refusal, ERR_LIMIT,
                                  "there are %d access rules already; delete some",
                                  ACCESS_RULES_MAX);
                write_through_submit(ps->store, c);
                return;
        }
        w->deciding = true;
        c->subject = waiting_new(&w->p);
        p = &c->subject->p;
        c->user = mem_printf("%s:%s", p->platform, p->sender);
        c->by = mem_strdup(v->by);
        c->reason = mem_printf("pairing of %s", p->name ? p->name : p->sender);
        /* approve: direct messages of this adapter, where they asked; deny: all of it */
        c->rule = (struct access_rule){ .deny = v->deny,
                                        .adapter = p->adapter,
                                        .user = c->user,
                                        .place = v->deny ? NULL : "dm",
                                        .enabled = true,
                                        .reason = c->reason,
                                        .by = c->by,
                                        .expires_ms = v->expires_ms,
                                        .created_ms = now_ms,
                                        .updated_ms = now_ms };
        c->result = *p;
        c->result.state = v->deny ? PAIRING_DENIED : PAIRING_APPROVED;
        c->result.decided_ms = now_ms;
        c->result.by = c->by;
        write_through_submit(ps->store, c);
}

void pairing_revoke(struct pairings *ps, int64_t id, pairing_done_fn *done, void *arg)
{
        struct pairing_change *c = change_new(ps, &revocation_ops, done, arg);

        c->result.id = id;
        c->result.state = "revoked";
        write_through_submit(ps->store, c);
}

/* ---- opening ---- */

static int read_waiting(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = pairing_row_list_waiting(tx, clock_wall_ms());
        struct pairing p;
        int rc;

        while ((rc = pairing_row_next(s, &p, err)) == 1) {
                struct waiting_code *w = waiting_new(&p);

                w->stored = true;
                set(arg, w->p.adapter, w->p.sender, w);
        }
        return rc;
}

struct pairings *pairings_open(struct store *s, struct access_rules *rules, struct error *err)
{
        struct pairings *ps = mem_zalloc(sizeof(*ps));

        ps->store = s;
        ps->rules = rules;
        map_init(&ps->by_sender);
        if (store_read_now(s, read_waiting, ps, err) == 0)
                return ps;
        pairings_free(ps);
        return NULL;
}

void pairings_free(struct pairings *ps)
{
        void *value;

        if (!ps)
                return;
        for (size_t i = 0; map_each(&ps->by_sender, &i, NULL, &value);)
                waiting_free(value);
        map_release(&ps->by_sender);
        free(ps);
}
