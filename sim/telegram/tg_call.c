#include "sim/telegram/tg_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_methods.h"
#include "sim/telegram/tg_updates.h"

#define OK_HEAD    "{\"ok\":true,\"result\":"
#define FAULT_TEXT "Internal Server Error: simulated fault"

static void run(struct call *c);

static void call_free(struct call *c)
{
        call_base_release(&c->base);
        while (c->fetched) {
                struct fetched *f = c->fetched;

                c->fetched = f->next;
                free(f->url);
                free(f);
        }
        http_call_abort(c->fetching);
        json_decref(c->args);
        multipart_release(&c->uploads);
        buf_release(&c->out);
        free(c->wants_url);
        free(c);
}

int tg_call_fail(struct call *c, int status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(c->description, sizeof(c->description), fmt, ap);
        va_end(ap);
        c->status = status;
        return -1;
}

int tg_call_true(struct call *c)
{
        jsonw_bool(&c->out, NULL, true);
        return 0;
}

/* ---- the answer ---- */

static void write_error(struct buf *b, int status, const char *description, int64_t retry_after,
                        int64_t migrate_to)
{
        buf_clear(b);
        jsonw_open(b, '{');
        jsonw_bool(b, "ok", false);
        jsonw_int(b, "error_code", status);
        jsonw_str(b, "description", description);
        if (retry_after || migrate_to) {
                jsonw_open_member(b, "parameters", '{');
                if (retry_after)
                        jsonw_int(b, "retry_after", retry_after);
                if (migrate_to)
                        jsonw_int(b, "migrate_to_chat_id", migrate_to);
                jsonw_close(b, '}');
        }
        jsonw_close(b, '}');
}

static void record(const struct call *c, struct journal *j)
{
        struct buf *b = journal_open(j, c->method->name, 0);
        char *args = json_text(c->args);

        jsonw_str(b, "method", c->method->name);
        jsonw_int(b, "bot", c->bot->user.id);
        jsonw_bool(b, "valid", c->base.valid);
        if (!c->base.valid)
                jsonw_str(b, "problem", c->problem);
        jsonw_int(b, "status", c->status);
        if (c->status != 200)
                jsonw_str(b, "description", c->description);
        jsonw_int(b, "micros", call_base_micros(&c->base));
        if (strlen(args) <= CALL_BASE_MAX_ARGS)
                jsonw_raw(b, "parameters", args);
        journal_close(j);
        free(args);
}

static void deliver(struct call *c)
{
        struct http_exchange *x = c->x;

        c->x = NULL;
        if (x && c->base.cut)
                http_cut(x);
        else if (x) {
                size_t n = c->out.len;

                if (c->retry_after) {
                        char text[24];

                        snprintf(text, sizeof(text), "%lld", (long long)c->retry_after);
                        http_add_header(x, "Retry-After", text);
                }
                http_answer_take(x, c->status, "application/json", buf_take(&c->out), n);
        }
        call_free(c);
}

static void fail_late(struct call *c, int status)
{
        c->status = status;
        write_error(&c->out, status, FAULT_TEXT, 0, 0);
}

static const struct call_ops ops = {
        .record = record,
        .fail_late = fail_late,
        .deliver = deliver,
};

void tg_call_finish(struct call *c)
{
        if (c->status == 200) {
                if (c->note)
                        jsonw_str(&c->out, "description", c->note);
                jsonw_close(&c->out, '}');
        } else {
                write_error(&c->out, c->status, c->description, c->retry_after, c->migrate_to);
        }
        call_base_finish(&c->base);
}

/* ---- parameters ---- */

static void read_parts(struct call *c)
{
        for (size_t i = 0; i < c->uploads.count; i++) {
                const struct multipart_part *p = &c->uploads.parts[i];
                char *reference;

                if (!p->file_name) {
                        json_object_set_new(c->args, p->name, json_stringn(p->data, p->n));
                        continue;
                }
                /* a parameter of the same name gets the file; others use attach:// */
                reference = mem_printf("attach://%s", p->name);
                if (tg_spec_has_parameter(c->method, p->name))
                        json_object_set_new(c->args, p->name, json_string(reference));
                free(reference);
        }
}

/* Reads JSON, multipart or a form. -1 after tg_call_fail. */
static int read_body(struct call *c)
{
        const char *type = http_header(c->x, "Content-Type");
        size_t n;
        const char *body = http_body(c->x, &n);
        struct error err = { 0 };

        if (n == 0 || !type)
                return 0;
        if (strncasecmp(type, "application/json", 16) == 0) {
                json_t *value = json_read(body, n, &err);

                if (!json_is_object(value)) {
                        json_decref(value);
                        return tg_call_fail(c, 400, "Bad Request: can't parse JSON: %s", err.text);
                }
                json_object_update(c->args, value);
                json_decref(value);
                return 0;
        }
        if (multipart_is(type)) {
                if (multipart_init(&c->uploads, type, body, n, &err) != 0)
                        return tg_call_fail(c, 400, "Bad Request: can't parse multipart body: %s",
                                            err.text);
                read_parts(c);
                return 0;
        }
        if (strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0 &&
            call_base_read_form(body, n, c->args) != 0)
                return tg_call_fail(c, 400, "Bad Request: can't parse the form");
        return 0; /* like the real server, ignore other types */
}

