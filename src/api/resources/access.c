/* Access rules that are kept in the database, and what would be decided about somebody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/access/access_check.h"
#include "road/report/row_json.h"

struct access_ask {
        const char *type, *adapter, *user, *place, *reason, *message;
        int64_t person, expires_ms;
        bool enabled;
};

#define AT(member) .at = offsetof(struct access_ask, member)

static const char *const types[] = { "allow", "deny", NULL };
static const char *const places[] = { "dm", "group", "", NULL };

/* clang-format off */
#define RULE_FIELDS                                                                                                           \
        { "instanceId", FIELD_STRING, .max = 128, AT(adapter), .help = "Only on this adapter; absent: on all." },              \
        { "platformUserId", FIELD_STRING, .max = 200, AT(user),                                                                \
          .help = "Whom it names: an id, perhaps behind its platform (telegram:7); * stands for anything." },                   \
        { "personId", FIELD_ID, .prefix = "per-", AT(person), .help = "Instead of platformUserId: a person, by any of his identities." }, \
        { "place", FIELD_CHOICE, .choices = places, AT(place), .help = "Only in direct messages or only in groups; absent: everywhere." }, \
        { "reason", FIELD_STRING, .max = 200, AT(reason), .help = "Why, for operators; never shown to the sender." },           \
        { "blockMessage", FIELD_STRING, .max = 500, AT(message),                                                               \
          .help = "With deny: what he is told in a direct message, once an hour; absent: nothing." },                           \
        { "expiresAt", FIELD_TIME, AT(expires_ms), .help = "When it ends; absent: never." },                                    \
        { "enabled", FIELD_BOOL, AT(enabled), .help = "A rule that is switched off is kept but does not count." }
const struct field access_fields[] = {
        { "ruleType", FIELD_CHOICE, .required = true, .choices = types, AT(type), .help = "A deny wins over every allow." },
        RULE_FIELDS,
        FIELD_END,
};
const struct field access_patch_fields[] = {
        { "ruleType", FIELD_CHOICE, .choices = types, AT(type), .help = "A deny wins over every allow." },
        RULE_FIELDS,
        FIELD_END,
};
/* clang-format on */

static struct access_rules *rules_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->access;
}

/* ---- showing ---- */

static void show_rule(struct buf *b, const char *key, const struct access_rule *r)
{
        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        show_id(b, "id", "acr-", r->id);
        jsonw_str(b, "ruleType", r->deny ? "deny" : "allow");
        jsonw_str(b, "instanceId", r->adapter);
        jsonw_str(b, "platformUserId", r->user);
        if (r->person > 0)
                show_id(b, "personId", "per-", r->person);
        else
                jsonw_null(b, "personId");
        jsonw_str(b, "place", r->place);
        jsonw_bool(b, "enabled", r->enabled);
        jsonw_bool(b, "expired", r->expires_ms > 0 && r->expires_ms <= clock_wall_ms());
        jsonw_str(b, "reason", r->reason);
        jsonw_str(b, "blockMessage", r->message);
        show_time(b, "expiresAt", r->expires_ms);
        jsonw_str(b, "by", r->by);
        show_time(b, "createdAt", r->created_ms);
        show_time(b, "updatedAt", r->updated_ms);
        jsonw_close(b, '}');
}

void access_list(struct http_exchange *x)
{
        const struct access_rules *rules = rules_of(x);
        struct buf json;

        buf_init(&json, 0);
        page_begin(&json);
        for (size_t i = 0; i < access_rules_count(rules); i++)
                show_rule(&json, NULL, access_rules_at(rules, i));
        page_end(&json, false, NULL);
        reply_json(x, 200, &json);
}

/* The rule of the path; NULL when it was answered with 404. */
static const struct access_rule *rule_of(struct http_exchange *x)
{
        int64_t id = request_id(x, "acr-", "access rule");
        const struct access_rule *r = id < 0 ? NULL : access_rules_find(rules_of(x), id);

        if (id >= 0 && !r)
                reply_missing(x, "access rule", http_param(x, "id"));
        return r;
}

void access_show(struct http_exchange *x)
{
        const struct access_rule *r = rule_of(x);
        struct buf data;

        if (!r)
                return;
        buf_init(&data, 0);
        show_rule(&data, NULL, r);
        reply_data(x, 200, &data);
}

/* ---- changing ---- */

struct putting {
        struct write_job job; /* first: write_job_done frees it */
        struct access_rules *rules;
};

static void on_put(void *arg, int64_t id, const struct error *err)
{
        struct putting *p = arg;
        const struct access_rule *r = err ? NULL : access_rules_find(p->rules, id);

        if (r)
                show_rule(&p->job.data, NULL, r);
        write_job_done(p, err);
}

