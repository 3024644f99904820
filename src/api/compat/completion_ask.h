/*
 * completion_ask: reads a request in OpenAI's protocol.
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
extern const struct field completion_ask_fields[];

/* In the body's memory. */
struct completion_lines {
        struct chat_bridge_line *lines; /* one per message */
        struct attachment *images;      /* of the user's last messages */
        size_t image_count;
};

/* Checks beyond the table; 0, or -1 after a mistake. */
int completion_ask_read(struct body *b, const struct completion_ask *ask,
                        struct completion_lines *out);

#endif