static int check(struct call *c)
{
        if (tg_spec_check(c->method, c->args, c->problem) == 0)
                return 0;
        c->base.valid = false;
        if (!c->world->base.strict)
                return 0;
        return tg_call_fail(c, 400, "Bad Request: %s", c->problem);
}

const struct multipart_part *tg_call_upload(const struct call *c, const char *parameter)
{
        const char *value = json_str(c->args, parameter, NULL);

        return value && strncmp(value, "attach://", 9) == 0 ? multipart_find(&c->uploads, value + 9)
                                                            : NULL;
}

/* ---- faults ---- */

static int fail_flood(struct call *c, int64_t retry_after)
{
        c->retry_after = retry_after;
        return tg_call_fail(c, 429, "Too Many Requests: retry after %lld", (long long)retry_after);
}

/* Fails the call, or marks it for its end. */
static int check_faults(struct call *c)
{
        const struct fault *f = call_base_fault(&c->base, c->method->name);

        if (!f)
                return 0;
        if (f->kind == FAULT_CUT_BEFORE)
                return tg_call_fail(c, 599, "cut before the effect");
        if (f->kind == FAULT_ERROR)
                return tg_call_fail(c, f->status, "%s",
                                    f->description[0] ? f->description : FAULT_TEXT);
        return fail_flood(c, (int64_t)f->retry_after);
}

/* ---- running ---- */

static struct call *call_new(struct bot *b, const struct tg_spec_method *m, struct http_exchange *x)
{
        struct call *c = mem_zalloc(sizeof(*c));

        call_base_init(&c->base, &b->world->base, &ops);
        c->world = b->world;
        c->bot = b;
        c->method = m;
        c->x = x;
        c->status = 200;
        buf_init(&c->out, 0);
        return c;
}

static void on_fetched(void *arg, const struct http_result *r)
{
        struct call *c = arg;
        struct fetched *f;

        c->fetching = NULL;
        if (r->status != 200) {
                tg_call_fail(c, 400, "Bad Request: failed to get HTTP URL content");
                tg_call_finish(c);
                return;
        }
        f = mem_zalloc(sizeof(*f));
        f->url = c->wants_url;
        c->wants_url = NULL;
        f->file = tg_files_add(c->world->files, "documents", strrchr(f->url, '/') + 1, NULL,
                               r->body, r->body_n);
        f->next = c->fetched;
        c->fetched = f;
        run(c);
}

static void fetch(struct call *c)
{
        static const struct http_handlers handlers = { .on_done = on_fetched };
        struct http_request request = { .url = c->wants_url,
                                        .total_ms = 20000,
                                        .max_body = FILES_MAX_DOWNLOAD,
                                        .repeatable = true,
                                        .follow = true };

        c->fetching = http_call_start(c->world->base.client, &request, &handlers, c);
}

/* Answers a method that is not simulated, if the type of its result allows it. */
static int answer_empty(struct call *c)
{
        switch (c->method->returns) {
        case TG_SPEC_RETURNS_TRUE:
                return tg_call_true(c);
        case TG_SPEC_RETURNS_LIST:
                buf_addstr(&c->out, "[]");
                return 0;
        case TG_SPEC_RETURNS_INTEGER:
                jsonw_int(&c->out, NULL, 0);
                return 0;
        default:
                return tg_call_fail(c, 400, "Bad Request: method is not simulated");
        }
}

static void run(struct call *c)
{
        method_fn *method = tg_methods_find(c->method);
        int rc;

        buf_clear(&c->out);
        buf_addstr(&c->out, OK_HEAD);
        rc = method ? method(c) : answer_empty(c);
        if (rc == TG_CALL_FETCH)
                fetch(c);
        else if (rc != TG_CALL_LATER)
                tg_call_finish(c);
}

static void on_late(void *arg)
{
        run(arg);
}

static void refuse(struct http_exchange *x, int status, const char *description)
{
        struct buf b;

        buf_init(&b, 0);
        write_error(&b, status, description, 0, 0);
        http_answer(x, status, "application/json", b.data, b.len);
        buf_release(&b);
}

static struct bot *bot_of_path(struct world *w, const char *segment)
{
        return segment && strncmp(segment, "bot", 3) == 0 ? tg_world_bot_by_token(w, segment + 3)
                                                          : NULL;
}

