/* Registry of adapters: opens and closes them as configured, and serves the road. */
#include "platform/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/attachment_fetch.h"
#include "platform/card_text.h"

struct adapter_entry {
        struct adapter adapter; /* first: platforms know only this part */
        struct adapter_conf *conf;
        struct http_client *http; /* its own, with caFile; NULL: the shared one */
        bool open;                /* ops->open worked, ops->close is due */
};

/* ---- deliveries that cannot begin ---- */

/* Reported from the loop. */
struct refused_delivery {
        int64_t delivery, fence;
        struct send_result result;
        char why[200];
        STAILQ_ENTRY(refused_delivery) next;
};

static void on_refuse(void *arg)
{
        struct adapters *as = arg;
        struct refused_delivery *f;

        while ((f = STAILQ_FIRST(&as->refused))) {
                STAILQ_REMOVE_HEAD(&as->refused, next);
                delivery_result(as->road, f->delivery, f->fence, &f->result);
                free(f);
        }
}

static void refuse(struct adapters *as, const struct delivery *d, enum send_outcome outcome,
                   enum error_kind kind, const char *why)
{
        struct refused_delivery *f = mem_zalloc(sizeof(*f));

        snprintf(f->why, sizeof(f->why), "%s", why);
        f->delivery = d->id;
        f->fence = d->fence;
        f->result = (struct send_result){
                .outcome = outcome, .kind = kind, .why = f->why, .retry_after_ms = -1
        };
        STAILQ_INSERT_TAIL(&as->refused, f, next);
        timer_start(as->refuse, 0);
}

void adapter_refuse(struct adapter *a, const struct delivery *d, enum send_outcome outcome,
                    enum error_kind kind, const char *why)
{
        refuse(a->all, d, outcome, kind, why);
}

/* ---- opening and closing ---- */

struct adapters *adapters_new(struct loop *l, struct http_client *http, const char *dir)
{
        struct adapters *as = mem_zalloc(sizeof(*as));

        as->loop = l;
        as->http = http;
        as->dir = mem_strdup(dir);
        map_init(&as->by_name);
        map_init(&as->known_chats);
        LIST_INIT(&as->events);
        STAILQ_INIT(&as->refused);
        as->refuse = timer_new(l, on_refuse, as);
        as->attachments = attachment_files_new(l, dir);
        return as;
}

void adapters_set_road(struct adapters *as, struct road *r)
{
        as->road = r;
        for (size_t i = 0; i < as->count; i++)
                as->entries[i]->adapter.road = r;
}

void adapters_set_public_url(struct adapters *as, const char *url)
{
        char *old = as->public_url;

        as->public_url = mem_strdup(url);
        for (size_t i = 0; i < as->count; i++)
                as->entries[i]->adapter.public_url = as->public_url;
        free(old);
}

void adapters_set_journal(struct adapters *as, struct store *s, struct bus *b)
{
        adapter_events_forget(as);
        as->store = s;
        as->bus = b;
        for (size_t i = 0; i < as->count; i++)
                as->entries[i]->adapter.store = s;
}

void adapters_set_attachment_limits(struct adapters *as, const struct attachment_limits *limits)
{
        attachment_files_set_limits(as->attachments, limits);
}

static void entry_close(struct adapter_entry *e)
{
        attachment_queue_free(e->adapter.files);
        e->adapter.files = NULL;
        if (e->open && e->adapter.ops->close)
                e->adapter.ops->close(&e->adapter);
        e->open = false;
        e->adapter.self = NULL;
        http_client_free(e->http);
        e->http = NULL;
}

void adapters_free(struct adapters *as)
{
        struct refused_delivery *f;

        if (!as)
                return;
        adapters_set_journal(as, NULL, NULL);
        adapters_set_road(as, NULL);
        for (size_t i = 0; i < as->count; i++) /* one may look at the others while it closes */
                entry_close(as->entries[i]);
        for (size_t i = 0; i < as->count; i++) {
                adapter_conf_free(as->entries[i]->conf);
                free(as->entries[i]);
        }
        while ((f = STAILQ_FIRST(&as->refused))) {
                STAILQ_REMOVE_HEAD(&as->refused, next);
                free(f);
        }
        timer_free(as->refuse);
        attachment_files_free(as->attachments);
        chat_threads_forget(as);
        map_release(&as->known_chats);
        map_release(&as->by_name);
        free(as->entries);
        free(as->dir);
        free(as->public_url);
        free(as);
}

