/*
 * What the simulated Discord reads from outside: bodies and queries of requests, texts with
 * mentions, emoji, requests. The first byte chooses.
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
        char problem[DC_SPEC_PROBLEM_SIZE];

        if (value) {
                json_decref(dc_spec_check_body(dc_spec_op(op), value, false, problem));
                json_decref(dc_spec_check_body(dc_spec_op(op), value, true, problem));
        }
        json_decref(value);
}

static void query(const char *text)
{
        json_t *pairs = json_pack("{s:s,s:s,s:s}", "limit", text, "after", text, "other", text);
        char problem[DC_SPEC_PROBLEM_SIZE];

        if (pairs)
                json_decref(
                        dc_spec_check_query(dc_spec_op("list_messages"), pairs, false, problem));
        json_decref(pairs);
}

static void run_act(struct world *w, control_fn *act, const json_t *value)
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
                w->base.quiet = true;
                dc_world_make_bot(w, "OTAw.sim.test");
                dc_guild_make(w, 1000, "Lab", dc_world_make_user(w, 42, "ada", "Ada"));
                dc_channel_make(w, w->first_guild, 1001, CHANNEL_TEXT, "general");
                dc_channel_make(w, w->first_guild, 1002, CHANNEL_FORUM, "help");
                first = json_pack("{s:s,s:s}", "channel", "general", "text", "first");
                run_act(w, dc_people_send, first);
                json_decref(first);
        }
        return w;
}

/* {"message_id":"last"} means the newest message of the channel, whose number nobody can guess. */
static void request(control_fn *act, const char *text)
{
        struct world *w = the_world();
        const struct channel *c = dc_channel_find(w, 1001);
        json_t *value = json_read(text, strlen(text), NULL);
        char id[DC_ID_SIZE];

        if (c && strcmp(json_str(value, "message_id", ""), "last") == 0)
                json_object_set_new(value, "message_id",
                                    json_string(dc_id_text(c->last_message_id, id)));
        if (value && !json_object_get(value, "files"))
                run_act(w, act, value);
        json_decref(value);
}

static void mentions(const char *text)
{
        struct world *w = the_world();
        struct message *m = dc_message_new(w, w->first_guild->channels, dc_world_user(w, 42));
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

        if (dc_message_parse_emoji(text, &e) == 0) {
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
        static control_fn *const acts[] = { dc_people_send,
                                            dc_people_edit,
                                            dc_people_delete,
                                            dc_people_react,
                                            dc_people_unreact,
                                            dc_people_typing,
                                            dc_people_thread,
                                            dc_people_rename,
                                            dc_people_archive,
                                            dc_people_interact_press,
                                            dc_people_interact_command,
                                            dc_people_interact_modal,
                                            dc_admin_user,
                                            dc_admin_channel,
                                            dc_admin_permissions,
                                            dc_admin_member };
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
                request(acts[data[0] / 5 % COUNT(acts)], text);
                break;
        }
        free(text);
        return 0;
}
