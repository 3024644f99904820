/*
 * Assistant threads, and the status of threads ("is working…").
 *
 * The road says that somebody types every few seconds while a turn runs. In a thread that becomes a
 * status, repeated before Slack drops it. A message of ours ends it; after an edit, and when the
 * turn ends without words, it is cleared. Where Slack has no status nothing is shown, which is
 * remembered. All of this is decoration: it is not stored, and losing it does no harm.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/slack/sl_send.h"

#define WORKING    "is working…"
#define REPEAT_MS  90000 /* Slack drops a status after two minutes */
#define IDLE_MS    12000 /* without typing: the turn has ended */
#define STATUS_MAX 1000  /* threads */
#define NEW_MAX    1000  /* threads without a title */
#define TITLE_MAX  60    /* code points */
#define CALL_MS    5000
#define PROMPTS_MS 600000 /* not more often in one DM */

/* A thread in which somebody works. */
struct sl_status {
        char *channel, *thread;
        int64_t typed_ms; /* monotonic, the last time */
        int64_t set_ms;   /* 0: none is set */
        bool over;        /* a message shows it better, or Slack refuses */
};

struct sl_assistant {
        struct map threads; /* "CHANNEL THREAD" -> struct sl_status */
        struct map untitled;
        struct map prompted; /* channel -> when */
        struct timer *sweep;
        int64_t repeat_ms, idle_ms;
        bool no_status, no_prompts, no_titles; /* Slack refuses them */
};

static char *key_of(const char *channel, const char *thread)
{
        return mem_printf("%s %s", channel, thread);
}

static struct sl_status *find(const struct sl_assistant *as, const char *channel,
                              const char *thread)
{
        char *key = thread ? key_of(channel, thread) : NULL;
        struct sl_status *v = key ? map_get(&as->threads, key) : NULL;

        free(key);
        return v;
}

static void status_free(struct sl_status *v)
{
        free(v->channel);
        free(v->thread);
        free(v);
}

/* ---- calls ---- */

struct assistant_call {
        struct slack *sl;
        char *channel, *thread; /* thread may be NULL */
        const char *method;
        bool sets; /* a status, which is not empty */
};

/* The method is refused whatever its arguments are. */
static bool is_unavailable_here(const char *error)
{
        static const char *const errors[] = { "unknown_method",         "missing_scope",
                                              "not_allowed_token_type", "access_denied",
                                              "feature_not_enabled",    "method_deprecated",
                                              "no_permission" };

        for (size_t i = 0; error && i < COUNT(errors); i++)
                if (strcmp(error, errors[i]) == 0)
                        return true;
        return false;
}

static void note_refusal(const struct assistant_call *c, const struct sl_answer *a)
{
        struct sl_assistant *as = c->sl->assistant;
        bool *flag = strstr(c->method, "setStatus")  ? &as->no_status
                     : strstr(c->method, "setTitle") ? &as->no_titles
                                                     : &as->no_prompts;

        if (*flag)
                return;
        *flag = true;
        log_info("Slack does not let us decorate threads", LOG_S("adapter", c->sl->adapter->name),
                 LOG_S("method", c->method), LOG_S("why", a->why));
}

static void on_called(void *arg, const struct sl_answer *a)
{
        struct assistant_call *c = arg;
        struct sl_assistant *as = c->sl->assistant; /* NULL: closed meanwhile */
        struct sl_status *v = as ? find(as, c->channel, c->thread) : NULL;

        if (as && !a->ok && is_unavailable_here(a->error))
                note_refusal(c, a);
        if (v && c->sets && !a->ok) {
                v->set_ms = 0;
                v->over = v->over || (a->error && !sl_api_is_unavailable(a));
        }
        free(c->channel);
        free(c->thread);
        free(c);
}

