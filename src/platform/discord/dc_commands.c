/*
 * Registers slash commands only when they changed: Discord allows 200 creations a day, and shows
 * changes of global commands late.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/discord/discord.h"

#define RETRY_MS   60000
#define EVERYWHERE "everywhere" /* as a guild: global commands */

enum { OPTION_STRING = 3, OPTION_INTEGER = 4, COMMAND_CHAT = 1 };
enum { IN_GUILDS = 0, IN_DMS = 1 };

/* dc_event.c puts the session before the text. */
#define SESSION_TEXT                                                  \
        {                                                             \
                "text", "What the agent is told", OPTION_STRING, true \
        }
#define SESSION_ID                                                                     \
        {                                                                              \
                "session", "Such as ses-3; in the thread of a session it is that one", \
                        OPTION_STRING                                                  \
        }

/* Dispatch and the road carry them out. */
static const struct command {
        const char *name, *help;
        struct option {
                const char *name, *help; /* NULL: there are no more */
                int type;
                bool required;
        } options[2];
        bool dm_only;
} commands[] = {
        { "ask",
          "Ask the agent something",
          { { "text", "What you want to know or have done", OPTION_STRING, true } } },
        { "status", "Show what is going on in this conversation" },
        { "new", "Start a new conversation" },
        { "stop", "Stop what the agent is doing here" },
        { "why", "Explain why the last message was, or was not, answered" },
        { "pause",
          "Silence the agent here; for admins",
          { { "minutes", "For how long; without it until /resume", OPTION_INTEGER } } },
        { "resume", "Let the agent answer again; for admins" },
        { "remind",
          "Be reminded of something",
          { { "when", "30m, in 2 hours, tomorrow 9:00, every monday 20:00", OPTION_STRING, true },
            { "what", "What I shall say then", OPTION_STRING, true } } },
        { "reminders",
          "List your reminders, or end one",
          { { "text", "cancel sch-12, or cancel all; without it they are listed",
              OPTION_STRING } } },
        { "quiet",
          "When I leave you alone",
          { { "text", "22:00-07:00, off, or zone Europe/Berlin; without it they are shown",
              OPTION_STRING } } },
        { "event",
          "Plan something together",
          { { "text", "new friday 20:00 Chess, yes cal-3; without it the next ones are listed",
              OPTION_STRING } } },
        { "sessions", "List coding sessions that you may steer" },
        { "steer", "Tell a coding agent something", { SESSION_TEXT, SESSION_ID } },
        { "reply", "Tell a coding agent something", { SESSION_TEXT, SESSION_ID } },
        { "followup",
          "Tell a coding agent something for when it would stop",
          { SESSION_TEXT, SESSION_ID } },
        { "abort", "Let a coding agent stop", { SESSION_ID } },
        { "notify",
          "What you hear of coding sessions",
          { { "text", "all, errors, end, mentions or off, and perhaps 22:00-07:00",
              OPTION_STRING } } },
        { "help", "List the commands" },
        { "link",
          "Connect another account to this one",
          { { "code", "The code that your other account got", OPTION_STRING } },
          .dm_only = true },
};

static void add_options(json_t *command, const struct option *options, size_t count)
{
        json_t *list = json_array();

        for (size_t i = 0; i < count && options[i].name; i++)
                json_array_append_new(list,
                                      json_pack("{s:i, s:s, s:s, s:b}", "type", options[i].type,
                                                "name", options[i].name, "description",
                                                options[i].help, "required", options[i].required));
        if (json_array_size(list) > 0)
                json_object_set(command, "options", list);
        json_decref(list);
}

static json_t *commands_json(void)
{
        json_t *list = json_array();

        for (size_t i = 0; i < COUNT(commands); i++) {
                const struct command *c = &commands[i];
                json_t *o = json_pack("{s:s, s:i, s:s, s:[i]}", "name", c->name, "type",
                                      COMMAND_CHAT, "description", c->help, "contexts", IN_DMS);

                if (!c->dm_only)
                        json_array_insert_new(json_object_get(o, "contexts"), 0,
                                              json_integer(IN_GUILDS));
                add_options(o, c->options, COUNT(c->options));
                json_array_append_new(list, o);
        }
        return list;
}

