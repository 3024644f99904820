#include "platform/discord/dc_member_lookup.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/discord/dc_readback.h"

#define AT_ONCE   4     /* more would only grow old in the queue of their rate limit */
#define TRIES     8     /* about a minute, by dc_readback_wait_ms */
#define HOLDS_MS  60000 /* how long an answer does */
#define KNOWN_MAX 1000  /* beyond it the answers are forgotten; questions are not */

struct person {
        struct dc_members *members;
        char *path;
        json_t *member; /* NULL: it is being asked for */
        int64_t until_ms;
        bool idle;
        unsigned tries;
        struct timer *later; /* Discord was unwell */
        TAILQ_ENTRY(person) next;
};

struct dc_members {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_catchup_times times;
        dc_members_fn *answered;
        void *arg;
        struct map people;              /* by path */
        TAILQ_HEAD(, person) questions; /* that wait for their turn */
        unsigned asking;
};

/* ---- life ---- */

struct dc_members *dc_members_new(const struct dc_inbound_options *o,
                                  const struct dc_inbound_hooks *hooks, dc_members_fn *answered,
                                  void *arg)
{
        struct dc_members *m = mem_zalloc(sizeof(*m));

        m->adapter = o->adapter;
        m->hooks = *hooks;
        m->times = o->catchup_times;
        m->answered = answered;
        m->arg = arg;
        map_init(&m->people);
        TAILQ_INIT(&m->questions);
        return m;
}

static void person_free(struct person *p)
{
        timer_free(p->later);
        json_decref(p->member);
        free(p->path);
        free(p);
}

void dc_members_free(struct dc_members *m)
{
        const char *key;
        void *value;

        if (!m)
                return;
        for (size_t i = 0; map_each(&m->people, &i, &key, &value);)
                person_free(value);
        map_release(&m->people);
        free(m);
}

static void make_room(struct dc_members *m)
{
        const char *key;
        void *value;

        if (m->people.count < KNOWN_MAX)
                return;
        for (size_t i = 0; map_each(&m->people, &i, &key, &value);) {
                struct person *p = value;

                if (!p->member)
                        continue;
                map_remove(&m->people, p->path);
                person_free(p);
        }
}

/* ---- asking ---- */

static void on_answer(void *arg, int status, json_t *body, const char *why);

static void pump(struct dc_members *m)
{
        struct person *p;

        while (m->asking < AT_ONCE && (p = TAILQ_FIRST(&m->questions))) {
                TAILQ_REMOVE(&m->questions, p, next);
                m->asking++;
                (p->idle ? m->hooks.get_later : m->hooks.get)(m->hooks.ctx, p->path, on_answer, p);
        }
}

/* What happens now goes before what was missed. */
static void ask(struct person *p)
{
        struct dc_members *m = p->members;

        if (p->idle)
                TAILQ_INSERT_TAIL(&m->questions, p, next);
        else
                TAILQ_INSERT_HEAD(&m->questions, p, next);
        pump(m);
}

static void on_later(void *arg)
{
        ask(arg);
}

static bool asks_again(struct person *p, int status)
{
        int64_t wait = DC_UNWELL(status) && p->tries < TRIES
                               ? dc_readback_wait_ms(&p->members->times, p->tries++)
                               : -1;

        if (wait < 0)
                return false;
        if (!p->later)
                p->later = timer_new(p->members->adapter->loop, on_later, p);
        timer_start(p->later, wait);
        return true;
}

/* A new reference. */
static json_t *member_of(const struct person *p, int status, json_t *body, const char *why)
{
        if (status == 200 && json_is_array(json_object_get(body, "roles")))
                return json_incref(body);
        if (status == 404)
                return json_pack("{s:[]}", "roles");
        log_warn(
                "Discord does not say which roles somebody has; whoever blocks a role blocks them for now",
                LOG_S("adapter", p->members->adapter->name), LOG_S("member", p->path),
                LOG_S("why", why));
        return json_null();
}

/* Whoever is told may ask for others, and this one be forgotten. */
static void tell(const struct person *p)
{
        struct dc_members *m = p->members;
        json_t *member = json_incref(p->member);
        char *path = mem_strdup(p->path);

        m->answered(m->arg, path, member);
        json_decref(member);
        free(path);
}

static void on_answer(void *arg, int status, json_t *body, const char *why)
{
        struct person *p = arg;
        struct dc_members *m = p->members;

        m->asking--;
        if (!asks_again(p, status)) {
                p->member = member_of(p, status, body, why);
                p->until_ms = clock_mono_ms() + HOLDS_MS;
                tell(p);
        }
        pump(m);
}

json_t *dc_members_get(struct dc_members *m, const char *path, bool idle)
{
        struct person *p = map_get(&m->people, path);

        if (p && p->member && p->until_ms <= clock_mono_ms()) {
                map_remove(&m->people, path);
                person_free(p);
                p = NULL;
        }
        if (p)
                return p->member;
        make_room(m);
        p = mem_zalloc(sizeof(*p));
        p->members = m;
        p->path = mem_strdup(path);
        p->idle = idle;
        map_put(&m->people, path, p);
        ask(p);
        return NULL;
}