/* Takes args, without channel and thread. */
static void call(struct slack *sl, const char *method, const char *channel, const char *thread,
                 json_t *args)
{
        struct assistant_call *c = mem_zalloc(sizeof(*c));

        c->sl = sl;
        c->channel = mem_strdup(channel);
        c->thread = mem_strdup(thread);
        c->method = method;
        c->sets = *json_str(args, "status", "");
        json_object_set_new(args, "channel_id", json_string(channel));
        if (thread)
                json_object_set_new(args, "thread_ts", json_string(thread));
        sl_api_ask(sl->api,
                   &(struct sl_request){ .method = method,
                                         .args = args,
                                         .priority = SL_IDLE,
                                         .total_ms = CALL_MS,
                                         .wait_ms = CALL_MS },
                   on_called, c);
        json_decref(args);
}

/* ---- the status ---- */

static void set_status(struct slack *sl, struct sl_status *v, const char *text)
{
        v->set_ms = *text ? clock_mono_ms() : 0;
        call(sl, "assistant.threads.setStatus", v->channel, v->thread,
             json_pack("{s:s}", "status", text));
}

/* Clears the status of threads without typing. */
static void on_sweep(void *arg)
{
        struct slack *sl = arg;
        struct sl_assistant *as = sl->assistant;
        int64_t now = clock_mono_ms();
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&as->threads, &i, &key, &value);) {
                struct sl_status *v = value;

                if (now - v->typed_ms < as->idle_ms)
                        continue;
                if (v->set_ms > 0)
                        set_status(sl, v, "");
                map_remove(&as->threads, key);
                status_free(v);
                i = 0; /* the map may have changed its order */
        }
        if (as->threads.count > 0)
                timer_start(as->sweep, as->idle_ms / 2);
}

static struct sl_status *find_or_add(struct slack *sl, const char *channel, const char *thread)
{
        struct sl_assistant *as = sl->assistant;
        struct sl_status *v = find(as, channel, thread);
        char *key;

        if (v || as->threads.count >= STATUS_MAX)
                return v;
        v = mem_zalloc(sizeof(*v));
        v->channel = mem_strdup(channel);
        v->thread = mem_strdup(thread);
        key = key_of(channel, thread);
        map_put(&as->threads, key, v);
        free(key);
        if (!timer_active(as->sweep))
                timer_start(as->sweep, as->idle_ms / 2);
        return v;
}

void sl_assistant_type(struct slack *sl, const struct delivery *d)
{
        struct sl_assistant *as = sl->assistant;
        const char *channel = sl_destination_find(sl, d->channel);
        int64_t now = clock_mono_ms();
        struct sl_status *v;

        adapter_refuse(sl->adapter, d, SEND_DONE, ERR_NONE, "");
        if (!as || as->no_status || !channel || !sl_ts_valid(d->thread))
                return;
        v = find_or_add(sl, channel, d->thread);
        if (!v)
                return;
        v->typed_ms = now;
        if (!v->over && (v->set_ms == 0 || now - v->set_ms >= as->repeat_ms))
                set_status(sl, v, WORKING);
}

bool sl_assistant_shows_status(const struct slack *sl)
{
        return !sl->assistant || !sl->assistant->no_status;
}

void sl_assistant_answered(struct slack *sl, const struct delivery *d, bool sent)
{
        struct sl_status *v = sl->assistant ? find(sl->assistant, d->channel, d->thread) : NULL;

        if (!v)
                return;
        v->over = true;
        if (v->set_ms > 0 && !sent)
                set_status(sl, v, "");
        v->set_ms = 0; /* Slack clears it when a message arrives */
}

/* ---- prompts and titles ---- */

/* "Title: message", as the settings are checked. */
static void offer_prompts(struct slack *sl, const char *channel, const char *thread)
{
        const struct setting_list *list = &sl->conf->suggested_prompts;
        json_t *prompts;

        if (list->count == 0 || sl->assistant->no_prompts)
                return;
        prompts = json_array();
        for (size_t i = 0; i < list->count; i++) {
                const char *text = list->items[i], *colon = strstr(text, ": ");

                json_array_append_new(prompts,
                                      json_pack("{s:s%, s:s}", "title", text,
                                                (size_t)(colon - text), "message", colon + 2));
        }
        call(sl, "assistant.threads.setSuggestedPrompts", channel, thread,
             json_pack("{s:o}", "prompts", prompts));
}

