/*
 * The registry of adapters: what the configuration names, connected, and what the road may ask of
 * it.
 */
#include "platform/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- answers that must wait for the loop ---- */

static void on_refuse(void *arg)
{
        struct adapters *as = arg;
        struct refusal *f;

        while ((f = STAILQ_FIRST(&as->refusals))) {
                STAILQ_REMOVE_HEAD(&as->refusals, next);
                if (as->road)
                        delivery_result(as->road, f->delivery, f->fence, &f->result);
                free(f);
        }
}

static void refuse(struct adapters *as, const struct delivery *d, enum send_outcome outcome,
                   enum error_kind kind, const char *why)
{
        struct refusal *f = mem_zalloc(sizeof(*f));

        snprintf(f->why, sizeof(f->why), "%s", why);
        f->delivery = d->id;
        f->fence = d->fence;
        f->result = (struct send_result){
                .outcome = outcome, .kind = kind, .why = f->why, .retry_after_ms = -1
        };
        STAILQ_INSERT_TAIL(&as->refusals, f, next);
        timer_start(as->refuse, 0);
}

void adapter_refuse(struct adapter *a, const struct delivery *d, enum send_outcome outcome,
                    enum error_kind kind, const char *why)
{
        refuse(a->all, d, outcome, kind, why);
}

/* ---- life ---- */

struct adapters *adapters_new(struct loop *l, struct http_client *http, const char *dir)
{
        struct adapters *as = mem_zalloc(sizeof(*as));

        as->loop = l;
        as->http = http;
        as->dir = mem_strdup(dir);
        map_init(&as->by_name);
        LIST_INIT(&as->events);
        STAILQ_INIT(&as->refusals);
        as->refuse = timer_new(l, on_refuse, as);
        return as;
}

void adapters_set_road(struct adapters *as, struct road *r)
{
        as->road = r;
        for (size_t i = 0; i < as->count; i++)
                as->slots[i]->adapter.road = r;
}

void adapters_set_public_url(struct adapters *as, const char *url)
{
        char *old = as->public_url;

        as->public_url = mem_strdup(url);
        for (size_t i = 0; i < as->count; i++)
                as->slots[i]->adapter.public_url = as->public_url;
        free(old);
}

void adapters_set_journal(struct adapters *as, struct store *s, struct bus *b)
{
        adapter_events_forget(as);
        as->store = s;
        as->bus = b;
}

static void slot_close(struct slot *s)
{
        if (s->open && s->adapter.ops->close)
                s->adapter.ops->close(&s->adapter);
        s->open = false;
        s->adapter.self = NULL;
        http_client_free(s->http);
        s->http = NULL;
}

static void slot_free(struct slot *s)
{
        slot_close(s);
        adapter_conf_free(s->conf);
        free(s);
}

void adapters_free(struct adapters *as)
{
        struct refusal *f;

        if (!as)
                return;
        adapters_set_journal(as, NULL, NULL);
        adapters_set_road(as, NULL);
        for (size_t i = 0; i < as->count; i++)
                slot_free(as->slots[i]);
        while ((f = STAILQ_FIRST(&as->refusals))) {
                STAILQ_REMOVE_HEAD(&as->refusals, next);
                free(f);
        }
        timer_free(as->refuse);
        map_release(&as->by_name);
        free(as->slots);
        free(as->dir);
        free(as->public_url);
        free(as);
}

/* ---- reconciling ---- */

/* Takes the conf over; the adapter must be closed. */
static void slot_use(struct slot *s, struct adapters *as, struct adapter_conf *conf)
{
        struct adapter_conf *old = s->conf;

        s->conf = conf;
        s->adapter.ops = conf->ops;
        s->adapter.name = conf->name;
        s->adapter.common = &conf->common;
        s->adapter.conf = conf->conf;
        s->adapter.all = as;
        s->adapter.loop = as->loop;
        s->adapter.http = as->http;
        s->adapter.road = as->road;
        s->adapter.dir = as->dir;
        s->adapter.public_url = as->public_url;
        adapter_conf_free(old);
}

static int choose_client(struct slot *s, struct error *err)
{
        struct adapter *a = &s->adapter;
        struct http_client_options options = { .ca_file = a->common->ca_file };

        if (!options.ca_file)
                return 0;
        a->http = s->http = http_client_new(a->loop, &options, err);
        return s->http ? 0 : -1;
}

static void slot_open(struct slot *s)
{
        struct adapter *a = &s->adapter;
        struct error err = { 0 };

        if (!a->common->enabled) {
                adapter_enter(a, ADAPTER_OFF, "not enabled");
                return;
        }
        adapter_enter(a, ADAPTER_CONNECTING, NULL);
        if (choose_client(s, &err) == 0 && a->ops->open(a, &err) == 0)
                s->open = true;
        else
                adapter_stopped(a, err.text);
}

