#include <string.h>

#include "api/core/routes.h"
#include "cli/command.h"
#include "cli/print.h"

int api_command(struct args *a)
{
        static const char *const actions[] = { "doc", "openapi", NULL };
        const char *action = args_action(a, actions, NULL);
        struct buf text;
        json_t *document;

        if (!action || args_end(a) < 0)
                return CLI_USAGE;
        buf_init(&text, 0);
        if (strcmp(action, "doc") == 0) {
                rest_doc_write(&text);
                print_markdown(text.data, a->json);
        } else {
                openapi_write(&text);
                document = json_loadb(text.data, text.len, 0, NULL);
                print_json(document);
                json_decref(document);
        }
        buf_release(&text);
        return CLI_OK;
}
