/* Stored access rules, and a dry run of the access check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/page.h"
#include "api/core/write_job.h"
#include "api/resources/access_subject.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

struct access_ask {
        const char *type, *adapter, *user, *place, *reason, *message;
        int64_t person, expires_ms;
        bool enabled, force;
};

static const char *const types[] = { "allow", "deny", NULL };
static const char *const places[] = { "dm", "group", "", NULL };

/* clang-format off */
#define RULE_FIELDS                                                                             \
        { "instanceId", FIELD_STRING, .max = 128, FIELD_AT(access_ask, adapter),                \
          .help = "Only on this adapter; absent: on all." },                                    \
        { "platformUserId", FIELD_STRING, .max = 200, FIELD_AT(access_ask, user),               \
          .help = "The user: an id, optionally with its platform (telegram:7); * stands for "   \
                  "anything. A name (@ada) is looked up among those who have written." },       \
        { "personId", FIELD_ID, .prefix = "per-", FIELD_AT(access_ask, person),                 \
          .help = "Instead of platformUserId: a person, by any of their identities." },         \
        { "place", FIELD_CHOICE, .choices = places, FIELD_AT(access_ask, place),                \
          .help = "Only in direct messages or only in groups; absent: everywhere." },           \
        { "reason", FIELD_STRING, .max = 200, FIELD_AT(access_ask, reason),                     \
          .help = "Why, for operators; never shown to the sender." },                           \
        { "blockMessage", FIELD_STRING, .max = 500, FIELD_AT(access_ask, message),              \
          .help = "With deny: sent to them in a direct message, once an hour; absent: nothing." }, \
        { "expiresAt", FIELD_TIME, FIELD_AT(access_ask, expires_ms),                            \
          .help = "When it expires; absent: never." },                                             \
        { "enabled", FIELD_BOOL, FIELD_AT(access_ask, enabled),                                 \
          .help = "A disabled rule is kept but does not count." },                              \
        { "force", FIELD_BOOL, FIELD_AT(access_ask, force),                                     \
          .help = "Store it even if it names an unknown person, name or platform, or allows "   \
                  "everyone." }
/* clang-format on */
static const struct field access_fields[] = {
        { "ruleType", FIELD_CHOICE, .required = true, .choices = types, FIELD_AT(access_ask, type),
          .help = "A deny wins over every allow." },
        RULE_FIELDS,
        FIELD_END,
};
static const struct field patch_fields[] = {
        { "ruleType", FIELD_CHOICE, .choices = types, FIELD_AT(access_ask, type),
          .help = "A deny wins over every allow." },
        RULE_FIELDS,
        FIELD_END,
};

static struct access_rules *rules_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->access;
}

/* ---- listing ---- */

static void write_rule(struct buf *b, const char *key, const struct access_rule *r)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "acr-", r->id);
        jsonw_str(b, "ruleType", r->deny ? "deny" : "allow");
        jsonw_str(b, "instanceId", r->adapter);
        jsonw_str(b, "platformUserId", r->user);
        if (r->person > 0)
                row_json_id(b, "personId", "per-", r->person);
        else
                jsonw_null(b, "personId");
        jsonw_str(b, "place", r->place);
        jsonw_bool(b, "enabled", r->enabled);
        jsonw_bool(b, "expired", r->expires_ms > 0 && r->expires_ms <= clock_wall_ms());
        jsonw_str(b, "reason", r->reason);
        jsonw_str(b, "blockMessage", r->message);
        row_json_time(b, "expiresAt", r->expires_ms);
        jsonw_str(b, "by", r->by);
        row_json_time(b, "createdAt", r->created_ms);
        row_json_time(b, "updatedAt", r->updated_ms);
        jsonw_close(b, '}');
}