/* A handle may stay the same while the secret behind it was rotated. */
static bool same_secrets(const struct adapter_conf *a, const struct adapter_conf *b)
{
        for (const struct setting *row = a->ops->settings; row && row->key; row++) {
                const struct secret *x, *y;

                if (row->type != SETTING_SECRET)
                        continue;
                x = *(struct secret *const *)((const char *)a->conf + row->at);
                y = *(struct secret *const *)((const char *)b->conf + row->at);
                if (!secret_equals(x, y ? secret_reveal(y) : NULL, y ? secret_length(y) : 0))
                        return false;
        }
        return true;
}

static bool same_conf(const struct adapter_conf *a, const struct adapter_conf *b)
{
        return a->ops == b->ops && json_equal(a->raw, b->raw) && same_secrets(a, b);
}

/* The confs by name; -1 when a name is there twice. */
static int index_confs(struct map *names, struct adapter_conf *const *confs, size_t count,
                       struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                if (map_put(names, confs[i]->name, confs[i]))
                        return error_set(err, ERR_INVALID, "adapter '%s' is there twice",
                                         confs[i]->name);
        }
        return 0;
}

static void drop_unwanted(struct adapters *as, const struct map *wanted)
{
        size_t kept = 0;

        for (size_t i = 0; i < as->count; i++) {
                struct slot *s = as->slots[i];

                if (map_get(wanted, s->conf->name)) {
                        as->slots[kept++] = s;
                        continue;
                }
                map_remove(&as->by_name, s->conf->name);
                slot_close(s);
                adapter_stopped(&s->adapter, "it is not configured any more");
                slot_free(s);
        }
        as->count = kept;
}

/*
 * Makes one adapter what the conf says. It is in the map before it opens: the road may ask for it
 * at once.
 */
static struct slot *settle(struct adapters *as, struct adapter_conf *conf)
{
        struct slot *s = map_get(&as->by_name, conf->name);

        if (s && same_conf(s->conf, conf)) {
                adapter_conf_free(conf);
                return s;
        }
        if (s) {
                slot_close(s);
                adapter_enter(&s->adapter, ADAPTER_OFF, "its configuration changed");
        } else {
                s = mem_zalloc(sizeof(*s));
                map_put(&as->by_name, conf->name, s);
        }
        slot_use(s, as, conf);
        slot_open(s);
        return s;
}

static void settle_all(struct adapters *as, struct adapter_conf **confs, size_t count)
{
        struct slot **slots = mem_array(count, sizeof(*slots));

        for (size_t i = 0; i < count; i++) {
                slots[i] = settle(as, confs[i]);
                confs[i] = NULL;
        }
        free(as->slots);
        as->slots = slots;
        as->count = count;
}

int adapters_apply(struct adapters *as, struct adapter_conf **confs, size_t count,
                   struct error *err)
{
        struct map wanted;
        int rc;

        map_init(&wanted);
        rc = index_confs(&wanted, confs, count, err);
        if (rc == 0) {
                drop_unwanted(as, &wanted);
                settle_all(as, confs, count);
        }
        for (size_t i = 0; i < count; i++) {
                adapter_conf_free(confs[i]);
                confs[i] = NULL;
        }
        map_release(&wanted);
        return rc;
}

struct adapter *adapters_find(struct adapters *as, const char *name)
{
        struct slot *s = map_get(&as->by_name, name);

        return s ? &s->adapter : NULL;
}

void adapters_each(struct adapters *as, void (*fn)(void *arg, struct adapter *a), void *arg)
{
        for (size_t i = 0; i < as->count; i++)
                fn(arg, &as->slots[i]->adapter);
}

/* ---- the road's hooks ---- */

unsigned adapters_abilities(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        if (!a)
                return 0;
        return a->ops->abilities ? a->ops->abilities(a) : a->ops->can;
}

bool adapters_ready(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->state == ADAPTER_UP;
}

static double chosen(double configured, double platform)
{
        return configured < 0 ? platform : configured;
}

void adapters_limits(struct adapters *as, const char *adapter, struct pace_limits *out)
{
        const struct adapter *a = adapters_find(as, adapter);

        *out = (struct pace_limits){ 0 };
        if (!a)
                return;
        *out = a->ops->pace;
        out->per_second = chosen(a->common->pace.per_second, out->per_second);
        out->per_channel_second =
                chosen(a->common->pace.per_chat_per_second, out->per_channel_second);
        out->per_channel_minute =
                chosen(a->common->pace.per_group_per_minute, out->per_channel_minute);
}

