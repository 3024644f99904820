/*
 * commands: messages to the bot itself rather than to its agent: /new, /stop, /status, /why,
 * /pause, /resume, /help.
 *
 * A message is a command when it is nothing else ("/stop", "/stop@mybot", "@mybot /stop"; /pause
 * may be followed by minutes and a reason) and is meant for the bot: in a direct chat, addressed to
 * it, in a live session, or where a rule would answer it. A platform's native commands arrive as
 * the same text. A word that is almost a command is answered with the right one; every other word
 * goes to the agent.
 */
#ifndef DISPATCH_COMMANDS_H
#define DISPATCH_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "road/decision.h"

struct chat_command {
        const char *name; /* without the slash */
        const char *help;
        enum road_command does; /* for the road; COMMAND_HANDLED: carried out here */
        bool admins_only;
};

/* The command the text is, with what follows it in *args ("" for nothing); NULL: none. */
const struct chat_command *command_parse(const char *text, const char **args);
/* The command that was probably meant; NULL: none, or the text is one. */
const struct chat_command *command_suggest(const char *text);

#endif
