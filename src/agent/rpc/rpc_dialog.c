/*
 * rpc_dialog: what extensions, and the program itself, ask people.
 *
 * A question that can be answered by yes or no becomes an approval, another one the answer of the
 * turn (rpc_question.c). What nobody can answer, because no turn runs, is cancelled at once: the
 * run would wait for it for ever. A question with a time-out is answered by the program itself when
 * nobody was faster.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/rpc/rpc.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct rpc_dialog {
        struct rpc *rpc;
        char *id;
        char *yes, *no; /* values to choose; NULL: it wants to be confirmed */
        LIST_ENTRY(rpc_dialog) next;
};

/* ---- answers ---- */

/* member, value: what it is answered with; NULL: cancelled. */
static void answer(struct rpc *r, const char *id, const char *member, const char *json)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "type", "extension_ui_response");
        jsonw_str(&b, "id", id);
        jsonw_raw(&b, member ? member : "cancelled", member ? json : "true");
        jsonw_close(&b, '}');
        child_send(r->child, b.data, b.len);
        buf_release(&b);
}

void rpc_dialog_answer(struct rpc *r, const char *id, const char *value)
{
        struct buf json;

        buf_init(&json, 0);
        if (value)
                jsonw_quote(&json, value, strlen(value));
        answer(r, id, value ? "value" : NULL, json.data);
        buf_release(&json);
}

static void answer_dialog(const struct rpc_dialog *d, bool allowed)
{
        if (d->yes)
                rpc_dialog_answer(d->rpc, d->id, allowed ? d->yes : d->no);
        else
                answer(d->rpc, d->id, "confirmed", allowed ? "true" : "false");
}

static void dialog_free(struct rpc_dialog *d)
{
        LIST_REMOVE(d, next);
        d->rpc->dialog_count--;
        free(d->id);
        free(d->yes);
        free(d->no);
        free(d);
}

static void on_decided(void *arg, bool allowed, const char *why)
{
        (void)why;
        answer_dialog(arg, allowed);
        dialog_free(arg);
}

void rpc_dialogs_release(struct rpc *r)
{
        struct rpc_dialog *d;

        while ((d = LIST_FIRST(&r->dialogs))) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                child_ask_forget(r->child, d);
                dialog_free(d);
        }
}

void rpc_dialogs_cancel(struct rpc *r)
{
        const struct rpc_dialog *d;

        LIST_FOREACH(d, &r->dialogs, next)
                rpc_dialog_answer(r, d->id, NULL);
        rpc_dialogs_release(r);
}

/* ---- questions ---- */

/* Is the first word of the label one of these? */
static bool begins_with(const char *label, const char *words)
{
        char word[24];
        size_t n = 0;

        while (*label && !isalpha((unsigned char)*label))
                label++;
        word[n++] = ' ';
        while (n + 2 < sizeof(word) && isalpha((unsigned char)*label))
                word[n++] = (char)tolower((unsigned char)*label++);
        word[n++] = ' ';
        word[n] = '\0';
        return n > 2 && strstr(words, word) != NULL;
}

static bool is_yes(const char *label)
{
        return begins_with(label,
                           " yes allow always approve approved accept ok okay confirm continue "
                           "proceed run execute trust permit ");
}

static bool is_no(const char *label)
{
        return begins_with(label, " no deny denied block reject refuse cancel abort decline stop "
                                  "disallow forbid never skip ");
}

/* The options that mean yes and no, if that is all it asks. A yes for once beats one for ever. */
static bool read_options(const json_t *options, const char **yes, const char **no)
{
        const json_t *option;
        size_t i;

        *yes = *no = NULL;
        json_array_foreach(options, i, option) {
                const char *label = json_string_value(option);

                if (!label || !(is_yes(label) || is_no(label)))
                        return false;
                if (is_no(label))
                        *no = *no ? *no : label;
                else if (!*yes || strcasestr(*yes, "always") || strcasestr(*yes, "session"))
                        *yes = label;
        }
        return *yes && *no;
}

/* What a question is about, as policies name it. */
struct subject {
        char *tool;
        json_t *arguments;
        const char *title; /* for people, with the words of the question; NULL: from arguments */
};

static bool is_cut(const char *text, size_t n)
{
        static const char mark[] = "ch elided…]";

        return n >= sizeof(mark) - 1 &&
               memcmp(text + n - (sizeof(mark) - 1), mark, sizeof(mark) - 1) == 0;
}

/* "Command: make", alone or as the first line: the value is an argument. */
static json_t *read_detail(const char *details, const char *label, const char *name, bool whole)
{
        size_t n = strlen(label), length;
        json_t *arguments;

        if (strncmp(details, label, n) != 0)
                return NULL;
        details += n;
        length = whole ? strlen(details) : strcspn(details, "\n");
        if (length == 0 || is_cut(details, length))
                return NULL;
        arguments = json_object();
        json_object_set_new(arguments, name, json_stringn(details, length));
        return arguments;
}

/*
 * omp asks "Allow tool: bash\nCommand: make" itself, and what it shows is what it would run, so the
 * rules of the policy apply. Where it does not show all of it, or says more, a person has to read
 * it. False: it is another question.
 */
