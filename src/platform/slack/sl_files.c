/*
 * How files that people send are fetched: from Slack's own hosts only, with the token in a header,
 * and without following redirects, which could carry it elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/attachment_fetch.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/slack.h"

#define PAGE_WHY                                                                                   \
        "Slack sent a page to log in instead of the file: the app lacks the scope files:read, or " \
        "is not where the file was shared"

static int64_t max_bytes(const struct adapter *a)
{
        return ((const struct slack_conf *)a->conf)->media_max_bytes;
}

static void fetch_from(struct slack *sl, struct attachment_fetch *f, const char *url)
{
        char *authorization;

        if (!sl_api_owns_url(sl->api, url)) {
                attachment_fetch_fail(f, "it is not on one of Slack's hosts");
                return;
        }
        authorization = mem_printf("Authorization: Bearer %s", secret_reveal(sl->bot_token));
        attachment_fetch_with(f, &(struct attachment_place){ .url = url,
                                                             .header = authorization,
                                                             .page_why = PAGE_WHY });
        explicit_bzero(authorization, strlen(authorization));
        free(authorization);
}

/* Slack Connect shows only the file's id: its address is asked for. */
static void on_info(void *arg, const struct sl_answer *a)
{
        struct attachment_fetch *f = arg;
        const json_t *file = json_object_get(a->result, "file");
        const char *url =
                json_str(file, "url_private_download", json_str(file, "url_private", NULL));
        char why[300];

        if (a->ok && url) {
                fetch_from(attachment_fetch_adapter(f)->self, f, url);
        } else if (a->ok) {
                attachment_fetch_fail(f, "Slack does not say where it is");
        } else {
                snprintf(why, sizeof(why), "%s", a->why);
                if (sl_api_is_unavailable(a))
                        attachment_fetch_retry(f, why);
                else
                        attachment_fetch_fail(f, why);
        }
}

static void *locate(struct adapter *a, struct attachment_fetch *f, const char *source)
{
        struct slack *sl = a->self;
        size_t n = strlen(SL_FILE_SOURCE);
        struct sl_call *call;
        json_t *args;

        if (strncmp(source, SL_FILE_SOURCE, n) != 0) {
                fetch_from(sl, f, source);
                return NULL;
        }
        args = json_pack("{s:s}", "file", source + n);
        call = sl_api_call(
                sl->api,
                &(struct sl_request){ .method = "files.info", .args = args, .priority = SL_IDLE },
                on_info, f);
        json_decref(args);
        return call;
}

static void cancel(void *lookup)
{
        sl_api_abort(lookup);
}

const struct attachment_source sl_files = { .max_bytes = max_bytes,
                                            .locate = locate,
                                            .cancel = cancel };
