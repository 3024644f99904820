/*
 * The handshake with an MCP server, which finds out the era of its protocol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/mcp_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

void mcp_handshake(struct mcp_server *s, enum mcp_kind kind)
{
        struct mcp_request *q = mcp_request_new(s, kind);
        struct error err;

        if (kind == MCP_DISCOVER)
                s->tried_discover = true;
        else
                s->tried_initialize = true;
        if (mcp_request_send(q, &err) < 0)
                mcp_down(s, err.text);
}

static void server_ready(struct mcp_server *s, const json_t *capabilities)
{
        const json_t *offer = json_object_get(capabilities, "tools");

        s->state = MCP_READY;
        s->failures = 0;
        s->wanted = false;
        s->cached_modern = s->modern;
        s->resources = json_is_object(json_object_get(capabilities, "resources"));
        log_info("MCP server is ready", LOG_S("server", s->base.name),
                 LOG_S("version", s->version));
        if (!s->modern)
                mcp_notify(s, "notifications/initialized", json_object());
        if (s->link && s->wire->ready)
                s->wire->ready(s);
        if (!offer) {
                custom_source_problem(&s->base, "the server offers no tools");
                mcp_tools_set(s, NULL);
                mcp_known(s);
        } else {
                mcp_list(s);
        }
        if (s->state == MCP_READY && s->modern && json_flag(offer, "listChanged", false))
                mcp_listen(s);
        timer_start(s->pump, 0);
}

static bool is_known_version(const char *version)
{
        static const char *const known[] = { "2024-11-05", "2025-03-26", "2025-06-18",
                                             MCP_LEGACY_VERSION };

        for (size_t i = 0; i < COUNT(known); i++)
                if (strcmp(known[i], version) == 0)
                        return true;
        return false;
}

static bool has_string(const json_t *array, const char *text)
{
        size_t i;
        json_t *item;

        json_array_foreach(array, i, item)
                if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
                        return true;
        return false;
}

/* The first answer decides the era: a server that refuses initialize may be of the newer one. */
void mcp_read_handshake(struct mcp_server *s, enum mcp_kind kind, const json_t *result,
                        const json_t *error)
{
        const char *version = json_str(result, "protocolVersion", "");
        char *words;

        if (kind == MCP_INITIALIZE && result && is_known_version(version)) {
                snprintf(s->version, sizeof(s->version), "%s", version);
                server_ready(s, json_object_get(result, "capabilities"));
        } else if (kind == MCP_DISCOVER && result &&
                   has_string(json_object_get(result, "supportedVersions"), MCP_MODERN_VERSION)) {
                s->modern = true;
                snprintf(s->version, sizeof(s->version), "%s", MCP_MODERN_VERSION);
                server_ready(s, json_object_get(result, "capabilities"));
        } else if (kind == MCP_INITIALIZE && !s->tried_discover) {
                mcp_handshake(s, MCP_DISCOVER);
        } else if (kind == MCP_DISCOVER && !s->tried_initialize) {
                s->cached_modern = false;
                mcp_handshake(s, MCP_INITIALIZE);
        } else if (result) {
                words = mem_printf("it speaks MCP revision '%.40s', which is not known here",
                                   *version ? version : "unknown");
                mcp_down(s, words);
                free(words);
        } else {
                words = mcp_error_words(error);
                mcp_down(s, words);
                free(words);
        }
}
