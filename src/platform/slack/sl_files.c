/* How files that people send are fetched. */
#include "platform/attachment_fetch.h"
#include "platform/slack/slack.h"

static int64_t max_bytes(const struct adapter *a)
{
        return ((const struct slack_conf *)a->conf)->media_max_bytes;
}

static void *locate(struct adapter *a, struct attachment_fetch *f, const char *source)
{
        (void)a;
        (void)source;
        attachment_fetch_fail(f, "files from Slack are not downloaded yet");
        return NULL;
}

const struct attachment_source sl_files = { .max_bytes = max_bytes, .locate = locate };
