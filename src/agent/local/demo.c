/*
 * demo: answers when no model is configured: repeats the message word by word, pretends to use a
 * tool, and explains how to connect a real model.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/local/canned_reply.h"
#include "agent/message_text.h"
#include "base/buf.h"
#include "base/mem.h"

struct demo_conf {
        int64_t word_ms;
        int64_t tool_ms;
};

static const struct setting settings[] = {
        { "wordMs", SETTING_INT, "15", 0, 1000,
          .help = "The pause between two words of an answer, in milliseconds.",
          .at = offsetof(struct demo_conf, word_ms) },
        { "toolMs", SETTING_INT, "700", 0, 60000,
          .help = "How long each step of the pretend tool takes, in milliseconds.",
          .at = offsetof(struct demo_conf, tool_ms) },
        SETTING_END
};

static const char how_to[] =
        "[demo] I am only a demo agent. Here is how to put a real model in my place:\n\n"
        "- Quick: leave, set ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment, "
        "and start again.\n"
        "- Permanent: write this into config.json in the data directory:\n\n"
        "```json\n"
        "{ \"agents\": { \"assistant\": { \"type\": \"openai\", \"model\": \"gpt-5\",\n"
        "                             \"apiKey\": \"env:OPENAI_API_KEY\" } } }\n"
        "```\n\n"
        "A local server works too: set its address as \"baseUrl\" and leave out the key.\n";

static const char welcome[] =
        "Hello, good to see you! I am Dragoman's demo agent: no model is connected yet, "
        "so I only repeat what you write. "
        "Everything around me is real, though: your message was stored before it was answered, "
        "and this answer is delivered exactly once.\n\n"
        "You said: ";

static const char what_to_try[] = "\n\nTry `progress` to watch a tool at work, "
                                  "or `help` to learn how to connect a real model.";

static bool asks_for_help(const char *text)
{
        static const char *const words[] = { "help", "/help", "help!", "/start" };

        for (size_t i = 0; i < COUNT(words); i++) {
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        }
        return false;
}

static void pretend_tool(struct canned_reply *c, const struct demo_conf *conf, const char *text,
                         struct buf *answer)
{
        size_t words = 0;
        bool inside = false;

        for (; *text; text++) {
                bool space = isspace((unsigned char)*text) != 0;

                words += !space && !inside;
                inside = !space;
        }
        canned_reply_progress(c, "demo tool: opening the toolbox");
        canned_reply_wait(c, conf->tool_ms);
        canned_reply_progress(c, "demo tool: counting words");
        canned_reply_wait(c, conf->tool_ms);
        canned_reply_progress(c, "demo tool: done");
        buf_addf(answer,
                 "[demo] My pretend tool counted %zu word%s in your message. A real agent "
                 "shows its tools at work in the same way.",
                 words, words == 1 ? "" : "s");
}

static void start(struct agent *a, struct turn_run *run)
{
        const struct demo_conf *conf = a->conf;
        struct canned_reply *c = canned_reply_new(a, run);
        char *text = message_text_of_run(run);
        struct buf answer;

        buf_init(&answer, 0);
        if (asks_for_help(text))
                buf_addstr(&answer, how_to);
        else if (strcasestr(text, "progress") || strcasestr(text, "/tool"))
                pretend_tool(c, conf, text, &answer);
        else if (run->history_count == 0)
                buf_addf(&answer, "%s%s%s", welcome, text, what_to_try);
        else
                buf_addf(&answer, "[demo] You said: %s", text);
        canned_reply_say_words(c, answer.data, conf->word_ms);
        canned_reply_start(c);
        buf_release(&answer);
        free(text);
}

const struct agent_ops demo_agent = {
        .type = "demo",
        .help = "Shows how Dragoman works without a model: repeats, streams, pretends to use a "
                "tool.",
        .can = AGENT_REPEATABLE | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct demo_conf),
        .start = start,
        .cancel = canned_reply_cancel,
};
