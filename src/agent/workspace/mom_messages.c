/* Messages of a session of mom as steps of a conversation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/mom_import.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "rows/conversation_row.h"
#include "rows/step_row.h"

struct message_import {
        struct store_tx *tx;
        struct step_row row;
        json_t *calls; /* id of a call of the last answer → its key, "12.0" */
        int64_t added;
};

/*
 * Without thinking, whose signatures only the service that made them accepts, and without bytes of
 * images, which belong into files. NULL: nothing is left.
 */
static json_t *body_of(const json_t *message)
{
        json_t *content = json_array(), *block, *body;
        size_t i;

        json_array_foreach(json_object_get(message, "content"), i, block) {
                const char *type = json_str(block, "type", "");

                if (strcmp(type, "image") == 0)
                        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text",
                                                                 "text", "[an image]"));
                else if (strcmp(type, "thinking") != 0)
                        json_array_append(content, block);
        }
        if (json_array_size(content) == 0) {
                json_decref(content);
                return NULL;
        }
        body = json_copy((json_t *)message);
        json_object_set_new(body, "content", content);
        /* people and pages that nobody here can ask */
        json_object_set_new(body, "untrusted", json_true());
        return body;
}

static int add_step(struct message_import *im, enum step_kind kind, const char *call,
                    const json_t *body, struct error *err)
{
        char *text = json_text(body);
        int rc;

        log_redact(text);
        im->row.kind = kind;
        im->row.call = call;
        im->row.body = text;
        rc = step_row_import(im->tx, &im->row, err);
        im->added += rc == 0;
        free(text);
        return rc;
}

static void note_calls(struct message_import *im, const json_t *body)
{
        const json_t *block;
        unsigned n = 0;
        size_t i;

        json_object_clear(im->calls);
        json_array_foreach(json_object_get(body, "content"), i, block) {
                char key[48];

                if (strcmp(json_str(block, "type", ""), "toolCall") != 0)
                        continue;
                snprintf(key, sizeof(key), "%lld.%u", (long long)im->row.id, n++);
                json_object_set_new(im->calls, json_str(block, "id", ""), json_string(key));
        }
}

static int add_message(struct message_import *im, const json_t *message, struct error *err)
{
        const char *role = json_str(message, "role", ""), *call;
        json_t *body = body_of(message);
        int rc = 0;

        if (!body)
                return 0;
        if (strcmp(role, "assistant") == 0) {
                rc = add_step(im, STEP_ASSISTANT, NULL, body, err);
                note_calls(im, body);
        } else if (strcmp(role, "toolResult") == 0) {
                call = json_str(im->calls, json_str(message, "toolCallId", ""), NULL);
                if (call)
                        rc = add_step(im, STEP_TOOL_DONE, call, body, err);
        } else {
                rc = add_step(im, STEP_USER, NULL, body, err);
        }
        json_decref(body);
        return rc;
}

int64_t mom_import_messages(struct store_tx *tx, const struct conversation_key *key,
                            const json_t *messages, int64_t now_ms, struct error *err)
{
        /* as if said now: it is forgotten like what is said from now on */
        struct message_import im = { .tx = tx, .row = { .agent = key->agent, .time_ms = now_ms } };
        int64_t reset, last, turn;
        const json_t *message;
        size_t i;
        int rc = 0;

        if (conversation_row_touch(tx, key, now_ms, &im.row.conversation, &reset, err) < 0 ||
            step_row_previous(tx, im.row.conversation, INT64_MAX, &last, &turn, err) < 0)
                return -1;
        if (last > 0)
                return 0;
        im.calls = json_object();
        json_array_foreach(messages, i, message)
                if (rc == 0)
                        rc = add_message(&im, message, err);
        json_decref(im.calls);
        return rc < 0 ? -1 : im.added;
}