struct register_job {
        struct discord *dc;
        char *guild; /* or EVERYWHERE */
        char digest[SHA256_HEX_SIZE];
};

static void on_registered(void *arg, const struct dc_answer *a)
{
        struct register_job *job = arg;
        struct discord *dc = job->dc;

        if (a->ok) {
                adapter_file_set(dc->adapter, dc->saved, "commands", job->guild, job->digest);
                log_info("slash commands registered", LOG_S("adapter", dc->adapter->name),
                         LOG_S("guild", job->guild));
        } else if (a->kind != ERR_CANCELLED) {
                const char *advice = dc_outcome_advice(a->code);

                if (dc_rest_is_unavailable(a))
                        timer_start(dc->commands_timer, RETRY_MS);
                log_warn("cannot register slash commands", LOG_S("adapter", dc->adapter->name),
                         LOG_S("guild", job->guild), LOG_S("why", a->why),
                         LOG_S("advice", advice ? advice : ""),
                         LOG_S("next", timer_active(dc->commands_timer)
                                               ? "retrying in a minute"
                                               : "retrying at the next start"));
        }
        free(job->guild);
        free(job);
}

static void publish_to(struct discord *dc, const char *guild, const json_t *list)
{
        bool global = strcmp(guild, EVERYWHERE) == 0;
        const char *known = adapter_file_get(dc->saved, "commands", guild);
        char *text = json_text(list), *all = mem_printf("%s %s", dc->self.application, text);
        char digest[SHA256_HEX_SIZE];
        struct register_job *job;

        /* another application with the same adapter name does not have our commands */
        crypto_sha256_hex(all, strlen(all), digest);
        free(all);
        free(text);
        if (known && strcmp(known, digest) == 0)
                return;
        job = mem_zalloc(sizeof(*job));
        job->dc = dc;
        job->guild = mem_strdup(guild);
        memcpy(job->digest, digest, sizeof(digest));
        dc_rest_ask(dc->rest,
                    &(struct dc_request){
                            .method = "PUT",
                            .route = global ? "/applications/{application_id}/commands"
                                            : "/applications/{application_id}/guilds/{guild_id}/"
                                              "commands",
                            .args = { dc->self.application, global ? NULL : guild },
                            .body = list,
                            .priority = DC_IDLE,
                            .repeatable = true },
                    on_registered, job);
}

static bool is_wanted(const struct discord *dc, const char *guild)
{
        const struct setting_list *guilds = &dc->conf->command_guilds;

        if (!dc->conf->slash_commands)
                return false;
        if (strcmp(guild, EVERYWHERE) == 0)
                return guilds->count == 0;
        for (size_t i = 0; i < guilds->count; i++)
                if (strcmp(guilds->items[i], guild) == 0)
                        return true;
        return false;
}

/* Removes commands that are no longer wanted: people would see them twice. */
void dc_commands_publish(void *discord)
{
        struct discord *dc = discord;
        const struct setting_list *guilds = &dc->conf->command_guilds;
        json_t *known = json_deep_copy(json_object_get(dc->saved, "commands")),
               *none = json_array(), *list = commands_json(), *digest;
        const char *guild;

        json_object_foreach(known, guild, digest)
                if (!is_wanted(dc, guild))
                        publish_to(dc, guild, none);
        if (is_wanted(dc, EVERYWHERE))
                publish_to(dc, EVERYWHERE, list);
        for (size_t i = 0; dc->conf->slash_commands && i < guilds->count; i++)
                publish_to(dc, guilds->items[i], list);
        json_decref(list);
        json_decref(none);
        json_decref(known);
}
