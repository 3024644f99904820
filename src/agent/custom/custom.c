#include "agent/custom/custom.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/custom/custom_result.h"
#include "agent/custom/custom_source.h"
#include "agent/custom/mcp_private.h"
#include "agent/tools/json_schema.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"

#define WAIT_MS      30000
#define LINE_MAX_LEN 160 /* of a description in the short list */

TAILQ_HEAD(custom_source_list, custom_source);
LIST_HEAD(custom_call_list, custom_call);
LIST_HEAD(custom_wait_list, custom_wait);

struct custom_wait {
        struct timer *timer;
        loop_fn *fn;
        void *arg;
        LIST_ENTRY(custom_wait) next;
};

/* The call may be cancelled while its files are written. */
struct custom_saving {
        struct custom_call *call;
};

struct custom_tools {
        struct custom_options options;
        struct custom_source_list sources;
        struct custom_source_list retired; /* with calls, or freed by sweep */
        struct timer *sweep;
        struct custom_call_list calls;
        struct custom_wait_list waits;
        struct custom_folder *folder;
        struct mcp_stdio_links ending;
        const struct custom_tool **sorted; /* by key, without duplicates */
        size_t count;
};

/* ---- sources ---- */

bool custom_is_key(const char *name)
{
        size_t n = strlen(name);

        return n > 0 && n <= CUSTOM_KEY_MAX &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                       n;
}

const struct custom_options *custom_options(const struct custom_tools *all)
{
        return &all->options;
}

struct mcp_stdio_links *custom_ending(struct custom_tools *all)
{
        return &all->ending;
}

struct custom_source *custom_source_new(struct custom_tools *all, size_t size,
                                        const struct custom_source_ops *ops, const char *name)
{
        struct custom_source *s = mem_zalloc(size);

        s->ops = ops;
        s->all = all;
        s->name = mem_strdup(name);
        return s;
}

void custom_source_add(struct custom_source *s)
{
        TAILQ_INSERT_TAIL(&s->all->sources, s, next);
}

void custom_source_retire(struct custom_source *s)
{
        TAILQ_REMOVE(&s->all->sources, s, next);
        if (s->calls == 0) {
                s->ops->free(s);
        } else {
                s->retired = true;
                TAILQ_INSERT_TAIL(&s->all->retired, s, next);
        }
}

/* A call that ends is the source's own doing, so the source is freed later. */
static void on_sweep(void *arg)
{
        struct custom_tools *all = arg;
        struct custom_source *s, *next;

        for (s = TAILQ_FIRST(&all->retired); s; s = next) {
                next = TAILQ_NEXT(s, next);
                if (s->calls > 0)
                        continue;
                TAILQ_REMOVE(&all->retired, s, next);
                s->ops->free(s);
        }
}

struct custom_tool *custom_source_tool(struct custom_source *s)
{
        struct custom_tool *t;

        s->tools = mem_realloc(s->tools, (s->count + 1) * sizeof(*s->tools));
        t = &s->tools[s->count++];
        *t = (struct custom_tool){ .source = s, .timeout_ms = CUSTOM_TIMEOUT_MS };
        return t;
}

void custom_source_clear(struct custom_source *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free(s->tools[i].key);
                free(s->tools[i].name);
                free(s->tools[i].description);
                json_decref(s->tools[i].schema);
        }
        free(s->tools);
        s->tools = NULL;
        s->count = 0;
}

void custom_source_move(struct custom_source *from, struct custom_source *to)
{
        to->tools = from->tools;
        to->count = from->count;
        for (size_t i = 0; i < to->count; i++)
                to->tools[i].source = to;
        from->tools = NULL;
        from->count = 0;
}

void custom_source_release(struct custom_source *s)
{
        custom_source_clear(s);
        free(s->name);
}

void custom_source_problem(struct custom_source *s, const char *fmt, ...)
{
        char text[sizeof(s->problem)];
        va_list ap;
        size_t n;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        log_redact(text);
        if (!*text || strstr(s->problem, text))
                return;
        n = strlen(s->problem);
        snprintf(s->problem + n, sizeof(s->problem) - n, "%s%s", n > 0 ? "; " : "", text);
        if (strcmp(text, s->logged) == 0)
                return;
        memcpy(s->logged, text, sizeof(text));
        log_warn("custom tool has a problem", LOG_S("agent", s->all->options.agent),
                 LOG_S("kind", s->ops->kind), LOG_S("name", s->name), LOG_S("why", text));
}

