/*
 * What must survive a restart besides the store: which commands were published last, which chats
 * have moved. And the lock: one token, one adapter of this data directory.
 */
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

int tg_lock(struct telegram *tg, struct error *err)
{
        tg->lock = adapter_file_lock(tg->adapter, tg->conf->token, err);
        return tg->lock < 0 ? -1 : 0;
}

void tg_unlock(struct telegram *tg)
{
        adapter_file_unlock(tg->lock);
        tg->lock = -1;
}

void tg_memory_read(struct telegram *tg)
{
        tg->memory = adapter_file_read(tg->adapter);
}

static void memory_write(const struct telegram *tg)
{
        adapter_file_write(tg->adapter, tg->memory);
}

/* ---- chats that moved ---- */

const char *tg_chat_now(const struct telegram *tg, const char *chat)
{
        const json_t *moved = json_object_get(tg->memory, "moved");

        return json_str(moved, chat, chat);
}

void tg_chat_moved(struct telegram *tg, const char *from, const char *to)
{
        json_t *moved = json_object_get(tg->memory, "moved");

        if (strcmp(tg_chat_now(tg, from), to) == 0 || strcmp(from, to) == 0)
                return;
        if (!json_is_object(moved)) {
                moved = json_object();
                json_object_set_new(tg->memory, "moved", moved);
        }
        json_object_set_new(moved, from, json_string(to));
        log_info("a group became a supergroup and has a new id",
                 LOG_S("adapter", tg->adapter->name), LOG_S("from", from), LOG_S("to", to));
        memory_write(tg);
}

/* ---- commands ---- */

/* The parts of "name - what it does"; false when it has not this form. */
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

        if (!split_command(line, &name, &help))
                return "a command is written as `name - what it does`";
        if (name.n == 0 || name.n > COMMAND_MAX ||
            strspn(name.p, "abcdefghijklmnopqrstuvwxyz0123456789_") != name.n)
                return "the name of a command has 1 to 32 characters of a-z, 0-9 and _";
        if (*help == '\0' || utf8_length(help, strlen(help), UTF8_UTF16) > HELP_MAX)
                return "a command is described in 1 to 256 characters";
        return NULL;
}

static json_t *commands_of(const struct telegram_conf *conf)
{
        json_t *list = json_array();

        for (size_t i = 0; i < conf->commands.count && i < COMMANDS_MAX; i++) {
                struct slice name;
                const char *help;

                if (split_command(conf->commands.items[i], &name, &help))
                        json_array_append_new(list, json_pack("{s:s%, s:s}", "command", name.p,
                                                              name.n, "description", help));
        }
        return list;
}

/* Another bot behind the same adapter name has not seen our commands. */
static void commands_digest(const struct telegram *tg, const json_t *commands,
                            char out[SHA256_HEX_SIZE])
{
        char *text = json_text(commands), *all = mem_printf("%" PRId64 " %s", tg->self.id, text);

        crypto_sha256_hex(all, strlen(all), out);
        free(all);
        free(text);
}

static void on_published(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        char digest[SHA256_HEX_SIZE];
        json_t *commands;

        if (!answer->ok) {
                log_warn(
                        "the bot's commands could not be published; trying again at the next start",
                        LOG_S("adapter", tg->adapter->name), LOG_S("why", answer->why));
                return;
        }
        commands = commands_of(tg->conf);
        commands_digest(tg, commands, digest);
        json_decref(commands);
        json_object_set_new(tg->memory, "commands", json_string(digest));
        memory_write(tg);
}

void tg_commands_publish(struct telegram *tg)
{
        char digest[SHA256_HEX_SIZE];
        json_t *params;

        if (!tg->conf->commands.set)
                return;
        params = json_object();
        json_object_set_new(params, "commands", commands_of(tg->conf));
        commands_digest(tg, json_object_get(params, "commands"), digest);
        if (strcmp(json_str(tg->memory, "commands", ""), digest) != 0)
                tg_call_start(tg,
                              &(struct tg_request){ .method = "setMyCommands",
                                                    .params = params,
                                                    .repeatable = true },
                              on_published, tg);
        json_decref(params);
}
