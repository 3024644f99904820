#include "remote/session_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"
#include "rows/person_row.h"

#define PREFIX_SCAN 1000 /* sessions, the newest */

static bool is_hidden(const struct session_caller *by, const struct session_row *row)
{
        return !by->all && row->owner != by->owner;
}

int session_find(struct store_tx *tx, const struct session_caller *by, const char *session,
                 struct session_row **out, struct error *err)
{
        int rc = session_row_find(tx, session, out, err);

        if (rc == 1 && is_hidden(by, *out)) {
                free(*out);
                *out = NULL;
                return 0;
        }
        return rc;
}

int session_find_or_add(struct store_tx *tx, const struct session_caller *by, const char *session,
                        int64_t active, int64_t now_ms, struct session_row **out, struct error *err)
{
        char trace[ID_TRACE_SIZE];
        struct session_row row = { .session = session,
                                   .owner = by->owner,
                                   .trace = trace,
                                   .created_ms = now_ms,
                                   .last_event_ms = now_ms };
        int rc = session_find(tx, by, session, out, err);
        int64_t count;

        if (rc != 0)
                return rc < 0 ? -1 : 0;
        count = session_row_count(tx, active, err);
        if (count < 0)
                return -1;
        if (count >= active)
                return error_set(err, ERR_LIMIT,
                                 "%lld sessions are active already, the most there may be "
                                 "(sessions.active)",
                                 (long long)count);
        id_trace(trace);
        rc = session_row_insert(tx, &row, &row.id, err);
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no session '%.130s'", session);
        if (rc < 0)
                return -1;
        *out = session_row_dup(&row);
        return 0;
}

static int missing(const char *text, struct error *err)
{
        return error_set(err, ERR_MISSING, "there is no session '%.130s'", text);
}

static int find_prefix(struct store_tx *tx, const struct session_caller *by, const char *text,
                       struct session_row **out, struct error *err)
{
        struct session_filter f = { .owner = by->all ? -1 : by->owner, .limit = PREFIX_SCAN };
        struct store_stmt *s = session_row_list(tx, &f);
        size_t n = strlen(text), found = 0;
        struct session_row row;
        int rc;

        while ((rc = session_row_next(s, &row, err)) == 1) {
                if (strncmp(row.session, text, n) != 0)
                        continue;
                if (found++ == 0)
                        *out = session_row_dup(&row);
        }
        if (rc == 0 && found == 1)
                return 0;
        free(*out);
        *out = NULL;
        if (rc < 0)
                return -1;
        return found == 0 ? missing(text, err)
                          : error_set(err, ERR_CONFLICT,
                                      "%zu sessions begin with '%.130s'; write more of the id",
                                      found, text);
}

int session_resolve(struct store_tx *tx, const struct session_caller *by, const char *text,
                    struct session_row **out, struct error *err)
{
        bool numbered = strncmp(text, "ses-", 4) == 0;
        char *end = NULL;
        long long number = numbered ? strtoll(text + 4, &end, 10) : 0;
        int rc = 0;

        *out = NULL;
        if (numbered && number > 0 && !*end)
                rc = session_row_get(tx, number, out, err);
        if (rc == 1 && is_hidden(by, *out)) {
                free(*out);
                *out = NULL;
                rc = 0;
        }
        if (rc == 0)
                rc = session_find(tx, by, text, out, err);
        if (rc == 0 && strlen(text) >= SESSION_PREFIX_MIN && !numbered)
                return find_prefix(tx, by, text, out, err);
        return rc == 0 ? missing(text, err) : rc < 0 ? -1 : 0;
}

int session_find_person(struct store_tx *tx, const char *account, int64_t *person, char **name,
                        struct error *err)
{
        const char *colon = account ? strchr(account, ':') : NULL;
        struct identity_row known = { 0 };
        struct person_row row;
        char *platform;
        int rc;

        *person = 0;
        *name = NULL;
        if (!colon)
                return 0;
        platform = mem_strndup(account, (size_t)(colon - account));
        rc = person_row_get_identity(tx, &(struct identity){ platform, colon + 1 }, &known, err);
        free(platform);
        if (rc != 1 || known.person == 0)
                return rc < 0 ? -1 : 0;
        *person = known.person;
        rc = person_row_get(tx, known.person, &row, err);
        if (rc == 1)
                *name = row.name;
        return rc < 0 ? -1 : 0;
}
