/*
 * Files: an upload in three steps, their bytes, and downloads with the token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/multipart.h"
#include "sim/slack/sl_compose.h"
#include "sim/slack/sl_file.h"
#include "sim/slack/sl_methods.h"

#define MAX_NAME 255

int sl_method_upload_url(struct slack_call *c)
{
        const char *name = sl_call_text(c, "filename"), *alt = sl_call_text(c, "alt_txt");
        int64_t length = sl_call_int(c, "length", 0);
        struct slack_file *f;
        char secret[33], *url;

        if (!name || strlen(name) > MAX_NAME)
                return sl_call_fail_because(c, "invalid_arguments", "filename is not usable");
        if (length <= 0 || length > (int64_t)SL_FILE_MAX)
                return sl_call_fail_because(c, "invalid_arguments",
                                            "length must be between 1 and %zu", SL_FILE_MAX);
        f = sl_file_new(c->world, c->app->user, name);
        f->length = length;
        f->alt_text = mem_strdup(alt);
        f->upload_token = mem_strdup(id_random_text(secret, 32));
        map_put(&c->world->uploads, f->upload_token, f);
        url = mem_printf("%s/upload/v1/%s", c->world->base_url, f->upload_token);
        sl_call_set(c, "upload_url", url);
        sl_call_set(c, "file_id", f->id);
        free(url);
        return 0;
}

/* ---- the bytes ---- */

static void answer_text(struct http_exchange *x, int status, const char *text)
{
        http_answer(x, status, "text/plain", text, strlen(text));
}

/* Raw bytes, or the first part with a file name. */
static int find_bytes(const struct http_exchange *x, struct multipart *parts, const char **data,
                      size_t *n)
{
        const char *type = http_header(x, "Content-Type");
        struct error err = { 0 };

        *data = http_body(x, n);
        if (!multipart_is(type))
                return 0;
        if (multipart_init(parts, type, *data, *n, &err) != 0)
                return -1;
        for (size_t i = 0; i < parts->count; i++) {
                if (parts->parts[i].file_name || i + 1 == parts->count) {
                        *data = parts->parts[i].data;
                        *n = parts->parts[i].n;
                        return 0;
                }
        }
        return -1;
}

void sl_file_upload(struct http_exchange *x)
{
        struct slack_world *w = http_server_arg(x);
        struct slack_file *f = map_get(&w->uploads, http_param(x, "token"));
        const struct fault *fault = faults_fire(&w->base.faults, FAULT_ERROR, "upload");
        struct multipart parts = { 0 };
        const char *data;
        char text[40];
        size_t n;

        if (faults_fire(&w->base.faults, FAULT_CUT_BEFORE, "upload")) {
                http_cut(x);
                return;
        }
        if (fault || !f || f->complete || find_bytes(x, &parts, &data, &n) != 0 ||
            (int64_t)n != f->length) {
                answer_text(x,
                            fault ? fault->status
                            : !f  ? 404
                                  : 400,
                            fault || !f ? "not found" : "the length is not that announced");
                multipart_release(&parts);
                return;
        }
        sl_file_store(w, f, data, n);
        multipart_release(&parts);
        if (faults_fire(&w->base.faults, FAULT_CUT_AFTER, "upload")) {
                http_cut(x);
                return;
        }
        snprintf(text, sizeof(text), "OK - %zu", n);
        answer_text(x, 200, text);
}

/* Without a token that may read it, Slack shows its login page, with status 200. */
void sl_file_download(struct http_exchange *x)
{
        static const char login[] = "<!DOCTYPE html><html><head><title>Sign in | Slack</title>"
                                    "</head><body>Sign in to your workspace</body></html>";
        struct slack_world *w = http_server_arg(x);
        const char *header = http_header(x, "Authorization"), *at = http_param(x, "file");
        const char *id = at ? strrchr(at, '-') : NULL;
        const struct slack_file *f = id ? sl_file_find(w, id + 1) : NULL;
        const struct slack_app *a = header && strncasecmp(header, "Bearer ", 7) == 0
                                            ? sl_app_by_token(w, header + 7)
                                            : NULL;
        const struct fault *fault = faults_fire(&w->base.faults, FAULT_ERROR, "download");
        struct buf *b = journal_open(w->base.calls, "download", 0);

        jsonw_str(b, "file", id ? id + 1 : "");
        jsonw_bool(b, "token", a != NULL);
        journal_close(w->base.calls);
        if (fault)
                answer_text(x, fault->status, "simulated fault");
        else if (!a || a->token_error || !sl_app_has_scope(a, "files:read"))
                http_answer(x, 200, "text/html; charset=utf-8", login, strlen(login));
        else if (!f || f->deleted || !f->complete || !f->data)
                answer_text(x, 404, "not found");
        else
                http_answer(x, 200, f->mimetype, f->data, f->n);
}

/* ---- sharing ---- */

