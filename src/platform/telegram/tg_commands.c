/* The bot's command menu, published when it changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

#define COMMANDS_MAX 100 /* Telegram's limits */
#define COMMAND_MAX  32
#define HELP_MAX     256

#define DEFAULT      "default" /* as a line: those below, which dispatch carries out */
static const char *const own_commands[] = {
        "new - start a new conversation",
        "stop - stop the current answer",
        "status - show what is running here",
        "why - explain the last answer, or its absence",
        "remind - be reminded: 30m tea, friday 18:00 call mum",
        "reminders - list your reminders, or cancel one",
        "quiet - when I leave you alone: 22:00-07:00",
        "event - plan something together",
        "sessions - list coding sessions",
        "steer - tell a coding agent something",
        "reply - the same as steer",
        "followup - tell it when it would stop",
        "abort - let a coding agent stop",
        "notify - what you hear of sessions: errors, off",
        "help - list all commands",
};

/* Splits "name - what it does"; false when it has another form. */
static bool split_command(const char *line, struct slice *name, const char **help)
{
        const char *dash = strstr(line, " - ");
        const char *start = line + (line[0] == '/');

        if (!dash || dash < start)
                return false;
        *name = (struct slice){ start, (size_t)(dash - start) };
        *help = dash + 3;
        return true;
}

const char *tg_command_check(const char *line)
{
        struct slice name;
        const char *help;

        if (strcmp(line, DEFAULT) == 0)
                return NULL;
        if (!split_command(line, &name, &help))
                return "a command is written as `name - what it does`, or `default` for all of "
                       "Dragoman's own";
        if (name.n == 0 || name.n > COMMAND_MAX ||
            strspn(name.p, "abcdefghijklmnopqrstuvwxyz0123456789_") != name.n)
                return "the name of a command has 1 to 32 characters of a-z, 0-9 and _";
        if (*help == '\0' || utf8_length(help, strlen(help), UTF8_UTF16) > HELP_MAX)
                return "a command is described in 1 to 256 characters";
        return NULL;
}

static void add_command(json_t *list, const char *line)
{
        struct slice name;
        const char *help;

        if (json_array_size(list) < COMMANDS_MAX && split_command(line, &name, &help))
                json_array_append_new(list, json_pack("{s:s%, s:s}", "command", name.p, name.n,
                                                      "description", help));
}

/* The parameters of setMyCommands, and their digest with the bot's id, in case the bot changed. */
static json_t *make_params(const struct telegram *tg, char digest[SHA256_HEX_SIZE])
{
        const struct setting_list *lines = &tg->conf->commands;
        json_t *list = json_array();
        char *text, *all;

        for (size_t i = 0; i < lines->count; i++) {
                if (strcmp(lines->items[i], DEFAULT) != 0)
                        add_command(list, lines->items[i]);
                for (size_t k = 0; strcmp(lines->items[i], DEFAULT) == 0 && k < COUNT(own_commands);
                     k++)
                        add_command(list, own_commands[k]);
        }
        text = json_text(list);
        all = mem_printf("%" PRId64 " %s", tg->self.id, text);
        crypto_sha256_hex(all, strlen(all), digest);
        free(all);
        free(text);
        return json_pack("{s:o}", "commands", list);
}

static void on_published(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        char digest[SHA256_HEX_SIZE];

        if (!answer->ok) {
                log_warn("cannot publish the bot's commands; trying again at the next start",
                         LOG_S("adapter", tg->adapter->name), LOG_S("why", answer->why));
                return;
        }
        json_decref(make_params(tg, digest));
        json_object_set_new(tg->saved, "commands", json_string(digest));
        adapter_file_write(tg->adapter, tg->saved);
}

void tg_commands_publish(struct telegram *tg)
{
        char digest[SHA256_HEX_SIZE];
        json_t *params;

        if (!tg->conf->commands.set)
                return;
        params = make_params(tg, digest);
        if (strcmp(json_str(tg->saved, "commands", ""), digest) != 0)
                tg_call_start(tg,
                              &(struct tg_request){ .method = "setMyCommands",
                                                    .params = params,
                                                    .repeatable = true },
                              on_published, tg);
        json_decref(params);
}
