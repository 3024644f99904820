/* Keys: made, listed, revoked. */
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "road/report/row_json.h"

#define RATE_MAX 1000000

struct key_ask {
        const char *name;
        struct field_list scopes, adapters;
        int64_t expires_ms, rate_limit;
};

/* clang-format off */
const struct field key_fields[] = {
        { "name", FIELD_STRING, .required = true, .min = 1, .max = 100, .at = offsetof(struct key_ask, name),
          .help = "Who gets it, for people; no two valid keys have the same." },
        { "scopes", FIELD_TEXTS, .required = true, .max = KEY_SCOPES_MAX, .at = offsetof(struct key_ask, scopes),
          .help = "What it may: read, write, admin (each with those before it), or one of them for a resource, such as messages:write." },
        { "adapters", FIELD_TEXTS, .max = KEY_ADAPTERS_MAX, .at = offsetof(struct key_ask, adapters),
          .help = "Names of the only adapters it reaches. Absent: all." },
        { "expiresAt", FIELD_TIME, .at = offsetof(struct key_ask, expires_ms), .help = "When it ends. Absent: never." },
        { "rateLimit", FIELD_INT, .min = 1, .max = RATE_MAX, .at = offsetof(struct key_ask, rate_limit), .fallback = "1000",
          .help = "Requests a minute." },
        FIELD_END,
};
/* clang-format on */

/* ---- showing ---- */

static const char *state_of(const struct key *k, int64_t now_ms)
{
        return k->revoked_ms > 0 ? "revoked" : key_is_live(k, now_ms) ? "valid" : "expired";
}

static void write_names(struct buf *b, const char *names)
{
        if (!names) {
                jsonw_null(b, "adapters");
                return;
        }
        jsonw_open_member(b, "adapters", '[');
        for (const char *p = names + 1; *p; p += strcspn(p, ",") + 1)
                jsonw_strn(b, NULL, p, strcspn(p, ","));
        jsonw_close(b, ']');
}

static void write_scopes(struct buf *b, const struct key *k)
{
        jsonw_open_member(b, "scopes", '[');
        for (size_t i = 0; i < k->scope_count; i++) {
                const struct key_scope *s = &k->scopes[i];
                char *word = mem_printf("%s%s%s", s->space ? s->space : "", s->space ? ":" : "",
                                        route_scope_name(s->level));

                jsonw_str(b, NULL, word);
                free(word);
        }
        jsonw_close(b, ']');
}

/* Without its last bracket. */
static void write_key(struct buf *b, const struct key *k)
{
        jsonw_open(b, '{');
        show_id(b, "id", "key-", k->id);
        jsonw_str(b, "name", k->name);
        jsonw_str(b, "prefix", k->prefix);
        write_scopes(b, k);
        write_names(b, k->adapters);
        jsonw_int(b, "rateLimit", k->rate_limit);
        jsonw_str(b, "state", state_of(k, clock_wall_ms()));
        show_time(b, "createdAt", k->created_ms);
        show_time(b, "expiresAt", k->expires_ms);
        show_time(b, "lastUsedAt", k->used_ms);
        show_time(b, "revokedAt", k->revoked_ms);
}

static void list_one(void *arg, const struct key *k)
{
        write_key(arg, k);
        jsonw_close(arg, '}');
}

void keys_list(struct http_exchange *x)
{
        struct buf json;

        buf_init(&json, 0);
        page_begin(&json);
        keyring_each(api_of(x)->keys, list_one, &json);
        page_end(&json, false, NULL);
        reply_json(x, 200, &json);
}

/* ---- making ---- */

struct making {
        struct api_job job;
        char text[KEYRING_TEXT_SIZE];
};

static void on_made(void *arg, const struct key *k, const struct error *err)
{
        struct making *m = arg;
        struct http_exchange *x = api_job_end(&m->job);
        struct buf data;

        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                write_key(&data, k);
                jsonw_str(&data, "key", m->text);
                jsonw_close(&data, '}');
                http_add_header(x, "Cache-Control", "no-store");
                reply_data(x, 201, &data);
        }
        explicit_bzero(m->text, sizeof(m->text));
        free(m);
}

