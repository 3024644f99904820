/*
 * The default scenario: the lines people wrote since the last finished answer are a plan, the
 * number of answers with calls since then says how far it has come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_answer.h"
#include "sim/llm/lm_scenario.h"

#define MAX_CALLS  32
#define MAX_QUOTED 2000 /* bytes of what is repeated */
#define MAX_WORDS  20000

struct plan {
        const struct lm_prompt *prompt;
        struct lm_answer *answer;
        int64_t skip; /* steps done already */
        bool acted;   /* the step of this answer is done */
        bool spoke, commands;
};

/* "[2026-11-16 10:00:00+00:00] [ada]: text" -> "text" */
static const char *skip_marks(const char *line)
{
        const char *p = line;

        while (*p == '[') {
                const char *end = strchr(p, ']');

                if (!end)
                        return line;
                p = end + 1 + strspn(end + 1, " ");
        }
        return p != line && *p == ':' ? p + 1 + strspn(p + 1, " ") : line;
}

/* What follows the word, or NULL. */
static const char *after(const char *line, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(line, word, n) != 0 || (line[n] && line[n] != ' '))
                return NULL;
        return line + n + strspn(line + n, " ");
}

static const json_t *schema_of(const struct plan *p, const char *name)
{
        const json_t *tool;
        size_t i;

        json_array_foreach(p->prompt->tools, i, tool) {
                if (strcmp(json_str(tool, "name", ""), name) == 0)
                        return json_object_get(tool, "schema");
        }
        return NULL;
}

/* Tools of ours want a label besides. */
static void add_label(const struct plan *p, const char *name, json_t *arguments)
{
        const json_t *properties = json_object_get(schema_of(p, name), "properties");
        char *label;

        if (!json_object_get(properties, "label") || json_object_get(arguments, "label"))
                return;
        label = mem_printf("calling %s", name);
        json_object_set_new(arguments, "label", json_string(label));
        free(label);
}

static void call(struct plan *p, const char *name, json_t *arguments)
{
        char *text;

        add_label(p, name, arguments);
        text = json_text(arguments);
        lm_answer_call(p->answer, name, text);
        free(text);
        json_decref(arguments);
}

static void say(struct plan *p, const char *text)
{
        if (*text)
                lm_answer_text(p->answer, "text", text);
        p->spoke = p->spoke || *text;
}

static void complain(struct plan *p, const char *what, const char *about)
{
        char *text = mem_printf("%s %s", what, about);

        say(p, text);
        free(text);
}

/* The first parameter it cannot do without, label aside. */
static const char *first_parameter(const struct plan *p, const char *name)
{
        const json_t *required = json_object_get(schema_of(p, name), "required"), *key;
        size_t i;

        json_array_foreach(required, i, key) {
                const char *text = json_string_value(key);

                if (text && strcmp(text, "label") != 0)
                        return text;
        }
        return "command";
}

/* "bash: ls" */
static void use(struct plan *p, const char *rest)
{
        const char *colon = strchr(rest, ':');
        char *name = mem_strndup(rest, colon ? (size_t)(colon - rest) : strlen(rest));
        json_t *arguments = json_object();

        if (!schema_of(p, name)) {
                complain(p, "There is no tool", name);
                json_decref(arguments);
        } else {
                if (colon)
                        json_object_set_new(arguments, first_parameter(p, name),
                                            json_string(colon + 1 + strspn(colon + 1, " ")));
                call(p, name, arguments);
        }
        free(name);
}

/* Every {n} inside becomes the number; yours. */
static json_t *numbered(const char *text, size_t n, int64_t number, struct error *err)
{
        struct buf b;
        json_t *value;

        buf_init(&b, 0);
        for (size_t i = 0; i < n; i++) {
                if (n - i >= 3 && strncmp(text + i, "{n}", 3) == 0) {
                        buf_addint(&b, number);
                        i += 2;
                } else {
                        buf_addch(&b, text[i]);
                }
        }
        value = json_read(b.data, b.len, err);
        buf_release(&b);
        return value;
}

/* The length of the JSON object at p, by its braces; 0: there is none. */
static size_t object_length(const char *p)
{
        bool quoted = false;
        int depth = 0;

        for (size_t i = 0; *p == '{' && p[i]; i++) {
                if (quoted) {
                        if (p[i] == '\\' && p[i + 1])
                                i++;
                        else if (p[i] == '"')
                                quoted = false;
                } else if (p[i] == '"') {
                        quoted = true;
                } else if (p[i] == '{') {
                        depth++;
                } else if (p[i] == '}' && --depth == 0) {
                        return i + 1;
                }
        }
        return 0;
}

/* "read {..} read {..}", each `times`. */
static void calls(struct plan *p, const char *rest, int64_t times)
{
        struct error err = { 0 };
        int64_t made = 0;

        while (*rest) {
                size_t n = strcspn(rest, " {");
                char *name = mem_strndup(rest, n);
                const char *object = rest + n + strspn(rest + n, " ");
                size_t length = object_length(object);

                if (!schema_of(p, name))
                        complain(p, "There is no tool", name);
                for (int64_t i = 0; schema_of(p, name) && i < times && made < MAX_CALLS; i++) {
                        json_t *arguments =
                                length ? numbered(object, length, i + 1, &err) : json_object();

                        made++;
                        if (json_is_object(arguments)) {
                                call(p, name, arguments);
                                continue;
                        }
                        json_decref(arguments);
                        complain(p, "These arguments are not JSON:", err.text);
                        break;
                }
                free(name);
                rest = object + length;
                rest += strspn(rest, " ");
        }
}

static void many(struct plan *p, const char *rest)
{
        char *end;
        long long times = strtoll(rest, &end, 10);

        calls(p, end + strspn(end, " "), end == rest ? 1 : times);
}

