/*
 * What the simulated Discord reads from outside: bodies and queries of requests, texts with
 * mentions, emoji, wishes. The first byte chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/loop.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_spec.h"
#include "sim/discord/dc_world.h"

#define WORLD_INPUTS 500

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

static void run_act(struct world *w, act_fn *act, const json_t *value)
{
        struct error err = { 0 };
        struct buf out;

        buf_init(&out, 0);
        jsonw_open(&out, '{');
        act(w, value, &out, &err);
        buf_release(&out);
}

/* A world serves many inputs, so that what one of them leaves behind meets the next. */
static struct world *the_world(void)
{
        static struct world *w;
        static struct loop *l;
        static unsigned used;
        json_t *first;

        if (w && used++ % WORLD_INPUTS == 0) {
                dc_world_free(w);
                loop_step(l, false); /* timers go in a round of their loop */
                w = NULL;
        }
        if (!l)
                l = loop_new();
        if (!w) {
                w = dc_world_new(l);
                w->quiet = true;
                dc_bot(w, "OTAw.sim.test");
                dc_guild_make(w, 1000, "Lab", dc_user_make(w, 42, "ada", "Ada"));
                dc_channel_make(w, w->first_guild, 1001, CHANNEL_TEXT, "general");
                dc_channel_make(w, w->first_guild, 1002, CHANNEL_FORUM, "help");
                first = json_pack("{s:s,s:s}", "channel", "general", "text", "first");
                run_act(w, dc_play_send, first);
                json_decref(first);
        }
        return w;
}

/* {"message_id":"last"} means the newest message of the channel, whose number nobody can guess. */
static void wish(act_fn *act, const char *text)
{
        struct world *w = the_world();
        const struct channel *c = dc_channel(w, 1001);
        json_t *value = json_read(text, strlen(text), NULL);
        char id[DC_ID_SIZE];

        if (c && strcmp(json_str(value, "message_id", ""), "last") == 0)
                json_object_set_new(value, "message_id",
                                    json_string(dc_id(c->last_message_id, id)));
        if (value && !json_object_get(value, "files"))
                run_act(w, act, value);
        json_decref(value);
}

static void mentions(const char *text)
{
        struct world *w = the_world();
        struct message *m = dc_message_new(w, w->first_guild->channels, dc_user(w, 42));
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
        static act_fn *const acts[] = { dc_play_send,   dc_play_edit,    dc_play_delete,
                                        dc_play_react,  dc_play_unreact, dc_play_typing,
                                        dc_play_thread, dc_play_rename,  dc_play_archive,
                                        dc_play_press,  dc_play_command, dc_play_modal,
                                        dc_play_user,   dc_play_channel, dc_play_permissions,
                                        dc_play_member };
        char *text;

        if (n == 0)
                return 0;
        text = mem_strndup((const char *)data + 1, n - 1);
        switch (data[0] % 5) {
        case 0:
                body(ops[data[0] / 5 % COUNT(ops)], text);
                break;
        case 1:
                query(text);
                break;
        case 2:
                mentions(text);
                break;
        case 3:
                emoji(text);
                break;
        default:
                wish(acts[data[0] / 5 % COUNT(acts)], text);
                break;
        }
        free(text);
        return 0;
}
