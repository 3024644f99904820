#include "schedule/event_address.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/settings.h"

#define LISTED_MOST 8

/* "; there is 'tg', 'slack'" */
static void list_adapters(const struct event_address_query *q, const char *after, struct buf *out)
{
        for (size_t i = 0; i < q->count && i < LISTED_MOST; i++)
                buf_addf(out, "%s'%.40s%s'", i > 0 ? ", " : "", q->adapters[i].name, after);
        if (q->count == 0)
                buf_addstr(out, "none");
}

static int unknown_adapter(const struct event_address_query *q, const char *name, struct error *err)
{
        const char **names = mem_array(q->count + 1, sizeof(*names)), *nearest;
        struct buf known;

        for (size_t i = 0; i < q->count; i++)
                names[i] = q->adapters[i].name;
        nearest = settings_nearest(name, names);
        buf_init(&known, 0);
        list_adapters(q, "", &known);
        if (nearest)
                error_set(err, ERR_MISSING,
                          "channelId: there is no adapter '%.60s' (did you mean '%s'?)", name,
                          nearest);
        else
                error_set(err, ERR_MISSING,
                          "channelId: there is no adapter '%.60s'; the configured ones are %s",
                          name, known.data);
        buf_release(&known);
        free(names);
        return -1;
}

/* The one adapter that a bare channel can mean; NULL: none, or several. */
static const char *only_adapter(const struct event_address_query *q)
{
        static const struct {
                const char *is, *is_not, *nor;
        } kinds[] = {
                { "slack", NULL, NULL }, /* mom's */
                { NULL, "api", "cli" },  /* where people chat */
                { NULL, NULL, NULL },
        };

        for (size_t k = 0; k < COUNT(kinds); k++) {
                const char *found = NULL;
                size_t n = 0;

                for (size_t i = 0; i < q->count; i++) {
                        const char *platform = q->adapters[i].platform;

                        if ((kinds[k].is && strcmp(platform, kinds[k].is) != 0) ||
                            (kinds[k].is_not && strcmp(platform, kinds[k].is_not) == 0) ||
                            (kinds[k].nor && strcmp(platform, kinds[k].nor) == 0))
                                continue;
                        found = q->adapters[i].name;
                        n++;
                }
                if (n > 0)
                        return n == 1 ? found : NULL;
        }
        return NULL;
}

static int find_home(const struct event_address_query *q, const char **adapter,
                     const char **channel, struct error *err)
{
        size_t n = strlen(q->home_adapter);

        *adapter = q->home_adapter;
        *channel = q->home_channel;
        if (!q->id || strcmp(q->id, q->home_channel) == 0 ||
            (strncmp(q->id, q->home_adapter, n) == 0 && q->id[n] == '/' &&
             strcmp(q->id + n + 1, q->home_channel) == 0))
                return 0;
        return error_set(err, ERR_REFUSED,
                         "channelId: '%.100s' is another chat; a file in the folder of a chat can "
                         "only mean that chat, '%.60s/%.100s' (channelId may be left out)",
                         q->id, q->home_adapter, q->home_channel);
}

int event_address_find(const struct event_address_query *q, const char **adapter,
                       const char **channel, struct error *err)
{
        const char *slash = q->id ? strchr(q->id, '/') : NULL;
        struct buf known;

        if (q->home_adapter)
                return find_home(q, adapter, channel, err);
        if (!q->id)
                return error_set(err, ERR_INVALID,
                                 "missing key 'channelId', the chat as \"adapter/channel\"");
        *channel = slash ? slash + 1 : q->id;
        if (slash && slash[1]) {
                for (size_t i = 0; i < q->count; i++) {
                        *adapter = q->adapters[i].name;
                        if (strlen(*adapter) == (size_t)(slash - q->id) &&
                            strncmp(*adapter, q->id, strlen(*adapter)) == 0)
                                return 0;
                }
                char *name = mem_strndup(q->id, (size_t)(slash - q->id));
                int rc = unknown_adapter(q, name, err);

                free(name);
                return rc;
        }
        *adapter = slash ? NULL : only_adapter(q);
        if (*adapter)
                return 0;
        buf_init(&known, 0);
        list_adapters(q, "/...", &known);
        error_set(err, ERR_INVALID,
                  "channelId: '%.100s' does not say which adapter; expected \"adapter/channel\", "
                  "with one of %s",
                  q->id, known.data);
        buf_release(&known);
        return -1;
}
