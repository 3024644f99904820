#include "platform/platform_tool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/adapters.h"

const struct platform_tool *platform_tool_find(const struct platform_ops *ops, const char *name)
{
        for (const struct platform_tool *t = ops->tools; t && t->tool.name; t++)
                if (strcmp(t->tool.name, name) == 0)
                        return t;
        return NULL;
}

const struct road_tool *adapters_tool_at(struct adapters *as, const char *adapter, size_t i)
{
        const struct adapter *a = adapters_find(as, adapter);
        const struct platform_tool *t = a ? a->ops->tools : NULL;

        for (; t && t->tool.name; t++, i--)
                if (i == 0)
                        return &t->tool;
        return NULL;
}

struct failed_tool {
        platform_tool_fn *done;
        void *arg;
        struct error err;
};

static void on_failed_tool(void *arg)
{
        struct failed_tool *f = arg;

        f->done(f->arg, NULL, &f->err);
        free(f);
}

static void fail_later(struct loop *l, platform_tool_fn *done, void *arg, const struct error *err)
{
        struct failed_tool *f = mem_zalloc(sizeof(*f));

        f->done = done;
        f->arg = arg;
        f->err = *err;
        loop_defer(l, on_failed_tool, f);
}

void platform_tool_refuse(struct adapter *a, platform_tool_fn *done, void *arg,
                          const struct error *err)
{
        fail_later(a->loop, done, arg, err);
}

/* Names the first argument that the tool's schema does not have. */
static int check_arguments(const struct platform_tool *t, const json_t *arguments,
                           struct error *err)
{
        json_t *schema = json_loads(t->tool.parameters, 0, NULL);
        json_t *known = json_object_get(schema, "properties"), *value;
        const char **names = mem_array(json_object_size(known) + 1, sizeof(*names));
        const char *name, *near;
        struct buf text;
        size_t n = 0;
        int rc = 0;

        json_object_foreach(known, name, value)
                names[n++] = name;
        names[n] = NULL;
        json_object_foreach((json_t *)(uintptr_t)arguments, name, value) {
                if (json_object_get(known, name))
                        continue;
                buf_init(&text, 0);
                near = settings_nearest(name, names);
                buf_addf(&text, "'%s' has no argument '%.60s'", t->tool.name, name);
                if (near)
                        buf_addf(&text, " (did you mean '%s'?)", near);
                for (size_t i = 0; i < n; i++)
                        buf_addf(&text, "%s'%s'", i > 0 ? ", " : "; it takes ", names[i]);
                rc = error_set(err, ERR_INVALID, "%s", text.data);
                buf_release(&text);
                break;
        }
        free(names);
        json_decref(schema);
        return rc;
}

void platform_tool_call(struct adapters *as, const char *adapter, const char *tool,
                        const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        struct adapter *a = adapters_find(as, adapter);
        const struct platform_tool *t = a ? platform_tool_find(a->ops, tool) : NULL;
        struct error err = { 0 };

        if (!a)
                error_set(&err, ERR_MISSING, "there is no adapter '%s'", adapter);
        else if (!t)
                error_set(&err, ERR_MISSING, "adapter '%s' has no tool '%.60s'", adapter, tool);
        else if (!a->self || a->state == ADAPTER_STOPPED)
                error_set(&err, ERR_CONFLICT, "%s",
                          a->why[0] ? a->why : "the adapter is switched off");
        else if (!as->road)
                error_set(&err, ERR_CANCELLED, "the program is shutting down");
        if (!t || err.kind != ERR_NONE || check_arguments(t, q->arguments, &err) < 0)
                fail_later(as->loop, done, arg, &err);
        else if (t->submit)
                t->submit(a, t->kind, t->needs, q, done, arg);
        else
                t->call(a, q, done, arg);
}

const char *platform_tool_text(const json_t *arguments, const char *name, bool required,
                               char space[24], struct error *err)
{
        const json_t *value = json_object_get(arguments, name);

        if (err->kind != ERR_NONE)
                return NULL; /* keep the first error */
        if (json_is_string(value) && (json_string_length(value) > 0 || !required))
                return json_string_length(value) > 0 ? json_string_value(value) : NULL;
        if (json_is_integer(value)) { /* models like to write ids as numbers */
                snprintf(space, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                return space;
        }
        if (value && !json_is_null(value) && !json_is_string(value))
                error_set(err, ERR_INVALID, "'%s' must be a string", name);
        else if (required)
                error_set(err, ERR_INVALID, "'%s' is missing", name);
        return NULL;
}

const char *platform_tool_id(const json_t *arguments, const char *name, bool required,
                             const struct tool_ids *ids, char space[24], struct error *err)
{
        const char *id = platform_tool_text(arguments, name, required, space, err);

        if (!id || ids->valid(id))
                return id;
        error_set(err, ERR_INVALID, "'%s' must be %s, not '%.40s'", name, ids->rule, id);
        return NULL;
}

void platform_tool_answer(json_t *result, const struct error *err, platform_tool_fn *done,
                          void *arg)
{
        char *text = result ? json_text(result) : NULL;

        done(arg, text, err);
        free(text);
        json_decref(result);
}

/* ---- tools that send ---- */

int platform_tool_sending(struct adapter *a, enum delivery_kind kind, unsigned needs,
                          const struct tool_request *q, const struct tool_ids *chats,
                          const struct tool_ids *messages, struct tool_sending *s,
                          struct error *err)
{
        const json_t *arguments = q->arguments;
        struct outgoing *out = &s->out;

        *out = (struct outgoing){ .adapter = a->name,
                                  .kind = kind,
                                  .class = PACE_FINAL,
                                  .request_key = q->request_key,
                                  .request_hash = q->request_hash };
        out->channel = platform_tool_id(arguments, needs & TOOL_PERSON ? "user_id" : "channel_id",
                                        true, chats, s->target, err);
        if (out->channel && needs & TOOL_PERSON) {
                snprintf(s->person, sizeof(s->person), "user:%s", out->channel);
                out->channel = s->person;
        }
        if (needs & TOOL_MESSAGE_ID)
                out->message_id =
                        platform_tool_id(arguments, "message_id", true, messages, s->message, err);
        else
                out->reply_to =
                        platform_tool_id(arguments, "reply_to", false, messages, s->reply_to, err);
        if (needs & TOOL_CONTENT)
                out->text = platform_tool_text(arguments, "content", true, s->text, err);
        if (needs & TOOL_EMOJI)
                out->emoji = platform_tool_text(arguments, "emoji", true, s->text, err);
        if (needs & TOOL_NAME)
                out->file.name = platform_tool_text(arguments, "name", true, s->text, err);
        return err->kind == ERR_NONE ? 0 : -1;
}

struct tool_submission {
        platform_tool_fn *done;
        void *arg;
};

static void on_submitted(void *arg, const struct outbox_receipt *r)
{
        struct tool_submission *s = arg;
        char id[32];

        snprintf(id, sizeof(id), "dlv-%" PRId64, r->delivery);
        if (r->error.kind != ERR_NONE)
                s->done(s->arg, NULL, &r->error);
        else
                platform_tool_answer(json_pack("{s:s, s:s, s:i}", "deliveryId", id, "status",
                                               r->duplicate ? "duplicate" : "queued", "messages",
                                               (int)r->count),
                                     NULL, s->done, s->arg);
        free(s);
}

void platform_tool_submit(struct adapter *a, const struct outgoing *out, platform_tool_fn *done,
                          void *arg)
{
        struct tool_submission *s = mem_zalloc(sizeof(*s));

        s->done = done;
        s->arg = arg;
        outbox_submit(a->road, out, on_submitted, s);
}
