#include "agent/a2a/a2a_card.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_text.h"

#define NAME_MAX_BYTES 100
#define URL_MAX_BYTES  2000
#define BINDING        "JSONRPC"
#define WITHOUT_NUMBER "0.3" /* cards of 0.3 need not tell their version */

static char *short_text(const char *text)
{
        return utf8_clean(text, utf8_prefix(text, strlen(text), UTF8_BYTES, NAME_MAX_BYTES));
}

/* An entry of `supportedInterfaces`, which other versions of the protocol may share. */
static void consider(struct a2a_card *c, const json_t *entry, enum a2a_version wanted)
{
        const char *url = json_str(entry, "url", "");
        enum a2a_version v;

        if (c->url || !*url || strlen(url) > URL_MAX_BYTES ||
            strcasecmp(json_str(entry, "protocolBinding", ""), BINDING) != 0 ||
            !a2a_version_parse(json_str(entry, "protocolVersion", NULL), &v) || v != wanted)
                return;
        c->version = v;
        c->url = mem_strdup(url);
        c->tenant = mem_strdup(json_str(entry, "tenant", NULL));
        if (c->tenant && !*c->tenant) {
                free(c->tenant);
                c->tenant = NULL;
        }
}

/* A card of 0.3: one main interface, and others beside it. */
static void consider_old(struct a2a_card *c, const char *url, const char *transport)
{
        if (c->url || !*url || strlen(url) > URL_MAX_BYTES || strcasecmp(transport, BINDING) != 0)
                return;
        c->version = A2A_0_3;
        c->url = mem_strdup(url);
}

static int find_interface(struct a2a_card *c, const json_t *card, struct error *err)
{
        const json_t *list = json_object_get(card, "supportedInterfaces");
        const char *old = json_str(card, "protocolVersion", WITHOUT_NUMBER);
        enum a2a_version v;
        const json_t *entry;
        size_t i;

        for (v = A2A_1_0; v <= A2A_0_3; v++)
                json_array_foreach(list, i, entry)
                        consider(c, entry, v);
        if (c->url)
                return 0;
        if (json_array_size(list) == 0 && json_object_get(card, "url") &&
            !a2a_version_parse(old, &v))
                return error_set(err, ERR_PROTOCOL,
                                 "the agent speaks version %.20s of A2A; 1.0 and 0.3 are supported",
                                 old);
        consider_old(c, json_str(card, "url", ""), json_str(card, "preferredTransport", BINDING));
        json_array_foreach(json_object_get(card, "additionalInterfaces"), i, entry)
                consider_old(c, json_str(entry, "url", ""), json_str(entry, "transport", ""));
        if (c->url)
                return 0;
        return error_set(err, ERR_PROTOCOL,
                         "the agent card has no JSON-RPC interface of version 1.0 or 0.3");
}

struct a2a_card *a2a_card_read(const json_t *card, struct error *err)
{
        const char *version = json_str(card, "version", NULL);
        struct a2a_card *c;

        if (!json_is_object(card)) {
                error_set(err, ERR_PROTOCOL, "the agent card is no JSON object");
                return NULL;
        }
        c = mem_zalloc(sizeof(*c));
        c->refs = 1;
        c->name = short_text(json_str(card, "name", ""));
        c->agent_version = version ? short_text(version) : NULL;
        c->streams = json_flag(json_object_get(card, "capabilities"), "streaming", false);
        if (find_interface(c, card, err) == 0)
                return c;
        a2a_card_unref(c);
        return NULL;
}

struct a2a_card *a2a_card_ref(struct a2a_card *c)
{
        c->refs++;
        return c;
}

void a2a_card_unref(struct a2a_card *c)
{
        if (!c || --c->refs > 0)
                return;
        free(c->name);
        free(c->agent_version);
        free(c->url);
        free(c->tenant);
        free(c);
}

int a2a_card_trust(const char *url, const char *card_url, const struct setting_list *origins,
                   enum a2a_trust *out, struct error *err)
{
        *out = A2A_OURS;
        if (http_text_same_origin(url, card_url))
                return 0;
        for (size_t i = 0; i < origins->count; i++)
                if (http_text_same_origin(url, origins->items[i]))
                        return 0;
        *out = A2A_STRANGER;
        if (strncasecmp(url, "https://", 8) == 0)
                return 0;
        return error_set(err, ERR_PROTOCOL,
                         "the agent card names '%.200s', which is elsewhere and not https; set "
                         "'endpoint', or list its origin in 'origins'",
                         url);
}