static int by_key(const void *a, const void *b)
{
        const struct custom_tool *const *x = a, *const *y = b;

        return strcmp((*x)->key, (*y)->key);
}

static bool all_known(const struct custom_tools *all)
{
        const struct custom_source *s;

        TAILQ_FOREACH(s, &all->sources, next)
                if (!s->known)
                        return false;
        return custom_folder_known(all->folder);
}

/* Two tools with one key: that of the older source stays, so that a newcomer cannot replace it. */
static void sort_tools(struct custom_tools *all)
{
        struct custom_source *s;
        struct map seen;
        size_t n = 0, most = 0;

        TAILQ_FOREACH(s, &all->sources, next)
                most += s->count;
        free(all->sorted);
        all->sorted = mem_array(most, sizeof(struct custom_tool *));
        map_init(&seen);
        TAILQ_FOREACH(s, &all->sources, next) {
                for (size_t i = 0; i < s->count; i++) {
                        struct custom_tool *t = &s->tools[i];

                        if (map_get(&seen, t->key)) {
                                custom_source_problem(s, "a tool named '%s' exists already",
                                                      t->key);
                                continue;
                        }
                        map_put(&seen, t->key, t);
                        all->sorted[n++] = t;
                }
        }
        map_release(&seen);
        all->count = n;
        if (n > 1)
                qsort(all->sorted, n, sizeof(struct custom_tool *), by_key);
}

void custom_changed(struct custom_tools *all)
{
        struct custom_wait *w;

        sort_tools(all);
        if (!all_known(all))
                return;
        LIST_FOREACH(w, &all->waits, next)
                timer_start(w->timer, 0);
}

struct custom_tools *custom_new(const struct custom_options *options)
{
        struct custom_tools *all = mem_zalloc(sizeof(*all));

        all->options = *options;
        TAILQ_INIT(&all->sources);
        TAILQ_INIT(&all->retired);
        all->sweep = timer_new(options->loop, on_sweep, all);
        LIST_INIT(&all->calls);
        LIST_INIT(&all->waits);
        LIST_INIT(&all->ending);
        all->folder = custom_folder_new(all);
        for (size_t i = 0; options->mcp && i < options->mcp->count; i++)
                mcp_add(all, options->mcp->names[i], options->mcp->items[i]);
        custom_changed(all);
        return all;
}

void custom_free(struct custom_tools *all)
{
        struct custom_source *s;
        struct custom_call *c;
        struct custom_wait *w;

        if (!all)
                return;
        while ((c = LIST_FIRST(&all->calls)))
                custom_call_cancel(c);
        while ((w = LIST_FIRST(&all->waits)))
                custom_wait_cancel(w);
        while ((s = TAILQ_FIRST(&all->sources)))
                custom_source_retire(s);
        on_sweep(all);
        timer_free(all->sweep);
        mcp_stdio_kill(&all->ending);
        custom_folder_free(all->folder);
        free(all->sorted);
        free(all);
}

/* ---- waiting ---- */

static void on_wait(void *arg)
{
        struct custom_wait *w = arg;
        loop_fn *fn = w->fn;
        void *fn_arg = w->arg;

        custom_wait_cancel(w);
        fn(fn_arg);
}

struct custom_wait *custom_wait_start(struct custom_tools *all, loop_fn *fn, void *arg)
{
        struct custom_wait *w = mem_zalloc(sizeof(*w));

        w->fn = fn;
        w->arg = arg;
        w->timer = timer_new(all->options.loop, on_wait, w);
        timer_start(w->timer, all_known(all) ? 0 : WAIT_MS);
        LIST_INSERT_HEAD(&all->waits, w, next);
        return w;
}

void custom_wait_cancel(struct custom_wait *w)
{
        if (!w)
                return;
        LIST_REMOVE(w, next);
        timer_free(w->timer);
        free(w);
}

/* ---- the list ---- */

const struct custom_tool *custom_find(const struct custom_tools *all, const char *key)
{
        size_t low = 0, high = all->count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int order = strcmp(key, all->sorted[mid]->key);

                if (order == 0)
                        return all->sorted[mid];
                if (order < 0)
                        high = mid;
                else
                        low = mid + 1;
        }
        return NULL;
}

size_t custom_count(const struct custom_tools *all)
{
        return all->count;
}

const struct custom_tool *custom_at(const struct custom_tools *all, size_t i)
{
        return all->sorted[i];
}

