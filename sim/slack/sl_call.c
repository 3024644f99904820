#include "sim/slack/sl_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/multipart.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_rate_limit.h"

static struct slack_call *whole(struct call *c)
{
        return (struct slack_call *)c;
}

static void call_free(struct slack_call *c)
{
        call_base_release(&c->base);
        json_decref(c->args);
        json_decref(c->out);
        json_decref(c->messages);
        free(c);
}

int sl_call_fail(struct slack_call *c, const char *error)
{
        snprintf(c->error, sizeof(c->error), "%.63s", error);
        return -1;
}

int sl_call_fail_because(struct slack_call *c, const char *error, const char *fmt, ...)
{
        char text[300] = "[ERROR] ";
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text + strlen(text), sizeof(text) - strlen(text), fmt, ap);
        va_end(ap);
        if (!c->messages)
                c->messages = json_array();
        json_array_append_new(c->messages, json_string(text));
        return sl_call_fail(c, error);
}

/* ---- the answer ---- */

static char *provided(const struct slack_app *a)
{
        const json_t *scope;
        struct buf b;
        size_t i;

        buf_init(&b, 0);
        json_array_foreach(a->scopes, i, scope) {
                if (i > 0)
                        buf_addch(&b, ',');
                buf_addstr(&b, json_string_value(scope));
        }
        return buf_take(&b);
}

static void add_metadata(const struct slack_call *c, json_t *out)
{
        json_t *about = json_object_get(out, "response_metadata");

        if (!c->messages && !c->no_charset)
                return;
        if (!about)
                json_object_set_new(out, "response_metadata", about = json_object());
        if (c->messages)
                json_object_set(about, "messages", c->messages);
        if (c->no_charset) {
                json_object_set_new(out, "warning", json_string("missing_charset"));
                json_object_set_new(about, "warnings", json_pack("[s]", "missing_charset"));
        }
}

static json_t *answer_of(const struct slack_call *c)
{
        json_t *out = json_pack("{s:b}", "ok", !c->error[0]);

        if (c->error[0])
                json_object_set_new(out, "error", json_string(c->error));
        else
                json_object_update(out, c->out);
        if (c->needed) {
                char *have = provided(c->app);

                json_object_set_new(out, "needed", json_string(c->needed));
                json_object_set_new(out, "provided", json_string(have));
                free(have);
        }
        add_metadata(c, out);
        return out;
}

static void record(const struct call *base, struct journal *j)
{
        const struct slack_call *c = (const struct slack_call *)base;
        struct buf *b = journal_open(j, c->method ? c->method->name : "unknown", 0);
        char *args = c->args ? json_text(c->args) : NULL;

        jsonw_str(b, "method", c->method ? c->method->name : "unknown");
        if (c->app)
                jsonw_str(b, "app", c->app->id);
        jsonw_bool(b, "valid", c->base.valid);
        if (!c->base.valid)
                jsonw_str(b, "problem", c->problem);
        jsonw_int(b, "status", c->status);
        jsonw_bool(b, "answered_ok", !c->error[0]);
        if (c->error[0])
                jsonw_str(b, "error", c->error);
        jsonw_int(b, "micros", call_base_micros(&c->base));
        if (args && strlen(args) <= CALL_BASE_MAX_ARGS)
                jsonw_raw(b, "args", args);
        journal_close(j);
        free(args);
}

static void add_headers(const struct slack_call *c)
{
        char text[32];

        if (c->app) {
                char *have = provided(c->app);

                http_add_header(c->x, "X-OAuth-Scopes", have);
                free(have);
        }
        if (c->method && c->method->scope)
                http_add_header(c->x, "X-Accepted-OAuth-Scopes", c->method->scope);
        if (c->status == 429) {
                snprintf(text, sizeof(text), "%d",
                         (int)c->retry_after + (c->retry_after > (int)c->retry_after));
                http_add_header(c->x, "Retry-After", text);
        }
}

static void deliver(struct call *base)
{
        static const char page[] = "<!DOCTYPE html><html><head><title>Server Error | Slack</title>"
                                   "</head><body>Something went wrong.</body></html>";
        struct slack_call *c = whole(base);
        json_t *answer;
        char *text;
        size_t n;

        if (!c->x) {
                call_free(c);
                return;
        }
        if (c->base.cut) {
                http_cut(c->x);
        } else if (c->html) {
                http_answer(c->x, c->status, "text/html; charset=utf-8", page, strlen(page));
        } else if (c->plain && !c->error[0]) {
                http_answer(c->x, c->status, "text/plain", "ok", 2);
        } else {
                add_headers(c);
                answer = answer_of(c);
                text = json_text(answer);
                json_decref(answer);
                n = strlen(text);
                http_answer_take(c->x, c->status, "application/json; charset=utf-8", text,
                                 c->truncated ? n / 2 : n);
        }
        call_free(c);
}

