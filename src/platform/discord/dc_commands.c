/*
 * The slash commands, registered with Discord when what was registered last is not what we have:
 * Discord allows 200 creations a day, and shows changes of global ones late.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define AGAIN_MS 60000

enum { OPTION_STRING = 3, OPTION_INTEGER = 4, COMMAND_CHAT = 1 };
enum { IN_GUILDS = 0, IN_DMS = 1 };

/*
 * What they do is decided by dispatch and the road: /ask is a message to the agent, the others are
 * the bot's own.
 */
/* clang-format off */
static const struct command {
        const char *name, *help;
        const char *option, *option_help; /* NULL: none */
        int option_type;
        bool required, dm_only;
} commands[] = {
        { "ask", "Ask the agent something", "text", "What you want to know or have done", OPTION_STRING, .required = true },
        { "status", "What is going on in this conversation", NULL, NULL },
        { "new", "Begin a new conversation", NULL, NULL },
        { "stop", "Stop what the agent is doing here", NULL, NULL },
        { "why", "Why the last message was, or was not, answered", NULL, NULL },
        { "pause", "The agent is silent here; for admins", "minutes", "For how long; without it until /resume", OPTION_INTEGER },
        { "resume", "The agent answers again; for admins", NULL, NULL },
        { "help", "What I understand", NULL, NULL },
        { "link", "Tell me that another account is yours, too", "code", "The code I told your other account", OPTION_STRING,
          .dm_only = true },
};
/* clang-format on */

static json_t *command_json(const struct command *c)
{
        json_t *o = json_pack("{s:s, s:i, s:s, s:[i]}", "name", c->name, "type", COMMAND_CHAT,
                              "description", c->help, "contexts", IN_DMS);

        if (!c->dm_only)
                json_array_insert_new(json_object_get(o, "contexts"), 0, json_integer(IN_GUILDS));
        if (c->option)
                json_object_set_new(o, "options",
                                    json_pack("[{s:i, s:s, s:s, s:b}]", "type", c->option_type,
                                              "name", c->option, "description", c->option_help,
                                              "required", c->required));
        return o;
}

static json_t *all_commands(void)
{
        json_t *list = json_array();

        for (size_t i = 0; i < COUNT(commands); i++)
                json_array_append_new(list, command_json(&commands[i]));
        return list;
}

/* ---- registering ---- */

struct registration {
        struct discord *dc;
        char *guild; /* NULL: everywhere */
        char digest[SHA256_HEX_SIZE];
};

/* What is registered where: another application behind the same adapter name has not seen ours. */
static void digest_of(const struct discord *dc, const json_t *list, char out[SHA256_HEX_SIZE])
{
        char *text = json_text(list), *all = mem_printf("%s %s", dc->self.application, text);

        crypto_sha256_hex(all, strlen(all), out);
        free(all);
        free(text);
}

static void remember(struct discord *dc, const char *guild, const char *digest)
{
        json_t *known = json_deep_copy(dc_memory_get(dc, "commands"));

        if (!json_is_object(known)) {
                json_decref(known);
                known = json_object();
        }
        json_object_set_new(known, guild ? guild : "everywhere", json_string(digest));
        dc_memory_set(dc, "commands", known);
}

static void on_registered(void *arg, const struct dc_answer *a)
{
        struct registration *r = arg;

        if (a->ok) {
                remember(r->dc, r->guild, r->digest);
                log_info("slash commands are registered", LOG_S("adapter", r->dc->adapter->name),
                         LOG_S("guild", r->guild ? r->guild : "everywhere"));
        } else if (a->kind != ERR_CANCELLED) {
                const char *advice = dc_advice(a->code);

                if (a->status == 0 || a->status == 429 || a->status >= 500)
                        timer_start(r->dc->commands_timer, AGAIN_MS);
                log_warn("the slash commands could not be registered",
                         LOG_S("adapter", r->dc->adapter->name),
                         LOG_S("guild", r->guild ? r->guild : "everywhere"), LOG_S("why", a->why),
                         LOG_S("advice", advice ? advice : ""),
                         LOG_S("next", timer_active(r->dc->commands_timer)
                                               ? "trying again in a minute"
                                               : "trying again at the next start"));
        }
        free(r->guild);
        free(r);
}

static void publish_to(struct discord *dc, const char *guild, const json_t *list)
{
        struct registration *r = mem_zalloc(sizeof(*r));

        r->dc = dc;
        r->guild = mem_strdup(guild);
        digest_of(dc, list, r->digest);
        if (strcmp(json_str(dc_memory_get(dc, "commands"), guild ? guild : "everywhere", ""),
                   r->digest) == 0) {
                free(r->guild);
                free(r);
                return;
        }
        dc_rest_ask(
                dc->rest,
                &(struct dc_request){
                        .method = "PUT",
                        .route = guild ? "/applications/{application_id}/guilds/{guild_id}/commands"
                                       : "/applications/{application_id}/commands",
                        .args = { dc->self.application, guild },
                        .body = list,
                        .priority = DC_IDLE,
                        .repeatable = true },
                on_registered, r);
}

/* guild NULL: everywhere. */
static bool is_wanted(const struct discord *dc, const char *guild)
{
        const struct setting_list *guilds = &dc->conf->command_guilds;

        if (!dc->conf->slash_commands || !guild)
                return dc->conf->slash_commands && guilds->count == 0;
        for (size_t i = 0; i < guilds->count; i++) {
                if (strcmp(guilds->items[i], guild) == 0)
                        return true;
        }
        return false;
}

/* Where the settings do not want them any more they would be seen twice, or for ever. */
static void withdraw(struct discord *dc)
{
        json_t *known = json_deep_copy(dc_memory_get(dc, "commands")), *none = json_array();
        const char *place;
        json_t *digest;

        json_object_foreach(known, place, digest) {
                const char *guild = strcmp(place, "everywhere") == 0 ? NULL : place;

                if (!is_wanted(dc, guild))
                        publish_to(dc, guild, none);
        }
        json_decref(none);
        json_decref(known);
}

void dc_commands_publish(struct discord *dc)
{
        const struct setting_list *guilds = &dc->conf->command_guilds;
        json_t *list;

        withdraw(dc);
        if (!dc->conf->slash_commands)
                return;
        list = all_commands();
        if (guilds->count == 0)
                publish_to(dc, NULL, list);
        for (size_t i = 0; i < guilds->count; i++)
                publish_to(dc, guilds->items[i], list);
        json_decref(list);
}

/* What was registered meanwhile is known, and left alone. */
static void on_again(void *arg)
{
        dc_commands_publish(arg);
}

void dc_commands_open(struct discord *dc)
{
        dc->commands_timer = timer_new(dc->adapter->loop, on_again, dc);
        timer_unref(dc->commands_timer);
}

void dc_commands_release(struct discord *dc)
{
        timer_free(dc->commands_timer);
}
