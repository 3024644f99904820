#include "sim/discord/dc_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"

#define MAX_BODY ((size_t)26 << 20)

static void call_free(struct call *c)
{
        call_base_release(&c->base);
        json_decref(c->args);
        json_decref(c->query);
        json_decref(c->errors);
        multipart_release(&c->uploads);
        buf_release(&c->out);
        free(c);
}

int dc_call_fail(struct call *c, int status, int code, const char *message)
{
        c->status = status;
        c->code = code;
        snprintf(c->message, sizeof(c->message), "%s", message);
        return -1;
}

int dc_call_no_content(struct call *c)
{
        c->status = 204;
        return 0;
}

int dc_call_invalid(struct call *c, const char *member, const char *code, const char *message)
{
        json_decref(c->errors);
        c->errors = json_object();
        json_object_set_new(c->errors, member, dc_spec_error(code, message));
        return dc_call_fail(c, 400, 50035, "Invalid Form Body");
}

/* ---- the answer ---- */

static void write_error(struct call *c)
{
        struct buf *b = &c->out;

        buf_clear(b);
        jsonw_open(b, '{');
        jsonw_str(b, "message", c->message);
        if (c->status == 429) {
                jsonw_real(b, "retry_after", c->retry_after);
                jsonw_bool(b, "global", strcmp(c->scope, "global") == 0);
        } else {
                jsonw_int(b, "code", c->code);
        }
        if (c->errors)
                dc_render_json(b, "errors", c->errors);
        jsonw_close(b, '}');
}

static void record(const struct call *c, struct journal *j)
{
        struct buf *b = journal_open(j, c->op->name, (int64_t)dc_call_id(c, "channel_id"));
        char *args = c->args ? json_text(c->args) : NULL;

        jsonw_str(b, "method", c->op->method);
        jsonw_str(b, "path", http_path(c->x));
        jsonw_bool(b, "valid", c->base.valid);
        if (!c->base.valid)
                jsonw_str(b, "problem", c->problem);
        jsonw_int(b, "status", c->status);
        if (c->status >= 400) {
                jsonw_int(b, "code", c->code);
                jsonw_str(b, "message", c->message);
        }
        jsonw_int(b, "micros", call_base_micros(&c->base));
        jsonw_int(b, "uploads", (int64_t)c->uploads.count);
        if (json_object_size(c->query) > 0)
                dc_render_json(b, "query", c->query);
        if (args && strlen(args) <= CALL_BASE_MAX_ARGS)
                jsonw_raw(b, "body", args);
        journal_close(j);
        free(args);
}

