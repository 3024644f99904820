#include "sim/llm/lm_scenario.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/llm/lm_answer.h"

#define MAX_FILE   ((size_t)16 << 20)
#define MAX_RULES  10000
#define MAX_STATUS 599

/* ---- facts of a prompt that rules ask for ---- */

struct facts {
        const char *user;   /* the last thing a person said */
        const char *result; /* of the last tool, if nobody spoke since; else "" */
        const char *tool;   /* its name */
        int64_t turn;       /* finished answers before, plus one */
        int64_t round;      /* answers with calls since the last finished one */
};

static struct facts facts_of(const struct lm_prompt *p)
{
        struct facts f = { "", "", "", 1, 0 };
        const json_t *t;
        size_t i;

        json_array_foreach(p->turns, i, t) {
                const char *role = json_str(t, "role", ""), *text = json_str(t, "text", "");

                if (strcmp(role, "user") == 0) {
                        f.user = text;
                        f.result = f.tool = "";
                } else if (strcmp(role, "tool") == 0) {
                        f.result = text;
                        f.tool = json_str(t, "name", "");
                } else if (json_array_size(json_object_get(t, "calls")) > 0) {
                        f.round++;
                } else {
                        f.turn++;
                        f.round = 0;
                }
        }
        return f;
}

/* ---- rules ---- */

static bool fits_text(const json_t *when, const char *key, const char *text)
{
        const char *pattern = json_str(when, key, NULL);

        return !pattern || fnmatch(pattern, text, 0) == 0;
}

static bool fits_number(const json_t *when, const char *key, int64_t n)
{
        return json_int(when, key, n) == n;
}

static bool fits(const json_t *rule, const struct lm_prompt *p, const char *wire)
{
        const json_t *when = json_object_get(rule, "when");
        struct facts f = facts_of(p);

        return json_int(rule, "times", 1) > 0 && fits_text(when, "user", f.user) &&
               fits_text(when, "result", f.result) && fits_text(when, "tool", f.tool) &&
               fits_text(when, "model", p->model->name) && fits_text(when, "wire", wire) &&
               fits_text(when, "system", p->system.data) && fits_number(when, "turn", f.turn) &&
               fits_number(when, "round", f.round);
}

/* Replaces {user}, {result}, {turn} and {round}; yours. */
static char *fill(const char *text, const struct facts *f)
{
        struct buf b;

        buf_init(&b, 0);
        while (*text) {
                if (strncmp(text, "{user}", 6) == 0) {
                        buf_addstr(&b, f->user);
                        text += 6;
                } else if (strncmp(text, "{result}", 8) == 0) {
                        buf_addstr(&b, f->result);
                        text += 8;
                } else if (strncmp(text, "{turn}", 6) == 0) {
                        buf_addint(&b, f->turn);
                        text += 6;
                } else if (strncmp(text, "{round}", 7) == 0) {
                        buf_addint(&b, f->round);
                        text += 7;
                } else {
                        buf_addch(&b, *text++);
                }
        }
        return buf_take(&b);
}

static void add_filled(struct lm_answer *a, const char *type, const char *text,
                       const struct facts *f)
{
        char *filled = fill(text, f);

        lm_answer_text(a, type, filled);
        free(filled);
}

/* One part of a rule's answer. */
static void add_part(struct lm_answer *a, const json_t *part, const struct facts *f)
{
        const char *text = json_str(part, "text", NULL), *name = json_str(part, "call", NULL);
        const char *thought = json_str(part, "thinking", NULL);
        const json_t *arguments = json_object_get(part, "arguments");

        if (json_is_string(part))
                add_filled(a, "text", json_string_value(part), f);
        else if (text)
                add_filled(a, "text", text, f);
        else if (thought)
                add_filled(a, "thinking", thought, f);
        else if (json_object_get(part, "redacted"))
                lm_answer_text(a, "redacted", "");
        else if (json_object_get(part, "wait_ms"))
                json_array_append_new(a->content, json_pack("{s:s,s:I}", "type", "wait", "ms",
                                                            json_int(part, "wait_ms", 0)));
        else if (name && json_is_string(arguments)) {
                lm_answer_call(a, name, json_string_value(arguments));
        } else if (name) {
                char *all = arguments ? json_text(arguments) : mem_strdup("{}");

                lm_answer_call(a, name, all);
                free(all);
        }
}

