/*
 * What the simulated Slack reads from outside: arguments of methods, posts, requests of the control
 * API, times. The first byte chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/loop.h"
#include "sim/slack/sl_admin.h"
#include "sim/slack/sl_call.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_world.h"

#define WORLD_INPUTS 500

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A world serves many inputs, so that what one of them leaves behind meets the next. */
static struct slack_world *the_world(void)
{
        static struct slack_world *w;
        static struct loop *l;
        static unsigned used;
        struct slack_user *ada;

        if (w && used++ % WORLD_INPUTS == 0) {
                sl_world_free(w);
                loop_step(l, false); /* timers go in a round of their loop */
                w = NULL;
        }
        if (!l)
                l = loop_new();
        if (!w) {
                w = sl_world_new(l);
                w->base.quiet = true;
                w->base.limits = false;
                ada = sl_user_make(w, NULL, "U0ADA", "ada", "Ada");
                sl_channel_make(w, NULL, "C0GENERAL", SLACK_PUBLIC, "general", ada)->general = true;
                sl_app_make(w, "xoxb-test", NULL);
        }
        return w;
}

/* The text "last" means the newest message of #general, whose ts cannot be guessed. */
static json_t *read_request(const struct slack_world *w, const char *text)
{
        const struct slack_channel *c = sl_channel_find(w, "C0GENERAL");
        json_t *request = json_read(text, strlen(text), NULL), *value;
        const char *key;

        if (c->count == 0)
                return request;
        json_object_foreach(request, key, value) {
                if (json_is_string(value) && strcmp(json_string_value(value), "last") == 0)
                        json_string_set(value, c->messages[c->count - 1]->ts);
        }
        return request;
}

static void call(const char *method, const char *text)
{
        struct slack_world *w = the_world();
        json_t *args = read_request(w, text);

        if (json_is_object(args))
                json_decref(sl_call_direct(w, w->apps, method, args));
        json_decref(args);
}

static void request(control_fn *act, const char *text)
{
        struct slack_world *w = the_world();
        json_t *value = read_request(w, text);
        struct error err = { 0 };
        struct buf out;

        buf_init(&out, 0);
        jsonw_open(&out, '{');
        /* files may be large, and there is no client to post to a URL */
        if (value && !json_object_get(value, "files") && !json_object_get(value, "request_url"))
                act((struct world *)w, value, &out, &err);
        buf_release(&out);
        json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char *const methods[] = {
                "chat.postMessage",
                "chat.update",
                "chat.delete",
                "chat.postEphemeral",
                "chat.startStream",
                "chat.appendStream",
                "chat.stopStream",
                "conversations.history",
                "conversations.replies",
                "conversations.list",
                "conversations.open",
                "reactions.add",
                "reactions.remove",
                "views.publish",
                "assistant.threads.setStatus",
                "users.list",
                "files.getUploadURLExternal",
                "files.completeUploadExternal",
        };
        static control_fn *const acts[] = {
                sl_people_send,
                sl_people_edit,
                sl_people_delete,
                sl_people_react,
                sl_people_unreact,
                sl_people_interact_press,
                sl_people_places_member,
                sl_people_interact_command,
                sl_people_interact_modal,
                sl_admin_user,
                sl_admin_channel,
                sl_admin_app,
                sl_admin_team,
                sl_admin_stop_stream,
                sl_link_control,
                sl_people_places_rename,
                sl_people_places_assistant,
                sl_people_places_context,
        };
        char *text;

        if (n == 0)
                return 0;
        text = mem_strndup((const char *)data + 1, n - 1);
        if (data[0] % 3 == 0)
                call(methods[data[0] / 3 % COUNT(methods)], text);
        else if (data[0] % 3 == 1)
                request(acts[data[0] / 3 % COUNT(acts)], text);
        else
                sl_message_parse_ts(text);
        free(text);
        return 0;
}