static bool read_tool(const char *title, struct subject *out)
{
        static const char allow[] = "Allow tool: ";
        const char *name = title + sizeof(allow) - 1, *details;
        size_t n;

        if (strncmp(title, allow, sizeof(allow) - 1) != 0)
                return false;
        n = strcspn(name, "\n");
        details = name[n] ? name + n + 1 : name + n;
        out->tool = mem_strndup(name, n);
        if (strcmp(out->tool, "bash") == 0) {
                out->arguments = read_detail(details, "Command: ", "command", true);
        } else if (strcmp(out->tool, "write") == 0) {
                out->arguments = read_detail(details, "Path: ", "path", false);
                out->title = "write a file";
        } else if (strcmp(out->tool, "edit") == 0 && !strchr(details, '\n')) {
                out->arguments = read_detail(details, "File: ", "path", true);
                out->title = "write a file";
        } else if (n > 0 && strcmp(out->tool, "edit") != 0) {
                out->arguments = json_pack("{s:s}", "details", details);
                out->title = "use a tool";
        }
        if (out->arguments)
                return true;
        free(out->tool);
        return false;
}

static void read_subject(const char *title, const char *message, struct subject *out)
{
        *out = (struct subject){ .tool = NULL };
        if (read_tool(title, out))
                return;
        out->tool = mem_strdup("confirm");
        out->title = "ask you something";
        out->arguments = json_pack("{s:s, s:s}", "title", title, "message", message);
}

static void ask(struct rpc *r, const json_t *m, const char *yes, const char *no)
{
        const char *title = json_str(m, "title", ""), *message = json_str(m, "message", "");
        struct rpc_dialog *d = mem_zalloc(sizeof(*d));
        struct subject subject;
        char *call = mem_printf("ui:%s", json_str(m, "id", ""));
        char *text = mem_printf("%s%s%s", title, *title && *message ? "\n\n" : "", message);

        read_subject(title, message, &subject);
        d->rpc = r;
        d->id = mem_strdup(json_str(m, "id", ""));
        d->yes = mem_strdup(yes);
        d->no = mem_strdup(no);
        LIST_INSERT_HEAD(&r->dialogs, d, next);
        r->dialog_count++;
        child_ask(r->child,
                  &(struct child_question){ .call = call,
                                            .tool = subject.tool,
                                            .arguments = subject.arguments,
                                            .expires_ms = json_int(m, "timeout", 0),
                                            .title = subject.title,
                                            .text = subject.title ? text : NULL },
                  on_decided, d);
        json_decref(subject.arguments);
        free(subject.tool);
        free(text);
        free(call);
}

static bool may_ask(const struct rpc *r)
{
        return rpc_has_turn(r) && r->phase != RPC_ABORTING && r->dialog_count < RPC_DIALOGS_MAX;
}

static void on_confirm(struct rpc *r, const json_t *m)
{
        if (may_ask(r))
                ask(r, m, NULL, NULL);
        else
                rpc_dialog_answer(r, json_str(m, "id", ""), NULL);
}

/* A question that takes more than a yes. One at a time, and none that others wait for. */
static void on_input(struct rpc *r, const json_t *m)
{
        if (rpc_question_answer_own(r, m))
                return;
        if (may_ask(r) && r->dialog_count == 0 && rpc_question_ask(r, m))
                rpc_asks(r, json_int(m, "timeout", 0));
        else
                rpc_dialog_answer(r, json_str(m, "id", ""), NULL);
}

static void on_select(struct rpc *r, const json_t *m)
{
        const char *yes, *no;

        if (!read_options(json_object_get(m, "options"), &yes, &no))
                on_input(r, m);
        else if (may_ask(r))
                ask(r, m, yes, no);
        else
                rpc_dialog_answer(r, json_str(m, "id", ""), NULL);
}

/* omp: it no longer wants to know. */
static void on_cancel(struct rpc *r, const json_t *m)
{
        const char *id = json_str(m, "targetId", "");
        struct rpc_dialog *d;

        if (r->question.id && strcmp(r->question.id, id) == 0)
                rpc_asks_no_more(r);
        LIST_FOREACH(d, &r->dialogs, next)
                if (strcmp(d->id, id) == 0) {
                        child_ask_forget(r->child, d);
                        dialog_free(d);
                        return;
                }
}

static void on_notify(struct rpc *r, const json_t *m)
{
        rpc_notify(r, json_str(m, "message", ""));
}

static void on_url(struct rpc *r, const json_t *m)
{
        char *text = mem_printf("open %s", json_str(m, "url", ""));

        rpc_notify(r, text);
        free(text);
}

static const struct {
        const char *method;
        void (*fn)(struct rpc *r, const json_t *m);
} methods[] = {
        { "confirm", on_confirm }, { "select", on_select }, { "input", on_input },
        { "editor", on_input },    { "cancel", on_cancel }, { "notify", on_notify },
        { "open_url", on_url },
};

void rpc_ui_request(struct rpc *r, const json_t *message)
{
        const char *method = json_str(message, "method", "");

        for (size_t i = 0; i < COUNT(methods); i++)
                if (strcmp(methods[i].method, method) == 0) {
                        methods[i].fn(r, message);
                        return;
                }
}
