#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "schedule/schedule_private.h"

/* ---- configuration ---- */

struct old_conf {
        struct schedule_conf conf;
        struct old_conf *before;
};

static void add_list(struct setting_list *to, const struct setting_list *from)
{
        *to = (struct setting_list){ mem_array(from->count, sizeof(char *)), from->count,
                                     from->set };
        for (size_t i = 0; i < from->count; i++)
                to->items[i] = mem_strdup(from->items[i]);
}

void schedule_set_conf(struct schedule *s, const struct schedule_conf *conf)
{
        struct old_conf *c = mem_zalloc(sizeof(*c));
        const char *zone = conf->timezone, *who = conf->operator;

        c->conf = *conf;
        c->conf.timezone = zone ? mem_strdup(zone) : NULL;
        c->conf.operator= who ? mem_strdup(who) : NULL;
        c->conf.missed = mem_strdup(conf->missed ? conf->missed : "once");
        add_list(&c->conf.quiet_hours, &conf->quiet_hours);
        c->before = s->old;
        s->old = c;
        s->conf = &c->conf;
        schedule_wake(s);
}

static void free_confs(struct schedule *s)
{
        static const struct setting *const tables[] = { schedule_settings, NULL };

        for (struct old_conf *c = s->old, *before; c; c = before) {
                before = c->before;
                settings_release(tables, &c->conf);
                free(c);
        }
}

const struct schedule_conf *schedule_get_conf(const struct schedule *s)
{
        return s->conf;
}

const char *schedule_default_zone(const struct schedule *s)
{
        return s->conf->timezone ? s->conf->timezone : s->system_zone;
}

int schedule_check_limits(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                          struct error *err)
{
        int64_t own =
                person > 0 ? schedule_row_count(tx, person, conf->pending_per_person, err) : 0;
        int64_t all = own < 0 ? -1 : schedule_row_count(tx, 0, conf->pending, err);

        if (all < 0)
                return -1;
        if (own >= conf->pending_per_person)
                return error_set(err, ERR_LIMIT,
                                 "there are %lld of them pending already, the most one person may "
                                 "have (schedule.pendingPerPerson); cancel one first",
                                 (long long)own);
        if (all >= conf->pending)
                return error_set(err, ERR_LIMIT,
                                 "%lld schedules are active already, the most there may be "
                                 "(schedule.pending)",
                                 (long long)all);
        return 0;
}

int schedule_find_request(struct store_tx *tx, const char *key, const char *hash,
                          struct schedule_row **out, struct error *err)
{
        int rc = key ? schedule_row_find(tx, key, out, err) : 0;
        json_t *options = rc == 1 && (*out)->options ? json_loads((*out)->options, 0, NULL) : NULL;
        const char *known = json_str(options, "requestHash", NULL);

        if (known && hash && strcmp(known, hash) != 0) {
                free(*out);
                *out = NULL;
                rc = error_set(err, ERR_CONFLICT,
                               "this idempotency key was used for another request");
        }
        json_decref(options);
        return rc;
}

/* ---- writes that must succeed ---- */

#define RETRY_FIRST_MS 100
#define RETRY_CAP_MS   5000

struct sure_write {
        struct schedule *schedule;
        const char *what;
        store_fn *fn;
        store_done_fn *done;
        void *arg;
        int64_t pause_ms;
        struct timer *timer; /* NULL until it has failed once */
};

static void on_written(void *arg, const struct error *err);

static int run_write(struct store_tx *tx, void *arg, struct error *err)
{
        struct sure_write *w = arg;

        return w->fn(tx, w->arg, err);
}

static void try_write(void *arg)
{
        struct sure_write *w = arg;

        store_write(w->schedule->env.store, run_write, on_written, w);
}

static void on_written(void *arg, const struct error *err)
{
        struct sure_write *w = arg;
        struct schedule *s = w->schedule;

        if (!err || s->closing) {
                s->writes--;
                w->done(w->arg, err);
                timer_free(w->timer);
                free(w);
                return;
        }
        if (w->pause_ms == RETRY_FIRST_MS)
                log_error("the store refused a write; retrying", LOG_S("write", w->what),
                          LOG_S("why", err->text));
        if (!w->timer)
                w->timer = timer_new(s->env.loop, try_write, w);
        timer_start(w->timer, w->pause_ms);
        w->pause_ms = w->pause_ms * 2 < RETRY_CAP_MS ? w->pause_ms * 2 : RETRY_CAP_MS;
}

