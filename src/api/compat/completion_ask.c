#include "api/compat/completion_ask.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define IMAGES_MAX 20

struct completion_message {
        const char *role, *name;
        const json_t *content;
        const json_t *ignored;
};
static const char *const roles[] = { "system", "developer", "user", "assistant",
                                     "tool",   "function",  NULL };

/* clang-format off */
#define IGNORED(type, key)                                                      \
        { key, FIELD_ANY, FIELD_AT(type, ignored),                              \
          .help = "Accepted and ignored: the agent decides." }
/* clang-format on */

static const struct field message_fields[] = {
        { "role", FIELD_CHOICE, .required = true, .choices = roles,
          FIELD_AT(completion_message, role), .help = "Who said it." },
        { "content", FIELD_ANY, FIELD_AT(completion_message, content),
          .help = "A text, or a list of parts of type text and image_url (http or https)." },
        { "name", FIELD_STRING, .max = 256, FIELD_AT(completion_message, name),
          .help = "The speaker's name." },
        IGNORED(completion_message, "tool_calls"),
        IGNORED(completion_message, "tool_call_id"),
        IGNORED(completion_message, "function_call"),
        IGNORED(completion_message, "refusal"),
        IGNORED(completion_message, "audio"),
        IGNORED(completion_message, "annotations"),
        FIELD_END,
};
static const struct field options_fields[] = {
        { "include_usage", FIELD_BOOL, FIELD_AT(completion_options, usage), .fallback = "false",
          .help = "A last piece has the number of tokens." },
        IGNORED(completion_options, "include_obfuscation"),
        FIELD_END,
};
const struct field completion_ask_fields[] = {
        { "model", FIELD_STRING, .required = true, .min = 1, .max = 128,
          FIELD_AT(completion_ask, model),
          .help = "Name of an agent, or dragoman: the rules choose the agent." },
        { "messages", FIELD_LIST, .required = true, .group = message_fields,
          .item_size = sizeof(struct completion_message), .max = CHAT_BRIDGE_LINES_MAX,
          FIELD_AT(completion_ask, messages),
          .help = "The conversation; the last message is the user's." },
        { "stream", FIELD_BOOL, FIELD_AT(completion_ask, stream), .fallback = "false",
          .help = "Send the answer in pieces as it grows." },
        { "stream_options", FIELD_GROUP, .group = options_fields, FIELD_AT(completion_ask, options),
          .help = "With stream." },
        { "user", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(completion_ask, user),
          .help = "Names the conversation: its history is kept here, and only new messages are "
                  "used. The header X-Dragoman-Chat does the same." },
        { "n", FIELD_INT, .min = 1, .max = 1, FIELD_AT(completion_ask, n), .fallback = "1",
          .help = "There is one answer." },
        { "logprobs", FIELD_BOOL, FIELD_AT(completion_ask, logprobs), .fallback = "false",
          .help = "Must be false." },
        { "tools", FIELD_ANY, FIELD_AT(completion_ask, tools),
          .help = "Must be empty: agents have their own tools." },
        { "functions", FIELD_ANY, FIELD_AT(completion_ask, functions), .help = "Must be empty." },
        { "audio", FIELD_ANY, FIELD_AT(completion_ask, audio), .help = "Must be absent." },
        IGNORED(completion_ask, "frequency_penalty"),
        IGNORED(completion_ask, "function_call"),
        IGNORED(completion_ask, "logit_bias"),
        IGNORED(completion_ask, "max_completion_tokens"),
        IGNORED(completion_ask, "max_tokens"),
        IGNORED(completion_ask, "metadata"),
        IGNORED(completion_ask, "modalities"),
        IGNORED(completion_ask, "moderation"),
        IGNORED(completion_ask, "parallel_tool_calls"),
        IGNORED(completion_ask, "prediction"),
        IGNORED(completion_ask, "presence_penalty"),
        IGNORED(completion_ask, "prompt_cache_key"),
        IGNORED(completion_ask, "prompt_cache_options"),
        IGNORED(completion_ask, "prompt_cache_retention"),
        IGNORED(completion_ask, "reasoning_effort"),
        IGNORED(completion_ask, "response_format"),
        IGNORED(completion_ask, "safety_identifier"),
        IGNORED(completion_ask, "seed"),
        IGNORED(completion_ask, "service_tier"),
        IGNORED(completion_ask, "stop"),
        IGNORED(completion_ask, "store"),
        IGNORED(completion_ask, "temperature"),
        IGNORED(completion_ask, "tool_choice"),
        IGNORED(completion_ask, "top_logprobs"),
        IGNORED(completion_ask, "top_p"),
        IGNORED(completion_ask, "verbosity"),
        IGNORED(completion_ask, "web_search_options"),
        FIELD_END,
};

