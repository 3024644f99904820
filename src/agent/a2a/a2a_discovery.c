/*
 * a2a_discovery: the card of an agent, fetched when it is needed and kept for a while. When it
 * cannot be had again, the old one serves on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "agent/http/call_headers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define KEEP_MS   300000
#define RETRY_MS  30000 /* with an old card */
#define FETCH_MS  15000
#define CARD_MAX  ((size_t)1 << 20)
#define QUOTE_MAX 200

struct a2a_waiter {
        struct a2a_agent *owner;
        a2a_card_fn *fn;
        void *arg;
        bool ready; /* the known card will do */
        bool due;
        LIST_ENTRY(a2a_waiter) next;
};

static struct a2a_waiter *find_due(struct a2a_agent *o)
{
        struct a2a_waiter *w;

        LIST_FOREACH(w, &o->waiters, next)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                if (w->due)
                        return w;
        return NULL;
}

/* Those that wait for a fetch, or those that do not. Each may ask again, and drop others. */
static void tell(struct a2a_agent *o, bool ready, const struct error *err, int64_t elapsed_ms)
{
        struct a2a_card *card = o->card ? a2a_card_ref(o->card) : NULL;
        struct a2a_waiter *w;

        LIST_FOREACH(w, &o->waiters, next)
                w->due = w->ready == ready;
        while ((w = find_due(o))) {
                LIST_REMOVE(w, next);
                w->fn(w->arg, card, err, elapsed_ms);
                free(w);
        }
        a2a_card_unref(card);
}

static void on_wake(void *arg)
{
        struct a2a_agent *o = arg;

        tell(o, true, NULL, 0);
}

/* ---- the request ---- */

static void describe(const struct a2a_agent *o, const struct http_result *r, struct error *err)
{
        size_t n = strcspn(o->card_url, "?#");
        char *quote;

        if (r->kind != ERR_NONE) {
                error_set(err, r->kind, "%s", r->why ? r->why : error_kind_name(r->kind));
        } else if (r->status == 401 || r->status == 403) {
                error_set(err, ERR_REFUSED,
                          "HTTP %d: the agent card at %.*s is refused with our key", r->status,
                          (int)n, o->card_url);
        } else if (r->status < 400) {
                error_set(err, ERR_PROTOCOL,
                          "HTTP %d: there is no agent card at %.*s%s%s; set "
                          "'url' to the card's address",
                          r->status, (int)n, o->card_url, *o->moved_to ? ", but at " : "",
                          o->moved_to);
        } else {
                quote = utf8_clean(r->body ? r->body : "",
                                   r->body ? utf8_prefix(r->body, r->body_n, UTF8_BYTES, QUOTE_MAX)
                                           : 0);
                error_set(err, r->status >= 500 ? ERR_NET : ERR_MISSING,
                          "HTTP %d: there is no agent card at %.*s%s%s", r->status, (int)n,
                          o->card_url, *quote ? ": " : "", quote);
                free(quote);
        }
        log_redact(err->text);
}

static struct a2a_card *read_card(struct a2a_agent *o, const struct http_result *r,
                                  struct error *err)
{
        struct a2a_card *card = NULL;
        json_t *root;

        if (r->kind != ERR_NONE || r->status >= 300) {
                describe(o, r, err);
                return NULL;
        }
        root = json_read_lenient(r->body ? r->body : "", r->body_n, err);
        if (root)
                card = a2a_card_read(root, err);
        else
                error_prefix(err, "the agent card is not JSON");
        json_decref(root);
        if (card && o->conf->endpoint) {
                free(card->url);
                card->url = mem_strdup(o->conf->endpoint);
        } else if (card && a2a_card_trust(card->url, o->card_url, &o->conf->origins, &card->trust,
                                          err) < 0) {
                a2a_card_unref(card);
                card = NULL;
        }
        return card;
}

static void on_head(void *arg, struct http_call *call, int status)
{
        struct a2a_agent *o = arg;
        const char *location = http_call_header(call, "location");

        (void)status;
        snprintf(o->moved_to, sizeof(o->moved_to), "%.150s", location ? location : "");
}

static void on_fetched(void *arg, const struct http_result *r)
{
        struct a2a_agent *o = arg;
        struct error err = { 0 };
        struct a2a_card *card = read_card(o, r, &err);
        int64_t now = loop_now_ms(o->agent->loop);

        o->fetching = NULL;
        if (card) {
                a2a_card_unref(o->card);
                o->card = card;
                o->card_until_ms = now + KEEP_MS;
        } else if (o->card) {
                log_warn("cannot fetch an agent card; the old one serves on",
                         LOG_S("agent", o->agent->name), LOG_S("why", err.text));
                o->card_until_ms = now + RETRY_MS;
        }
        tell(o, false, card ? NULL : &err, r->elapsed_ms);
}

static void fetch(struct a2a_agent *o)
{
        static const struct http_handlers handlers = { .on_head = on_head, .on_done = on_fetched };
        struct call_headers h;

        call_headers_init(&h);
        call_headers_add(&h, "Accept: application/json");
        call_headers_add(&h, A2A_VERSION_HEADER ": %s", a2a_version_name(A2A_1_0));
        a2a_add_credentials(o, &h);
        call_headers_run(&h, NULL);
        o->moved_to[0] = '\0';
        o->fetching = http_call_start(o->agent->http,
                                      &(struct http_request){ .url = o->card_url,
                                                              .headers = h.list,
                                                              .total_ms = FETCH_MS,
                                                              .max_body = CARD_MAX,
                                                              .repeatable = true },
                                      &handlers, o);
        call_headers_release(&h);
}

/* ---- waiting ---- */

struct a2a_waiter *a2a_discover(struct a2a_agent *o, bool fresh, a2a_card_fn *fn, void *arg)
{
        struct a2a_waiter *w = mem_zalloc(sizeof(*w));
        int64_t now = loop_now_ms(o->agent->loop);

        w->owner = o;
        w->fn = fn;
        w->arg = arg;
        w->ready = !fresh && o->card && now < o->card_until_ms;
        LIST_INSERT_HEAD(&o->waiters, w, next);
        if (w->ready)
                timer_start(o->wake, 0);
        else if (!o->fetching)
                fetch(o);
        return w;
}

void a2a_discover_drop(struct a2a_waiter *w)
{
        if (!w)
                return;
        LIST_REMOVE(w, next);
        free(w);
}

void a2a_discover_again(struct a2a_agent *o)
{
        o->card_until_ms = 0;
}

void a2a_discovery_open(struct a2a_agent *o)
{
        const char *url = o->conf->url;
        size_t n = strcspn(url, "?#");
        bool is_card = n > 5 && strncmp(url + n - 5, ".json", 5) == 0;

        while (!is_card && n > 0 && url[n - 1] == '/')
                n--;
        o->card_url = is_card ? mem_strdup(url)
                              : mem_printf("%.*s" A2A_CARD_PATH "%s", (int)n, url,
                                           url[strcspn(url, "?#")] == '?' ? strchr(url, '?') : "");
        LIST_INIT(&o->waiters);
        o->wake = timer_new(o->agent->loop, on_wake, o);
}

void a2a_discovery_close(struct a2a_agent *o)
{
        while (!LIST_EMPTY(&o->waiters))
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                a2a_discover_drop(LIST_FIRST(&o->waiters));
        http_call_abort(o->fetching);
        timer_free(o->wake);
        a2a_card_unref(o->card);
        free(o->card_url);
}
