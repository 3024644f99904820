/*
 * demo: who answers when no model is configured.
 *
 * It says plainly that it is a demo, repeats what it heard word by word, shows what a tool at work
 * looks like, and tells how to get a real model.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kinds.h"
#include "agent/local/canned_reply.h"
#include "agent/message_text.h"
#include "base/buf.h"

struct demo_conf {
        int64_t word_ms;
        int64_t tool_ms;
};

static const struct setting settings[] = {
        { "wordMs", SETTING_INT, "15", 0, 1000,
          .help = "The pause between two words of an answer, in milliseconds.",
          .at = offsetof(struct demo_conf, word_ms) },
        { "toolMs", SETTING_INT, "700", 0, 60000,
          .help = "How long each step of the pretended tool takes, in milliseconds.",
          .at = offsetof(struct demo_conf, tool_ms) },
        SETTING_END
};

#define HOW_TO                                                                                           \
        "Here is how to put a real model in my place:\n\n"                                               \
        "- Quick: leave, set ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment, and start again.\n" \
        "- Lasting: write this into config.json in the data directory:\n\n"                              \
        "```json\n"                                                                                      \
        "{ \"agents\": { \"assistant\": { \"type\": \"openai\", \"model\": \"gpt-5\",\n"                 \
        "                             \"apiKey\": \"env:OPENAI_API_KEY\" } } }\n"                        \
        "```\n\n"                                                                                        \
        "A local server works too: give its address as \"baseUrl\", and leave the key out.\n"

#define WELCOME                                                                                             \
        "Hello, good to see you! I am Dragoman's demo agent: no model is connected yet, so I only repeat "  \
        "what "                                                                                             \
        "you write. Everything around me is real, though: your message was stored before it was answered, " \
        "and "                                                                                              \
        "this answer is delivered exactly once.\n\n"

#define WHAT_TO_TRY \
        "\n\nTry `progress` to watch a tool at work, or `help` to learn how to connect a real model."

static size_t count_words(const char *text)
{
        size_t words = 0;
        bool inside = false;

        for (; *text; text++) {
                bool space = isspace((unsigned char)*text) != 0;

                words += !space && !inside;
                inside = !space;
        }
        return words;
}

static bool asks_for_help(const char *heard)
{
        return strcasecmp(heard, "help") == 0 || strcasecmp(heard, "/help") == 0 ||
               strcasecmp(heard, "help!") == 0 || strcasecmp(heard, "/start") == 0;
}

static bool asks_for_tool(const char *heard)
{
        return strcasestr(heard, "progress") || strcasestr(heard, "/tool");
}

static void pretend_tool(struct canned_reply *p, const struct demo_conf *conf, const char *heard,
                         struct buf *answer)
{
        size_t words = count_words(heard);

        canned_reply_progress(p, "demo tool: opening the toolbox");
        canned_reply_wait(p, conf->tool_ms);
        canned_reply_progress(p, "demo tool: counting words");
        canned_reply_wait(p, conf->tool_ms);
        canned_reply_progress(p, "demo tool: done");
        buf_addf(answer,
                 "[demo] My pretended tool counted %zu word%s in your message. A real agent "
                 "shows its tools at work in the same way.",
                 words, words == 1 ? "" : "s");
}

static void start(struct agent *a, struct turn_run *run)
{
        const struct demo_conf *conf = a->conf;
        struct canned_reply *p = canned_reply_new(a, run);
        char *heard = message_text_of_run(run);
        struct buf answer;

        buf_init(&answer, 0);
        if (asks_for_help(heard))
                buf_addstr(&answer, "[demo] I am only a demo agent. " HOW_TO);
        else if (asks_for_tool(heard))
                pretend_tool(p, conf, heard, &answer);
        else if (run->history_count == 0)
                buf_addf(&answer, WELCOME "You said: %s" WHAT_TO_TRY, heard);
        else
                buf_addf(&answer, "[demo] You said: %s", heard);
        canned_reply_say_words(p, answer.data, conf->word_ms);
        canned_reply_start(p);
        buf_release(&answer);
        free(heard);
}

const struct agent_ops demo_agent = {
        .type = "demo",
        .help = "Shows how Dragoman works when no model is configured: repeats, streams, pretends a tool.",
        .can = AGENT_REPEATABLE | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct demo_conf),
        .start = start,
        .cancel = canned_reply_cancel,
};
