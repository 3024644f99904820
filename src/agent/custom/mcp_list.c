/*
 * The list of a server's tools: read page by page, and again when the server says that it changed.
 */
#include <stdlib.h>

#include "agent/custom/mcp_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define PAGES_MAX 50

void mcp_list_drop(struct mcp_server *s)
{
        json_decref(s->listing);
        s->listing = NULL;
        free(s->cursor);
        s->cursor = NULL;
}

void mcp_list(void *arg)
{
        struct mcp_server *s = arg;
        struct error err;

        if (s->listing) {
                s->list_again = true;
                return;
        }
        s->listing = json_array();
        s->pages = 0;
        if (mcp_request_send(mcp_request_new(s, MCP_LIST), &err) < 0)
                mcp_lost(s, err.text);
}

void mcp_listen(void *arg)
{
        struct mcp_server *s = arg;
        struct error err;

        if (s->state == MCP_READY && mcp_request_send(mcp_request_new(s, MCP_LISTEN), &err) < 0)
                log_debug("MCP server takes no subscription", LOG_S("server", s->base.name),
                          LOG_S("why", err.text));
}

void mcp_list_failed(struct mcp_server *s, const char *why)
{
        mcp_list_drop(s);
        custom_source_problem(&s->base, "its tools cannot be listed: %s", why);
        mcp_known(s);
}

void mcp_read_list(struct mcp_server *s, const json_t *result)
{
        const char *cursor = json_str(result, "nextCursor", NULL);
        const json_t *page = json_object_get(result, "tools");
        struct error err;
        size_t i;
        json_t *tool;

        json_array_foreach(page, i, tool)
                if (json_array_size(s->listing) < MCP_TOOLS_MAX)
                        json_array_append(s->listing, tool);
        free(s->cursor);
        s->cursor = NULL;
        if (cursor && *cursor && ++s->pages < PAGES_MAX &&
            json_array_size(s->listing) < MCP_TOOLS_MAX) {
                s->cursor = mem_strdup(cursor);
                if (mcp_request_send(mcp_request_new(s, MCP_LIST), &err) < 0)
                        mcp_lost(s, err.text);
                return;
        }
        s->base.problem[0] = '\0';
        mcp_tools_set(s, s->listing);
        if (s->variant && s->variant->listed)
                s->variant->listed(s, result);
        json_decref(s->listed);
        s->listed = s->listing;
        s->listing = NULL;
        if (!s->variant || !s->variant->own)
                mcp_cache_write(s);
        mcp_known(s);
        if (s->list_again) {
                s->list_again = false;
                mcp_list(s);
        }
}