/* Takes the conf over and connects. The adapter must be closed. */
static void entry_open(struct adapter_entry *e, struct adapters *as, struct adapter_conf *conf)
{
        struct http_client_options options = { .ca_file = conf->common.ca_file };
        struct adapter *a = &e->adapter;
        struct adapter_conf *old = e->conf;
        struct error err = { 0 };

        e->conf = conf;
        a->ops = conf->ops;
        a->name = conf->name;
        a->common = &conf->common;
        a->conf = conf->conf;
        a->all = as;
        a->loop = as->loop;
        a->http = as->http;
        a->road = as->road;
        a->store = as->store;
        a->dir = as->dir;
        a->public_url = as->public_url;
        a->failures = 0;
        a->trouble[0] = '\0';
        adapter_conf_free(old);
        if (!a->common->enabled) {
                adapter_enter(a, ADAPTER_OFF, "not enabled");
                return;
        }
        adapter_enter(a, ADAPTER_CONNECTING, NULL);
        if (options.ca_file)
                a->http = e->http = http_client_new(a->loop, &options, &err);
        e->open = (e->http || !options.ca_file) && a->ops->open(a, &err) == 0;
        if (!e->open)
                adapter_stopped(a, err.text);
        else if (a->ops->files)
                a->files = attachment_queue_new(a, as->attachments);
}

/* ---- a new configuration ---- */

/* A secret may have been rotated under an unchanged handle. */
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

static void drop_unwanted(struct adapters *as, const struct map *wanted)
{
        size_t kept = 0;

        for (size_t i = 0; i < as->count; i++)
                if (!map_get(wanted, as->entries[i]->conf->name))
                        entry_close(as->entries[i]);
        for (size_t i = 0; i < as->count; i++) {
                struct adapter_entry *e = as->entries[i];

                if (map_get(wanted, e->conf->name)) {
                        as->entries[kept++] = e;
                        continue;
                }
                map_remove(&as->by_name, e->conf->name);
                adapter_stopped(&e->adapter, "removed from the configuration");
                adapter_conf_free(e->conf);
                free(e);
        }
        as->count = kept;
}

/*
 * Opens or restarts an adapter unless nothing changed. One that stopped is opened in any case: what
 * was wrong may have been put right on the platform. Maps it first: the road may ask at once.
 */
static struct adapter_entry *apply_one(struct adapters *as, struct adapter_conf *conf)
{
        struct adapter_entry *e = map_get(&as->by_name, conf->name);

        if (e && e->conf->ops == conf->ops && json_equal(e->conf->raw, conf->raw) &&
            same_secrets(e->conf, conf) && e->adapter.state != ADAPTER_STOPPED) {
                adapter_conf_free(conf);
                return e;
        }
        if (e) {
                entry_close(e);
                adapter_enter(&e->adapter, ADAPTER_OFF, "the configuration was reloaded");
        } else {
                e = mem_zalloc(sizeof(*e));
                map_put(&as->by_name, conf->name, e);
        }
        entry_open(e, as, conf);
        return e;
}

int adapters_apply(struct adapters *as, struct adapter_conf **confs, size_t count,
                   struct error *err)
{
        struct adapter_entry **entries;
        struct map wanted;
        int rc = 0;

