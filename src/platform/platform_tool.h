/* platform_tool: functions that agents and the API call directly, not through the outbox. */
#ifndef PLATFORM_PLATFORM_TOOL_H
#define PLATFORM_PLATFORM_TOOL_H

#include <jansson.h>

#include "platform/platform.h"

const struct platform_tool *platform_tool_find(const struct platform_ops *ops, const char *name);
/* Calls done once, later. Refuses arguments that the tool does not know. q is borrowed. */
void platform_tool_call(struct adapters *as, const char *adapter, const char *tool,
                        const struct tool_request *q, platform_tool_fn *done, void *arg);

/* For tools: reports a mistake, later. */
void platform_tool_refuse(struct adapter *a, platform_tool_fn *done, void *arg,
                          const struct error *err);
/* A text argument, or a number as text in `space`. NULL with an error: required and absent. */
const char *platform_tool_text(const json_t *arguments, const char *name, bool required,
                               char space[24], struct error *err);
/* What ids of a platform look like. */
struct tool_ids {
        bool (*valid)(const char *id);
        const char *rule; /* "an id of Discord: digits" */
};
const char *platform_tool_id(const json_t *arguments, const char *name, bool required,
                             const struct tool_ids *ids, char space[24], struct error *err);
/* Takes the result over and calls done; NULL with an error. */
void platform_tool_answer(json_t *result, const struct error *err, platform_tool_fn *done,
                          void *arg);

/* ---- tools that send: through the outbox, like an agent's answer ---- */

/* Arguments that one requires in addition to channel_id. */
enum tool_needs {
        TOOL_PERSON = 1, /* user_id instead */
        TOOL_MESSAGE_ID = 2,
        TOOL_CONTENT = 4,
        TOOL_EMOJI = 8,
        TOOL_NAME = 16,
};
struct tool_sending {
        struct outgoing out; /* may point to the members below */
        char target[24], message[24], reply_to[24], text[24], person[60];
        char place[24]; /* for the platform: the channel of a thread, or the thread */
};
/*
 * Reads the arguments; chats and messages say what their ids look like. A person's chat is
 * "user:ID", as all platforms with tools have it.
 */
int platform_tool_sending(struct adapter *a, enum delivery_kind kind, unsigned needs,
                          const struct tool_request *q, const struct tool_ids *chats,
                          const struct tool_ids *messages, struct tool_sending *s,
                          struct error *err);
/* Answers with the id of the delivery. */
void platform_tool_submit(struct adapter *a, const struct outgoing *out, platform_tool_fn *done,
                          void *arg);

/* ---- schemas of arguments ---- */

#define TOOL_HELP(text) "\"description\":\"" text "\"}"
#define TOOL_TEXT(text) "{\"type\":\"string\",\"minLength\":1," TOOL_HELP(text)
#define TOOL_LIMIT                                                                      \
        "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":20," \
        "\"description\":\"How many\"}"
#define TOOL_OBJECT(properties, required)                                              \
        "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
        "],\"additionalProperties\":false}"
/* The chat is named by channel_id. */
#define TOOL_IN_CHAT  .channel = "channel_id"
#define TOOL_ANYWHERE .everywhere = true

#endif
