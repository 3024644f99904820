/* The rules in force, and those stored in the database. */
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "api/core/page.h"
#include "api/core/write_job.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

#define POSITION_MAX 1000000
#define UNSET        (POSITION_MAX + 1)

struct rule_ask {
        const json_t *rule;
        int64_t position;
        bool enabled;
};

/* clang-format off */
#define RULE_FIELD                                                                              \
        { "rule", FIELD_OBJECT, .required = true, FIELD_AT(rule_ask, rule),                     \
          .help = "A rule as in the configuration: name, when, agent, mode and so on." }
#define POSITION_FIELDS                                                                         \
        { "position", FIELD_INT, .min = -POSITION_MAX, .max = POSITION_MAX,                     \
          FIELD_AT(rule_ask, position),                                                         \
          .help = "Lower ones are tried first; those below 0 before the rules of the file, the " \
                  "others after them; absent: after the last one, or unchanged." },             \
        { "enabled", FIELD_BOOL, FIELD_AT(rule_ask, enabled),                                   \
          .help = "A disabled rule is kept but not tried." }
/* clang-format on */
static const struct field rule_fields[] = { RULE_FIELD, POSITION_FIELDS, FIELD_END };
static const struct field patch_fields[] = {
        { "rule", FIELD_OBJECT, FIELD_AT(rule_ask, rule), .help = "The new rule as a whole." },
        POSITION_FIELDS,
        FIELD_END,
};

static struct stored_rules *stored_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->rules;
}

/* ---- listing ---- */

static const struct rule *file_rule(const struct http_exchange *x, const char *name)
{
        size_t count;
        const struct rule *rules = dispatch_file_rules(api_of(x)->env.dispatch, &count);

        for (size_t i = 0; i < count; i++) {
                if (strcmp(rules[i].name, name) == 0)
                        return &rules[i];
        }
        return NULL;
}

static void write_file_rule(struct buf *b, const struct rule *r)
{
        struct buf rule;

        buf_init(&rule, 0);
        settings_show(rule_settings, r, &rule);
        jsonw_open(b, '{');
        jsonw_str(b, "name", r->name);
        jsonw_str(b, "source", "file");
        jsonw_null(b, "position");
        jsonw_bool(b, "enabled", true);
        jsonw_bool(b, "inForce", true);
        jsonw_bool(b, "overridden", false);
        jsonw_null(b, "why");
        jsonw_raw(b, "rule", rule.data);
        jsonw_null(b, "createdAt");
        jsonw_null(b, "updatedAt");
        jsonw_close(b, '}');
        buf_release(&rule);
}

static void write_stored_rule(struct buf *b, const struct http_exchange *x,
                              const struct stored_rule *r)
{
        bool overridden = file_rule(x, r->row.name) != NULL;

        jsonw_open(b, '{');
        jsonw_str(b, "name", r->row.name);
        jsonw_str(b, "source", "stored");
        jsonw_int(b, "position", r->row.position);
        jsonw_bool(b, "enabled", r->row.enabled);
        jsonw_bool(b, "inForce", r->row.enabled && r->rule && !overridden);
        jsonw_bool(b, "overridden", overridden);
        jsonw_str(b, "why",
                  r->why       ? r->why
                  : overridden ? "the file has a rule of this name"
                               : NULL);
        jsonw_raw(b, "rule", r->row.json);
        row_json_time(b, "createdAt", r->row.created_ms);
        row_json_time(b, "updatedAt", r->row.updated_ms);
        jsonw_close(b, '}');
}

