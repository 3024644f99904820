/*
 * echo: repeats the message. For tests, and to check that a platform is connected.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/local/canned_reply.h"
#include "agent/message_text.h"
#include "base/mem.h"

struct echo_conf {
        char *prefix;
        int64_t delay_ms;
        bool stream;
};

static const struct setting settings[] = {
        { "prefix", SETTING_STRING, "\"\"", 0, 200, .help = "Text before the repeated message.",
          .at = offsetof(struct echo_conf, prefix) },
        { "delayMs", SETTING_INT, "0", 0, 600000,
          .help = "The pause before the answer, in milliseconds.",
          .at = offsetof(struct echo_conf, delay_ms) },
        { "stream", SETTING_BOOL, "false", .help = "Stream the answer word by word.",
          .at = offsetof(struct echo_conf, stream) },
        SETTING_END
};

static void start(struct agent *a, struct turn_run *run)
{
        const struct echo_conf *conf = a->conf;
        struct canned_reply *c = canned_reply_new(a, run);
        char *message = message_text_of_run(run);
        char *text = mem_printf("%s%s", conf->prefix ? conf->prefix : "", message);

        canned_reply_wait(c, conf->delay_ms);
        if (conf->stream) {
                canned_reply_say_words(c, text, 0);
        } else {
                canned_reply_set_whole(c);
                canned_reply_say(c, text, strlen(text));
        }
        canned_reply_start(c);
        free(text);
        free(message);
}

const struct agent_ops echo_agent = {
        .type = "echo",
        .help = "Repeats the message; for trying out a connection.",
        .can = AGENT_REPEATABLE | AGENT_STREAMS | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct echo_conf),
        .start = start,
        .cancel = canned_reply_cancel,
};