/* "a b": texts with a character between them; yours to free. */
static char *joined(const struct field_list *list, char between)
{
        const char *const *words = list->items;
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < list->count; i++) {
                if (i > 0)
                        buf_addch(&b, between);
                buf_addstr(&b, words[i]);
        }
        return buf_take(&b);
}

static int check_ask(struct http_exchange *x, struct body *b, const struct key_ask *ask)
{
        const char *const *scopes = ask->scopes.items, *const *adapters = ask->adapters.items;
        struct error err;

        if (ask->scopes.count == 0)
                return body_mistake(b, "scopes", "must name at least one");
        for (size_t i = 0; i < ask->scopes.count; i++)
                if (key_scope_check(scopes[i], &err) < 0)
                        return body_mistake(b, "scopes", "%s", err.text);
        for (size_t i = 0; i < ask->adapters.count; i++)
                if (!adapters_find(api_of(x)->env.adapters, adapters[i]))
                        return body_mistake(b, "adapters", "there is no adapter '%.100s'",
                                            adapters[i]);
        if (adapters && ask->adapters.count == 0)
                return body_mistake(b, "adapters", "must name at least one; leave it out for all");
        if (ask->expires_ms > 0 && ask->expires_ms <= clock_wall_ms())
                return body_mistake(b, "expiresAt", "lies in the past");
        return 0;
}

/* Nobody gives what they have not. */
static bool exceeds(const struct key *k, const struct key *maker)
{
        for (size_t i = 0; i < api_route_count; i++)
                if (key_may(k, &api_routes[i]) && !key_may(maker, &api_routes[i]))
                        return true;
        return false;
}

static struct key *key_of(const struct key_ask *ask)
{
        char *scopes = joined(&ask->scopes, ' '),
             *adapters = ask->adapters.count > 0 ? joined(&ask->adapters, ',') : NULL;
        struct key *k = key_new(ask->name, scopes, adapters);

        k->created_ms = clock_wall_ms();
        k->expires_ms = ask->expires_ms;
        k->rate_limit = ask->rate_limit;
        free(scopes);
        free(adapters);
        return k;
}

static void make(struct http_exchange *x, const struct key_ask *ask)
{
        struct api *a = api_of(x);
        struct key *k = key_of(ask);
        struct making *m;
        struct error err;

        if (exceeds(k, caller_of(x))) {
                key_unref(k);
                reply_error(x, 403, "FORBIDDEN", NULL,
                            "a key cannot be given scopes that its maker has not");
                return;
        }
        m = mem_zalloc(sizeof(*m));
        api_job_begin(&m->job, x);
        if (keyring_add(a->keys, k, m->text, on_made, m, &err) == 0)
                return;
        reply_failed(api_job_end(&m->job), &err);
        free(m);
}

void keys_create(struct http_exchange *x)
{
        struct key_ask ask = { .rate_limit = KEYRING_RATE };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (check_ask(x, &b, &ask) < 0)
                reply_mistakes(x, &b);
        else if (keyring_by_name(api_of(x)->keys, ask.name, clock_wall_ms()))
                reply_error(
                        x, 409, "CONFLICT", "\"conflictReason\":\"name_taken\"",
                        "there is a key '%.100s' already; revoke it first or choose another name",
                        ask.name);
        else
                make(x, &ask);
        body_release(&b);
}

/* ---- revoking ---- */

static void on_revoked(void *arg, const struct key *k, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                write_key(&data, k);
                jsonw_close(&data, '}');
                reply_data(x, 200, &data);
        }
}

void keys_revoke(struct http_exchange *x)
{
        int64_t id = request_id(x, "key-", "key");
        struct key *k = id > 0 ? keyring_by_id(api_of(x)->keys, id) : NULL;
        struct api_job *j;

        if (id < 0)
                return;
        if (!k || k->revoked_ms > 0) {
                reply_missing(x, "valid key", http_param(x, "id"));
                return;
        }
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        keyring_revoke(api_of(x)->keys, k, on_revoked, j);
}
