/*
 * a2a_cards: what we say of ourselves: a card of the server, where the rules choose the agent, and
 * one for each agent. Anyone may read those that `a2a.publish` names; the others need a key that
 * may ask the agent.
 *
 * Clients of 0.3 do not tell their version: they get a card that both versions can read. Only the
 * security schemes have one name and two forms, so those of 0.3 are left out for clients of 1.0.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "api/compat/a2a.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define BY_RULES "Agents behind Dragoman, chosen by its rules."

struct a2a_cards {
        struct cards_conf conf;
};

/* ---- settings ---- */

void a2a_cards_free(struct a2a_cards *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->conf.publish.count; i++)
                free(c->conf.publish.items[i]);
        free(c->conf.publish.items);
        free(c->conf.name);
        free(c->conf.description);
        free(c->conf.organization);
        free(c->conf.organization_url);
        free(c->conf.documentation_url);
        free(c);
}

struct a2a_cards *a2a_cards_new(const struct cards_conf *conf)
{
        struct a2a_cards *c = mem_zalloc(sizeof(*c));

        c->conf.name = mem_strdup(conf->name);
        c->conf.description = mem_strdup(conf->description);
        c->conf.organization = mem_strdup(conf->organization);
        c->conf.organization_url = mem_strdup(conf->organization_url);
        c->conf.documentation_url = mem_strdup(conf->documentation_url);
        c->conf.publish.items = mem_array(conf->publish.count + 1, sizeof(char *));
        for (size_t i = 0; i < conf->publish.count; i++)
                c->conf.publish.items[c->conf.publish.count++] = mem_strdup(conf->publish.items[i]);
        return c;
}

void api_set_cards(struct api *a, const struct cards_conf *conf)
{
        a2a_cards_free(a->cards);
        a->cards = a2a_cards_new(conf);
}

static bool is_published(const struct http_exchange *x)
{
        const char *agent = http_param(x, "agent");
        const struct a2a_cards *c = api_of(x)->cards;

        for (size_t i = 0; c && i < c->conf.publish.count; i++)
                if (strcmp(c->conf.publish.items[i], agent ? agent : CHAT_BRIDGE_BY_RULES) == 0)
                        return true;
        return false;
}

/* ---- the card ---- */

static char *endpoint_url(struct http_exchange *x, const char *agent)
{
        const struct api *a = api_of(x);
        const char *base = a->public_url, *host = http_header(x, "Host");
        char *own = base ? NULL
                         : mem_printf("%s://%s", api_is_tls(a) ? "https" : "http",
                                      host ? host : api_address(a));
        char *url;
        size_t n;

        base = base ? base : own;
        n = strcspn(base, "?#");
        while (n > 0 && base[n - 1] == '/')
                n--;
        url = mem_printf("%.*s/a2a%s%s", (int)n, base, agent ? "/" : "", agent ? agent : "");
        free(own);
        return url;
}

static void write_interfaces(struct buf *b, const char *url)
{
        jsonw_open_member(b, "supportedInterfaces", '[');
        for (enum a2a_version v = A2A_1_0; v <= A2A_0_3; v++) {
                jsonw_open(b, '{');
                jsonw_str(b, "url", url);
                jsonw_str(b, "protocolBinding", "JSONRPC");
                jsonw_str(b, "protocolVersion", a2a_version_name(v));
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_old_members(struct buf *b, const char *url)
{
        jsonw_str(b, "protocolVersion", "0.3.0");
        jsonw_str(b, "url", url);
        jsonw_str(b, "preferredTransport", "JSONRPC");
        jsonw_raw(b, "security", "[{\"bearer\":[]}]");
        jsonw_raw(b, "securitySchemes", "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
}

static void write_modes(struct buf *b)
{
        jsonw_raw(b, "defaultInputModes",
                  "[\"text/plain\",\"application/json\",\"image/*\","
                  "\"application/octet-stream\"]");
        jsonw_raw(b, "defaultOutputModes", "[\"text/plain\",\"text/markdown\"]");
}

static void write_skill(struct buf *b, const char *id, const char *name, const char *description)
{
        jsonw_open_member(b, "skills", '[');
        jsonw_open(b, '{');
        jsonw_str(b, "id", id);
        jsonw_str(b, "name", name);
        jsonw_str(b, "description", description);
        jsonw_raw(b, "tags", "[\"chat\"]");
        jsonw_close(b, '}');
        jsonw_close(b, ']');
}

static void write_card(struct buf *b, struct http_exchange *x, const char *agent, bool modern)
{
        const struct cards_conf *conf = &api_of(x)->cards->conf;
        const char *name = agent ? agent : conf->name;
        const char *said =
                agent ? agents_description(api_of(x)->env.agents, agent) : conf->description;
        char *url = endpoint_url(x, agent), *own = mem_printf("The agent %s.", name);
        const char *description = said ? said : agent ? own : BY_RULES;

        jsonw_open(b, '{');
        jsonw_str(b, "name", name);
        jsonw_str(b, "description", description);
        jsonw_str(b, "version", DRAGOMAN_VERSION);
        write_interfaces(b, url);
        if (!modern) {
                write_old_members(b, url);
        } else {
                jsonw_raw(b, "securitySchemes",
                          "{\"bearer\":{\"httpAuthSecurityScheme\":{\"scheme\":\"Bearer\"}}}");
                jsonw_raw(b, "securityRequirements", "[{\"schemes\":{\"bearer\":{\"list\":[]}}}]");
        }
        if (conf->organization) {
                jsonw_open_member(b, "provider", '{');
                jsonw_str(b, "organization", conf->organization);
                jsonw_str(b, "url", conf->organization_url);
                jsonw_close(b, '}');
        }
        jsonw_opt(b, "documentationUrl", conf->documentation_url);
        jsonw_raw(b, "capabilities", "{\"streaming\":true,\"pushNotifications\":false}");
        write_modes(b);
        write_skill(b, agent ? agent : CHAT_BRIDGE_BY_RULES, name, description);
        jsonw_close(b, '}');
        free(own);
        free(url);
}

static void show(struct http_exchange *x)
{
        const char *asked = http_param(x, "agent"), *agent = asked;
        const char *header = http_header(x, A2A_VERSION_HEADER);
        enum a2a_version v = A2A_0_3;
        struct buf b;

        if (agent && (!chat_bridge_agent(x, &agent) ||
                      (!is_published(x) && !chat_bridge_may_ask(x, NULL, agent)))) {
                reply_missing(x, "agent", asked);
                return;
        }
        if (header)
                a2a_version_parse(header, &v);
        buf_init(&b, 0);
        write_card(&b, x, agent, v == A2A_1_0);
        http_add_header(x, "Vary", A2A_VERSION_HEADER);
        reply_json(x, 200, &b);
}

/* clang-format off */
#define CARD(where, what)                                                                         \
        { "GET", where, SCOPE_READ, show, REACH_SHARED, .resource = "a2a",                        \
          .keyless = is_published, .keyless_when = "if `a2a.publish` lists it",                   \
          .summary = (what), .status = 200, .answer = "The agent card." }

const struct route a2a_cards_routes[] = {
        CARD(A2A_CARD_PATH,
             "The agent card of the server, for other agents (A2A): where the rules choose the "
             "agent."),
        CARD("/a2a/:agent" A2A_CARD_PATH, "The agent card of one agent."),
        ROUTE_END,
};
/* clang-format on */