void tg_call_serve(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        const char *segment = http_param(x, "bot");
        struct bot *b = bot_of_path(w, segment);
        const struct tg_spec_method *m = tg_spec_method(http_param(x, "method"));
        const struct fault *late;
        struct call *c;

        if (strncmp(segment, "bot", 3) != 0 || (b && !m)) {
                refuse(x, 404, b ? "Not Found: method not found" : "Not Found");
                return;
        }
        if (!b || b->logged_out) {
                refuse(x, 401, b ? "Unauthorized: logged out" : "Unauthorized");
                return;
        }
        c = call_new(b, m, x);
        c->args = json_object();
        call_base_read_query(x, c->args);
        if (read_body(c) != 0 || check_faults(c) != 0 || check(c) != 0) {
                tg_call_finish(c);
        } else if ((late = faults_fire(&w->base.faults, FAULT_LATE, m->name))) {
                http_cut(x); /* while the server still works on the call */
                c->x = NULL;
                call_base_later(&c->base, late->ms, on_late);
        } else {
                run(c);
        }
}

void tg_call_from_webhook(struct bot *b, const json_t *reply)
{
        const struct tg_spec_method *m = tg_spec_method(json_str(reply, "method", ""));
        struct call *c;

        if (!m)
                return;
        c = call_new(b, m, NULL);
        c->args = json_copy((json_t *)reply);
        json_object_del(c->args, "method");
        if (check(c) != 0)
                tg_call_finish(c);
        else
                run(c);
}

void tg_call_serve_file(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        char *path = mem_printf("%s/%s", http_param(x, "folder"), http_param(x, "name"));
        struct file *f = tg_files_by_path(w->files, path);
        const struct fault *fault = faults_fire(&w->base.faults, FAULT_ERROR, "file");
        struct buf b;

        free(path);
        buf_init(&b, 0);
        if (!bot_of_path(w, http_param(x, "bot")))
                refuse(x, 401, "Unauthorized");
        else if (fault)
                refuse(x, fault->status, FAULT_TEXT);
        else if (!f || tg_files_read(w->files, f, &b) != 0)
                refuse(x, 404, "Not Found");
        else {
                size_t n = b.len;

                http_answer_take(x, 200, "application/octet-stream", buf_take(&b), n);
        }
        buf_release(&b);
}

/* ---- chats ---- */

struct chat *tg_call_find_chat(struct call *c, const char *parameter)
{
        const json_t *value = json_object_get(c->args, parameter);
        const char *name = json_string_value(value);
        struct chat *chat = NULL;
        struct user *u;

        if (name && *name == '@') {
                struct buf lower;

                buf_init(&lower, 0);
                for (name++; *name; name++)
                        buf_addch(&lower,
                                  *name >= 'A' && *name <= 'Z' ? (char)(*name + 32) : *name);
                chat = map_get(&c->world->names, lower.data);
                buf_release(&lower);
        } else if (json_integer_value(value) > 0) {
                u = tg_world_user(c->world, json_integer_value(value));
                chat = u ? tg_chat_private(c->bot, u, false) : NULL;
        } else if (json_is_integer(value)) {
                chat = tg_chat_group(c->world, json_integer_value(value));
        }
        if (!chat)
                tg_call_fail(c, 400, "Bad Request: chat not found");
        return chat;
}

struct chat *tg_call_chat(struct call *c)
{
        struct chat *chat = tg_call_find_chat(c, "chat_id");
        const struct member *me;

        if (!chat)
                return NULL;
        if (chat->migrated_to) {
                c->migrate_to = chat->migrated_to;
                tg_call_fail(c, 400, "Bad Request: group chat was upgraded to a supergroup chat");
                return NULL;
        }
        if (chat->blocked) {
                tg_call_fail(c, 403, "Forbidden: bot was blocked by the user");
                return NULL;
        }
        if (chat->type == CHAT_PRIVATE)
                return chat;
        me = tg_chat_member(chat, c->bot->user.id);
        if (me && me->standing >= STANDING_MEMBER)
                return chat;
        tg_call_fail(c, 403,
                     me && me->standing == STANDING_KICKED
                             ? "Forbidden: bot was kicked from the %s chat"
                             : "Forbidden: bot is not a member of the %s chat",
                     tg_chat_type_name(chat->type));
        return NULL;
}

/* ---- rate limits ---- */

int tg_call_pace(struct call *c, struct chat *chat, unsigned n)
{
        const struct world_settings *s = &c->world->settings;
        bool group = chat->type != CHAT_PRIVATE;
        int64_t now = clock_mono_ms();
        double wait, longest;

        if (!c->world->base.limits)
                return 0;
        longest = token_bucket_wait(&c->bot->pace, s->per_second, s->per_second, n, now);
        wait = token_bucket_wait(&chat->pace, s->per_chat_second, s->chat_burst, n, now);
        longest = wait > longest ? wait : longest;
        if (group) {
                wait = token_bucket_wait(&chat->minute, s->per_group_minute / 60,
                                         s->per_group_minute, n, now);
                longest = wait > longest ? wait : longest;
        }
        if (longest > 0) {
                c->world->flood_count++;
                return fail_flood(c, (int64_t)longest + 1);
        }
        c->bot->pace.tokens -= n;
        chat->pace.tokens -= n;
        if (group)
                chat->minute.tokens -= n;
        return 0;
}
