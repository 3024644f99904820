#include "api/core/key.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* SCOPE_NONE: not a level. */
static enum scope level_of(const char *word, size_t n)
{
        static const struct {
                const char *word;
                enum scope level;
        } levels[] = { { "read", SCOPE_READ },
                       { "write", SCOPE_WRITE },
                       { "admin", SCOPE_ADMIN },
                       { "*", SCOPE_ADMIN } };

        for (size_t i = 0; i < COUNT(levels); i++)
                if (strlen(levels[i].word) == n && memcmp(levels[i].word, word, n) == 0)
                        return levels[i].level;
        return SCOPE_NONE;
}

int key_scope_check(const char *word, struct error *err)
{
        const char *colon = strchr(word, ':'), *level = colon ? colon + 1 : word;

        if (level_of(level, strlen(level)) == SCOPE_NONE)
                return error_set(
                        err, ERR_INVALID,
                        "'%.60s' is not a scope: read, write, admin, or one of these for a "
                        "resource, such as messages:write",
                        word);
        if (!colon)
                return 0;
        ROUTES_FOREACH(r) {
                struct slice s = route_resource(r);

                if (r->scope != SCOPE_NONE && s.n == (size_t)(colon - word) &&
                    memcmp(s.p, word, s.n) == 0)
                        return 0;
        }
        return error_set(err, ERR_INVALID, "'%.60s': there is no resource of that name", word);
}

void key_scope_write(struct buf *b, const struct key_scope *s)
{
        buf_addf(b, "%s%s%s", s->resource ? s->resource : "", s->resource ? ":" : "",
                 route_scope_name(s->level));
}

struct key *key_new(const char *name, const char *scopes, const char *adapters)
{
        struct key *k = mem_zalloc(sizeof(*k));

        k->refs = 1;
        k->name = mem_strdup(name);
        k->adapters = adapters ? mem_printf(",%s,", adapters) : NULL;
        for (const char *p = scopes; *p; p += strspn(p, ", ")) {
                size_t n = strcspn(p, ", ");
                const char *colon = memchr(p, ':', n);
                size_t resource = colon ? (size_t)(colon - p) : 0, skip = colon ? resource + 1 : 0;
                enum scope level = level_of(p + skip, n - skip);

                if (level != SCOPE_NONE && k->scope_count < KEY_SCOPES_MAX)
                        k->scopes[k->scope_count++] =
                                (struct key_scope){ colon ? mem_strndup(p, resource) : NULL,
                                                    level };
                p += n;
        }
        return k;
}

struct key *key_ref(struct key *k)
{
        k->refs++;
        return k;
}

void key_unref(void *key)
{
        struct key *k = key;

        if (!k || --k->refs > 0)
                return;
        for (size_t i = 0; i < k->scope_count; i++)
                free(k->scopes[i].resource);
        free(k->adapters);
        free(k->agents);
        free(k->name);
        free(k);
}

bool key_may(const struct key *k, const struct route *r)
{
        struct slice resource = route_resource(r);

        if (r->scope == SCOPE_NONE)
                return true;
        for (size_t i = 0; i < k->scope_count; i++) {
                const struct key_scope *s = &k->scopes[i];

                if (s->level >= r->scope && (!s->resource || slice_is(resource, s->resource)))
                        return true;
        }
        return false;
}

/* list: ",a,b," */
static bool lists(const char *list, const char *name)
{
        size_t n = name ? strlen(name) : 0;

        if (n == 0 || strchr(name, ','))
                return false;
        for (const char *p = strstr(list, name); p; p = strstr(p + 1, name))
                if (p[-1] == ',' && p[n] == ',')
                        return true;
        return false;
}

bool key_reaches(const struct key *k, const char *adapter)
{
        return !k->adapters || lists(k->adapters, adapter);
}

void key_set_agents(struct key *k, const char *agents)
{
        free(k->agents);
        k->agents = agents ? mem_printf(",%s,", agents) : NULL;
}

int key_asks(const struct key *k, const char *agent)
{
        if (k->agents)
                return lists(k->agents, agent);
        return k->adapters ? -1 : 1;
}

bool key_may_see(const void *key, const char *adapter)
{
        return key_reaches(key, adapter);
}

bool key_is_live(const struct key *k, int64_t now_ms)
{
        return k->revoked_ms == 0 && (k->expires_ms == 0 || now_ms < k->expires_ms);
}

bool key_spend(struct key *k, int64_t mono_ms, int64_t *wait_ms)
{
        double per_ms = (double)k->rate_limit / 60000.0;

        if (k->rate_limit == 0)
                return true;
        if (k->filled_ms == 0)
                k->tokens = (double)k->rate_limit;
        else
                k->tokens += (double)(mono_ms - k->filled_ms) * per_ms;
        if (k->tokens > (double)k->rate_limit)
                k->tokens = (double)k->rate_limit;
        k->filled_ms = mono_ms > 0 ? mono_ms : 1;
        if (k->tokens < 1) {
                *wait_ms = (int64_t)((1 - k->tokens) / per_ms) + 1;
                return false;
        }
        k->tokens -= 1;
        return true;
}