/* Below 400: Slack's own error, after which the call may have had its effect. */
static void fail_late(struct call *base, int status)
{
        struct slack_call *c = whole(base);

        c->status = status;
        c->html = status >= 400;
        sl_call_fail(c, "internal_error");
}

static const struct call_ops ops = {
        .record = record,
        .fail_late = fail_late,
        .deliver = deliver,
};

/* ---- the request ---- */

static struct slack_call *call_new(struct slack_world *w, struct http_exchange *x)
{
        struct slack_call *c = mem_zalloc(sizeof(*c));

        call_base_init(&c->base, &w->base, &ops);
        c->world = w;
        c->x = x;
        c->status = 200;
        c->out = json_object();
        return c;
}

static int read_parts(struct slack_call *c, json_t *args, const char *type, const char *body,
                      size_t n)
{
        struct multipart parts;
        struct error err = { 0 };

        if (multipart_init(&parts, type, body, n, &err) != 0)
                return sl_call_fail_because(c, "invalid_form_data", "%s", err.text);
        for (size_t i = 0; i < parts.count; i++) {
                const struct multipart_part *p = &parts.parts[i];

                json_object_set_new(args, p->name, json_stringn(p->data, p->n));
        }
        multipart_release(&parts);
        return 0;
}

static int read_json(struct slack_call *c, json_t *args, const char *type, const char *body,
                     size_t n)
{
        struct error err = { 0 };
        json_t *value = json_read(body, n, &err);

        c->no_charset = !strstr(type, "charset");
        if (!value)
                return sl_call_fail_because(c, "invalid_json", "%s", err.text);
        if (!json_is_object(value)) {
                json_decref(value);
                return sl_call_fail(c, "json_not_object");
        }
        json_object_del(value, "token"); /* only a header or a form may have it */
        /* a method that takes only forms ignores the body */
        if (!c->spec || c->spec->json) {
                json_object_update(args, value);
        } else {
                c->base.valid = false;
                snprintf(c->problem, sizeof(c->problem), "%s takes a form, not JSON",
                         c->spec->name);
        }
        json_decref(value);
        return 0;
}

/* Adds the query and the body to args. */
static int read_args(struct slack_call *c, json_t *args)
{
        const char *type = http_header(c->x, "Content-Type");
        size_t n;
        const char *body = http_body(c->x, &n);

        call_base_read_query(c->x, args);
        if (n == 0)
                return 0;
        if (!type)
                return sl_call_fail(c, "missing_post_type");
        if (strncasecmp(type, "application/json", 16) == 0)
                return read_json(c, args, type, body, n);
        if (multipart_is(type))
                return read_parts(c, args, type, body, n);
        if (strncasecmp(type, "application/x-www-form-urlencoded", 33) != 0)
                return sl_call_fail(c, "invalid_post_type");
        return call_base_read_form(body, n, args) == 0 ? 0 : sl_call_fail(c, "invalid_form_data");
}

/* ---- checks ---- */

static int check_method(struct slack_call *c, const char *name)
{
        const struct slack_settings *s = &c->world->settings;

        c->spec = sl_spec_method(name);
        c->method = sl_method_find_simulated(name);
        if (!c->method ||
            (!s->streams && strncmp(name, "chat.", 5) == 0 && strstr(name, "Stream")) ||
            (!s->assistants && strncmp(name, "assistant.", 10) == 0))
                return sl_call_fail(c, c->spec && !c->method ? "method_not_simulated"
                                                             : "unknown_method");
        return 0;
}

/* The token of the header, or of a form; never of JSON. */
static int check_token(struct slack_call *c, json_t *args)
{
        const char *header = http_header(c->x, "Authorization");
        const char *token = header && strncasecmp(header, "Bearer ", 7) == 0
                                    ? header + 7
                                    : json_str(args, "token", NULL);
        bool app_level = strcmp(c->method->name, "apps.connections.open") == 0;
        const char *error;

        if (strcmp(c->method->name, "api.test") == 0)
                return 0;
        if (!token)
                return sl_call_fail(c, "not_authed");
        c->app =
                app_level ? sl_app_by_app_token(c->world, token) : sl_app_by_token(c->world, token);
        json_object_del(args, "token");
        if (!c->app) {
                struct slack_app *other = app_level ? sl_app_by_token(c->world, token)
                                                    : sl_app_by_app_token(c->world, token);

                return sl_call_fail(c, other ? "not_allowed_token_type" : "invalid_auth");
        }
        error = app_level ? c->app->app_token_error : c->app->token_error;
        return error ? sl_call_fail(c, error) : 0;
}

