#include "api/compat/completion_ask.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define IMAGES_MAX 20

struct message {
        const char *role, *name;
        const json_t *content;
        const json_t *ignored;
};
static const char *const roles[] = { "system", "developer", "user", "assistant",
                                     "tool",   "function",  NULL };

/* clang-format off */
#define IGNORED(table, key) { key, FIELD_ANY, .at = offsetof(table, ignored), .help = "Accepted, but the agent decides by itself." }
static const struct field message_fields[] = {
        { "role", FIELD_CHOICE, .required = true, .choices = roles, .at = offsetof(struct message, role), .help = "Who said it." },
        { "content", FIELD_ANY, .at = offsetof(struct message, content),
          .help = "A text, or a list of parts of type text and image_url (http or https)." },
        { "name", FIELD_STRING, .max = 256, .at = offsetof(struct message, name), .help = "The name of who said it." },
        IGNORED(struct message, "tool_calls"), IGNORED(struct message, "tool_call_id"), IGNORED(struct message, "function_call"),
        IGNORED(struct message, "refusal"), IGNORED(struct message, "audio"), IGNORED(struct message, "annotations"),
        FIELD_END,
};
static const struct field options_fields[] = {
        { "include_usage", FIELD_BOOL, .at = offsetof(struct completion_options, usage), .fallback = "false",
          .help = "A last piece tells the tokens." },
        IGNORED(struct completion_options, "include_obfuscation"),
        FIELD_END,
};
const struct field completion_fields[] = {
        { "model", FIELD_STRING, .required = true, .min = 1, .max = 128, .at = offsetof(struct completion_ask, model),
          .help = "Name of an agent, or dragoman: whoever the rules choose." },
        { "messages", FIELD_LIST, .required = true, .group = message_fields, .item_size = sizeof(struct message),
          .max = CHAT_BRIDGE_LINES_MAX, .at = offsetof(struct completion_ask, messages),
          .help = "The conversation; the last one is what a person says now." },
        { "stream", FIELD_BOOL, .at = offsetof(struct completion_ask, stream), .fallback = "false", .help = "Pieces as they come." },
        { "stream_options", FIELD_GROUP, .group = options_fields, .at = offsetof(struct completion_ask, options), .help = "With stream." },
        { "user", FIELD_STRING, .min = 1, .max = 256, .at = offsetof(struct completion_ask, user),
          .help = "Names the conversation: its history is kept here, and only what is new in messages is used. The header "
                  "X-Dragoman-Chat does the same." },
        { "n", FIELD_INT, .min = 1, .max = 1, .at = offsetof(struct completion_ask, n), .fallback = "1", .help = "There is one answer." },
        { "logprobs", FIELD_BOOL, .at = offsetof(struct completion_ask, logprobs), .fallback = "false", .help = "Must be false." },
        { "tools", FIELD_ANY, .at = offsetof(struct completion_ask, tools), .help = "Must be empty: agents have their own tools." },
        { "functions", FIELD_ANY, .at = offsetof(struct completion_ask, functions), .help = "Must be empty." },
        { "audio", FIELD_ANY, .at = offsetof(struct completion_ask, audio), .help = "Must be absent." },
        IGNORED(struct completion_ask, "frequency_penalty"), IGNORED(struct completion_ask, "function_call"), IGNORED(struct completion_ask, "logit_bias"),
        IGNORED(struct completion_ask, "max_completion_tokens"), IGNORED(struct completion_ask, "max_tokens"), IGNORED(struct completion_ask, "metadata"),
        IGNORED(struct completion_ask, "modalities"), IGNORED(struct completion_ask, "moderation"), IGNORED(struct completion_ask, "parallel_tool_calls"),
        IGNORED(struct completion_ask, "prediction"), IGNORED(struct completion_ask, "presence_penalty"), IGNORED(struct completion_ask, "prompt_cache_key"),
        IGNORED(struct completion_ask, "prompt_cache_options"), IGNORED(struct completion_ask, "prompt_cache_retention"),
        IGNORED(struct completion_ask, "reasoning_effort"), IGNORED(struct completion_ask, "response_format"), IGNORED(struct completion_ask, "safety_identifier"),
        IGNORED(struct completion_ask, "seed"), IGNORED(struct completion_ask, "service_tier"), IGNORED(struct completion_ask, "stop"), IGNORED(struct completion_ask, "store"),
        IGNORED(struct completion_ask, "temperature"), IGNORED(struct completion_ask, "tool_choice"), IGNORED(struct completion_ask, "top_logprobs"),
        IGNORED(struct completion_ask, "top_p"), IGNORED(struct completion_ask, "verbosity"), IGNORED(struct completion_ask, "web_search_options"),
        FIELD_END,
};
/* clang-format on */