static void add_whole(const struct custom_tool *t, struct buf *out)
{
        char *schema = json_text(t->schema);

        buf_addf(out, "### %s\n%s\nParameters: %s\n\n", t->key, t->description, schema);
        free(schema);
}

static void add_short(const struct custom_tool *t, struct buf *out)
{
        size_t n = strcspn(t->description, "\n");

        if (n > LINE_MAX_LEN)
                n = utf8_prefix(t->description, n, UTF8_BYTES, LINE_MAX_LEN);
        buf_addf(out, "- %s: %.*s\n", t->key, (int)n, t->description);
}

static const char heading[] =
        "## Custom tools\n\n"
        "These tools run outside the sandbox. Call one by invoke_tool with its name as `tool` and "
        "its parameters as `args`.";

/* About 3.5 bytes a token, as model_estimate counts. */
static int64_t tokens(size_t bytes)
{
        return ((int64_t)bytes * 2 + 6) / 7;
}

static bool is_deferred(int64_t whole_tokens, int64_t window)
{
        return window > 0 && whole_tokens * 10 >= window;
}

static bool write_prompt(const struct custom_tools *all, int64_t window, struct buf *out)
{
        size_t start = out->len;
        bool deferred;

        if (all->count == 0)
                return false;
        buf_addf(out, "%s\n\n", heading);
        for (size_t i = 0; i < all->count; i++)
                add_whole(all->sorted[i], out);
        deferred = is_deferred(tokens(out->len - start), window);
        if (!deferred)
                return false;
        buf_truncate(out, start);
        buf_addf(out, "%s Find out the parameters of a tool by tool_search before you call it.\n\n",
                 heading);
        for (size_t i = 0; i < all->count; i++)
                add_short(all->sorted[i], out);
        buf_addch(out, '\n');
        return true;
}

void custom_prompt(const struct custom_tools *all, int64_t window, struct buf *out)
{
        write_prompt(all, window, out);
}

int64_t custom_prompt_tokens(const struct custom_tools *all, int64_t window, bool *deferred)
{
        struct buf text;
        int64_t n;

        buf_init(&text, 0);
        *deferred = write_prompt(all, window, &text);
        n = tokens(text.len);
        buf_release(&text);
        return n;
}

/* How well the words of the query fit: 100 for the whole key, 10 for a part of it, else 1. */
static unsigned fit(const struct custom_tool *t, const char *query)
{
        unsigned score =
                strcasecmp(t->key, query) == 0 || strcasecmp(t->name, query) == 0 ? 100 : 0;
        char word[64];

        while (*query) {
                size_t n = strcspn(query, " ,\t\n");

                if (n > 1 && n < sizeof(word)) {
                        memcpy(word, query, n);
                        word[n] = '\0';
                        if (strcasecmp(t->key, word) == 0)
                                score += 100;
                        score += strcasestr(t->key, word) ? 10 : 0;
                        score += strcasestr(t->description, word) ? 1 : 0;
                }
                query += n;
                query += strspn(query, " ,\t\n");
        }
        return score;
}

void custom_search(const struct custom_tools *all, const char *query, size_t most, struct buf *out)
{
        unsigned *scores = mem_array(all->count, sizeof(*scores));
        size_t found = 0, total = 0;

        for (size_t i = 0; i < all->count; i++) {
                scores[i] = fit(all->sorted[i], query);
                total += scores[i] > 0;
        }
        while (found < most && found < total) {
                size_t best = 0;

                for (size_t i = 1; i < all->count; i++)
                        if (scores[i] > scores[best])
                                best = i;
                add_whole(all->sorted[best], out);
                scores[best] = 0;
                found++;
        }
        if (total > found)
                buf_addf(out, "%zu more tools fit; ask with other words.\n", total - found);
        if (total == 0) {
                buf_addf(out, "No custom tool fits '%.100s'. There %s %zu:\n", query,
                         all->count == 1 ? "is" : "are", all->count);
                for (size_t i = 0; i < all->count && i < 100; i++)
                        add_short(all->sorted[i], out);
        }
        free(scores);
}

void custom_status(const struct custom_tools *all, struct buf *out)
{
        const struct custom_source *s;

        TAILQ_FOREACH(s, &all->sources, next) {
                jsonw_open(out, '{');
                jsonw_str(out, "kind", s->ops->kind);
                jsonw_str(out, "name", s->name);
                jsonw_str(out, "state", s->ops->state ? s->ops->state(s) : "ready");
                jsonw_int(out, "tools", (int64_t)s->count);
                jsonw_opt(out, "problem", *s->problem ? s->problem : NULL);
                jsonw_close(out, '}');
        }
        custom_folder_status(all->folder, out);
}