static int add_part(struct body *b, struct completion_lines *out, const char *path,
                    const json_t *part, struct buf *text)
{
        const char *type = json_str(part, "type", "");
        const char *url = json_str(json_object_get(part, "image_url"), "url", NULL);

        if (strcmp(type, "text") == 0 && json_str(part, "text", NULL)) {
                if (text->len > 0)
                        buf_addch(text, '\n');
                buf_addstr(text, json_str(part, "text", ""));
                return 0;
        }
        if (strcmp(type, "image_url") != 0 || !url)
                return body_mistake(b, path, "only parts of type text and image_url are supported");
        if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
                return body_mistake(b, path, "images must be given by an http or https URL");
        if (out->image_count == IMAGES_MAX)
                return body_mistake(b, path, "there are more than %d images", IMAGES_MAX);
        out->images[out->image_count++] = (struct attachment){ .kind = "image", .url = url };
        return 0;
}

/* NULL after a mistake. */
static const char *text_of(struct body *b, struct completion_lines *out, const char *path,
                           const json_t *content)
{
        const char *copy;
        const json_t *part;
        struct buf text;
        size_t i;

        if (!content || json_is_string(content))
                return content ? json_string_value(content) : "";
        if (!json_is_array(content)) {
                body_mistake(b, path, "must be a string or a list of parts");
                return NULL;
        }
        buf_init(&text, 0);
        json_array_foreach(content, i, part)
                if (add_part(b, out, path, part, &text) < 0)
                        break;
        copy = i < json_array_size(content) ? NULL : arena_strdup(&b->arena, text.data);
        buf_release(&text);
        return copy;
}

static int read_lines(struct body *b, const struct field_list *messages,
                      struct completion_lines *out)
{
        const struct completion_message *m = messages->items;

        out->lines = arena_alloc(&b->arena, (messages->count + 1) * sizeof(*out->lines));
        out->images = arena_alloc(&b->arena, IMAGES_MAX * sizeof(*out->images));
        for (size_t i = 0; i < messages->count; i++) {
                struct chat_bridge_line *line = &out->lines[i];
                char path[40];

                snprintf(path, sizeof(path), "messages[%zu].content", i);
                line->role = strcmp(m[i].role, "user") == 0        ? CHAT_BRIDGE_USER
                             : strcmp(m[i].role, "assistant") == 0 ? CHAT_BRIDGE_AGENT
                                                                   : CHAT_BRIDGE_SYSTEM;
                /* earlier images belong to an earlier request */
                if (line->role == CHAT_BRIDGE_AGENT)
                        out->image_count = 0;
                line->name = m[i].name;
                line->text = text_of(b, out, path, m[i].content);
                if (!line->text)
                        return -1;
        }
        return 0;
}

static bool is_given(const json_t *v)
{
        return v && !(json_is_array(v) && json_array_size(v) == 0);
}

int completion_ask_read(struct body *b, const struct completion_ask *ask,
                        struct completion_lines *out)
{
        struct buf text;
        bool ok;

        if (is_given(ask->tools) || is_given(ask->functions))
                return body_mistake(b, "tools", "must be empty: agents have their own tools");
        if (ask->audio)
                return body_mistake(b, "audio", "is not supported");
        if (ask->logprobs)
                return body_mistake(b, "logprobs", "must be false");
        if (read_lines(b, &ask->messages, out) < 0)
                return -1;
        buf_init(&text, 0);
        ok = chat_bridge_text(out->lines, ask->messages.count, false, &text) &&
             (text.len > 0 || out->image_count > 0);
        buf_release(&text);
        return ok ? 0 : body_mistake(b, "messages", "must end with a message of the user");
}
