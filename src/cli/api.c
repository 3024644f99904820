/* What the HTTP API offers, for people and for programs. */
#include <stdio.h>
#include <string.h>

#include "api/core/routes.h"
#include "base/json.h"
#include "cli/command.h"

static int print_openapi(void)
{
        struct buf text;
        json_t *doc;

        buf_init(&text, 0);
        openapi_write(&text);
        doc = json_loadb(text.data, text.len, 0, NULL);
        print_json(doc);
        json_decref(doc);
        buf_release(&text);
        return CLI_OK;
}

static int print_doc(const struct args *a)
{
        struct buf text;
        json_t *doc;

        buf_init(&text, 0);
        rest_doc_write(&text);
        if (a->json) {
                doc = json_pack("{s:s}", "markdown", text.data);
                print_json(doc);
                json_decref(doc);
        } else {
                fputs(text.data, stdout);
        }
        buf_release(&text);
        return CLI_OK;
}

int api_command(struct args *a)
{
        static const char *const actions[] = { "doc", "openapi", NULL };
        const char *action = args_action(a, actions, NULL);

        if (!action || args_end(a) < 0)
                return CLI_USAGE;
        return strcmp(action, "doc") == 0 ? print_doc(a) : print_openapi();
}