/* ---- calls ---- */

static void call_free(struct custom_call *c)
{
        struct custom_source *s = c->source;

        LIST_REMOVE(c, next);
        timer_free(c->later);
        json_decref(c->result.content);
        json_decref(c->result.details);
        saved_files_free(c->files);
        json_decref(c->args);
        free(c->key);
        free(c->tool);
        free(c->id);
        free(c);
        if (s && --s->calls == 0 && s->retired)
                timer_start(s->all->sweep, 0);
}

static void deliver(struct custom_call *c)
{
        struct tool_result r = c->result;

        c->result = (struct tool_result){ 0 };
        r.untrusted = (c->flags & TOOL_UNTRUSTED) != 0;
        c->on.on_done(c->arg, &r);
        call_free(c);
}

static void on_saved(void *arg)
{
        struct custom_saving *w = arg;

        if (w->call) {
                w->call->saving = NULL;
                deliver(w->call);
        }
        free(w);
}

void custom_call_done(struct custom_call *c, struct tool_result *r)
{
        c->result = *r;
        if (saved_files_count(c->files) == 0) {
                deliver(c);
                return;
        }
        c->saving = mem_zalloc(sizeof(*c->saving));
        c->saving->call = c;
        saved_files_write(c->files, c->all->options.loop, on_saved, c->saving);
        c->files = NULL;
}

__attribute__((format(printf, 2, 0))) static void failure(struct tool_result *r, const char *fmt,
                                                          va_list ap)
{
        struct buf text;

        buf_init(&text, 0);
        buf_vaddf(&text, fmt, ap);
        log_redact(text.data);
        custom_result_text(text.data, strlen(text.data), true, NULL, r);
        buf_release(&text);
}

void custom_call_fail(struct custom_call *c, const char *fmt, ...)
{
        struct tool_result r = { 0 };
        va_list ap;

        va_start(ap, fmt);
        failure(&r, fmt, ap);
        va_end(ap);
        custom_call_done(c, &r);
}

static void on_later(void *arg)
{
        deliver(arg);
}

void custom_call_refuse(struct custom_call *c, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        failure(&c->result, fmt, ap);
        va_end(ap);
        c->later = timer_new(c->all->options.loop, on_later, c);
        timer_start(c->later, 0);
}

static void refuse_unknown(struct custom_tools *all, struct custom_call *c)
{
        const char **keys = mem_array(all->count + 1, sizeof(*keys));
        const char *near;

        for (size_t i = 0; i < all->count; i++)
                keys[i] = all->sorted[i]->key;
        near = settings_nearest(c->key, keys);
        if (near)
                custom_call_refuse(c, "There is no custom tool '%.100s'. Did you mean '%s'?",
                                   c->key, near);
        else
                custom_call_refuse(c,
                                   "There is no custom tool '%.100s'. The system prompt lists "
                                   "them; tool_search finds them by words.",
                                   c->key);
        free(keys);
}

struct custom_call *custom_call_start(struct custom_tools *all, const struct custom_request *q,
                                      const struct custom_handlers *h, void *arg)
{
        const struct custom_tool *t = custom_find(all, q->key);
        struct custom_call *c = mem_zalloc(sizeof(*c));
        struct error err;

        c->all = all;
        c->key = mem_strdup(q->key);
        c->id = mem_strdup(q->id);
        c->args = q->args ? json_deep_copy(q->args) : json_object();
        c->files = q->view ? saved_files_new(q->view) : NULL;
        c->on = *h;
        c->arg = arg;
        LIST_INSERT_HEAD(&all->calls, c, next);
        if (!t) {
                refuse_unknown(all, c);
                return c;
        }
        if (!json_is_object(c->args) || json_schema_check(t->schema, c->args, &err) < 0) {
                custom_call_refuse(c, "The arguments of '%s' are wrong: %s", t->key,
                                   json_is_object(c->args) ? err.text : "expected an object");
                return c;
        }
        c->tool = mem_strdup(t->name);
        c->flags = t->flags;
        c->timeout_ms = t->timeout_ms;
        c->source = t->source;
        c->source->calls++;
        c->source->ops->call(c);
        return c;
}

void custom_call_cancel(struct custom_call *c)
{
        if (!c)
                return;
        if (c->saving)
                c->saving->call = NULL;
        else if (c->source && !c->later)
                c->source->ops->cancel(c);
        call_free(c);
}