static void on_thread_started(struct slack *sl, const json_t *thread)
{
        struct sl_assistant *as = sl->assistant;
        const char *channel = json_str(thread, "channel_id", ""),
                   *ts = json_str(thread, "thread_ts", NULL);
        char *key;

        if (!*channel || !sl_ts_valid(ts))
                return;
        if (as->untitled.count >= NEW_MAX) {
                map_release(&as->untitled);
                map_init(&as->untitled);
        }
        key = key_of(channel, ts);
        map_put(&as->untitled, key, as);
        free(key);
        offer_prompts(sl, channel, ts);
}

/* Of an app with the newer agent view: its DM has no threads to begin with. */
static void on_home_opened(struct slack *sl, const json_t *event)
{
        struct sl_assistant *as = sl->assistant;
        const char *channel = json_str(event, "channel", "");
        int64_t now = clock_mono_ms();
        intptr_t last = *channel ? (intptr_t)map_get(&as->prompted, channel) : 0;

        if (!*channel || strcmp(json_str(event, "tab", ""), "messages") != 0 ||
            (last > 0 && now - last < PROMPTS_MS))
                return;
        if (as->prompted.count >= NEW_MAX) {
                map_release(&as->prompted);
                map_init(&as->prompted);
        }
        map_put(&as->prompted, channel, (void *)(intptr_t)now);
        offer_prompts(sl, channel, NULL);
}

/* A changed context (the channel that the person looks at) changes nothing of ours. */
void sl_assistant_event(struct slack *sl, const json_t *event)
{
        const char *type = json_str(event, "type", "");

        if (!sl->assistant)
                return;
        if (strcmp(type, "assistant_thread_started") == 0)
                on_thread_started(sl, json_object_get(event, "assistant_thread"));
        else if (strcmp(type, "app_home_opened") == 0)
                on_home_opened(sl, event);
}

void sl_assistant_said(struct slack *sl, const char *channel, const char *thread, const char *text)
{
        char *key = thread ? key_of(channel, thread) : NULL;
        size_t n;

        text += strspn(text, " \t\r\n");
        n = utf8_prefix(text, strcspn(text, "\r\n"), UTF8_CODE_POINTS, TITLE_MAX);
        if (sl->assistant && key && n > 0 && map_remove(&sl->assistant->untitled, key) &&
            !sl->assistant->no_titles)
                call(sl, "assistant.threads.setTitle", channel, thread,
                     json_pack("{s:s%}", "title", text, n));
        free(key);
}

/* ---- open and close ---- */

void sl_assistant_open(struct slack *sl)
{
        struct sl_assistant *as = mem_zalloc(sizeof(*as));

        map_init(&as->threads);
        map_init(&as->untitled);
        map_init(&as->prompted);
        as->repeat_ms = REPEAT_MS;
        as->idle_ms = IDLE_MS;
        as->sweep = timer_new(sl->adapter->loop, on_sweep, sl);
        sl->assistant = as;
}

void sl_assistant_set_times(struct slack *sl, int64_t repeat_ms, int64_t idle_ms)
{
        sl->assistant->repeat_ms = repeat_ms;
        sl->assistant->idle_ms = idle_ms;
}

void sl_assistant_close(struct slack *sl)
{
        struct sl_assistant *as = sl->assistant;
        void *value;

        if (!as)
                return;
        for (size_t i = 0; map_each(&as->threads, &i, NULL, &value);)
                status_free(value);
        map_release(&as->threads);
        map_release(&as->untitled);
        map_release(&as->prompted);
        timer_free(as->sweep);
        free(as);
        sl->assistant = NULL;
}
