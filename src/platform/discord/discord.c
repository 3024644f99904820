/*
 * Discord as a platform: the settings, and one adapter from open to close.
 *
 *     greeting ──► linked        the gateway reconnects by itself
 *      │  ▲  └──► stopped
 *      ▼  │
 *     waiting
 *
 * The token is tested first: the log shows the bot's name, or what to do about the token.
 */
#include "platform/discord/discord.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "platform/adapter_file.h"
#include "platform/attachment_fetch.h"
#include "platform/discord/dc_gateway.h"
#include "platform/platform.h"

#define TOKEN_VARIABLE "DISCORD_BOT_TOKEN"
#define ID_SHORTEST    15 /* digits; a shorter number after an @ is none */

/* ---- settings ---- */

#define AT(field) offsetof(struct discord_conf, field)

static const char *const auto_word[] = { "auto", NULL };
static const char *const compressions[] = { "zlib-stream", "zstd-stream", "none", NULL };

static const struct setting discord_settings[] = {
        { "botToken", SETTING_SECRET, "null", .at = AT(token),
          .help = "The bot's token from the developer portal, as a handle; null: the variable "
                  "`DISCORD_BOT_TOKEN`." },
        { "apiBase", SETTING_URL, "\"https://discord.com/api/v10\"", .at = AT(api_base),
          .help = "The REST API: Discord's own, a proxy, or a simulator." },
        { "gatewayUrl", SETTING_STRING, "null", 1, 500, .at = AT(gateway_url),
          .help = "The gateway (`wss://...`), also for resuming; null: ask Discord." },
        { "shards", SETTING_INT, "\"auto\"", 1, 1000, .choices = auto_word, .at = AT(shards),
          .help = "How many connections share the bot's servers." },
        { "compress", SETTING_CHOICE, "\"zlib-stream\"", .choices = compressions,
          .at = AT(compress), .help = "How the gateway compresses what it sends." },
        { "messageContent", SETTING_BOOL, "true", .at = AT(message_content),
          .help = "Read messages that do not mention the bot; needs the Message Content intent to "
                  "be switched on in the portal." },
        { "intents", SETTING_STRINGS, "[]", .at = AT(intents),
          .help = "Further intents, by Discord's names such as `GUILD_MEMBERS`; privileged ones "
                  "must be switched on in the portal." },
        { "roleMentions", SETTING_BOOL, "false", .at = AT(role_mentions),
          .help = "A mention of one of the bot's roles counts as a mention of the bot." },
        { "pingOnReply", SETTING_BOOL, "true", .at = AT(ping_on_reply),
          .help = "A reply notifies the person who asked." },
        { "streaming", SETTING_BOOL, "false", .at = AT(streaming),
          .help = "A long answer appears while it is being written, by editing one message; such "
                  "an answer starts no thread." },
        { "catchUpMessages", SETTING_INT, "100", 0, 1000, .at = AT(catch_up_messages),
          .help = "After a lost session: how many missed messages to take from each channel, "
                  "newest first; and as many older ones that are addressed to the bot." },
        { "catchUpSeconds", SETTING_INT, "3600", 0, 604800, .at = AT(catch_up_seconds),
          .help = "After a lost session: skip missed messages older than this; 0: read none." },
        { "mediaMaxBytes", SETTING_INT, "26214400", 0, 524288000, .at = AT(media_max_bytes),
          .help = "Larger attachments are not downloaded; 0: none are." },
        { "slashCommands", SETTING_BOOL, "true", .at = AT(slash_commands),
          .help = "Register `/ask`, `/status`, `/new`, `/stop`, `/why` and the others; false: "
                  "remove those that were registered." },
        { "commandGuilds", SETTING_STRINGS, "[]", .at = AT(command_guilds),
          .help = "Ids of servers where the commands are registered, at once; none: everywhere." },
        { "publicKey", SETTING_STRING, "null", 64, 64, .at = AT(public_key),
          .help = "The application's public key, for interactions over HTTP; null: ask Discord." },
        SETTING_END,
};