int sl_call_limit(struct slack_call *c, double retry_after)
{
        c->status = 429;
        c->retry_after = retry_after;
        c->world->limited_count++;
        return sl_call_fail(c, "ratelimited");
}

static int check_rate(struct slack_call *c)
{
        const struct slack_settings *s = &c->world->settings;
        int tier = c->method->tier;
        double wait, per_minute;
        char *key;

        if (!c->world->base.limits || tier == 0)
                return 0;
        if (s->history_per_minute && (strcmp(c->method->name, "conversations.history") == 0 ||
                                      strcmp(c->method->name, "conversations.replies") == 0))
                tier = (int)s->history_per_minute;
        per_minute = (double)tier * (double)s->tier_percent / 100;
        key = mem_printf("%s %s", c->method->name, c->app ? c->app->id : "");
        wait = sl_rate_limit_count(c->world->rates, key, per_minute / 60,
                                   per_minute > 1 ? per_minute : 1);
        free(key);
        return wait > 0 ? sl_call_limit(c, wait) : 0;
}

/* Fails the call, or marks it for its end. */
static int check_faults(struct slack_call *c)
{
        struct faults *faults = &c->world->base.faults;
        const char *name = c->method->name;
        const struct fault *f = call_base_fault(&c->base, name);

        if (f && f->kind == FAULT_FLOOD)
                return sl_call_limit(c, f->retry_after);
        if (f) {
                c->status = f->kind == FAULT_ERROR ? f->status : 599;
                c->html = f->kind == FAULT_ERROR;
                return sl_call_fail(c, f->kind == FAULT_ERROR ? "simulated_fault" : "cut_before");
        }
        f = faults_fire(faults, FAULT_REFUSE, name);
        if (f)
                return sl_call_fail(c, f->description[0] ? f->description : "internal_error");
        c->html = faults_fire(faults, FAULT_BAD_JSON, name) != NULL;
        c->truncated = faults_fire(faults, FAULT_TRUNCATE, name) != NULL;
        return 0;
}

/* Marks a call that the description does not allow; `strict` refuses it, too. */
static int check_args(struct slack_call *c, const json_t *args)
{
        bool strict = c->world->base.strict;
        char problem[SL_SPEC_PROBLEM_SIZE];
        const char *error;

        c->args = json_object();
        error = sl_spec_read(c->spec, args, false, c->args, problem);
        if (!error)
                return 0;
        c->base.valid = false;
        memcpy(c->problem, problem, sizeof(problem));
        if (!strict) {
                json_object_clear(c->args);
                error = sl_spec_read(c->spec, args, true, c->args, problem);
        }
        return error ? sl_call_fail_because(c, error, "%s", problem) : 0;
}

int sl_call_need(struct slack_call *c, const char *scope)
{
        if (!scope || sl_app_has_scope(c->app, scope))
                return 0;
        c->needed = scope;
        return sl_call_fail(c, "missing_scope");
}

static const char *const kinds[] = { "channels", "groups", "im", "mpim" };

/* "*:history" needs one of four; which one, the conversation's kind says later. */
static int check_scope(struct slack_call *c)
{
        const char *scope = c->method->scope;
        bool any = false;

        if (!scope || *scope != '*')
                return scope ? sl_call_need(c, scope) : 0;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                char *one = mem_printf("%s%s", kinds[i], scope + 1);

                any = any || sl_app_has_scope(c->app, one);
                free(one);
        }
        if (any)
                return 0;
        c->needed = strcmp(scope, "*:history") == 0
                            ? "channels:history,groups:history,mpim:history,im:history"
                    : strcmp(scope, "*:write") == 0
                            ? "channels:write,groups:write,mpim:write,im:write"
                            : "channels:read,groups:read,mpim:read,im:read";
        return sl_call_fail(c, "missing_scope");
}

static void on_late(void *arg)
{
        struct slack_call *c = arg;

        c->method->run(c);
        call_base_finish(&c->base);
}

void sl_call_serve(struct http_exchange *x)
{
        struct slack_call *c = call_new(http_server_arg(x), x);
        json_t *args = json_object();
        const struct fault *late;
        bool run;

        run = check_method(c, http_param(x, "method")) == 0 && read_args(c, args) == 0 &&
              check_token(c, args) == 0 && check_faults(c) == 0 && check_rate(c) == 0 &&
              check_scope(c) == 0 && check_args(c, args) == 0;
        json_decref(args);
        if (run && (late = faults_fire(&c->world->base.faults, FAULT_LATE, c->method->name))) {
                http_cut(x);
                c->x = NULL;
                call_base_later(&c->base, late->ms, on_late);
                return;
        }
        if (run)
                c->method->run(c);
        call_base_finish(&c->base);
}

