/* What an adapter offers besides messages: its tools, as agents see them. */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/tools.h"

struct tool_ask {
        const json_t *arguments;
};

/* clang-format off */
const struct field tool_fields[] = {
        { "arguments", FIELD_OBJECT, .at = offsetof(struct tool_ask, arguments), .fallback = "{}",
          .help = "What the tool's `parameters` ask for." },
        FIELD_END,
};
/* clang-format on */

static struct adapter *adapter_of(struct http_exchange *x)
{
        struct adapter *a = adapters_find(api_of(x)->env.adapters, http_param(x, "adapter"));

        if (!a)
                reply_missing(x, "instance", http_param(x, "adapter"));
        return a;
}

void tools_list(struct http_exchange *x)
{
        const struct adapter *a = adapter_of(x);
        struct buf json;

        if (!a)
                return;
        buf_init(&json, 0);
        page_begin(&json);
        for (const struct platform_tool *t = a->ops->tools; t && t->name; t++) {
                jsonw_open(&json, '{');
                jsonw_str(&json, "name", t->name);
                jsonw_str(&json, "description", t->help);
                jsonw_raw(&json, "parameters", t->parameters);
                jsonw_close(&json, '}');
        }
        page_end(&json, false, NULL);
        reply_json(x, 200, &json);
}

static void on_result(void *arg, const char *result, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (!x)
                return;
        if (err) {
                reply_failed(x, err);
                return;
        }
        buf_init(&data, 0);
        buf_addstr(&data, result);
        reply_data(x, 200, &data);
}

void tools_call(struct http_exchange *x)
{
        const struct adapter *a = adapter_of(x);
        struct tool_ask ask = { 0 };
        struct api_job *j;
        struct body b;

        if (!a)
                return;
        if (!platform_tool_find(a->ops, http_param(x, "tool"))) {
                reply_missing(x, "tool", http_param(x, "tool"));
                return;
        }
        if (request_body(x, &b, &ask) < 0)
                return;
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        adapters_tool(api_of(x)->env.adapters, a->name, http_param(x, "tool"), ask.arguments,
                      on_result, j);
        body_release(&b);
}
