/*
 * A file in three steps: Slack gives an address, gets the bytes there, and shows the file.
 *
 * Only the last step makes a message. The file's id is stored before it, so that after a lost
 * answer, or a crash, files.info says whether the file was shown. The answer does not say as which
 * message it was: that is asked for, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/adapter_file.h"
#include "platform/slack/sl_blocks.h"
#include "platform/slack/sl_send.h"

#define BYTES_MS     40000 /* with the other steps within limits.deliverySeconds */
#define CALL_MS      10000
#define SHARES       8 /* how often the message's ts is asked for */
#define SHARE_MS     200
#define SHARE_MAX_MS 1500

/* The store reports when the id is committed; the upload may be gone by then. */
struct upload_ticket {
        struct sl_upload *upload; /* NULL: it is */
};

struct sl_upload {
        struct sl_send *send;
        struct http_file file;
        char *name;
        char from[SL_TS_SIZE];
        char id[SL_FILE_SIZE];
        char *url; /* a secret */
        struct upload_ticket *ticket;
        struct timer *timer;
        unsigned asked;
};

static bool is_file_id(const char *text)
{
        size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

        return n > 1 && n < SL_FILE_SIZE && text[n] == '\0';
}

bool sl_upload_read_from(const char *text, char ts[SL_TS_SIZE], char file[SL_FILE_SIZE])
{
        const char *space = text ? strchr(text, ' ') : NULL;

        snprintf(ts, SL_TS_SIZE, "%.*s", space ? (int)(space - text) : 23, text ? text : "");
        if (!sl_ts_valid(ts))
                ts[0] = '\0';
        if (!space || !is_file_id(space + 1))
                return false;
        snprintf(file, SL_FILE_SIZE, "%s", space + 1);
        return ts[0] != '\0';
}

const char *sl_upload_shared_ts(const json_t *file, const char *conversation)
{
        static const char *const kinds[] = { "public", "private" };
        const json_t *shares = json_object_get(file, "shares");

        for (size_t i = 0; i < COUNT(kinds); i++) {
                const json_t *list =
                        json_object_get(json_object_get(shares, kinds[i]), conversation);
                const char *ts = json_str(json_array_get(list, 0), "ts", NULL);

                if (sl_ts_valid(ts))
                        return ts;
        }
        return NULL;
}

struct sl_upload *sl_upload_new(struct sl_send *s, const struct delivery *d, struct error *err)
{
        const char *path = json_str(s->payload, "path", ""), *slash = strrchr(path, '/');
        struct sl_upload *u = mem_zalloc(sizeof(*u));

        u->send = s;
        u->file.fd = -1;
        if (adapter_file_to_send(s->adapter, path, &u->file, err) < 0) {
                sl_upload_free(u);
                return NULL;
        }
        if (u->file.size == 0) {
                error_set(err, ERR_INVALID, "'%.100s' is empty; Slack takes no empty files", path);
                sl_upload_free(u);
                return NULL;
        }
        sl_upload_read_from(d->read_from, u->from, u->id);
        u->id[0] = '\0';
        u->name = mem_strdup(json_str(s->payload, "name", slash ? slash + 1 : path));
        return u;
}

void sl_upload_free(struct sl_upload *u)
{
        if (!u)
                return;
        if (u->ticket)
                u->ticket->upload = NULL;
        timer_free(u->timer);
        adapter_file_close(&u->file);
        free(u->name);
        free(u->url);
        free(u);
}

/* ---- as which message? ---- */

static void ask_shares(void *arg);

static void on_shares(void *arg, const struct sl_answer *a)
{
        struct sl_upload *u = arg;
        struct sl_send *s = u->send;
        const char *ts = sl_upload_shared_ts(json_object_get(a->result, "file"), s->conversation);
        bool again = a->ok || sl_api_is_unavailable(a);

        s->call = NULL;
        if (!ts && again && u->asked < SHARES) {
                if (!u->timer)
                        u->timer = timer_new(s->adapter->loop, ask_shares, u);
                timer_start(u->timer, backoff_ms(u->asked - 1, SHARE_MS, SHARE_MAX_MS));
                return;
        }
        sl_sends_saw(s->sl, ts);
        /* it is there; without its ts only the file can be named */
        sl_send_end(s, &(struct send_result){ .outcome = SEND_DONE,
                                              .platform_id = ts ? ts : u->id,
                                              .retry_after_ms = -1 });
}

static void call(struct sl_upload *u, const char *method, json_t *args, sl_answer_fn *done)
{
        struct sl_send *s = u->send;

        s->call = sl_api_call(s->sl->api,
                              &(struct sl_request){ .method = method,
                                                    .args = args,
                                                    .priority = s->kind->priority,
                                                    .total_ms = CALL_MS,
                                                    .wait_ms = s->kind->wait_ms },
                              done, u);
        json_decref(args);
}