json_t *sl_call_direct(struct slack_world *w, struct slack_app *a, const char *method,
                       const json_t *args)
{
        struct slack_call *c = call_new(w, NULL);
        json_t *answer;

        c->app = a;
        if (check_method(c, method) == 0 && check_scope(c) == 0 && check_args(c, args) == 0)
                c->method->run(c);
        answer = answer_of(c);
        call_base_finish(&c->base);
        return answer;
}

void sl_call_serve_response(struct http_exchange *x)
{
        struct slack_call *c = call_new(http_server_arg(x), x);

        c->method = &sl_method_respond;
        c->args = json_object();
        if (read_args(c, c->args) == 0 && check_faults(c) == 0)
                c->method->run(c);
        if (c->error[0] && c->status == 200)
                c->status = 400;
        call_base_finish(&c->base);
}

/* ---- for methods ---- */

static void on_rest(void *arg)
{
        struct slack_call *c = arg;

        c->rest(c);
        call_free(c);
}

void sl_call_later(const struct slack_call *c, int64_t ms, slack_method_fn *rest)
{
        struct slack_call *copy = call_new(c->world, NULL);

        copy->app = c->app;
        copy->method = c->method;
        copy->args = json_incref(c->args);
        copy->rest = rest;
        call_base_later(&copy->base, ms, on_rest);
}

const char *sl_call_text(const struct slack_call *c, const char *name)
{
        const char *text = json_str(c->args, name, NULL);

        return text && *text ? text : NULL;
}

int64_t sl_call_int(const struct slack_call *c, const char *name, int64_t fallback)
{
        return json_int(c->args, name, fallback);
}

bool sl_call_flag(const struct slack_call *c, const char *name, bool fallback)
{
        return json_flag(c->args, name, fallback);
}

void sl_call_set(struct slack_call *c, const char *key, const char *text)
{
        json_object_set_new(c->out, key, json_string(text ? text : ""));
}

void sl_call_set_new(struct slack_call *c, const char *key, json_t *value)
{
        json_object_set_new(c->out, key, value);
}

static int need_kind(struct slack_call *c, const struct slack_channel *channel)
{
        static const char *const reads[] = { "channels:read", "groups:read", "im:read",
                                             "mpim:read" };
        static const char *const histories[] = { "channels:history", "groups:history", "im:history",
                                                 "mpim:history" };
        const char *scope = c->method->scope;

        if (!scope || *scope != '*' || strcmp(scope, "*:write") == 0)
                return 0;
        return sl_call_need(c, (strcmp(scope, "*:read") == 0 ? reads : histories)[channel->kind]);
}

struct slack_channel *sl_call_channel(struct slack_call *c, const char *name)
{
        struct slack_channel *channel = sl_channel_find(c->world, sl_call_text(c, name));
        bool member = channel && sl_channel_has(channel, c->app->user);

        /* others' private conversations do not exist for an app */
        if (!channel ||
            (!member && (channel->kind != SLACK_PUBLIC || channel->team != c->app->team))) {
                sl_call_fail(c, "channel_not_found");
                return NULL;
        }
        return need_kind(c, channel) == 0 ? channel : NULL;
}

struct slack_channel *sl_call_member_of(struct slack_call *c, const char *name)
{
        struct slack_channel *channel = sl_call_channel(c, name);

        if (channel && !sl_channel_has(channel, c->app->user)) {
                sl_call_fail(c, "not_in_channel");
                return NULL;
        }
        return channel;
}

struct slack_message *sl_call_message(struct slack_call *c, struct slack_channel *channel,
                                      const char *name)
{
        struct slack_message *m = sl_message_find(channel, sl_call_text(c, name));

        if (!m || m->tombstone) {
                sl_call_fail(c, "message_not_found");
                return NULL;
        }
        return m;
}

struct buf *sl_call_record(const struct slack_call *c, const char *kind,
                           const struct slack_channel *channel)
{
        struct buf *b = journal_open(c->world->base.sent, kind, 0);

        if (channel) {
                jsonw_str(b, "channel", channel->id);
                if (channel->kind == SLACK_IM)
                        jsonw_str(b, "to", channel->person->name);
                else
                        jsonw_str(b, "where", channel->name);
        }
        if (c->app)
                jsonw_str(b, "app", c->app->user->name);
        return b;
}

void sl_call_print(const struct slack_call *c, const struct slack_message *m)
{
        const struct slack_channel *at = m->channel;

        if (c->world->base.quiet)
                return;
        printf("%s -> %s%s: %s\n", m->user->name, at->kind == SLACK_IM ? "@" : "#",
               at->kind == SLACK_IM ? at->person->name : at->name, m->text);
        fflush(stdout);
}