static void use_rule(const json_t *rule, const struct lm_prompt *p, struct lm_answer *a)
{
        const json_t *parts = json_object_get(rule, "answer"), *part;
        const json_t *usage = json_object_get(rule, "usage"),
                     *error = json_object_get(rule, "error");
        const json_t *retry = json_object_get(error, "retry_after");
        const char *stop = json_str(rule, "stop", NULL);
        struct facts f = facts_of(p);
        size_t i;

        if (json_is_array(parts)) {
                json_array_foreach(parts, i, part)
                        add_part(a, part, &f);
        } else if (parts) {
                add_part(a, parts, &f);
        }
        if (stop)
                snprintf(a->stop, sizeof(a->stop), "%s", stop);
        a->input = json_int(usage, "input", -1);
        a->output = json_int(usage, "output", -1);
        a->cache_read = json_int(usage, "cache_read", -1);
        a->cache_write = json_int(usage, "cache_write", -1);
        a->piece_ms = json_int(rule, "piece_ms", -1);
        a->piece_bytes = json_int(rule, "piece_bytes", -1);
        a->status = (int)json_int(error, "status", 0);
        snprintf(a->message, sizeof(a->message), "%s", json_str(error, "message", ""));
        a->retry_after = retry ? json_number_value(retry) : -1;
}

void lm_scenario_answer(struct world *w, const struct lm_prompt *p, const char *wire,
                        struct lm_answer *a)
{
        json_t *rule;
        size_t i;

        *a = (struct lm_answer){ .content = json_array(),
                                 .input = -1,
                                 .output = -1,
                                 .cache_read = -1,
                                 .cache_write = -1,
                                 .piece_ms = -1,
                                 .piece_bytes = -1,
                                 .retry_after = -1 };
        json_array_foreach(w->rules, i, rule) {
                if (!fits(rule, p, wire))
                        continue;
                if (json_object_get(rule, "times"))
                        json_object_set_new(rule, "times",
                                            json_integer(json_int(rule, "times", 1) - 1));
                use_rule(rule, p, a);
                break;
        }
        if (i == json_array_size(w->rules)) {
                if (w->defaults)
                        lm_scenario_default(p, a);
                else
                        lm_answer_text(a, "text", "No rule of the scenario fits.");
        }
        if (!a->stop[0]) {
                bool calls = false;

                json_array_foreach(a->content, i, rule)
                        calls = calls || strcmp(json_str(rule, "type", ""), "call") == 0;
                snprintf(a->stop, sizeof(a->stop), "%s", calls ? "tool_use" : "end_turn");
        }
}

/* ---- control ---- */

static bool is_known(const char *key, const char *const *known)
{
        for (; *known; known++) {
                if (strcmp(key, *known) == 0)
                        return true;
        }
        return false;
}

static int check_members(const json_t *object, const char *what, const char *const *known,
                         struct error *err)
{
        const char *key;
        json_t *value;

        if (object && !json_is_object(object))
                return error_set(err, ERR_INVALID, "'%s' must be an object", what);
        json_object_foreach((json_t *)object, key, value) {
                if (!is_known(key, known))
                        return error_set(err, ERR_INVALID, "'%s' has no member '%s'", what, key);
        }
        return 0;
}

static int check_part(const json_t *part, struct error *err)
{
        static const char *const known[] = { "text",      "thinking", "redacted", "call",
                                             "arguments", "wait_ms",  NULL };

        if (json_is_string(part))
                return 0;
        if (json_object_size(part) == 0)
                return error_set(err, ERR_INVALID,
                                 "a part of 'answer' is a text, or an object with 'text', "
                                 "'thinking', 'redacted', 'call' or 'wait_ms'");
        return check_members(part, "answer", known, err);
}

