/*
 * What the simulated Discord reads from outside: bodies and queries of requests, texts with mentions, emoji, tokens. The first
 * byte chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/loop.h"
#include "sim/discord/form.h"
#include "sim/discord/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void body(const char *op, const char *text)
{
        json_t *value = json_read(text, strlen(text), NULL);
        char problem[FORM_PROBLEM_SIZE];

        if (value) {
                json_decref(form_check_body(form_op(op), value, false, problem));
                json_decref(form_check_body(form_op(op), value, true, problem));
        }
        json_decref(value);
}

static void query(const char *text)
{
        json_t *pairs = json_pack("{s:s,s:s,s:s}", "limit", text, "after", text, "other", text);
        char problem[FORM_PROBLEM_SIZE];

        if (pairs)
                json_decref(form_check_query(form_op("list_messages"), pairs, false, problem));
        json_decref(pairs);
}

/* A world is made once: what is fuzzed leaves it as it was. */
static struct world *the_world(void)
{
        static struct world *w;

        if (!w) {
                w = dc_world_new(loop_new());
                dc_guild_make(w, 1000, "Lab", dc_user_make(w, 42, "ada", "Ada"));
                dc_channel_make(w, w->first_guild, 1001, CHANNEL_TEXT, "general");
        }
        return w;
}

static void mentions(const char *text)
{
        struct world *w = the_world();
        struct message *m = dc_message_new(w, dc_channel(w, 1001), dc_user(w, 42));
        struct buf b;

        buf_init(&b, 0);
        free(m->content);
        m->content = mem_strdup(text);
        dc_message_mentions(w, m, NULL);
        dc_render_message(&b, NULL, w, m, NULL, RENDER_EVENT);
        json_decref(json_read(b.data, b.len, NULL));
        buf_release(&b);
        dc_message_free(m);
}

static void emoji(const char *text)
{
        struct emoji e;

        if (dc_emoji_parse(text, &e) == 0) {
                struct buf b;

                buf_init(&b, 0);
                dc_render_emoji(&b, NULL, &e);
                buf_release(&b);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char *const ops[] = { "create_message",
                                           "update_message",
                                           "create_thread",
                                           "bulk_set_application_commands",
                                           "create_interaction_response",
                                           "update_channel" };
        char *text;

        if (n == 0)
                return 0;
        text = mem_strndup((const char *)data + 1, n - 1);
        switch (data[0] % 4) {
        case 0:
                body(ops[data[0] / 4 % COUNT(ops)], text);
                break;
        case 1:
                query(text);
                break;
        case 2:
                mentions(text);
                break;
        default:
                emoji(text);
                break;
        }
        free(text);
        return 0;
}