void schedule_write(struct schedule *s, const char *what, store_fn *fn, store_done_fn *done,
                    void *arg)
{
        struct sure_write *w = mem_zalloc(sizeof(*w));

        *w = (struct sure_write){ s, what, fn, done, arg, RETRY_FIRST_MS, NULL };
        s->writes++;
        try_write(w);
}

/* ---- tools and commands ---- */

static const struct schedule_tool *const tool_tables[] = { reminder_tools, calendar_tools };
static const struct schedule_command *const command_tables[] = { reminder_commands,
                                                                 calendar_commands };

static const struct road_tool *tool_at(struct schedule *s, size_t i)
{
        (void)s;
        for (size_t k = 0; k < COUNT(tool_tables); k++)
                for (const struct schedule_tool *t = tool_tables[k]; t->tool.name; t++)
                        if (i-- == 0)
                                return &t->tool;
        return NULL;
}

struct missing_tool {
        platform_tool_fn *done;
        void *arg;
        struct error err;
};

static void on_missing_tool(void *arg)
{
        struct missing_tool *m = arg;

        m->done(m->arg, NULL, &m->err);
        free(m);
}

static void call_tool(struct schedule *s, const struct chat_caller *by, const char *tool,
                      const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        struct missing_tool *m;

        for (size_t k = 0; k < COUNT(tool_tables); k++)
                for (const struct schedule_tool *t = tool_tables[k]; t->tool.name; t++)
                        if (strcmp(t->tool.name, tool) == 0) {
                                t->call(s, by, q, done, arg);
                                return;
                        }
        m = mem_zalloc(sizeof(*m));
        m->done = done;
        m->arg = arg;
        error_set(&m->err, ERR_MISSING, "there is no tool '%.60s'", tool);
        loop_defer(s->env.loop, on_missing_tool, m);
}

static struct effect *command(struct schedule *s, const struct chat_caller *by,
                              const struct incoming *in, const char *name, const char *args)
{
        for (size_t k = 0; k < COUNT(command_tables); k++)
                for (const struct schedule_command *c = command_tables[k]; c->name; c++)
                        if (strcmp(c->name, name) == 0)
                                return c->run(s, by, in, args);
        return NULL;
}

void schedule_contract(struct schedule *s, struct road_schedule *out)
{
        *out = (struct road_schedule){
                .schedule = s, .tool_at = tool_at, .call_tool = call_tool, .command = command
        };
}

/* ---- life ---- */

struct schedule *schedule_open(const struct schedule_env *env, const struct schedule_conf *conf,
                               struct error *err)
{
        struct schedule *s = mem_zalloc(sizeof(*s));

        (void)err;
        s->env = *env;
        s->dir = mem_strdup(env->dir);
        s->env.dir = s->dir;
        TAILQ_INIT(&s->checks);
        s->system_zone = timezone_system_name();
        due_open(s);
        schedule_set_conf(s, conf);
        s->messages = tick_messages_open(s);
        s->files = event_files_open(s);
        s->calendar = calendar_open(s);
        return s;
}

void schedule_start(struct schedule *s)
{
        s->started = true;
        tick_messages_start(s);
        event_files_start(s);
        calendar_start(s);
        due_look(s);
}

void schedule_wake(struct schedule *s)
{
        if (s->started && !s->quiet)
                due_look(s);
}

void schedule_quiesce(struct schedule *s)
{
        s->quiet = true;
        timer_stop(s->timer);
}

void schedule_close(struct schedule *s)
{
        if (!s)
                return;
        s->quiet = s->closing = true;
        calendar_close(s);
        event_files_close(s);
        due_close(s);
        tick_messages_close(s);
        free_confs(s);
        free(s->dir);
        free(s->system_zone);
        free(s);
}

void schedule_get_stats(const struct schedule *s, struct schedule_stats *out)
{
        *out = s->stats;
        out->enabled = s->conf->enabled;
        out->running = s->running_count;
}