static int check_rule(const json_t *rule, struct error *err)
{
        static const char *const members[] = { "when",  "times",    "answer",      "stop", "usage",
                                               "error", "piece_ms", "piece_bytes", NULL };
        static const char *const conditions[] = { "user",   "result", "tool",  "model", "wire",
                                                  "system", "turn",   "round", NULL };
        static const char *const usage[] = { "input", "output", "cache_read", "cache_write", NULL };
        static const char *const error[] = { "status", "message", "retry_after", NULL };
        const json_t *answer = json_object_get(rule, "answer"), *part;
        int64_t status = json_int(json_object_get(rule, "error"), "status", 500);
        size_t i;

        if (!json_is_object(rule))
                return error_set(err, ERR_INVALID, "a rule must be an object");
        if (check_members(rule, "rule", members, err) != 0 ||
            check_members(json_object_get(rule, "when"), "when", conditions, err) != 0 ||
            check_members(json_object_get(rule, "usage"), "usage", usage, err) != 0 ||
            check_members(json_object_get(rule, "error"), "error", error, err) != 0)
                return -1;
        if (status < 400 || status > MAX_STATUS)
                return error_set(err, ERR_INVALID, "'status' must be between 400 and 599");
        if (!json_is_array(answer))
                return answer ? check_part(answer, err) : 0;
        json_array_foreach(answer, i, part) {
                if (check_part(part, err) != 0)
                        return -1;
        }
        return 0;
}

static int set_rules(struct world *w, const json_t *request, struct error *err)
{
        json_t *rules = json_object_get(request, "rules"), *rule;
        size_t i;

        if (!json_is_array(rules) || json_array_size(rules) > MAX_RULES)
                return error_set(err, ERR_INVALID, "'rules' must be a list of at most %d rules",
                                 MAX_RULES);
        json_array_foreach(rules, i, rule) {
                if (check_rule(rule, err) != 0)
                        return error_prefix(err, "rule %zu", i + 1);
        }
        json_decref(w->rules);
        w->rules = json_deep_copy(rules);
        return 0;
}

int lm_scenario_set(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        if (set_rules(w, request, err) != 0)
                return -1;
        jsonw_int(out, "rules", (int64_t)json_array_size(w->rules));
        return 0;
}

/* Rules for one answer are used in the order they were given, before all others. */
int lm_scenario_next(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        size_t at = 0;
        json_t *rule;

        if (check_rule(request, err) != 0)
                return -1;
        while (at < json_array_size(w->rules)) {
                rule = json_array_get(w->rules, at);
                if (!json_is_true(json_object_get(rule, "next")))
                        break;
                if (json_int(rule, "times", 0) == 0)
                        json_array_remove(w->rules, at);
                else
                        at++;
        }
        if (at >= MAX_RULES)
                return error_set(err, ERR_LIMIT, "there are %d rules already", MAX_RULES);
        rule = json_deep_copy(request);
        json_object_set_new(rule, "next", json_true());
        if (!json_object_get(rule, "times"))
                json_object_set_new(rule, "times", json_integer(1));
        json_array_insert_new(w->rules, at, rule);
        jsonw_int(out, "waiting", (int64_t)at + 1);
        return 0;
}

int lm_scenario_load(struct world *w, const char *path, struct error *err)
{
        struct buf text;
        json_t *value;
        int rc = -1;

        buf_init(&text, 0);
        if (file_read(path, MAX_FILE, &text, err) == 0) {
                value = json_read(text.data, text.len, err);
                rc = value ? set_rules(w, value, err) : -1;
                if (rc != 0)
                        error_prefix(err, "scenario '%s'", path);
                json_decref(value);
        }
        buf_release(&text);
        return rc;
}