static void list(struct http_exchange *x)
{
        const struct stored_rules *stored = stored_of(x);
        size_t file_count, i = 0, n = stored_rules_count(stored);
        const struct rule *file = dispatch_file_rules(api_of(x)->env.dispatch, &file_count);
        struct buf json;

        buf_init(&json, 0);
        page_open(&json);
        for (; i < n && stored_rules_at(stored, i)->row.position < 0; i++)
                write_stored_rule(&json, x, stored_rules_at(stored, i));
        for (size_t k = 0; k < file_count; k++)
                write_file_rule(&json, &file[k]);
        for (; i < n; i++)
                write_stored_rule(&json, x, stored_rules_at(stored, i));
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

static void show(struct http_exchange *x)
{
        const char *name = http_param(x, "name");
        const struct stored_rule *stored = stored_rules_find(stored_of(x), name);
        const struct rule *file = file_rule(x, name);
        struct buf data;

        if (!file && !stored) {
                reply_missing(x, "rule", name);
                return;
        }
        buf_init(&data, 0);
        if (file)
                write_file_rule(&data, file);
        else
                write_stored_rule(&data, x, stored);
        reply_data(x, 200, &data);
}

/* ---- changing ---- */

/* A rule being stored; the answer shows it as stored. */
struct rule_job {
        struct write_job job;
        struct stored_rules *rules;
        char *name;
};

static void on_put(void *arg, const struct error *err)
{
        struct rule_job *p = arg;
        const struct stored_rule *r = err ? NULL : stored_rules_find(p->rules, p->name);

        if (r && p->job.job.x)
                write_stored_rule(&p->job.data, p->job.job.x, r);
        free(p->name);
        write_job_done(p, err);
}

/* false: answered; not a rule, or it names an unknown agent. */
static bool check(struct http_exchange *x, struct body *b, const char *name, const json_t *rule)
{
        const char *agent = json_str(rule, "agent", NULL);
        struct error err;

        if (stored_rules_check(name, rule, &err) < 0) {
                reply_field_error(x, b, &err);
                return false;
        }
        if (agent && !agents_has(api_of(x)->env.agents, agent)) {
                body_mistake(b, "rule.agent", "there is no agent '%.60s'", agent);
                reply_mistakes(x, b);
                return false;
        }
        return true;
}

static void put(struct http_exchange *x, const struct rule_row *rule, enum stored_rule_put how,
                int status)
{
        struct rule_job *p = mem_zalloc(sizeof(*p));

        write_job_init(&p->job, x, status);
        p->rules = stored_of(x);
        p->name = mem_strdup(rule->name);
        stored_rules_put(p->rules, rule, how, on_put, p);
}

static void store_rule(struct http_exchange *x, struct body *b, const char *name,
                       const struct rule_ask *ask, enum stored_rule_put how)
{
        const struct stored_rule *before = stored_rules_find(stored_of(x), name);
        char *json = ask->rule ? json_text(ask->rule) : NULL;
        struct rule_row r = { .name = name, .position = ask->position, .enabled = ask->enabled };

        r.json = json ? json : before ? before->row.json : "{}";
        if (r.position == UNSET)
                r.position = before ? before->row.position : stored_rules_end(stored_of(x));
        if (!ask->rule || check(x, b, name, ask->rule))
                put(x, &r, how, how == RULE_CREATE ? 201 : 200);
        free(json);
}

static void create(struct http_exchange *x)
{
        struct rule_ask ask = { .position = UNSET, .enabled = true };
        const char *name;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        name = json_str(ask.rule, "name", NULL);
        if (name && *name) {
                store_rule(x, &b, name, &ask, RULE_CREATE);
        } else {
                body_mistake(&b, "rule.name", "a stored rule needs a name");
                reply_mistakes(x, &b);
        }
        body_release(&b);
}

static void replace(struct http_exchange *x)
{
        struct rule_ask ask = { .position = UNSET, .enabled = true };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        store_rule(x, &b, http_param(x, "name"), &ask, RULE_CREATE_OR_REPLACE);
        body_release(&b);
}

static void change(struct http_exchange *x)
{
        const char *name = http_param(x, "name");
        const struct stored_rule *before = stored_rules_find(stored_of(x), name);
        struct rule_ask ask = { .position = UNSET, .enabled = before && before->row.enabled };
        struct body b;

        if (!before) {
                reply_missing(x, "stored rule", name);
                return;
        }
        if (request_body(x, &b, &ask) < 0)
                return;
        store_rule(x, &b, name, &ask, RULE_REPLACE);
        body_release(&b);
}

static void delete_rule(struct http_exchange *x)
{
        const char *name = http_param(x, "name");
        struct write_job *c = write_job_new(x, 200);

        jsonw_open(&c->data, '{');
        jsonw_str(&c->data, "name", name);
        jsonw_str(&c->data, "status", "deleted");
        jsonw_close(&c->data, '}');
        stored_rules_delete(stored_of(x), name, write_job_done, c);
}

const struct route rules_routes[] = {
        { "GET", "/api/v2/rules", SCOPE_READ, list, REACH_ALL,
          .summary = "The rules in the order in which they are tried: those of the file and stored "
                     "ones.",
          .status = 200,
          .answer = ROUTE_PAGE " of rules: {\"name\", \"source\": \"file\" or \"stored\", "
                               "\"position\", \"enabled\", \"inForce\", \"overridden\", "
                               "\"why\", \"rule\"}." },
        { "POST", "/api/v2/rules", SCOPE_ADMIN, create, REACH_ALL,
          .summary = "Store a new rule. It is in force when this is answered.", .body = rule_fields,
          .status = 201, .answer = "{\"data\": rule}; 409 when there is a stored one of this name.",
          .example = ROUTE_JSON({
                  "rule" : {
                          "name" : "night",
                          "when" : { "adapter" : "tg", "hours" : "22:00-06:00" },
                          "mode" : "off"
                  },
                  "position" : -1
          }) },
        { "GET", "/api/v2/rules/:name", SCOPE_READ, show, REACH_ALL,
          .summary = "The rule of this name: the file's if it has one, else the stored one.",
          .status = 200, .answer = "{\"data\": rule}" },
        { "PUT", "/api/v2/rules/:name", SCOPE_ADMIN, replace, REACH_ALL,
          .summary = "Store a rule of this name, or replace the stored one.", .body = rule_fields,
          .status = 200, .answer = "{\"data\": rule}",
          .example = ROUTE_JSON({ "rule" : { "when" : { "dm" : true }, "agent" : "echo" } }) },
        { "PATCH", "/api/v2/rules/:name", SCOPE_ADMIN, change, REACH_ALL,
          .summary = "Move, enable, disable or replace a stored rule; absent fields stay.",
          .body = patch_fields, .status = 200, .answer = "{\"data\": rule}",
          .example = ROUTE_JSON({ "enabled" : false }) },
        { "DELETE", "/api/v2/rules/:name", SCOPE_ADMIN, delete_rule, REACH_ALL,
          .summary = "Delete a stored rule.", .status = 200,
          .answer = "{\"data\": {\"name\", \"status\": \"deleted\"}}" },
        ROUTE_END,
};
