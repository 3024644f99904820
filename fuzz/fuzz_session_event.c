/*
 * Any bytes as the body of POST /api/webhook/event: read with all its limits, or refused with a
 * reason. What was read becomes pages of a chat, which are valid cards, in any room.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "remote/session_card.h"
#include "remote/session_digest.h"
#include "remote/session_event.h"
#include "road/outbox/card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct session_event *e)
{
        struct error err = { 0 };
        json_t *payload = json_read(e->payload, strlen(e->payload), &err);

        assert(json_is_object(payload));
        assert(strcmp(json_str(payload, "sessionId", ""), e->session) == 0);
        assert(session_id_is_valid(e->session));
        assert(strncmp(e->type, "session.", 8) == 0 && !strchr(e->type + 8, '.'));
        assert(strlen(e->content) <= SESSION_CONTENT_MAX);
        assert(e->tokens >= 0 && e->cost_microusd >= 0);
        json_decref(payload);
}

/* Takes over the text. */
static void check_card(char *text)
{
        struct error err = { 0 };
        struct card card;
        json_t *json;

        assert(card_parse(text, &json, &card, &err) == 0);
        assert(card.title && *card.title);
        json_decref(json);
        free(text);
}

static void show(const struct session_events *events, size_t room, bool named)
{
        const struct session_card_place place = { .named = named };
        struct digest d;

        digest_init(&d, room, 0);
        for (size_t i = 0; i < events->count; i++)
                digest_add(&d, &(struct bus_event){ .seq = (int64_t)i + 1,
                                                    .type = events->items[i].type,
                                                    .time_ms = 1000,
                                                    .payload = events->items[i].payload });
        assert(d.count <= room);
        for (size_t i = 0; i < d.count; i++) {
                const struct session_event *first = &events->items[0];
                const struct session_row row = { .id = 1,
                                                 .session = first->session,
                                                 .program = first->program,
                                                 .title = first->title,
                                                 .cwd = first->cwd };

                check_card(session_card_page(&row, &d.pages[i], &place));
                check_card(session_card_root(&row, &place));
                free(session_card_headline(&d.pages[i]));
        }
        digest_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct error err = { 0 };
        json_t *body = json_read_lenient((const char *)data, n, &err);
        struct session_events events;
        int rc;

        if (!body)
                return 0;
        rc = session_events_read(body, &events, &err);
        json_decref(body);
        assert(rc == 0 || (err.kind == ERR_INVALID && err.text[0]));
        for (size_t i = 0; rc == 0 && i < events.count; i++)
                check(&events.items[i]);
        if (rc == 0) {
                show(&events, DIGEST_ROOM, false);
                show(&events, 1, true);
        }
        session_events_release(&events);
        return 0;
}
