#include "remote/session_journal.h"

#include <stdio.h>

void session_journal_begin(struct buf *payload, const struct session_row *session)
{
        char id[32];

        snprintf(id, sizeof(id), "ses-%lld", (long long)session->id);
        buf_init(payload, 0);
        jsonw_open(payload, '{');
        jsonw_str(payload, "sessionId", session->session);
        jsonw_str(payload, "session", id);
}

int session_journal_end(struct store_tx *tx, struct bus_batch *batch,
                        const struct session_row *session, struct bus_event *e, struct buf *payload,
                        struct error *err)
{
        int rc;

        jsonw_close(payload, '}');
        e->trace = session->trace;
        e->payload = payload->data;
        rc = bus_append(tx, batch, e, NULL, err);
        buf_release(payload);
        return rc < 0 ? -1 : 0;
}