static void once(struct plan *p, const char *rest)
{
        calls(p, rest, 1);
}

static void think(struct plan *p, const char *rest)
{
        lm_answer_text(p->answer, "thinking", *rest ? rest : "Let me think.");
}

static void pause_here(struct plan *p, const char *rest)
{
        json_array_append_new(p->answer->content, json_pack("{s:s,s:I}", "type", "wait", "ms",
                                                            (json_int_t)strtoll(rest, NULL, 10)));
}

static void talk(struct plan *p, const char *rest)
{
        long long words = strtoll(rest, NULL, 10);
        struct buf b;

        buf_init(&b, 0);
        for (long long i = 1; i <= words && i <= MAX_WORDS; i++)
                buf_addf(&b, "%sword%lld", i > 1 ? " " : "", i);
        say(p, b.data);
        buf_release(&b);
}

static void end_with(struct plan *p, const char *stop)
{
        snprintf(p->answer->stop, sizeof(p->answer->stop), "%s", stop);
}

static void decline(struct plan *p, const char *rest)
{
        (void)rest;
        json_array_clear(p->answer->content);
        end_with(p, "refusal");
        p->spoke = true;
}

static void ask_again(struct plan *p, const char *rest)
{
        say(p, *rest ? rest : "One moment.");
        end_with(p, "pause_turn");
}

static void fail(struct plan *p, const char *rest)
{
        long long status = strtoll(rest, NULL, 10);

        p->answer->status = status >= 400 && status <= 599 ? (int)status : 500;
}

/* clang-format off */
static const struct {
        const char *word;
        void (*run)(struct plan *p, const char *rest);
        bool is_step;      /* ends the answer; the next line is for the next request */
        const char *needs; /* one of these characters must follow: the words are English, too */
} commands[] = {
        { "use",    use,        true,  ":" },
        { "call",   once,       true,  NULL },
        { "calls",  many,       true,  NULL },
        { "say",    say,        false, NULL },
        { "think",  think,      false, NULL },
        { "wait",   pause_here, false, "0123456789" },
        { "long",   talk,       false, "0123456789" },
        { "refuse", decline,    true,  NULL },
        { "pause",  ask_again,  true,  NULL },
        { "fail",   fail,       true,  "0123456789" },
};
/* clang-format on */

static const char *rest_of(const char *line, size_t *which)
{
        for (*which = 0; *which < COUNT(commands); (*which)++) {
                const char *rest = after(line, commands[*which].word);

                if (rest && (!commands[*which].needs || strpbrk(rest, commands[*which].needs)))
                        return rest;
        }
        return NULL;
}

static void run_line(struct plan *p, const char *line)
{
        size_t which;
        const char *rest = rest_of(line, &which);

        if (!rest)
                return;
        p->commands = true;
        if (p->acted)
                return;
        if (p->skip > 0) {
                p->skip -= commands[which].is_step;
                return;
        }
        commands[which].run(p, rest);
        p->acted = commands[which].is_step;
}

static void run_text(struct plan *p, const char *text)
{
        while (*text) {
                size_t n = strcspn(text, "\n");
                char *line = mem_strndup(text, n);

                run_line(p, skip_marks(line));
                free(line);
                text += n + (text[n] != '\0');
        }
}

/* Where the work that is not finished begins. */
static size_t work_begins(const struct lm_prompt *p, int64_t *rounds)
{
        size_t at = 0, i;
        const json_t *t;

        *rounds = 0;
        json_array_foreach(p->turns, i, t) {
                if (strcmp(json_str(t, "role", ""), "assistant") != 0)
                        continue;
                if (json_array_size(json_object_get(t, "calls")) > 0) {
                        (*rounds)++;
                } else if (i + 1 < json_array_size(p->turns)) {
                        at = i + 1;
                        *rounds = 0;
                } else {
                        (*rounds)++; /* it paused, and is asked to go on */
                }
        }
        return at;
}

static void quote(struct plan *p, const char *what, const char *name, const char *text)
{
        size_t n = lm_pieces_step(text, strlen(text), MAX_QUOTED);
        char *cut = mem_strndup(text, n);
        char *all = mem_printf("%s%s: %s", what, name, cut);

        say(p, all);
        free(all);
        free(cut);
}

/* Nothing is left to do: tells what the tools said and what people said. */
static void conclude(struct plan *p, size_t from)
{
        const json_t *turns = p->prompt->turns;
        size_t last = json_array_size(turns), i = last;

        while (i > from && strcmp(json_str(json_array_get(turns, i - 1), "role", ""), "tool") == 0)
                i--;
        for (; i < last; i++) {
                const json_t *t = json_array_get(turns, i);

                quote(p, "Result of ", json_str(t, "name", ""), json_str(t, "text", ""));
        }
        for (i = from; i < last && !p->commands; i++) {
                const json_t *t = json_array_get(turns, i);

                if (strcmp(json_str(t, "role", ""), "user") == 0)
                        quote(p, "You said", "", skip_marks(json_str(t, "text", "")));
        }
        if (!p->spoke)
                say(p, "Done.");
}

void lm_scenario_default(const struct lm_prompt *prompt, struct lm_answer *a)
{
        struct plan p = { .prompt = prompt, .answer = a };
        size_t from = work_begins(prompt, &p.skip);

        for (size_t i = from; i < json_array_size(prompt->turns); i++) {
                const json_t *t = json_array_get(prompt->turns, i);

                if (strcmp(json_str(t, "role", ""), "user") == 0)
                        run_text(&p, json_str(t, "text", ""));
        }
        if (!p.acted && !p.spoke)
                conclude(&p, from);
}