struct reading {
        struct body *body;
        struct completion_lines *out;
};

static int add_image(struct reading *r, const char *path, const char *url)
{
        if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
                return body_mistake(r->body, path, "images must be given by an http or https URL");
        if (r->out->image_count == IMAGES_MAX)
                return body_mistake(r->body, path, "there are more than %d images", IMAGES_MAX);
        r->out->images[r->out->image_count++] = (struct attachment){ .kind = "image", .url = url };
        return 0;
}

static int add_part(struct reading *r, const char *path, const json_t *part, struct buf *text)
{
        const char *type = json_str(part, "type", ""),
                   *url = json_str(json_object_get(part, "image_url"), "url", NULL);

        if (strcmp(type, "text") == 0 && json_str(part, "text", NULL)) {
                if (text->len > 0)
                        buf_addch(text, '\n');
                buf_addstr(text, json_str(part, "text", ""));
                return 0;
        }
        if (strcmp(type, "image_url") == 0 && url)
                return add_image(r, path, url);
        return body_mistake(r->body, path, "only parts of type text and image_url are understood");
}

/* The text of a message; NULL after a mistake. */
static const char *text_of(struct reading *r, const char *path, const json_t *content)
{
        const json_t *part;
        const char *text;
        struct buf b;
        size_t i;

        if (!content || json_is_string(content))
                return content ? json_string_value(content) : "";
        if (!json_is_array(content)) {
                body_mistake(r->body, path, "must be a text or a list of parts");
                return NULL;
        }
        buf_init(&b, 0);
        json_array_foreach(content, i, part)
                if (add_part(r, path, part, &b) < 0)
                        break;
        text = i < json_array_size(content) ? NULL : arena_strdup(&r->body->arena, b.data);
        buf_release(&b);
        return text;
}

static enum chat_bridge_role role_of(const char *role)
{
        if (strcmp(role, "user") == 0)
                return CHAT_BRIDGE_USER;
        return strcmp(role, "assistant") == 0 ? CHAT_BRIDGE_AGENT : CHAT_BRIDGE_SYSTEM;
}

static int read_lines(struct reading *r, const struct field_list *messages)
{
        const struct message *m = messages->items;

        r->out->lines =
                arena_alloc(&r->body->arena, (messages->count + 1) * sizeof(*r->out->lines));
        r->out->images = arena_alloc(&r->body->arena, IMAGES_MAX * sizeof(*r->out->images));
        for (size_t i = 0; i < messages->count; i++) {
                char path[40];

                snprintf(path, sizeof(path), "messages[%zu].content", i);
                /* images of earlier messages were seen when they came */
                if (role_of(m[i].role) == CHAT_BRIDGE_AGENT)
                        r->out->image_count = 0;
                r->out->lines[i] = (struct chat_bridge_line){ role_of(m[i].role), m[i].name,
                                                              text_of(r, path, m[i].content) };
                if (!r->out->lines[i].text)
                        return -1;
        }
        return 0;
}

static bool is_something(const json_t *v)
{
        return v && !(json_is_array(v) && json_array_size(v) == 0);
}

int completion_ask_read(struct body *b, const struct completion_ask *ask,
                        struct completion_lines *out)
{
        struct reading r = { b, out };
        struct buf text;
        bool something;

        if (is_something(ask->tools) || is_something(ask->functions))
                return body_mistake(b, "tools", "must be empty: agents have tools of their own");
        if (ask->audio)
                return body_mistake(b, "audio", "is not spoken here");
        if (ask->logprobs)
                return body_mistake(b, "logprobs", "must be false");
        if (read_lines(&r, &ask->messages) < 0)
                return -1;
        buf_init(&text, 0);
        something = chat_bridge_text(out->lines, ask->messages.count, false, &text) &&
                    (text.len > 0 || out->image_count > 0);
        buf_release(&text);
        return something ? 0 : body_mistake(b, "messages", "must end with what a user says");
}