        map_init(&wanted);
        for (size_t i = 0; rc == 0 && i < count; i++)
                if (map_put(&wanted, confs[i]->name, confs[i]))
                        rc = error_set(err, ERR_INVALID, "two adapters have the name '%s'",
                                       confs[i]->name);
        if (rc == 0) {
                drop_unwanted(as, &wanted);
                entries = mem_array(count, sizeof(struct adapter_entry *));
                for (size_t i = 0; i < count; i++) {
                        entries[i] = apply_one(as, confs[i]);
                        confs[i] = NULL;
                }
                free(as->entries);
                as->entries = entries;
                as->count = count;
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
        struct adapter_entry *e = map_get(&as->by_name, name);

        return e ? &e->adapter : NULL;
}

struct adapter *adapters_at(struct adapters *as, size_t i)
{
        return i < as->count ? &as->entries[i]->adapter : NULL;
}

void adapters_each(struct adapters *as, void (*fn)(void *arg, struct adapter *a), void *arg)
{
        for (size_t i = 0; i < as->count; i++)
                fn(arg, &as->entries[i]->adapter);
}

/* ---- called by the road ---- */

unsigned adapters_abilities(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        if (!a)
                return 0;
        return a->ops->abilities ? a->ops->abilities(a) : a->ops->can;
}

int64_t adapters_upload_max(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a ? a->ops->upload_max : 0;
}

const char *adapters_command_prefix(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a ? a->ops->command_prefix : NULL;
}

const char *adapters_user_link(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a ? a->ops->user_link : NULL;
}

int64_t adapters_draft_ms(struct adapters *as, const char *adapter, const char *channel,
                          const char *thread)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->self && a->ops->draft_ms ? a->ops->draft_ms(a, channel, thread) : 0;
}

bool adapters_shows_typing(struct adapters *as, const char *adapter, const char *channel,
                           const char *thread)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->self && (!a->ops->shows_typing || a->ops->shows_typing(a, channel, thread));
}

bool adapters_ready(struct adapters *as, const char *adapter)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->state == ADAPTER_UP;
}

void adapters_limits(struct adapters *as, const char *adapter, struct pace_limits *out)
{
        const struct adapter *a = adapters_find(as, adapter);

        *out = a ? a->ops->pace : (struct pace_limits){ 0 };
        if (a && a->common->pace.per_second >= 0)
                out->per_second = a->common->pace.per_second;
        if (a && a->common->pace.per_chat_per_second >= 0)
                out->per_channel_second = a->common->pace.per_chat_per_second;
        if (a && a->common->pace.per_group_per_minute >= 0)
                out->per_channel_minute = a->common->pace.per_group_per_minute;
}

bool adapters_channel_is_group(struct adapters *as, const char *adapter, const char *channel)
{
        const struct adapter *a = adapters_find(as, adapter);

        return a && a->ops->is_group && a->ops->is_group(a, channel);
}

const char *adapters_thread_at(struct adapters *as, const struct incoming *in)
{
        const struct adapter *a = adapters_find(as, in->adapter);

        return a && a->ops->thread_at ? a->ops->thread_at(a, in) : NULL;
}

static bool mention(void *arg, struct slice name, struct buf *out)
{
        const struct adapter *a = arg;

        return a->ops->mention(a, name, out);
}