static void add_header(struct http_exchange *x, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void add_header(struct http_exchange *x, const char *name, const char *fmt, ...)
{
        char value[64];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(value, sizeof(value), fmt, ap);
        va_end(ap);
        http_add_header(x, name, value);
}

static void add_headers(const struct call *c)
{
        const struct rate_limit *r = &c->rate;

        if (r->bucket[0]) {
                add_header(c->x, "X-RateLimit-Limit", "%d", r->limit);
                add_header(c->x, "X-RateLimit-Remaining", "%d", r->remaining);
                add_header(c->x, "X-RateLimit-Reset", "%.3f",
                           (double)clock_wall_ms() / 1000 + r->reset_after);
                add_header(c->x, "X-RateLimit-Reset-After", "%.3f", r->reset_after);
                add_header(c->x, "X-RateLimit-Bucket", "%s", r->bucket);
        }
        if (c->status != 429)
                return;
        add_header(c->x, "Retry-After", "%d", (int)c->retry_after + 1);
        add_header(c->x, "X-RateLimit-Scope", "%s", c->scope);
        if (strcmp(c->scope, "global") == 0)
                add_header(c->x, "X-RateLimit-Global", "true");
}

static void deliver(struct call *c)
{
        struct http_exchange *x = c->x;
        size_t n = c->out.len;

        if (c->base.cut)
                http_cut(x);
        else {
                add_headers(c);
                http_answer_take(x, c->status, n ? "application/json" : NULL, buf_take(&c->out), n);
        }
        call_free(c);
}

static void fail_late(struct call *c, int status)
{
        dc_call_fail(c, status, 0, "simulated fault");
        write_error(c);
}

static const struct call_ops ops = {
        .record = record,
        .fail_late = fail_late,
        .deliver = deliver,
};

static void finish(struct call *c)
{
        if (c->status >= 400)
                write_error(c);
        else if (c->status == 204)
                buf_clear(&c->out);
        call_base_finish(&c->base);
}

/* ---- the request ---- */

static struct call *call_new(struct world *w, const struct dc_spec_op *op, struct http_exchange *x)
{
        struct call *c = mem_zalloc(sizeof(*c));

        call_base_init(&c->base, &w->base, &ops);
        c->world = w;
        c->op = op;
        c->x = x;
        c->status = 200;
        c->query = json_object();
        c->scope = "user";
        buf_init(&c->out, 0);
        return c;
}

static int read_json(struct call *c, const char *body, size_t n)
{
        struct error err = { 0 };

        c->args = json_read(body, n, &err);
        if (c->args)
                return 0;
        c->base.valid = false;
        snprintf(c->problem, sizeof(c->problem), "%.150s", err.text);
        return dc_call_fail(c, 400, 50109, "The request body contains invalid JSON.");
}

static int read_parts(struct call *c, const char *type, const char *body, size_t n)
{
        struct error err = { 0 };
        const struct multipart_part *payload;

        if (multipart_init(&c->uploads, type, body, n, &err) != 0) {
                c->base.valid = false;
                snprintf(c->problem, sizeof(c->problem), "%.150s", err.text);
                return dc_call_fail(c, 400, 50035, "Invalid Form Body");
        }
        payload = multipart_find(&c->uploads, "payload_json");
        if (payload)
                return read_json(c, payload->data, payload->n);
        c->args = json_object();
        return 0;
}

static int read_body(struct call *c)
{
        const char *type = http_header(c->x, "Content-Type");
        size_t n;
        const char *body = http_body(c->x, &n);

        call_base_read_query(c->x, c->query);
        if (n == 0)
                return 0;
        if (type && strncasecmp(type, "application/json", 16) == 0)
                return read_json(c, body, n);
        if (multipart_is(type))
                return read_parts(c, type, body, n);
        c->base.valid = false;
        snprintf(c->problem, sizeof(c->problem), "Content-Type '%.60s'", type ? type : "");
        return dc_call_invalid(c, "_errors", "CONTENT_TYPE_INVALID",
                               "Expected \"Content-Type\" header to be one of application/json, "
                               "multipart/form-data.");
}

/* ---- checks ---- */

static bool needs_bot(const struct dc_spec_op *op)
{
        return !strstr(op->path, ":webhook_token") && !strstr(op->path, ":interaction_token") &&
               strcmp(op->name, "get_gateway") != 0;
}

static int check_version(struct call *c)
{
        const char *version = http_param(c->x, "version");

        if (strcmp(version, "v10") == 0 || strcmp(version, "v9") == 0)
                return 0;
        return dc_call_fail(c, 400, 50041, "Invalid API version");
}

static int check_bot(struct call *c)
{
        const char *header = http_header(c->x, "Authorization");

        if (header && strncmp(header, "Bot ", 4) == 0)
                c->bot = dc_world_bot_by_token(c->world, header + 4);
        if (!needs_bot(c->op))
                return 0;
        if (!c->bot || c->bot->token_reset)
                return dc_call_fail(c, 401, 0, "401: Unauthorized");
        return 0;
}

/* The real API's proxy refuses clients without a proper User-Agent. */
static int check_agent(struct call *c)
{
        const char *agent = http_header(c->x, "User-Agent");

        if (!needs_bot(c->op) || (agent && strncmp(agent, "DiscordBot (", 12) == 0))
                return 0;
        c->base.valid = false;
        snprintf(c->problem, sizeof(c->problem), "User-Agent '%.80s'", agent ? agent : "");
        if (!c->world->base.strict)
                return 0;
        return dc_call_fail(
                c, 403, 40333,
                "internal network error: User-Agent must be of the form DiscordBot (url, version)");
}

static int limit(struct call *c, double retry_after, const char *scope)
{
        c->retry_after = retry_after;
        c->scope = scope;
        c->world->limited_count++;
        return dc_call_fail(c, 429, 0, "You are being rate limited.");
}

static int check_rate(struct call *c)
{
        static const char *const names[] = { "channel_id", "guild_id", "webhook_id" };
        const char *who = c->bot ? c->bot->token : "", *major = NULL;

        if (!c->world->base.limits)
                return 0;
        for (size_t i = 0; i < COUNT(names) && !major; i++)
                major = http_param(c->x, names[i]);
        c->rate = dc_rate_limit_count(c->world->rates, c->op, who, major ? major : "");
        if (!c->rate.passed)
                return 0;
        return limit(c, c->rate.reset_after, c->rate.global ? "global" : "user");
}

/* Marks a call the description does not allow as invalid; `strict` refuses it, too. */
static int check_spec(struct call *c)
{
        bool strict = c->world->base.strict;
        char query_problem[DC_SPEC_PROBLEM_SIZE], lenient_problem[DC_SPEC_PROBLEM_SIZE];
        json_t *body = dc_spec_check_body(c->op, c->args, false, c->problem);
        json_t *query = dc_spec_check_query(c->op, c->query, false, query_problem);

        if (!body && !query)
                return 0;
        c->base.valid = false;
        if (!body)
                memcpy(c->problem, query_problem, sizeof(query_problem));
        if (!strict) {
                json_decref(body);
                json_decref(query);
                query = NULL;
                body = dc_spec_check_body(c->op, c->args, true, lenient_problem);
        }
        if (!body && !query)
                return 0;
        json_decref(c->errors);
        c->errors = body ? body : query;
        if (body)
                json_decref(query);
        return dc_call_fail(c, 400, 50035, "Invalid Form Body");
}

/* Fails the call, or marks it for its end. */
static int check_faults(struct call *c)
{
        const struct fault *f = call_base_fault(&c->base, c->op->name);

        if (!f)
                return 0;
        if (f->kind == FAULT_CUT_BEFORE)
                return dc_call_fail(c, 599, 0, "cut before the effect");
        if (f->kind == FAULT_ERROR)
                return dc_call_fail(c, f->status, 0, "simulated fault");
        return limit(c, f->retry_after, f->scope[0] ? f->scope : "user");
}

static void serve(struct http_exchange *x)
{
        struct call *c = call_new(http_server_arg(x), http_route_of(x)->more, x);
        op_fn *run = dc_ops_find(c->op);

        if (check_version(c) == 0 && check_bot(c) == 0 && check_agent(c) == 0 &&
            check_rate(c) == 0 && check_faults(c) == 0 && read_body(c) == 0 && check_spec(c) == 0) {
                if (run)
                        run(c);
                else
                        dc_call_fail(c, 501, 0, "operation not simulated");
        }
        finish(c);
}

struct http_route *dc_call_routes(const struct http_route *more, size_t more_count, size_t *count)
{
        size_t op_count = dc_spec_op_count();
        struct http_route *routes = mem_array(op_count + more_count, sizeof(*routes));

        for (size_t i = 0; i < op_count; i++) {
                const struct dc_spec_op *op = dc_spec_op_at(i);

                routes[i] = (struct http_route){ op->method, op->path, serve, MAX_BODY, op };
        }
        memcpy(routes + op_count, more, more_count * sizeof(*more));
        *count = op_count + more_count;
        return routes;
}

/* ---- for operations ---- */

uint64_t dc_call_id(const struct call *c, const char *param)
{
        return dc_id_parse(http_param(c->x, param));
}

uint64_t dc_call_query_id(const struct call *c, const char *name)
{
        return dc_id_parse(json_str(c->query, name, NULL));
}

int64_t dc_call_query_int(const struct call *c, const char *name, int64_t fallback)
{
        const char *text = json_str(c->query, name, NULL);

        return text ? strtoll(text, NULL, 10) : fallback;
}

uint64_t dc_call_args_id(const json_t *args, const char *member)
{
        const json_t *value = json_object_get(args, member);

        return json_is_integer(value) ? (uint64_t)json_integer_value(value)
                                      : dc_id_parse(json_string_value(value));
}

struct channel *dc_call_channel(struct call *c, uint64_t needed)
{
        struct channel *channel = dc_channel_find(c->world, dc_call_id(c, "channel_id"));
        uint64_t may = channel ? dc_channel_permissions(c->bot, channel) : 0;

        if (!channel)
                dc_call_fail(c, 404, 10003, "Unknown Channel");
        else if (!(may & MAY_VIEW))
                dc_call_fail(c, 403, 50001, "Missing Access");
        else if ((may & needed) != needed)
                dc_call_fail(c, 403, 50013, "Missing Permissions");
        else
                return channel;
        return NULL;
}

int dc_call_archived(struct call *c)
{
        return dc_call_fail(c, 400, 50083, "Thread is archived");
}

struct message *dc_call_message(struct call *c, struct channel *channel)
{
        struct message *m = dc_message_find(channel, dc_call_id(c, "message_id"));

        if (!m || (m->flags & MESSAGE_FLAG_EPHEMERAL)) {
                dc_call_fail(c, 404, 10008, "Unknown Message");
                return NULL;
        }
        return m;
}

struct guild *dc_call_guild(struct call *c)
{
        struct guild *g = dc_guild_find(c->world, dc_call_id(c, "guild_id"));

        if (!g)
                dc_call_fail(c, 404, 10004, "Unknown Guild");
        else if (!dc_guild_member(g, c->bot->user->id))
                dc_call_fail(c, 403, 50001, "Missing Access");
        else
                return g;
        return NULL;
}

struct buf *dc_call_record(const struct call *c, const char *kind, const struct channel *channel)
{
        struct buf *b = journal_open(c->world->base.sent, kind, channel ? (int64_t)channel->id : 0);

        if (channel) {
                dc_render_id(b, "channel", channel->id);
                if (channel->guild)
                        jsonw_str(b, "where", channel->name);
                else
                        jsonw_str(b, "to", channel->user->username);
        }
        if (c->bot)
                jsonw_str(b, "bot", c->bot->user->username);
        return b;
}

void dc_call_print(const struct call *c, const struct message *m)
{
        const struct channel *at = m->channel;
        size_t files = json_array_size(m->attachments);

        if (c->world->base.quiet)
                return;
        printf("%s -> %s%s: %s", m->author->username, at->guild ? "#" : "@",
               at->guild ? at->name : at->user->username, m->content);
        if (files > 0)
                printf(" [%zu file%s]", files, files == 1 ? "" : "s");
        printf("\n");
        fflush(stdout);
}
