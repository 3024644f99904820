/*
 * Where Telegram has a file is asked with getFile, when its turn to be downloaded has come;
 * platform/fetch.c does the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "platform/telegram/telegram.h"

#define ASK_MS 10000

/* Telegram's path with each part encoded; NULL when it is none we would ask for. */
static char *encode_path(const char *path)
{
        char *copy, *rest, *part;
        struct buf out;

        if (path[0] == '/' || strstr(path, ".."))
                return NULL;
        copy = rest = mem_strdup(path);
        buf_init(&out, 0);
        while ((part = strsep(&rest, "/"))) {
                char *safe = http_text_escape(part);

                buf_addf(&out, "%s%s", out.len > 0 ? "/" : "", safe);
                free(safe);
        }
        free(copy);
        return buf_take(&out);
}

static bool is_transient(const struct tg_answer *answer)
{
        return !answer->genuine || answer->status == 429 || answer->status >= 500;
}

/* Telegram knows the file: downloads it from where it says. */
static void fetch_from(struct telegram *tg, struct fetch *f, const json_t *file)
{
        const char *path = json_str(file, "file_path", ""),
                   *refusal = fetch_refusal(&tg->intake.fetches, json_int(file, "file_size", 0));
        char *encoded = path[0] && !refusal ? encode_path(path) : NULL, *url;

        if (encoded) {
                url = tg_url(tg, "/file", encoded);
                fetch_at(f, url);
                tg_url_free(url);
        } else if (refusal) {
                fetch_fail(f, refusal);
        } else {
                fetch_fail(f, path[0] == '/'
                                      ? "the Bot API server keeps its files for itself (--local)"
                                      : "Telegram gave no path to download it from");
        }
        free(encoded);
}

static void on_file(void *arg, const struct tg_answer *answer)
{
        struct fetch *f = arg;

        if (answer->ok)
                fetch_from(fetch_adapter(f)->self, f, answer->result);
        else if (is_transient(answer))
                fetch_fail_for_now(f, answer->why);
        else
                fetch_fail(f, answer->why);
}

static void *locate(struct adapter *a, struct fetch *f, const char *file_id)
{
        json_t *params = json_pack("{s:s}", "file_id", file_id);
        struct tg_call *call = tg_call_start(a->self,
                                             &(struct tg_request){ .method = "getFile",
                                                                   .params = params,
                                                                   .total_ms = ASK_MS,
                                                                   .repeatable = true },
                                             on_file, f);

        json_decref(params);
        return call;
}

static void forget(void *call)
{
        tg_call_abort(call);
}

void tg_fetches_init(struct telegram *tg)
{
        tg->intake.fetches = (struct fetches){ .adapter = tg->adapter,
                                               .from = "Telegram",
                                               .max_bytes = tg->conf->media_max_bytes,
                                               .locate = locate,
                                               .forget = forget };
        fetches_init(&tg->intake.fetches);
}
