#include "api/resources/access_subject.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/settings.h"
#include "platform/platform.h"
#include "rows/person_row.h"

#define CANDIDATES 5
#define ANYWAY     "; with \"force\": true (--force) it is stored anyway"

void access_subject_release(struct access_subject *s)
{
        free(s->found);
        buf_release(&s->others);
        buf_release(&s->details);
}

/* ---- without the store ---- */

/* "telegram:7" → 8; 0: no platform. */
static size_t prefix_length(const char *user)
{
        size_t n = 0;

        while (islower((unsigned char)user[n]))
                n++;
        return n > 0 && user[n] == ':' ? n : 0;
}

static int unknown_platform(const char *user, size_t n, struct error *err)
{
        const char *names[ACCESS_SUBJECT_PLATFORMS * 4 + 1] = { NULL };
        char *given = mem_strndup(user, n);
        const char *near;

        for (size_t i = 0; i + 1 < COUNT(names) && platform_kinds[i]; i++)
                names[i] = platform_kinds[i]->name;
        near = settings_nearest(given, names);
        error_set(err, ERR_INVALID, "platformUserId: there is no platform '%.60s'%s%s%s" ANYWAY,
                  given, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        free(given);
        return -1;
}

struct platform_search {
        struct access_subject *subject;
        const char *adapter, *id;
        bool any;   /* an adapter checks access at all */
        bool is_id; /* the text may be an id on one of them */
};

static void consider(void *arg, struct adapter *a)
{
        struct platform_search *q = arg;
        struct access_subject *s = q->subject;
        size_t i = 0;

        if (a->ops->trusted || (q->adapter && strcmp(q->adapter, a->name) != 0))
                return;
        q->any = true;
        q->is_id = q->is_id || !a->ops->is_id || a->ops->is_id(q->id);
        while (i < s->platform_count && strcmp(s->platforms[i], a->ops->name) != 0)
                i++;
        if (i == s->platform_count && i < ACCESS_SUBJECT_PLATFORMS)
                s->platforms[s->platform_count++] = a->ops->name;
}

int access_subject_check(struct access_subject *s, struct adapters *all, const char *adapter,
                         struct error *err)
{
        struct platform_search q = { .subject = s, .adapter = adapter, .id = s->user };
        size_t n = s->user ? prefix_length(s->user) : 0;
        const struct platform_ops *ops = NULL;
        char *platform;

        if (s->person > 0)
                return 0;
        if (n > 0) {
                platform = mem_strndup(s->user, n);
                ops = platform_find(platform);
                free(platform);
                if (!ops)
                        return unknown_platform(s->user, n, err);
                if (strchr(s->user, '*') || !ops->is_id || ops->is_id(s->user + n + 1))
                        return 1;
                s->platforms[s->platform_count++] = ops->name;
                s->user += n + 1;
                return 0;
        }
        if (strchr(s->user, '*'))
                return 1;
        adapters_each(all, consider, &q);
        return !q.any || q.is_id ? 1 : 0;
}

/* ---- in the store ---- */

static bool concerns(const struct access_subject *s, const char *platform)
{
        for (size_t i = 0; i < s->platform_count; i++) {
                if (strcmp(s->platforms[i], platform) == 0)
                        return true;
        }
        return s->platform_count == 0;
}

static void add_candidate(struct access_subject *s, const struct identity_named *n)
{
        char *id = mem_printf("%s:%s", n->identity.platform, n->identity.user);
        struct buf label;

        buf_init(&label, 0);
        if (n->name)
                buf_addf(&label, "%.40s%s", n->name, n->username ? ", " : "");
        if (n->username)
                buf_addf(&label, "@%.40s", n->username);
        buf_addf(&s->others, "%s%s (%s)", s->others.len > 0 ? ", " : "", id, label.data);
        jsonw_open(&s->details, '{');
        jsonw_str(&s->details, "id", id);
        jsonw_str(&s->details, "label", label.data);
        jsonw_close(&s->details, '}');
        buf_release(&label);
        free(id);
}

static int read_named(struct store_tx *tx, struct access_subject *s, const char *name, bool similar,
                      struct error *err)
{
        struct store_stmt *rows = person_row_list_named(tx, name, similar);
        struct identity_named n;
        unsigned accounts = 0;
        int rc;

        buf_clear(&s->details);
        jsonw_open_member(&s->details, "candidates", '[');
        while ((rc = person_row_next_named(rows, &n, err)) == 1) {
                if (!concerns(s, n.identity.platform))
                        continue;
                if (!similar && n.person != s->found_person) {
                        s->count++;
                        s->found_person = n.person;
                }
                if (!similar && accounts == 0)
                        s->found = mem_printf("%s:%s", n.identity.platform, n.identity.user);
                if (accounts++ < CANDIDATES)
                        add_candidate(s, &n);
        }
        jsonw_close(&s->details, ']');
        if (accounts == 1 && !similar)
                s->found_person = 0;
        else if (accounts > 1) {
                free(s->found);
                s->found = NULL;
        }
        return rc;
}

int access_subject_read(struct store_tx *tx, void *subject, struct error *err)
{
        struct access_subject *s = subject;
        const char *name = s->user ? s->user + (*s->user == '@') : NULL;
        int64_t into;
        int rc;

        /* a transaction may run again */
        free(s->found);
        s->found = NULL;
        s->found_person = 0;
        s->count = 0;
        buf_clear(&s->others);
        if (s->person > 0) {
                rc = person_row_get_alias(tx, s->person, &into, err);
                s->count = rc == 1;
                return rc < 0 ? -1 : 0;
        }
        if (read_named(tx, s, name, false, err) < 0)
                return -1;
        return s->count > 0 ? 0 : read_named(tx, s, name, true, err);
}

int access_subject_found(const struct access_subject *s, struct error *err)
{
        if (s->person > 0 && s->count == 0)
                return error_set(err, ERR_INVALID, "personId: there is no person 'per-%lld'" ANYWAY,
                                 (long long)s->person);
        if (s->count > 1)
                return error_set(err, ERR_CONFLICT, "'%.60s' may be %s: name one of them", s->user,
                                 s->others.data);
        if (s->count == 0)
                return error_set(err, ERR_INVALID,
                                 "platformUserId: nobody called '%.60s' has written yet%s%s%s, and "
                                 "it is no id" ANYWAY,
                                 s->user, s->others.len > 0 ? " (did you mean " : "",
                                 s->others.data, s->others.len > 0 ? "?)" : "");
        return 0;
}
