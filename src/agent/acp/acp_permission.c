/*
 * acp_permission: session/request_permission, answered by the policy or a person.
 *
 * Agents offer answers of their own. "Always" is never among those we give: the agent would stop
 * asking, and nobody could see or revoke it. When an admin says always, Dragoman remembers it as a
 * rule of its own and answers "once" each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "agent/policy/shell_parts.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define CALL_BYTES 150 /* of a call's id */

static void permission_free(struct acp_permission *p)
{
        LIST_REMOVE(p, next);
        json_decref(p->id);
        free(p->allow);
        free(p->reject);
        free(p);
}

void acp_permissions_release(struct acp *a)
{
        struct acp_permission *p;

        while ((p = LIST_FIRST(&a->permissions))) {
                child_ask_forget(a->child, p);
                permission_free(p);
        }
}

/* option NULL: cancelled. */
static void answer(struct acp *a, const json_t *id, const char *option)
{
        acp_answer(a, id,
                   option ? json_pack("{s:{s:s, s:s}}", "outcome", "outcome", "selected",
                                      "optionId", option)
                          : json_pack("{s:{s:s}}", "outcome", "outcome", "cancelled"));
}

void acp_permissions_cancel(struct acp *a)
{
        struct acp_permission *p;

        LIST_FOREACH(p, &a->permissions, next)
                answer(a, p->id, NULL);
        acp_permissions_release(a);
}

void acp_permission_withdraw(struct acp *a, const json_t *id)
{
        struct acp_permission *p;

        LIST_FOREACH(p, &a->permissions, next)
                if (json_equal(p->id, id))
                        break;
        if (!p)
                return;
        acp_answer_error(a, id, ACP_REQUEST_CANCELLED, "the request was cancelled");
        child_ask_forget(a->child, p);
        permission_free(p);
}

/* ---- what it is about ---- */

/* ["bash", "-lc", "make"]: the last word is a command. */
static bool runs_shell(const json_t *words)
{
        static const char *const shells[] = { "sh", "bash", "dash", "zsh" };
        const char *program = json_string_value(json_array_get(words, 0)), *name;
        const char *option = json_string_value(json_array_get(words, 1));

        if (json_array_size(words) != 3 || !program || !shell_is_system(program) || !option ||
            (strcmp(option, "-c") != 0 && strcmp(option, "-lc") != 0) ||
            !json_is_string(json_array_get(words, 2)))
                return false;
        name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
        for (size_t i = 0; i < COUNT(shells); i++)
                if (strcmp(name, shells[i]) == 0)
                        return true;
        return false;
}

/* A command as a text for a shell: some agents send a list of words. */
static char *command_of(const json_t *input)
{
        const json_t *command = json_object_get(input, "command"), *word;
        struct buf text;
        size_t i;

        if (json_is_string(command))
                return mem_strdup(json_string_value(command));
        if (json_array_size(command) == 0)
                return NULL;
        if (runs_shell(command))
                return mem_strdup(json_string_value(json_array_get(command, 2)));
        buf_init(&text, 0);
        json_array_foreach(command, i, word) {
                buf_addf(&text, "%s'", i ? " " : "");
                for (const char *c = json_string_value(word); c && *c; c++)
                        if (*c == '\'')
                                buf_addstr(&text, "'\\''");
                        else
                                buf_addch(&text, *c);
                buf_addch(&text, '\'');
        }
        return buf_take(&text);
}

static void add_path(json_t *paths, const json_t *path)
{
        const json_t *other;
        size_t i;

        if (!json_is_string(path) || json_array_size(paths) > POLICY_FILES_MAX)
                return;
        json_array_foreach(paths, i, other)
                if (json_equal(path, other))
                        return;
        json_array_append(paths, (json_t *)path);
}

/* All files that it names: as arguments, as places, and as changes. Yours to release. */
static json_t *paths_of(const json_t *call, const json_t *input)
{
        static const char *const members[] = { "path", "file_path", "filePath", "filepath",
                                               "abs_path" };
        static const char *const lists[] = { "locations", "content" };
        json_t *paths = json_array();
        const json_t *item;
        size_t i;

        for (i = 0; i < COUNT(members); i++)
                add_path(paths, json_object_get(input, members[i]));
        for (size_t k = 0; k < COUNT(lists); k++)
                json_array_foreach(json_object_get(call, lists[k]), i, item)
                        add_path(paths, json_object_get(item, "path"));
        return paths;
}

