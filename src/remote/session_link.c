#include "remote/session_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "rows/session_view_row.h"

int session_link_check(struct store_tx *tx, const struct session_caller *by,
                       const struct chat_key *chat, struct error *err)
{
        int64_t taken = by->all ? 0 : session_view_row_count_threads(tx, chat, by->owner, err);

        if (taken > 0)
                error_set(err, ERR_CONFLICT, "the thread is that of another key's session");
        return taken == 0 ? 0 : -1;
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

int session_link_thread(struct store_tx *tx, int64_t session, const struct chat_key *chat,
                        char **out, struct error *err)
{
        struct session_view_row *view;
        int rc = session_view_row_get(tx, session, &view, err);

        *out = NULL;
        /* where it cannot be shown any more, it begins anew */
        if (rc == 1 && !view->error && same(view->adapter, chat->adapter) &&
            same(view->channel, chat->channel) && same(view->thread, chat->thread))
                *out = mem_strdup(view->own_thread);
        free(view);
        return rc < 0 ? -1 : 0;
}

int session_link_write(struct store_tx *tx, struct bus_batch *batch, const struct session_row *row,
                       const struct chat_key *chat, const char *identity, int64_t now_ms,
                       struct error *err)
{
        struct buf json;
        int rc = session_row_link(tx, row->id, chat, identity, err);

        if (rc < 0)
                return -1;
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "sessionId", row->session);
        jsonw_str(&json, "instanceId", chat->adapter);
        jsonw_str(&json, "channel", chat->channel);
        jsonw_str(&json, "threadId", chat->thread);
        jsonw_opt(&json, "identity", identity);
        jsonw_close(&json, '}');
        rc = bus_append(tx, batch,
                        &(struct bus_event){ .type = "session.chat.linked",
                                             .time_ms = now_ms,
                                             .trace = row->trace,
                                             .payload = json.data },
                        NULL, err);
        buf_release(&json);
        return rc < 0 ? -1 : 0;
}
