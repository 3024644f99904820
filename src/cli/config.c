#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"

int config_check(const struct args *a)
{
        struct config *c = NULL;
        struct error err = { 0 };

        if (config_load(a->dir, &c, &err) < 0) {
                command_failed(a, &err);
                return CLI_CONFIG;
        }
        if (a->json) {
                json_t *list = json_array(),
                       *all = json_pack("{s:b, s:o}", "ok", 1, "warnings", list);

                for (const char *p = config_warnings(c); *p;) {
                        size_t n = strcspn(p, "\n");

                        if (n > 0)
                                json_array_append_new(list, json_stringn(p, n));
                        p += n + (p[n] == '\n');
                }
                print_json(all);
                json_decref(all);
        } else {
                fputs(config_warnings(c), stderr);
                printf("the configuration of %s is valid: %zu %s, %zu %s, %zu %s%s\n", a->dir,
                       c->adapter_count,
                       print_plural((int64_t)c->adapter_count, "adapter", "adapters"),
                       c->agent_count, print_plural((int64_t)c->agent_count, "agent", "agents"),
                       c->rule_count, print_plural((int64_t)c->rule_count, "rule", "rules"),
                       c->source ? "" : " (no config.json: defaults)");
        }
        config_free(c);
        return CLI_OK;
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