/* Tokens are three base64url words joined by dots; nothing else may get into a header. */
static bool looks_like_token(const struct secret *token)
{
        static const char allowed[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

        return secret_length(token) > 0 &&
               strspn(secret_reveal(token), allowed) == secret_length(token);
}

static int check_settings(struct settings_source *src, const char *path, const void *conf,
                          struct error *err)
{
        const struct discord_conf *c = conf;

        if (c->token && strncmp(secret_reveal(c->token), "Bot ", 4) == 0)
                return settings_member_error(src, path, "botToken", err,
                                             "the token is written without 'Bot ' before it");
        if (c->token && !looks_like_token(c->token))
                return settings_member_error(
                        src, path, "botToken", err,
                        "this does not look like a bot's token from the developer portal");
        if (c->gateway_url && strncmp(c->gateway_url, "wss://", 6) != 0 &&
            strncmp(c->gateway_url, "ws://", 5) != 0)
                return settings_member_error(src, path, "gatewayUrl", err,
                                             "must start with wss:// or ws://");
        if (c->public_key && strspn(c->public_key, "0123456789abcdefABCDEF") != 64)
                return settings_member_error(src, path, "publicKey", err,
                                             "a public key has 64 hexadecimal digits");
        for (size_t i = 0; i < c->intents.count; i++) {
                const char *name = c->intents.items[i], *near = dc_gateway_nearest_intent(name);

                if (dc_gateway_intent(name) != 0)
                        continue;
                return settings_member_error(
                        src, path, "intents", err, "Discord has no intent '%.60s'%s%s%s", name,
                        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
        for (size_t i = 0; i < c->command_guilds.count; i++)
                if (!dc_id_valid(c->command_guilds.items[i]))
                        return settings_member_error(src, path, "commandGuilds", err,
                                                     "ids of servers are digits");
        return 0;
}

static void enter(struct discord *dc, enum discord_state state)
{
        static const char *const names[] = { "greeting", "linked", "waiting", "stopped" };

        if (dc->state != state)
                log_debug("discord link", LOG_S("adapter", dc->adapter->name),
                          LOG_S("from", names[dc->state]), LOG_S("to", names[state]));
        dc->state = state;
}

/* Permanent: the operator has to act. why NULL: Discord does not accept the token. */
static void stop(struct discord *dc, const char *why)
{
        enter(dc, DISCORD_STOPPED);
        timer_start(dc->timer, 0); /* the caller may be the gateway: it is closed from the loop */
        dc_rest_abort(dc->call);
        dc->call = NULL;
        if (why)
                adapter_stopped(dc->adapter, why);
        else
                adapter_bad_token(dc->adapter);
}

static void on_unauthorized(void *arg)
{
        stop(arg, NULL);
}

static void on_get(void *ctx, const struct dc_get *q, dc_answer_fn *done, void *arg)
{
        struct dc_get dropped = *q;

        dropped.drop_on_cancel = true;
        dc_rest_get(((struct discord *)ctx)->rest, &dropped, done, arg);
}

static void on_open_dm(void *ctx, const char *user, dc_answer_fn *done, void *arg)
{
        json_t *body = json_pack("{s:s}", "recipient_id", user);

        dc_rest_ask(((struct discord *)ctx)->rest,
                    &(struct dc_request){ .method = "POST",
                                          .route = "/users/@me/channels",
                                          .body = body,
                                          .priority = DC_IDLE,
                                          .repeatable = true,
                                          .drop_on_cancel = true },
                    done, arg);
        json_decref(body);
}

/* READY names the application, if the greeting could not. */
static void on_ready(void *ctx, const struct dc_gateway_ready *ready)
{
        struct discord *dc = ctx;

        if (dc->self.application || !ready->application_id)
                return;
        dc->self.application = mem_strdup(ready->application_id);
        dc_commands_publish(dc);
}

static void on_state(void *ctx, enum dc_gateway_state state, const char *why)
{
        struct discord *dc = ctx;

        if (dc->state == DISCORD_STOPPED)
                return; /* it is about to be closed */
        if (state == DC_GATEWAY_UP)
                adapter_ready(dc->adapter);
        else if (state == DC_GATEWAY_BAD_TOKEN)
                on_unauthorized(dc);
        else if (state == DC_GATEWAY_STOPPED)
                stop(dc, why ? why : "");
        else
                adapter_lost(dc->adapter, why);
}

static void link_up(struct discord *dc)
{
        const struct discord_conf *conf = dc->conf;
        struct dc_intake_options options = {
                .adapter = dc->adapter,
                .gateway = { .token = dc->token,
                             .url = conf->gateway_url,
                             .intents = DC_INTENTS,
                             .flags = dc->self.flags,
                             .shards = conf->shards,
                             .compress = conf->compress },
                .role_mentions = conf->role_mentions,
                .catchup_seconds = conf->catch_up_seconds,
                .catchup_messages = conf->catch_up_messages,
        };
        const struct dc_intake_hooks hooks = { .ctx = dc,
                                               .get = on_get,
                                               .open_dm = on_open_dm,
                                               .ready = on_ready,
                                               .state = on_state,
                                               .dm = dc_destination_set_dm,
                                               .own = dc_send_check_own,
                                               .wrote = dc_scheduled_event_wrote,
                                               .scheduled = dc_scheduled_event_set_guild,
                                               .was_scheduled = dc_scheduled_event_had,
                                               .stored = dc_deferred_stored };

        if (!conf->message_content)
                options.gateway.intents &= ~DC_INTENT_MESSAGE_CONTENT;
        for (size_t i = 0; i < conf->intents.count; i++)
                options.gateway.intents |= dc_gateway_intent(conf->intents.items[i]);
        enter(dc, DISCORD_LINKED);
        if (dc->self.application)
                dc_commands_publish(dc);
        dc->intake = dc_intake_new(&options, &hooks);
}

/* ---- greeting ---- */

static void ask(struct discord *dc, const char *route, dc_answer_fn *done)
{
        enter(dc, DISCORD_GREETING);
        dc->call = dc_rest_call(dc->rest,
                                &(struct dc_request){ .method = "GET",
                                                      .route = route,
                                                      .priority = DC_NORMAL,
                                                      .repeatable = true },
                                done, dc);
}

static void greeting_failed(struct discord *dc, const struct dc_answer *a)
{
        if (dc->state == DISCORD_STOPPED || a->status == 401)
                return; /* on_unauthorized follows */
        enter(dc, DISCORD_WAITING);
        timer_start(dc->timer, adapter_retry_first(dc->adapter, a->why, dc->conf->api_base,
                                                   a->retry_after_ms));
}

/* Other refusals are fine: READY names the application, too. */
static void on_application(void *arg, const struct dc_answer *a)
{
        struct discord *dc = arg;

        dc->call = NULL;
        if (a->status == 401 || dc_rest_is_unavailable(a)) {
                greeting_failed(dc, a);
                return;
        }
        if (a->ok) {
                dc->self.application = mem_strdup(json_str(a->result, "id", NULL));
                dc->self.flags = json_int(a->result, "flags", 0);
                if (!dc->self.public_key)
                        dc->self.public_key = mem_strdup(json_str(a->result, "verify_key", NULL));
        }
        link_up(dc);
}

static void on_greeted(void *arg, const struct dc_answer *a)
{
        struct discord *dc = arg;

        dc->call = NULL;
        if (!a->ok || !dc_id_valid(json_str(a->result, "id", NULL))) {
                greeting_failed(dc, a);
                return;
        }
        free(dc->self.id);
        free(dc->self.username);
        dc->self.id = mem_strdup(json_str(a->result, "id", NULL));
        dc->self.username = mem_strdup(json_str(a->result, "username", ""));
        adapter_set_profile(dc->adapter, dc->self.username, dc->self.id);
        log_info("discord bot", LOG_S("adapter", dc->adapter->name),
                 LOG_S("name", dc->self.username), LOG_S("id", dc->self.id));
        ask(dc, "/applications/@me", on_application);
}

static void on_timer(void *arg)
{
        struct discord *dc = arg;

        if (dc->state != DISCORD_STOPPED) {
                ask(dc, "/users/@me", on_greeted);
                return;
        }
        dc_intake_free(dc->intake);
        dc->intake = NULL;
        dc_rest_cancel(dc->rest);
        dc_webhook_release(dc);
}

static struct secret *take_token(const struct adapter *a, struct error *err)
{
        const struct discord_conf *conf = a->conf;
        const char *ambient = getenv(TOKEN_VARIABLE);
        struct secret *token = conf->token           ? secret_dup(conf->token)
                               : ambient && *ambient ? secret_new(ambient, strlen(ambient))
                                                     : NULL;

        if (token && looks_like_token(token))
                return token;
        if (token)
                error_set(err, ERR_INVALID,
                          "what " TOKEN_VARIABLE " holds does not look like a bot's token");
        else
                error_set(err, ERR_INVALID,
                          "there is no bot token: set " TOKEN_VARIABLE
                          " in the environment, or adapters.%.60s.botToken",
                          a->name);
        secret_free(token);
        return NULL;
}

static void discord_free(struct discord *dc)
{
        timer_free(dc->timer);
        timer_free(dc->commands_timer);
        adapter_file_unlock(dc->lock);
        free(dc->self.id);
        free(dc->self.username);
        free(dc->self.application);
        free(dc->self.public_key);
        secret_free(dc->token);
        free(dc);
}

static int discord_open(struct adapter *a, struct error *err)
{
        struct discord *dc = mem_zalloc(sizeof(*dc));
        double rate = a->common->pace.per_second;

        dc->adapter = a;
        dc->conf = a->conf;
        dc->opened_ms = clock_wall_ms();
        dc->lock = -1;
        dc->token = take_token(a, err);
        if (dc->token)
                dc->lock = adapter_file_lock(a, dc->token, err);
        if (dc->lock < 0) {
                discord_free(dc);
                return -1;
        }
        a->self = dc;
        dc->self.public_key = mem_strdup(dc->conf->public_key);
        TAILQ_INIT(&dc->sends);
        TAILQ_INIT(&dc->event_sends);
        LIST_INIT(&dc->posts);
        map_init(&dc->dms);
        map_init(&dc->dm_channels);
        dc->saved = adapter_file_read(a);
        dc->timer = timer_new(a->loop, on_timer, dc);
        dc->rest = dc_rest_new(&(struct dc_rest_options){
                .loop = a->loop,
                .http = a->http,
                .base = dc->conf->api_base,
                .token = dc->token,
                .name = a->name,
                .per_second = rate < 0    ? 0
                              : rate == 0 ? -1
                                          : rate, /* -1 is the default here */
                .unauthorized = on_unauthorized,
                .arg = dc });
        dc_deferred_open(dc);
        dc->commands_timer = timer_new(a->loop, dc_commands_publish, dc);
        timer_unref(dc->commands_timer);
        ask(dc, "/users/@me", on_greeted);
        return 0;
}

static void discord_close(struct adapter *a)
{
        struct discord *dc = a->self;

        dc_intake_free(dc->intake);
        dc->intake = NULL;
        dc_webhook_release(dc);
        dc_sends_release(dc);
        dc_scheduled_events_release(dc);
        dc_rest_cancel(dc->rest);
        dc_rest_abort(dc->call);
        dc_deferred_release(dc);
        dc_rest_free(dc->rest);
        dc_destination_forget(dc);
        map_release(&dc->dms);
        map_release(&dc->dm_channels);
        json_decref(dc->saved);
        discord_free(dc);
}

/* ---- called by the road ---- */

static unsigned abilities(const struct adapter *a)
{
        const struct discord_conf *conf = a->conf;

        return a->ops->can & ~(conf->streaming ? 0u : (unsigned)ADAPTER_STREAMS);
}

static bool is_group(const struct adapter *a, const char *channel)
{
        return a->self && !dc_destination_is_dm(a->self, channel);
}

/* A user name or, where that is not known, an id. */
static bool mention(const struct adapter *a, struct slice name, struct buf *out)
{
        const struct discord *dc = a->self;
        char username[40];
        const char *id;

        if (name.n == 0 || name.n >= sizeof(username))
                return false;
        for (size_t i = 0; i < name.n; i++) /* user names are in lower case, agents may not be */
                username[i] = (char)tolower((unsigned char)name.p[i]);
        username[name.n] = '\0';
        id = dc->intake ? dc_intake_user_named(dc->intake, username) : NULL;
        if (!id && name.n >= ID_SHORTEST && dc_id_valid(username))
                id = username;
        return id && buf_addf(out, "<@%s>", id) == 0;
}

/* Only messages in a guild's channel can start threads, not commands. */
static const char *thread_at(const struct adapter *a, const struct incoming *in)
{
        bool command = in->key && strncmp(in->key, "interaction:", 12) == 0;

        (void)a;
        return in->chat == CHAT_GROUP && !in->thread && !command && dc_id_valid(in->id) ? in->id
                                                                                        : NULL;
}

/* ---- files that people send ---- */

static int64_t media_max_bytes(const struct adapter *a)
{
        return ((const struct discord_conf *)a->conf)->media_max_bytes;
}

/* Only from Discord: the URL of an attachment must not lead into our own network. */
static void *locate_file(struct adapter *a, struct attachment_fetch *f, const char *url)
{
        const struct discord_conf *conf = a->conf;

        if (http_text_is_https_of(url, "cdn.discordapp.com") ||
            http_text_is_https_of(url, "media.discordapp.net") ||
            http_text_same_origin(url, conf->api_base))
                attachment_fetch_from(f, url);
        else
                attachment_fetch_fail(f, "its address is neither Discord's nor that of apiBase");
        return NULL;
}

static const struct attachment_source files = { .max_bytes = media_max_bytes,
                                                .locate = locate_file };

const struct platform_ops discord_platform = {
        .name = "discord",
        .title = "Discord",
        .help = "A Discord bot: the gateway and the REST API.",
        .token_hint = "the one from the developer portal (Bot, Reset Token)",
        .token_variable = TOKEN_VARIABLE,
        .threads = CHAT_THREADS_VARY,
        .can = ADAPTER_IDEMPOTENT | ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_TYPING |
               ADAPTER_THREADS | ADAPTER_REACTIONS | ADAPTER_FILES | ADAPTER_CHANNEL_HISTORY |
               ADAPTER_BUTTONS | ADAPTER_CALENDAR | ADAPTER_OPENS_DIRECT | ADAPTER_CARDS,
        .text = { .dialect = MARKDOWN_DISCORD, .unit = UTF8_CODE_POINTS, .max = 2000 },
        .upload_max = (int64_t)500 << 20, /* in a guild with every boost */
        .debounce_ms = 3000,
        .manners = { .conversation_seconds = 300,
                     .dm_conversation_seconds = 900,
                     .thread_chars = 2000,
                     .slow_ms = 4000 },
        .pace = { .per_second = 50 },
        .settings = discord_settings,
        .conf_size = sizeof(struct discord_conf),
        .is_id = dc_id_valid,
        .check = check_settings,
        .open = discord_open,
        .close = discord_close,
        .send = dc_send_delivery,
        .read_from = dc_send_read_from,
        .abilities = abilities,
        .is_group = is_group,
        .mention = mention,
        .webhook = dc_webhook_handle,
        .webhook_admits = dc_webhook_admits,
        .channel_history = dc_tools_history,
        .message = dc_tools_message,
        .channel_info = dc_tools_channel,
        .user_info = dc_tools_user,
        .thread_at = thread_at,
        .tools = dc_tools,
        .files = &files,
};
