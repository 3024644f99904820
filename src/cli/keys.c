#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"

/* Comma-separated, or `none`. */
static void print_words(const json_t *list, const char *none)
{
        const json_t *word;
        size_t i;

        if (json_array_size(list) == 0)
                printf("%s", none);
        json_array_foreach(list, i, word) {
                if (i > 0)
                        putchar(',');
                print_line(stdout, json_string_value(word), 60);
        }
}

static void print_key(const json_t *k)
{
        const char *state = json_str(k, "state", "?");

        printf("%-8s %s…  %s%-7s%s ", json_str(k, "id", "?"), json_str(k, "prefix", "?"),
               print_style(stdout, strcmp(state, "valid") == 0 ? STYLE_GOOD : STYLE_DIM), state,
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, json_str(k, "name", "?"), 60);
        printf("\n         scopes ");
        print_words(json_object_get(k, "scopes"), "none");
        printf(" on ");
        print_words(json_object_get(k, "adapters"), "all adapters");
        if (json_array_size(json_object_get(k, "agents")) > 0) {
                printf(", agents ");
                print_words(json_object_get(k, "agents"), "");
        }
        printf(", last used %s", json_str(k, "lastUsedAt", "never"));
        if (json_str(k, "expiresAt", NULL))
                printf(", until %s", json_str(k, "expiresAt", ""));
        putchar('\n');
}

/* ---- create ---- */

/* Writes "a,b" as a list of texts. */
static void add_words(struct buf *b, const char *key, const char *words)
{
        if (!words)
                return;
        jsonw_open_member(b, key, '[');
        for (const char *p = words; *p; p += strspn(p, ",")) {
                size_t n = strcspn(p, ",");

                if (n > 0)
                        jsonw_strn(b, NULL, p, n);
                p += n;
        }
        jsonw_close(b, ']');
}

static void print_created(const json_t *k)
{
        print_key(k);
        printf("\n%s%s%s\n\nIt is not shown again.\n", print_style(stdout, STYLE_BOLD),
               json_str(k, "key", "?"), print_style(stdout, STYLE_PLAIN));
}

static int create_key(struct args *a, struct client *c, struct error *err)
{
        char expires[CLOCK_ISO_SIZE];
        struct buf body;
        long rate = 0;

        if (args_number(a, "rate", 1, 1000000, &rate) < 0 ||
            args_time(a, "expires", ARGS_AHEAD, expires) < 0)
                return CLI_USAGE;
        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_str(&body, "name", a->operands[1]);
        add_words(&body, "scopes", args_has(a, "scope") ? args_value(a, "scope") : "read");
        add_words(&body, "adapters", args_value(a, "adapter"));
        add_words(&body, "agents", args_value(a, "agent"));
        jsonw_opt(&body, "expiresAt", expires[0] ? expires : NULL);
        if (rate > 0)
                jsonw_int(&body, "rateLimit", rate);
        jsonw_close(&body, '}');
        return resource_request(a, c, "POST", "/api/v2/keys", &body, print_created, err);
}

/* ---- revoke ---- */

static void print_revoked(const json_t *k)
{
        printf("%s '", json_str(k, "id", "?"));
        print_line(stdout, json_str(k, "name", "?"), 60);
        printf("' is revoked\n");
}

/* By id, name or prefix; yours to free. */
static char *find_key(struct client *c, const char *word, struct error *err)
{
        json_t *items = json_array(), *k;
        char *id = NULL;
        size_t i;

        if (resource_fetch(c, "/api/v2/keys", items, err) == 0) {
                error_set(err, ERR_MISSING, "there is no valid key '%s'; see: dragoman keys list",
                          word);
                json_array_foreach(items, i, k) {
                        if (strcmp(json_str(k, "state", ""), "revoked") != 0 &&
                            (strcmp(json_str(k, "id", ""), word) == 0 ||
                             strcmp(json_str(k, "name", ""), word) == 0 ||
                             strcmp(json_str(k, "prefix", ""), word) == 0)) {
                                free(id);
                                id = mem_strdup(json_str(k, "id", ""));
                        }
                }
        }
        json_decref(items);
        return id;
}

static int revoke_key(struct args *a, struct client *c, struct error *err)
{
        char *id = find_key(c, a->operands[1], err), *path;
        int rc;

        if (!id)
                return -1;
        path = mem_printf("/api/v2/keys/%s", id);
        rc = resource_request(a, c, "DELETE", path, NULL, print_revoked, err);
        free(path);
        free(id);
        return rc;
}

int keys_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = "/api/v2/keys",
                  .none = "there are no keys besides the operator's", .print = print_key },
                { "create", { "NAME" }, create_key },
                { "revoke", { "ID" }, revoke_key },
                { 0 },
        };
        bool creates = a->operand_count > 0 && strcmp(a->operands[0], "create") == 0;

        if (!creates && (args_has(a, "scope") || args_has(a, "adapter") || args_has(a, "agent") ||
                         args_has(a, "expires") || args_has(a, "rate")))
                return command_usage_error(
                        a->command,
                        "--scope, --adapter, --agent, --expires and --rate belong to create");
        return resource_run(a, actions);
}