bool adapters_channel_is_group(struct adapters *as, const char *adapter, const char *channel)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->ops->is_group && a->ops->is_group(a, channel);
}

static bool mention(void *arg, struct slice name, struct buf *out)
{
        const struct adapter *a = arg;

        return a->ops->mention(a, name, out);
}

static int render(struct adapter *a, const char *text, size_t caption, struct rendered *out,
                  struct error *err)
{
        struct markdown_limits limits;
        struct markdown_parts parts;

        if (a->ops->as_written) {
                out->parts = mem_array(1, sizeof(*out->parts));
                out->parts[0].text = mem_strdup(text);
                out->count = 1;
                return 0;
        }
        limits = a->ops->text;
        limits.caption = caption;
        limits.mention = a->ops->mention && a->self ? mention : NULL;
        limits.mention_arg = a;
        if (markdown_render(text, strlen(text), &limits, &parts, err) < 0)
                return -1;
        out->parts = mem_array(parts.count, sizeof(*out->parts));
        for (; out->count < parts.count; out->count++) {
                out->parts[out->count].text = parts.items[out->count];
                parts.items[out->count] = NULL;
        }
        markdown_parts_release(&parts);
        return 0;
}

static struct adapter *find_renderer(struct adapters *as, const char *name, struct rendered *out,
                                     struct error *err)
{
        struct adapter *a = adapters_find(as, name);

        *out = (struct rendered){ 0 };
        if (!a)
                error_set(err, ERR_MISSING, "there is no adapter '%s'", name);
        return a;
}

int adapters_render(struct adapters *as, const char *adapter, const char *text,
                    struct rendered *out, struct error *err)
{
        struct adapter *a = find_renderer(as, adapter, out, err);

        return a ? render(a, text, 0, out, err) : -1;
}

int adapters_caption(struct adapters *as, const char *adapter, const char *text,
                     struct rendered *out, struct error *err)
{
        struct adapter *a = find_renderer(as, adapter, out, err);

        return a ? render(a, text, a->ops->text.caption, out, err) : -1;
}

void adapters_send(struct adapters *as, const struct delivery *d)
{
        struct adapter *a = adapters_find(as, d->adapter);
        const char *wrong = !a                       ? "is not configured"
                            : a->state != ADAPTER_UP ? "is not connected"
                            : !a->ops->send          ? "cannot send"
                                                     : NULL;
        char why[200];

        if (!wrong) {
                a->ops->send(a, d);
                return;
        }
        snprintf(why, sizeof(why), "adapter '%.100s' %s", d->adapter, wrong);
        refuse(as, d, a && a->state == ADAPTER_UP ? SEND_REJECTED : SEND_RETRY, ERR_NET, why);
}

void adapters_reconcile(struct adapters *as, const struct delivery *d)
{
        struct adapter *a = adapters_find(as, d->adapter);
        char why[200];

        if (a && a->state == ADAPTER_UP && a->ops->reconcile) {
                a->ops->reconcile(a, d);
                return;
        }
        snprintf(why, sizeof(why), "adapter '%.100s' cannot find out whether the message arrived",
                 d->adapter);
        refuse(as, d, SEND_UNSURE, ERR_NET, why);
}

struct unrecalled {
        channel_history_fn *done;
        void *arg;
        struct error err;
};

static void on_unrecalled(void *arg)
{
        struct unrecalled *u = arg;

        u->done(u->arg, NULL, 0, &u->err);
        free(u);
}

void adapters_channel_history(struct adapters *as, const char *adapter, const char *channel,
                              const char *thread, unsigned limit, channel_history_fn *done,
                              void *arg)
{
        struct adapter *a = adapters_find(as, adapter);
        struct unrecalled *u;

        if (a && a->state == ADAPTER_UP && a->ops->channel_history) {
                a->ops->channel_history(a, channel, thread, limit, done, arg);
                return;
        }
        u = mem_zalloc(sizeof(*u));
        u->done = done;
        u->arg = arg;
        if (a && a->ops->channel_history)
                error_set(&u->err, ERR_NET, "adapter '%s' is not connected", adapter);
        else
                error_set(&u->err, ERR_INVALID,
                          "adapter '%s' cannot read what was said in a channel", adapter);
        loop_defer(as->loop, on_unrecalled, u);
}

const char *adapters_thread_at(struct adapters *as, const struct incoming *in)
{
        const struct adapter *a = adapters_find(as, in->adapter);

        return a && a->ops->thread_at ? a->ops->thread_at(a, in) : NULL;
}
