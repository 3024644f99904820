/* The story of a message. */
#include <string.h>

#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "road/report/trace_report.h"

#define ID_LONGEST 300

static int tell(struct store_tx *tx, struct read_job *l, struct error *err)
{
        buf_addstr(&l->json, "{\"data\":");
        if (story_tell(tx, l->query, &l->json, err) < 0)
                return -1;
        buf_addch(&l->json, '}');
        return 0;
}

void why_show(struct http_exchange *x)
{
        const char *id = http_param(x, "id");
        struct read_job *l;

        if (!id || id[0] == '\0' || strlen(id) > ID_LONGEST) {
                reply_missing(x, "story", id ? id : "");
                return;
        }
        l = read_job_new(x, id, strlen(id) + 1);
        if (l)
                read_job_run(l, tell);
}