/* Posts the message with the files. */
static int share(struct slack_call *c)
{
        const json_t *list = json_object_get(c->args, "files"), *item;
        const char *to = sl_call_text(c, "channel_id") ? "channel_id" : "channels";
        struct slack_message *m = sl_message_new(sl_channel_find(c->world, sl_call_text(c, to)),
                                                 c->app->user, sl_call_text(c, "initial_comment"));
        size_t i;

        m->app = c->app;
        m->subtype = mem_strdup("file_share");
        sl_method_set_thread(c, m, sl_call_text(c, "thread_ts"));
        m->blocks = json_incref(json_object_get(c->args, "blocks"));
        m->files = json_array();
        json_array_foreach(list, i, item) {
                struct slack_file *f = sl_file_find(c->world, json_str(item, "id", ""));

                json_array_append_new(m->files, json_string(f->id));
                sl_file_share(f, m);
        }
        sl_method_posted(c, m, "message");
        json_array_foreach(list, i, item) {
                sl_event_file_shared(c->world, sl_file_find(c->world, json_str(item, "id", "")),
                                     m->channel, c->app->user);
        }
        return 0;
}

static int check_list(struct slack_call *c, const json_t *list)
{
        const json_t *item;
        size_t i;

        if (json_array_size(list) == 0)
                return sl_call_fail_because(c, "invalid_arguments", "files must name files");
        json_array_foreach(list, i, item) {
                const struct slack_file *f = sl_file_find(c->world, json_str(item, "id", ""));

                if (!f || f->user != c->app->user || f->complete || f->deleted)
                        return sl_call_fail(c, "file_not_found");
                if (!f->uploaded)
                        return sl_call_fail(c, "file_not_uploaded");
        }
        return 0;
}

int sl_method_complete_upload(struct slack_call *c)
{
        json_t *list = json_object_get(c->args, "files"), *item, *files;
        const char *to = sl_call_text(c, "channel_id") ? "channel_id" : "channels";
        struct slack_channel *channel = NULL;
        char problem[SL_SPEC_PROBLEM_SIZE] = "";
        const json_t *blocks = json_object_get(c->args, "blocks");
        size_t i;

        if (check_list(c, list) != 0 ||
            (sl_call_text(c, to) && !(channel = sl_call_member_of(c, to))))
                return -1;
        if (sl_call_text(c, "thread_ts") && sl_message_parse_ts(sl_call_text(c, "thread_ts")) < 0)
                return sl_call_fail(c, "invalid_thread_ts");
        if (blocks && sl_compose_check_blocks(blocks, SL_BLOCKS_MAX, problem))
                return sl_call_fail_because(c, "invalid_blocks", "%s", problem);
        files = json_array();
        json_array_foreach(list, i, item) {
                struct slack_file *f = sl_file_find(c->world, json_str(item, "id", ""));
                const char *title = json_str(item, "title", f->name);

                char *copy = mem_strdup(title);

                free(f->title);
                f->title = copy;
                f->complete = true;
                json_array_append_new(files, sl_render_file(c->world, f));
        }
        /* Slack answers before it shares them, and does not say where */
        sl_call_set_new(c, "files", files);
        if (channel && c->world->settings.share_ms > 0)
                sl_call_later(c, c->world->settings.share_ms, share);
        else if (channel)
                share(c);
        return 0;
}

/* ---- after that ---- */

/* Of its workspace, or shared where it is a member. */
static bool may_see(const struct slack_call *c, const struct slack_file *f)
{
        json_t *conversations, *shares;
        const char *kind, *id;

        if (f->team == c->app->team)
                return true;
        json_object_foreach(f->shares, kind, conversations) {
                json_object_foreach(conversations, id, shares) {
                        const struct slack_channel *channel = sl_channel_find(c->world, id);

                        (void)shares;
                        if (channel && sl_channel_has(channel, c->app->user))
                                return true;
                }
        }
        return false;
}

static struct slack_file *file_of(struct slack_call *c)
{
        struct slack_file *f = sl_file_find(c->world, sl_call_text(c, "file"));

        if (!f || !f->complete || !may_see(c, f))
                sl_call_fail(c, "file_not_found");
        else if (f->deleted)
                sl_call_fail(c, "file_deleted");
        else
                return f;
        return NULL;
}

/* The conversations where it is shared; those of direct messages begin with D. */
static json_t *shared_in(const struct slack_file *f, const char *where, bool direct)
{
        json_t *list = json_array(), *shares;
        const char *id;

        json_object_foreach(json_object_get(f->shares, where), id, shares) {
                (void)shares;
                if ((*id == 'D') == direct)
                        json_array_append_new(list, json_string(id));
        }
        return list;
}

int sl_method_file_info(struct slack_call *c)
{
        const struct slack_file *f = file_of(c);
        json_t *file;

        if (!f)
                return -1;
        file = sl_render_file(c->world, f);
        json_object_set(file, "shares", f->shares);
        json_object_set_new(file, "channels", shared_in(f, "public", false));
        json_object_set_new(file, "groups", shared_in(f, "private", false));
        json_object_set_new(file, "ims", shared_in(f, "private", true));
        json_object_set_new(file, "comments_count", json_integer(0));
        sl_call_set_new(c, "file", file);
        sl_call_set_new(c, "comments", json_array());
        sl_call_set_new(c, "response_metadata", json_pack("{s:s}", "next_cursor", ""));
        return 0;
}

int sl_method_file_delete(struct slack_call *c)
{
        struct slack_file *f = file_of(c);
        struct buf *b;

        if (!f)
                return -1;
        if (f->user != c->app->user)
                return sl_call_fail(c, "cant_delete_file");
        f->deleted = true;
        b = sl_call_record(c, "file_delete", NULL);
        jsonw_str(b, "file", f->id);
        journal_close(c->world->base.sent);
        return 0;
}