static void list(struct http_exchange *x)
{
        const struct access_rules *rules = rules_of(x);
        struct buf json;

        buf_init(&json, 0);
        page_open(&json);
        for (size_t i = 0; i < access_rules_count(rules); i++)
                write_rule(&json, NULL, access_rules_at(rules, i));
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

/* The rule in the path; NULL: answered with 404. */
static const struct access_rule *rule_of(struct http_exchange *x)
{
        int64_t id = request_id(x, "acr-", "access rule");
        const struct access_rule *r = id < 0 ? NULL : access_rules_find(rules_of(x), id);

        if (id >= 0 && !r)
                reply_missing(x, "access rule", http_param(x, "id"));
        return r;
}

static void show(struct http_exchange *x)
{
        const struct access_rule *r = rule_of(x);
        struct buf data;

        if (!r)
                return;
        buf_init(&data, 0);
        write_rule(&data, NULL, r);
        reply_data(x, 200, &data);
}

/* ---- changing ---- */

struct access_rule_job {
        struct write_job job;
        struct access_rules *rules;
};

static void on_put(void *arg, int64_t id, const struct error *err)
{
        struct access_rule_job *p = arg;
        const struct access_rule *r = err ? NULL : access_rules_find(p->rules, id);

        if (r)
                write_rule(&p->job.data, NULL, r);
        write_job_done(p, err);
}

/* "" removes a text. */
static const char *given(const char *text)
{
        return text && *text ? text : NULL;
}

static struct access_rule rule_from(const struct http_exchange *x, int64_t id,
                                    const struct access_ask *ask)
{
        return (struct access_rule){ .id = id,
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
}

static void write_ask(struct http_exchange *x, int64_t id, const struct access_ask *ask)
{
        struct access_rule r = rule_from(x, id, ask);
        struct access_rule_job *p = mem_zalloc(sizeof(*p));

        write_job_init(&p->job, x, id > 0 ? 200 : 201);
        p->rules = rules_of(x);
        access_rules_put(p->rules, &r, on_put, p);
}

/* ---- who is meant ---- */

/* A rule that waits until its subject is looked up in the store. */
struct subject_job {
        struct api_job job;
        struct access_subject subject;
        struct body body;
        struct access_ask ask;
        char *kept[5]; /* its strings */
        int64_t id;
};

static void subject_job_free(struct subject_job *j)
{
        for (size_t i = 0; i < COUNT(j->kept); i++)
                free(j->kept[i]);
        access_subject_release(&j->subject);
        body_release(&j->body);
        free(j);
}

static int read_subject(struct store_tx *tx, void *arg, struct error *err)
{
        return access_subject_read(tx, &((struct subject_job *)arg)->subject, err);
}

static void on_subject(void *arg, const struct error *err)
{
        struct subject_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct error why = { 0 };

        if (x && err) {
                reply_failed(x, err);
        } else if (x && access_subject_found(&j->subject, &why) < 0) {
                if (why.kind == ERR_CONFLICT)
                        reply_error(x, 409, "CONFLICT", j->subject.details.data, "%s", why.text);
                else
                        reply_field_error(x, &j->body, &why);
        } else if (x) {
                if (j->ask.user && j->subject.found) {
                        j->ask.user = j->subject.found;
                } else if (j->ask.user) {
                        j->ask.user = NULL;
                        j->ask.person = j->subject.found_person;
                }
                write_ask(x, j->id, &j->ask);
        }
        subject_job_free(j);
}

/* Owns its strings, some of which belong to a rule that may be deleted meanwhile. */
static struct subject_job *subject_job_new(const struct access_ask *ask,
                                           const struct access_rule *r)
{
        struct subject_job *j = mem_zalloc(sizeof(*j));
        const char **texts[] = { &j->ask.adapter, &j->ask.user, &j->ask.place, &j->ask.reason,
                                 &j->ask.message };

        buf_init(&j->subject.others, 0);
        buf_init(&j->subject.details, 0);
        j->ask = *ask;
        for (size_t i = 0; i < COUNT(texts); i++)
                *texts[i] = j->kept[i] = mem_strdup(*texts[i]);
        j->ask.type = r->deny ? "deny" : "allow";
        j->id = r->id;
        j->subject.user = given(j->ask.user);
        j->subject.person = r->person;
        return j;
}

static bool allows_everyone(const struct access_ask *ask)
{
        const char *colon = ask->user ? strrchr(ask->user, ':') : NULL;

        return strcmp(ask->type, "allow") == 0 && ask->user &&
               strspn(colon ? colon + 1 : ask->user, "*") == strlen(colon ? colon + 1 : ask->user);
}

/* Takes over the body. old: the rule that changes; NULL: a new one. */
static void put(struct http_exchange *x, struct body *b, const struct access_rule *old,
                const struct access_ask *ask)
{
        struct access_rule r = rule_from(x, old ? old->id : 0, ask);
        bool same = old && r.user == old->user && r.person == old->person && r.deny == old->deny;
        struct subject_job *j;
        struct error err;
        int known = 1;

        if (access_rule_check(&r, &err) < 0) {
                reply_field_error(x, b, &err);
                body_release(b);
                return;
        }
        if (r.adapter && !adapters_find(api_of(x)->env.adapters, r.adapter))
                body_mistake(b, "instanceId", "there is no adapter '%.60s'", r.adapter);
        else if (!same && !ask->force && allows_everyone(ask))
                body_mistake(b, "platformUserId",
                             "'%.60s' allows everyone; confirm it with \"force\": true (--yes)",
                             ask->user);
        if (b->mistake_count > 0) {
                reply_mistakes(x, b);
                body_release(b);
                return;
        }
        j = subject_job_new(ask, &r);
        if (!same && !ask->force)
                known = access_subject_check(&j->subject, api_of(x)->env.adapters, r.adapter, &err);
        j->body = *b;
        if (known == 0) {
                api_job_begin(&j->job, x);
                store_read(api_of(x)->env.store, read_subject, on_subject, j);
                return;
        }
        if (known < 0)
                reply_field_error(x, &j->body, &err);
        else
                write_ask(x, r.id, &j->ask);
        subject_job_free(j);
}

static void create(struct http_exchange *x)
{
        struct access_ask ask = { .enabled = true };
        struct body b;

        if (request_body(x, &b, &ask) == 0)
                put(x, &b, NULL, &ask);
}

static void change(struct http_exchange *x)
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
        if (request_body(x, &b, &ask) == 0)
                put(x, &b, r, &ask);
}

static void on_deleted(void *arg, int64_t id, const struct error *err)
{
        struct write_job *c = arg;

        jsonw_open(&c->data, '{');
        row_json_id(&c->data, "id", "acr-", id);
        jsonw_str(&c->data, "status", "deleted");
        jsonw_close(&c->data, '}');
        write_job_done(c, err);
}

static void delete_rule(struct http_exchange *x)
{
        int64_t id = request_id(x, "acr-", "access rule");

        if (id >= 0)
                access_rules_delete(rules_of(x), id, on_deleted, write_job_new(x, 200));
}

/* ---- dry run ---- */

struct access_check_ask {
        const char *adapter, *user, *channel, *chat;
};

static const char *const chats[] = { "dm", "group", NULL };

static const struct field check_fields[] = {
        { "instanceId", FIELD_STRING, .required = true, .min = 1, .max = 128,
          FIELD_AT(access_check_ask, adapter), .help = "On which adapter." },
        { "platformUserId", FIELD_STRING, .required = true, .min = 1, .max = 200,
          FIELD_AT(access_check_ask, user), .help = "The platform's id of the user." },
        { "chatType", FIELD_CHOICE, .choices = chats, FIELD_AT(access_check_ask, chat),
          .fallback = "\"dm\"", .help = "The kind of chat they write in." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(access_check_ask, channel),
          .help = "The platform's id of that chat; absent: one of their own." },
        FIELD_END,
};

static void check(struct http_exchange *x)
{
        struct access_check_ask ask = { .chat = "dm" };
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
                        write_rule(&data, "rule", j.rule);
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

const struct route access_routes[] = {
        { "GET", "/api/v2/access/rules", SCOPE_READ, list, REACH_ALL,
          .summary = "Access rules stored in addition to the configuration.", .status = 200,
          .answer = ROUTE_PAGE " of access rules." },
        { "POST", "/api/v2/access/rules", SCOPE_ADMIN, create, REACH_ALL,
          .summary = "Allow or deny someone. In force when this is answered; a deny "
                     "wins over everything. Unknown platforms, names and persons are refused "
                     "(400), ambiguous names with the candidates (409, `details.candidates`).",
          .body = access_fields, .status = 201, .answer = "{\"data\": access rule}",
          .example = ROUTE_JSON({
                  "ruleType" : "allow",
                  "platformUserId" : "telegram:7",
                  "instanceId" : "tg",
                  "reason" : "a tester"
          }) },
        { "GET", "/api/v2/access/rules/:id", SCOPE_READ, show, REACH_ALL,
          .summary = "One access rule.", .status = 200, .answer = "{\"data\": access rule}" },
        { "PATCH", "/api/v2/access/rules/:id", SCOPE_ADMIN, change, REACH_ALL,
          .summary = "Change an access rule; absent fields stay, \"\" or 0 removes a value.",
          .body = patch_fields, .status = 200, .answer = "{\"data\": access rule}",
          .example = ROUTE_JSON({ "enabled" : false }) },
        { "DELETE", "/api/v2/access/rules/:id", SCOPE_ADMIN, delete_rule, REACH_ALL,
          .summary = "Delete an access rule.", .status = 200,
          .answer = "{\"data\": {\"id\", \"status\": \"deleted\"}}" },
        { "POST", "/api/v2/access/check", SCOPE_READ, check, REACH_BODY,
          .summary = "Check whether a user would be admitted.", .body = check_fields, .status = 200,
          .answer = "{\"data\": {\"allowed\", \"reason\", \"rule\": access rule or null}}",
          .example = ROUTE_JSON({ "instanceId" : "tg", "platformUserId" : "7" }) },
        ROUTE_END,
};