/* "" takes a text away. */
static const char *given(const char *text)
{
        return text && *text ? text : NULL;
}

static void put(struct http_exchange *x, struct body *b, int64_t id, const struct access_ask *ask)
{
        struct access_rule r = { .id = id,
                                 .deny = strcmp(ask->type, "deny") == 0,
                                 .adapter = given(ask->adapter),
                                 .user = given(ask->user),
                                 .person = ask->person,
                                 .place = given(ask->place),
                                 .enabled = ask->enabled,
                                 .reason = given(ask->reason),
                                 .message = given(ask->message),
                                 .by = caller_name(x),
                                 .expires_ms = ask->expires_ms };
        struct putting *p;
        struct error err;

        if (access_rule_check(&r, &err) < 0) {
                reply_field_error(x, b, &err);
                return;
        }
        if (r.adapter && !adapters_find(api_of(x)->env.adapters, r.adapter)) {
                body_mistake(b, "instanceId", "there is no adapter '%.60s'", r.adapter);
                reply_mistakes(x, b);
                return;
        }
        p = mem_zalloc(sizeof(*p));
        write_job_init(&p->job, x, id > 0 ? 200 : 201);
        p->rules = rules_of(x);
        access_rules_put(p->rules, &r, on_put, p);
}

void access_create(struct http_exchange *x)
{
        struct access_ask ask = { .enabled = true };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        put(x, &b, 0, &ask);
        body_release(&b);
}

void access_change(struct http_exchange *x)
{
        const struct access_rule *r = rule_of(x);
        struct access_ask ask;
        struct body b;

        if (!r)
                return;
        ask = (struct access_ask){ .type = r->deny ? "deny" : "allow",
                                   .adapter = r->adapter,
                                   .user = r->user,
                                   .place = r->place,
                                   .reason = r->reason,
                                   .message = r->message,
                                   .person = r->person,
                                   .expires_ms = r->expires_ms,
                                   .enabled = r->enabled };
        if (request_body(x, &b, &ask) < 0)
                return;
        put(x, &b, r->id, &ask);
        body_release(&b);
}

static void on_deleted(void *arg, int64_t id, const struct error *err)
{
        struct write_job *c = arg;

        jsonw_open(&c->data, '{');
        show_id(&c->data, "id", "acr-", id);
        jsonw_str(&c->data, "status", "deleted");
        jsonw_close(&c->data, '}');
        write_job_done(c, err);
}

void access_delete(struct http_exchange *x)
{
        int64_t id = request_id(x, "acr-", "access rule");

        if (id >= 0)
                access_rules_delete(rules_of(x), id, on_deleted, write_job_new(x, 200));
}

/* ---- trying ---- */

struct test_ask {
        const char *adapter, *user, *channel, *chat;
};

static const char *const chats[] = { "dm", "group", NULL };

/* clang-format off */
const struct field access_test_fields[] = {
        { "instanceId", FIELD_STRING, .required = true, .min = 1, .max = 128, .at = offsetof(struct test_ask, adapter),
          .help = "On which adapter." },
        { "platformUserId", FIELD_STRING, .required = true, .min = 1, .max = 200, .at = offsetof(struct test_ask, user),
          .help = "The platform's id of the user." },
        { "chatType", FIELD_CHOICE, .choices = chats, .at = offsetof(struct test_ask, chat), .fallback = "\"dm\"",
          .help = "Where he would write." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct test_ask, channel),
          .help = "The platform's id of that place; absent: a chat of his own." },
        FIELD_END,
};
/* clang-format on */

void access_test(struct http_exchange *x)
{
        struct test_ask ask = { .chat = "dm" };
        struct access_verdict j;
        struct buf why, data;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        buf_init(&why, 0);
        if (access_check_event(api_of(x)->env.dispatch,
                               &(struct incoming){
                                       .adapter = ask.adapter,
                                       .sender_id = ask.user,
                                       .channel = ask.channel ? ask.channel : ask.user,
                                       .chat = strcmp(ask.chat, "dm") == 0 ? CHAT_DM : CHAT_GROUP },
                               &j, &why)) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_bool(&data, "allowed", j.outcome == ACCESS_ALLOWED);
                jsonw_str(&data, "reason", why.len > 0 ? why.data : NULL);
                if (j.rule)
                        show_rule(&data, "rule", j.rule);
                else
                        jsonw_null(&data, "rule");
                jsonw_close(&data, '}');
                reply_data(x, 200, &data);
        } else {
                reply_missing(x, "instance", ask.adapter);
        }
        buf_release(&why);
        body_release(&b);
}