static void ask_shares(void *arg)
{
        struct sl_upload *u = arg;

        u->asked++;
        call(u, "files.info", json_pack("{s:s}", "file", u->id), on_shares);
}

/* ---- the three steps ---- */

static void on_complete(void *arg, const struct sl_answer *a)
{
        struct sl_upload *u = arg;
        struct sl_send *s = u->send;

        s->call = NULL;
        if (!a->ok) {
                sl_send_end_with(s, a, NULL);
                return;
        }
        s->created = true;
        ask_shares(u);
}

static void complete(struct sl_upload *u)
{
        struct sl_send *s = u->send;
        const char *text = json_str(s->payload, "text", "");
        json_t *args = json_pack("{s:[{s:s, s:s}], s:s}", "files", "id", u->id, "title", u->name,
                                 "channel_id", s->conversation),
               *blocks = NULL;
        struct error err = { 0 };

        if (sl_blocks_make(text, json_object_get(s->payload, "buttons"), true, &blocks, &err) < 0) {
                json_decref(args);
                sl_send_end(s, &(struct send_result){ .outcome = SEND_REJECTED,
                                                      .kind = err.kind,
                                                      .why = err.text,
                                                      .retry_after_ms = -1 });
                return;
        }
        if (s->thread)
                json_object_set_new(args, "thread_ts", json_string(s->thread));
        if (blocks) /* instead of the comment */
                json_object_set_new(args, "blocks", blocks);
        else if (*text)
                json_object_set_new(args, "initial_comment", json_string(text));
        s->creating = true;
        call(u, "files.completeUploadExternal", args, on_complete);
}

static void on_bytes(void *arg, const struct sl_answer *a)
{
        struct sl_upload *u = arg;
        struct sl_send *s = u->send;

        s->call = NULL;
        if (a->status == 200) {
                complete(u);
                return;
        }
        sl_send_end(s, &(struct send_result){ .outcome = SEND_RETRY,
                                              .kind = ERR_NET,
                                              .why = a->why ? a->why : "the upload failed",
                                              .retry_after_ms = a->retry_after_ms });
}

static void on_id_stored(void *arg, bool stored)
{
        struct upload_ticket *ticket = arg;
        struct sl_upload *u = ticket->upload;

        free(ticket);
        if (!u)
                return;
        if (!stored) { /* the road closes: adapters follow */
                u->ticket = NULL;
                return;
        }
        u->ticket = NULL;
        u->send->call = sl_api_post(
                u->send->sl->api,
                &(struct sl_post){ .url = u->url, .file = &u->file, .total_ms = BYTES_MS },
                on_bytes, u);
}

static void on_url(void *arg, const struct sl_answer *a)
{
        struct sl_upload *u = arg;
        struct sl_send *s = u->send;
        const char *id = a->ok ? json_str(a->result, "file_id", "") : "",
                   *url = a->ok ? json_str(a->result, "upload_url", "") : "";
        char text[SL_TS_SIZE + SL_FILE_SIZE];

        s->call = NULL;
        if (!a->ok) {
                sl_send_end_with(s, a, NULL);
                return;
        }
        if (!is_file_id(id) || !sl_api_owns_url(s->sl->api, url)) {
                sl_send_end(s, &(struct send_result){
                                       .outcome = SEND_REJECTED,
                                       .kind = ERR_REFUSED,
                                       .why = "Slack named no address of its own for the file",
                                       .retry_after_ms = -1 });
                return;
        }
        snprintf(u->id, sizeof(u->id), "%s", id);
        u->url = mem_strdup(url);
        snprintf(text, sizeof(text), "%s %s", u->from[0] ? u->from : "0.000000", u->id);
        u->ticket = mem_zalloc(sizeof(*u->ticket));
        u->ticket->upload = u;
        if (delivery_store_read_from(s->adapter->road, s->delivery, s->fence, text, on_id_stored,
                                     u->ticket))
                return;
        free(u->ticket);
        u->ticket = NULL;
        sl_send_end(s, &(struct send_result){ .outcome = SEND_RETRY,
                                              .kind = ERR_CANCELLED,
                                              .why = "the road waits for it no more",
                                              .retry_after_ms = -1 });
}

void sl_upload_start(struct sl_upload *u)
{
        call(u, "files.getUploadURLExternal",
             json_pack("{s:s, s:I}", "filename", u->name, "length", (json_int_t)u->file.size),
             on_url);
}
