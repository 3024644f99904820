/*
 * commands: what people say to the bot itself rather than to its agent: /new, /stop, /status, /why,
 * /pause, /resume, /help.
 *
 * A message is a command when it is nothing else ("/stop", "/stop@mybot", "@mybot /stop"; /pause
 * may be followed by minutes and a reason) and meant for the bot: in a direct chat, addressed to
 * it, part of a conversation, or where a rule would answer it. Access has been asked before. A
 * platform's native commands arrive as the same text. A word that is almost a command is answered
 * with the right one; every other word is the agent's.
 */
#ifndef DISPATCH_COMMANDS_H
#define DISPATCH_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "road/road.h"

struct chat_command {
        const char *name; /* without the slash */
        const char *help;
        enum road_command does; /* what the road does; COMMAND_HANDLED: it is answered here */
        bool admins;            /* for them alone */
};
extern const struct chat_command chat_commands[]; /* ends with a NULL name */

/*
 * The command the text is, with what follows it in *rest ("" when nothing does); NULL: it is none.
 */
const struct chat_command *command_read(const char *text, const char **rest);
/* The command that was probably meant; NULL: none, or it is one. */
const struct chat_command *command_meant(const char *text);

#endif