/* What a person needs to see of changes that are in the content only. */
static void add_changes(json_t *arguments, const json_t *call)
{
        static const char *const members[] = { "path", "oldText", "newText" };
        const json_t *content = json_object_get(call, "content"), *c;
        json_t *changes = json_array();
        size_t i;

        json_array_foreach(content, i, c) {
                json_t *change = json_object();

                for (size_t k = 0; k < COUNT(members); k++)
                        if (json_is_string(json_object_get(c, members[k])))
                                json_object_set(change, members[k], json_object_get(c, members[k]));
                if (strcmp(json_str(c, "type", ""), "diff") == 0)
                        json_array_append(changes, change);
                json_decref(change);
        }
        if (json_array_size(changes) == 1)
                json_object_update(arguments, json_array_get(changes, 0));
        else if (json_array_size(changes) > 1)
                json_object_set(arguments, "changes", changes);
        json_decref(changes);
}

void acp_action_read(struct acp_action *out, const json_t *call)
{
        const char *kind = json_str(call, "kind", "other"), *title = json_str(call, "title", NULL);
        const json_t *input = json_object_get(call, "rawInput");
        bool changes = strcmp(kind, "edit") == 0 || strcmp(kind, "delete") == 0 ||
                       strcmp(kind, "move") == 0;
        char *command = changes ? NULL : command_of(input);
        json_t *paths = paths_of(call, input);
        bool several = json_array_size(paths) > 1;

        *out = (struct acp_action){ .tool = kind };
        out->arguments = json_is_object(input) ? json_copy((json_t *)input) : json_object();
        if (command) {
                out->tool = "bash";
                json_object_set_new(out->arguments, "command", json_string(command));
        } else if (changes) {
                out->tool = "edit";
                if (several || json_object_size(input) == 0)
                        add_changes(out->arguments, call);
        }
        if (!command && several) {
                out->files = json_incref(paths);
                json_object_set(out->arguments, "files", paths);
        } else if (!command && json_array_size(paths) == 1) {
                json_object_set(out->arguments, "path", json_array_get(paths, 0));
        }
        if (title && json_object_size(out->arguments) == 0)
                json_object_set_new(out->arguments, "title", json_string(title));
        json_decref(paths);
        free(command);
}

/* ---- asking ---- */

static char *find_option(const json_t *options, const char *first, const char *second)
{
        const char *kinds[] = { first, second };

        for (size_t k = 0; k < COUNT(kinds); k++) {
                const json_t *o;
                size_t i;

                json_array_foreach(options, i, o)
                        if (strcmp(json_str(o, "kind", ""), kinds[k]) == 0)
                                return mem_strdup(json_str(o, "optionId", NULL));
        }
        return NULL;
}

static bool offers(const json_t *options, const char *kind)
{
        char *id = find_option(options, kind, kind);
        bool has = id != NULL;

        free(id);
        return has;
}

static void on_answer(void *arg, bool allowed, const char *why)
{
        struct acp_permission *p = arg;

        (void)why; /* there is no place for it */
        answer(p->acp, p->id, allowed ? p->allow : p->reject);
        permission_free(p);
}

void acp_permission_ask(struct acp *a, const json_t *id, const json_t *params)
{
        const json_t *call = json_object_get(params, "toolCall");
        const json_t *options = json_object_get(params, "options");
        struct acp_permission *p;
        const char *call_id = json_str(call, "toolCallId", "call");
        struct acp_action action;
        char name[200];

        acp_update_tool(a, call, false);
        if (!child_run(a->child)) {
                answer(a, id, NULL);
                return;
        }
        p = mem_zalloc(sizeof(*p));
        p->acp = a;
        p->id = json_incref((json_t *)id);
        p->allow = find_option(options, "allow_once", "allow_always");
        p->reject = find_option(options, "reject_once", "reject_always");
        LIST_INSERT_HEAD(&a->permissions, p, next);
        snprintf(name, sizeof(name), "%.*s/%u",
                 (int)utf8_prefix(call_id, strlen(call_id), UTF8_BYTES, CALL_BYTES), call_id,
                 ++a->permission_count);
        acp_action_read(&action, call);
        child_ask(a->child,
                  &(struct child_question){ .call = name,
                                            .tool = action.tool,
                                            .arguments = action.arguments,
                                            .files = action.files,
                                            .admins = !offers(options, "allow_once") },
                  on_answer, p);
        json_decref(action.arguments);
        json_decref(action.files);
}
