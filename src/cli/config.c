#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/print.h"

/* One line each, after "error: " or "warning: ". */
static void print_problems(const char *kind, const char *lines)
{
        while (*lines) {
                int n = (int)strcspn(lines, "\n");

                fprintf(stderr, "%s: %.*s\n", kind, n, lines);
                lines += n + (lines[n] == '\n');
        }
}

/* A list of the text's lines. */
static json_t *lines_of(const char *text)
{
        json_t *list = json_array();

        while (*text) {
                size_t n = strcspn(text, "\n");

                if (n > 0)
                        json_array_append_new(list, json_stringn(text, n));
                text += n + (text[n] == '\n');
        }
        return list;
}

/* A directory that is not there, or has no settings, was probably misspelt. */
static int check_given(const char *dir, const struct config *c, struct error *err)
{
        struct stat st;

        if (stat(dir, &st) < 0)
                return error_set(err, ERR_MISSING, "cannot open directory '%s': %s", dir,
                                 strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return error_set(err, ERR_INVALID,
                                 "'%s' is a file; name the directory that has config.json", dir);
        if (c && !config_is_given(c))
                return error_set(err, ERR_MISSING,
                                 "there is no config.json in '%s', nor a bot token or a key in the "
                                 "environment: a daemon would use its defaults",
                                 dir);
        return 0;
}

static void print_valid(const char *dir, const struct config *c)
{
        printf("the configuration of %s is valid: %zu %s, %zu %s, %zu %s%s\n", dir,
               c->adapter_count, print_plural((int64_t)c->adapter_count, "adapter", "adapters"),
               c->agent_count, print_plural((int64_t)c->agent_count, "agent", "agents"),
               c->rule_count, print_plural((int64_t)c->rule_count, "rule", "rules"),
               c->has_file ? "" : " (no config.json: defaults)");
}

int config_check(const struct args *a)
{
        struct buf mistakes, warnings;
        struct config *c = NULL;
        struct error err = { 0 };
        int rc = check_given(a->dir, NULL, &err);

        buf_init(&mistakes, 0);
        buf_init(&warnings, 0);
        if (rc == 0)
                rc = config_load_reporting(a->dir, &c, &mistakes, &warnings, &err);
        if (rc == 0)
                rc = check_given(a->dir, c, &err);
        if (rc < 0 && mistakes.len == 0)
                buf_addf(&mistakes, "%s\n", err.text);
        if (a->json) {
                json_t *all =
                        json_pack("{s:b, s:o, s:o}", "ok", rc == 0, "mistakes",
                                  lines_of(mistakes.data), "warnings", lines_of(warnings.data));

                print_json(all);
                json_decref(all);
        } else {
                print_problems("error", mistakes.data);
                print_problems("warning", warnings.data);
                if (rc == 0)
                        print_valid(a->dir, c);
        }
        config_free(c);
        buf_release(&mistakes);
        buf_release(&warnings);
        return rc == 0 ? CLI_OK : CLI_CONFIG;
}

int config_command(struct args *a)
{
        static const char *const actions[] = { "check", "schema", "doc", NULL };
        const char *action = args_action(a, actions, NULL);
        struct buf text;
        json_t *schema;

        if (!action || args_end(a) < 0)
                return CLI_USAGE;
        if (strcmp(action, "check") == 0)
                return config_check(a);
        if (strcmp(action, "schema") == 0) {
                schema = config_doc_schema();
                print_json(schema);
                json_decref(schema);
                return CLI_OK;
        }
        buf_init(&text, 0);
        config_doc_markdown(&text);
        print_markdown(text.data, a->json);
        buf_release(&text);
        return CLI_OK;
}
