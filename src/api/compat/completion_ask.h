/*
 * completion_ask: a request in OpenAI's protocol, read and checked.
 */
#ifndef API_COMPAT_COMPLETION_ASK_H
#define API_COMPAT_COMPLETION_ASK_H

#include "api/compat/chat_bridge.h"
#include "api/core/body.h"

struct completion_options {
        bool usage;
        const json_t *ignored;
};
struct completion_ask {
        const char *model, *user;
        struct field_list messages;
        bool stream, logprobs;
        struct completion_options options;
        int64_t n;
        const json_t *tools, *functions, *audio;
        const json_t *ignored;
};

/* What was said, in the body's memory. */
struct completion_lines {
        struct chat_bridge_line *lines; /* as many as messages */
        struct attachment *images;      /* of the last words */
        size_t image_count;
};

/* What the table cannot say; 0, or -1 after a mistake was noted. */
int completion_ask_read(struct body *b, const struct completion_ask *ask,
                        struct completion_lines *out);

#endif