static int render(struct adapter *a, const char *text, bool caption, struct rendered *out,
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
        if (!caption)
                limits.caption = 0;
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

int adapters_render(struct adapters *as, const char *name, const char *text, bool caption,
                    struct rendered *out, struct error *err)
{
        struct adapter *a = adapters_find(as, name);

        *out = (struct rendered){ 0 };
        if (!a)
                return error_set(err, ERR_MISSING, "there is no adapter '%s'", name);
        return render(a, text, caption, out, err);
}

/* Adds the card below the last part, or as a message of its own if little room is left there. */
static void add_card(const struct adapter *a, const struct card *card, struct rendered *out)
{
        struct markdown_limits limits = a->ops->text;
        char *last = out->count > 0 ? out->parts[out->count - 1].text : NULL, *shown;
        size_t taken = last ? utf8_length(last, strlen(last), limits.unit) + 2 : 0;
        bool joins = last && (limits.max == 0 || taken < limits.max / 2);

        if (joins && limits.max > 0)
                limits.max -= taken;
        shown = a->ops->as_written ? card_text_markdown(card) : card_text_message(card, &limits);
        if (joins) {
                out->parts[out->count - 1].text = mem_printf("%s\n\n%s", last, shown);
                free(last);
                free(shown);
                return;
        }
        out->parts = mem_realloc(out->parts, (out->count + 1) * sizeof(*out->parts));
        out->parts[out->count++] = (struct rendered_part){ .text = shown };
}

int adapters_render_card(struct adapters *as, const char *name, const char *text,
                         const struct card *card, struct rendered *out, struct error *err)
{
        struct adapter *a = adapters_find(as, name);

        *out = (struct rendered){ 0 };
        if (!a)
                return error_set(err, ERR_MISSING, "there is no adapter '%s'", name);
        if (text && render(a, text, false, out, err) < 0)
                return -1;
        add_card(a, card, out);
        return 0;
}

void adapters_send(struct adapters *as, const struct delivery *d)
{
        struct adapter *a = adapters_find(as, d->adapter);
        const char *wrong = !a                       ? "is not configured"
                            : a->state != ADAPTER_UP ? "is not connected"
                            : !a->ops->send          ? "cannot send"
                            : d->kind == DELIVER_CALENDAR && !(a->ops->can & ADAPTER_CALENDAR)
                                    ? "has no calendar" /* it was of another type */
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

enum unsure_policy adapters_when_unsure(struct adapters *as, const char *adapter,
                                        const struct setting_list **admins)
{
        struct adapter *a = adapters_find(as, adapter);

        *admins = a ? &a->common->admins : NULL;
        return a && a->ops->when_unsure ? a->ops->when_unsure(a) : UNSURE_REPORT;
}

void adapters_read_from(struct adapters *as, const struct delivery *d, char *out, size_t size)
{
        struct adapter *a = adapters_find(as, d->adapter);

        out[0] = '\0';
        if (a && a->state == ADAPTER_UP && a->ops->read_from)
                a->ops->read_from(a, d, out, size);
}

/* ---- lookups ---- */

struct failed_history {
        channel_history_fn *done;
        void *arg;
        struct error err;
};

static void on_failed_history(void *arg)
{
        struct failed_history *f = arg;

        f->done(f->arg, NULL, 0, &f->err);
        free(f);
}

static void fail_history(struct adapters *as, const char *adapter, bool can,
                         channel_history_fn *done, void *arg)
{
        struct failed_history *f = mem_zalloc(sizeof(*f));

        f->done = done;
        f->arg = arg;
        if (can)
                error_set(&f->err, ERR_NET, "adapter '%s' is not connected", adapter);
        else
                error_set(&f->err, ERR_INVALID, "adapter '%s' cannot read a channel's history",
                          adapter);
        loop_defer(as->loop, on_failed_history, f);
}

void adapters_channel_history(struct adapters *as, const char *adapter, const char *channel,
                              const char *thread, unsigned limit, channel_history_fn *done,
                              void *arg)
{
        struct adapter *a = adapters_find(as, adapter);

        if (a && a->state == ADAPTER_UP && a->ops->channel_history)
                a->ops->channel_history(a, channel, thread, limit, done, arg);
        else
                fail_history(as, adapter, a && a->ops->channel_history, done, arg);
}

void adapters_message(struct adapters *as, const char *adapter, const char *channel,
                      const char *thread, const char *id, channel_history_fn *done, void *arg)
{
        struct adapter *a = adapters_find(as, adapter);

        if (a && a->state == ADAPTER_UP && a->ops->message)
                a->ops->message(a, channel, thread, id, done, arg);
        else
                fail_history(as, adapter, a && a->ops->message, done, arg);
}

static int fail_lookup(const struct adapter *a, const char *name, bool can, const char *what,
                       struct error *err)
{
        if (!a)
                return error_set(err, ERR_MISSING, "there is no adapter '%s'", name);
        if (!can)
                return error_set(err, ERR_MISSING, "platform '%s' cannot look up %s", a->ops->name,
                                 what);
        return error_set(err, ERR_NET, "adapter '%s' is not connected", name);
}

int adapters_channel_info(struct adapters *as, const char *adapter, const char *channel,
                          channel_info_fn *done, void *arg, struct error *err)
{
        struct adapter *a = adapters_find(as, adapter);

        if (!a || !a->ops->channel_info || a->state != ADAPTER_UP)
                return fail_lookup(a, adapter, a && a->ops->channel_info, "channels", err);
        return a->ops->channel_info(a, channel, done, arg, err);
}

int adapters_user_info(struct adapters *as, const char *adapter, const char *user,
                       user_info_fn *done, void *arg, struct error *err)
{
        struct adapter *a = adapters_find(as, adapter);

        if (!a || !a->ops->user_info || a->state != ADAPTER_UP)
                return fail_lookup(a, adapter, a && a->ops->user_info, "users", err);
        return a->ops->user_info(a, user, done, arg, err);
}
