/*
 * a2a_params: what requests say.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "agent/message_text.h"
#include "base/json.h"
#include "base/jsonw.h"

#define LISTED_TASKS  50
#define LISTED_LENGTH 50 /* of the history of each */

/* Both versions wait for the task by default; its id is wanted at once. */
static void write_configuration(struct buf *b, const struct a2a_turn *t)
{
        jsonw_open_member(b, "configuration", '{');
        if (t->card->version == A2A_1_0)
                jsonw_bool(b, "returnImmediately", true);
        else
                jsonw_bool(b, "blocking", false);
        jsonw_close(b, '}');
}

static void write_text(struct buf *b, const struct a2a_turn *t)
{
        char *text = message_text_of_turn(t->run);

        a2a_part_write(b, t->card->version, &(struct a2a_part){ .kind = A2A_TEXT, .text = text });
        free(text);
}

char *a2a_params_send(const struct a2a_turn *t)
{
        struct a2a_message m = {
                .id = t->message, .context = t->context, .task = t->task, .refers_to = t->refers_to
        };
        struct a2a_part part;
        const json_t *file;
        struct buf b;
        size_t i;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_opt(&b, "tenant", t->card->tenant);
        a2a_message_open(&b, "message", t->card->version, &m);
        write_text(&b, t);
        json_array_foreach(t->parts, i, file)
                if (a2a_part_read(file, &part))
                        a2a_part_write(&b, t->card->version, &part);
        a2a_message_close(&b);
        write_configuration(&b, t);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

char *a2a_params_task(const struct a2a_turn *t, bool with_history)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_opt(&b, "tenant", t->card->tenant);
        jsonw_str(&b, "id", t->task);
        if (!with_history)
                jsonw_int(&b, "historyLength", 0);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

char *a2a_params_list(const struct a2a_turn *t)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_opt(&b, "tenant", t->card->tenant);
        jsonw_opt(&b, "contextId", t->context);
        jsonw_int(&b, "pageSize", LISTED_TASKS);
        jsonw_int(&b, "historyLength", LISTED_LENGTH);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

bool a2a_has_message(const json_t *history, const char *id)
{
        const json_t *message;
        size_t i;

        json_array_foreach(history, i, message)
                if (strcmp(json_str(message, "messageId", ""), id) == 0)
                        return true;
        return false;
}
