/*
 * Slack as a platform: the settings, and one adapter from open to close.
 *
 *     greeting ──► linked        connections renew themselves
 *      │  ▲  └──► stopped
 *      ▼  │
 *     waiting
 *
 * auth.test comes first: the log shows the bot and its workspace, or what to do about the token.
 */
#include "platform/slack/slack.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/attachment_fetch.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_ts.h"

#define BOT_VARIABLE "SLACK_BOT_TOKEN"
#define APP_VARIABLE "SLACK_APP_TOKEN"

/* ---- settings ---- */

#define AT(field) offsetof(struct slack_conf, field)

static const char *const modes[] = { "socket", "http", NULL };
static const char *const places[] = { "channel", "thread", NULL };
static const char *const streamings[] = { "auto", "edits", "off", NULL };
static const char *const details[] = { "thread", "off", NULL };

static const struct setting slack_settings[] = {
        { "botToken", SETTING_SECRET, "null", .at = AT(bot_token),
          .help = "The bot's token (`xoxb-...`) from the app's page OAuth & Permissions, as a "
                  "handle; null: the variable `SLACK_BOT_TOKEN`." },
        { "appToken", SETTING_SECRET, "null", .at = AT(app_token),
          .help = "With `mode` socket: the app-level token (`xapp-...`, scope `connections:write`) "
                  "from the page Basic Information, as a handle; null: the variable "
                  "`SLACK_APP_TOKEN`." },
        { "signingSecret", SETTING_SECRET, "null", SETTING_SECRET_SHORTEST,
          .at = AT(signing_secret),
          .help = "With `mode` http: the app's signing secret from the page Basic Information, as "
                  "a handle." },
        { "apiBase", SETTING_URL, "\"https://slack.com/api\"", .at = AT(api_base),
          .help = "The Web API: Slack's own, a proxy, or a simulator." },
        { "mode", SETTING_CHOICE, "\"socket\"", .choices = modes, .at = AT(mode),
          .help = "`socket` receives events over connections that we open; `http` lets Slack post "
                  "them to `http.publicUrl`." },
        { "connections", SETTING_INT, "1", 1, 10, .at = AT(connections),
          .help = "How many connections of Socket Mode are open at a time. With several, each "
                  "event waits 20 ms, to be put in order." },
        { "replyIn", SETTING_CHOICE, "\"channel\"", .choices = places, .at = AT(reply_in),
          .help = "Where a mention in a channel is answered: in the `channel`, or in a `thread` of "
                  "its own." },
        { "streaming", SETTING_CHOICE, "\"auto\"", .choices = streamings, .at = AT(streaming),
          .help = "A long answer appears while it is being written: `auto` streams in threads and "
                  "edits one message elsewhere, `edits` always edits, `off` sends it when it is "
                  "complete." },
        { "streamSeconds", SETTING_INT, "240", 10, 290, .at = AT(stream_seconds),
          .help = "With `streaming` auto: how long an answer is streamed before its message is "
                  "edited instead; Slack ends streams after about 300." },
        { "details", SETTING_CHOICE, "\"thread\"", .choices = details, .at = AT(details),
          .help = "Where the steps of a turn of an agent with tools are shown: in the `thread` of "
                  "the answer, or nowhere (`off`). Answers that are in a thread themselves, or "
                  "with `streaming` off, have none." },
        { "catchUpMessages", SETTING_INT, "100", 0, 1000, .at = AT(catch_up_messages),
          .help = "After a downtime: how many missed messages to take from each channel." },
        { "catchUpSeconds", SETTING_INT, "3600", 0, 604800, .at = AT(catch_up_seconds),
          .help = "After a downtime: skip missed messages older than this; 0: read none." },
        { "mediaMaxBytes", SETTING_INT, "26214400", 0, 1073741824, .at = AT(media_max_bytes),
          .help = "Larger attachments are not downloaded; 0: none are." },
        { "reconcileAfterMs", SETTING_INT, "3000", 0, 600000, .at = AT(reconcile_after_ms),
          .help = "How long after a send without an answer Slack may still be working on it; only "
                  "then a message that is not found is sent again." },
        { "cachedUsers", SETTING_INT, "2000", 100, 100000, .at = AT(cached_users),
          .help = "How many names of people are kept in memory." },
        { "suggestedPrompts", SETTING_STRINGS, "[]", .at = AT(suggested_prompts),
          .help = "Prompts offered in a new Assistant thread, each as `Title: message`; at most "
                  "4." },
        SETTING_END,
};

/* Nothing else may get into a header. */
static bool looks_like(const struct secret *token, const char *prefix)
{
        static const char allowed[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
        const char *text = secret_reveal(token);

        return strncmp(text, prefix, strlen(prefix)) == 0 &&
               strspn(text, allowed) == secret_length(token);
}

/* What is wrong with a token; NULL: nothing. */
static const char *bot_token_fault(const struct secret *token)
{
        const char *text = secret_reveal(token);

        if (looks_like(token, "xoxb-"))
                return NULL;
        if (strncmp(text, "xapp-", 5) == 0)
                return "this is the app-level token (xapp-...), which belongs into appToken; the "
                       "bot's token begins with xoxb-";
        if (strncmp(text, "xoxp-", 5) == 0)
                return "this is a person's token (xoxp-...); the bot's token begins with xoxb-";
        if (strncmp(text, "xoxe", 4) == 0)
                return "this is a token of an app with token rotation, which expires after twelve "
                       "hours; use an app without it, whose bot token begins with xoxb-";
        return "this does not look like a bot's token, which begins with xoxb-";
}

static const char *app_token_fault(const struct secret *token)
{
        if (looks_like(token, "xapp-"))
                return NULL;
        if (strncmp(secret_reveal(token), "xoxb-", 5) == 0)
                return "this is the bot's token (xoxb-...), which belongs into botToken; the "
                       "app-level token begins with xapp-";
        return "this does not look like an app-level token, which begins with xapp-";
}

static bool is_http(const struct slack_conf *conf)
{
        return strcmp(conf->mode, "http") == 0;
}

static int check_settings(struct settings_source *src, const char *path, const void *conf,
                          struct error *err)
{
        const struct slack_conf *c = conf;
        const char *fault = c->bot_token ? bot_token_fault(c->bot_token) : NULL;

        if (fault)
                return settings_member_error(src, path, "botToken", err, "%s", fault);
        fault = c->app_token ? app_token_fault(c->app_token) : NULL;
        if (fault)
                return settings_member_error(src, path, "appToken", err, "%s", fault);
        if (is_http(c) && !c->signing_secret)
                return settings_member_error(src, path, "signingSecret", err,
                                             "mode 'http' needs the app's signing secret (Basic "
                                             "Information, App Credentials)");
        if (c->suggested_prompts.count > 4)
                return settings_member_error(src, path, "suggestedPrompts", err,
                                             "Slack shows at most 4 prompts");
        for (size_t i = 0; i < c->suggested_prompts.count; i++) {
                const char *prompt = c->suggested_prompts.items[i], *colon = strstr(prompt, ": ");

                if (!colon || colon == prompt || !colon[2])
                        return settings_member_error(src, path, "suggestedPrompts", err,
                                                     "'%.60s' is not 'Title: message'", prompt);
        }
        return 0;
}

static bool needs_public_url(const void *conf)
{
        return is_http(conf);
}

/* "C0123ABCD": a letter that says what it is, then capitals and digits. Or a role of sl_event.c. */
static bool is_id(const char *text)
{
        size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

        return (n > 1 && n <= 32 && text[n] == '\0' && strchr("BCDEGSTUW", text[0])) ||
               strcmp(text, "external") == 0 || strcmp(text, "guest") == 0;
}

/* ---- states ---- */

static void enter(struct slack *sl, enum slack_state state)
{
        static const char *const names[] = { "greeting", "linked", "waiting", "stopped" };

        if (sl->state != state)
                log_debug("slack link", LOG_S("adapter", sl->adapter->name),
                          LOG_S("from", names[sl->state]), LOG_S("to", names[state]));
        sl->state = state;
}

/* In this order: what gives back events first, then what carries their acknowledgements. */
static void unlink_parts(struct slack *sl)
{
        sl_intake_close(sl);
        sl_catchup_close(sl);
        sl_assistant_close(sl);
        sl_socket_close(sl);
        sl_webhook_close(sl);
}

void slack_stop(struct slack *sl, const char *why)
{
        enter(sl, SLACK_STOPPED);
        timer_start(sl->timer, 0); /* the caller may be a part: they are closed from the loop */
        sl_api_abort(sl->call);
        sl->call = NULL;
        adapter_stopped(sl->adapter, why);
}

/* The answer stops the adapter if need be: an event may be old, and the app installed again. */
void slack_check_token(struct slack *sl)
{
        sl_api_ask(sl->api, &(struct sl_request){ .method = "auth.test", .priority = SL_URGENT },
                   NULL, NULL);
}

void slack_up(struct slack *sl)
{
        if (sl->state != SLACK_LINKED)
                return;
        sl_catchup_start(sl);
        adapter_ready(sl->adapter);
}

void slack_lost(struct slack *sl, const char *why)
{
        if (sl->state == SLACK_LINKED)
                adapter_lost(sl->adapter, why);
}

static void on_unauthorized(void *arg, const struct sl_method *method, const char *error)
{
        struct slack *sl = arg;
        char why[sizeof(sl->adapter->why)];

        sl_error_token_text(sl->adapter->name, method, error, why, sizeof(why));
        slack_stop(sl, why);
}

/* Shown in the status until the method works, or the app has the scopes it lacked. */
static void on_scoped(void *arg, const struct sl_method *method, const struct sl_answer *a)
{
        struct slack *sl = arg;
        char lacks[sizeof(sl->adapter->trouble)];

        if (a->scopes && (sl->lacks_scopes || !sl->self.team)) { /* the greeting lists them all */
                sl->lacks_scopes = sl_error_lacking(a->scopes, lacks, sizeof(lacks));
                adapter_degraded(sl->adapter, sl->lacks_scopes ? lacks : NULL);
        } else if (!a->ok) {
                sl->lacking = method;
                adapter_degraded(sl->adapter, a->why);
        } else if (sl->lacking == method) {
                sl->lacking = NULL;
                adapter_degraded(sl->adapter, NULL);
        }
}

static void link_up(struct slack *sl)
{
        enter(sl, SLACK_LINKED);
        sl_intake_open(sl);
        sl_catchup_open(sl);
        sl_assistant_open(sl);
        if (is_http(sl->conf))
                sl_webhook_open(sl);
        else
                sl_socket_open(sl);
}

/* ---- one app in several workspaces ---- */

struct sl_search {
        const struct slack *sl;
        const char *team;
        struct slack *found;
        struct slack *greeting; /* its workspace is not known yet */
};

bool slack_same_app(const struct slack *a, const struct slack *b)
{
        const struct secret *left = a->app_token ? a->app_token : a->conf->signing_secret,
                            *right = b->app_token ? b->app_token : b->conf->signing_secret;

        return left && right && secret_equals(left, secret_reveal(right), secret_length(right));
}

static void find_workspace(void *arg, struct adapter *a)
{
        struct sl_search *s = arg;
        struct slack *other = a->ops == &slack_platform ? a->self : NULL;

        if (s->found || !other || other->state == SLACK_STOPPED || !slack_same_app(s->sl, other))
                return;
        if (!other->self.team)
                s->greeting = other;
        else if (strcmp(other->self.team, s->team) == 0)
                s->found = other;
}

struct slack *slack_serving(struct slack *sl, enum sl_arrival kind, const json_t *payload)
{
        const json_t *installed = json_array_get(json_object_get(payload, "authorizations"), 0);
        struct sl_search s = { .sl = sl };

        /* `team_id` of an event in a shared channel may be that of the author */
        s.team = json_str(installed, "team_id", NULL);
        if (!s.team)
                s.team = kind == SL_INTERACTIVE
                                 ? json_str(json_object_get(payload, "team"), "id", NULL)
                                 : json_str(payload, "team_id", NULL);
        if (!s.team || strcmp(s.team, sl->self.team) == 0)
                return sl;
        if (sl->adapter->all)
                adapters_each(sl->adapter->all, find_workspace, &s);
        if (s.found || s.greeting)
                return s.found ? s.found : s.greeting;
        if (!installed) /* a person of another workspace, in a shared channel */
                return sl;
        if (!sl->warned_of_workspace)
                log_warn("the app is also installed in a workspace without an adapter; its events "
                         "are ignored",
                         LOG_S("adapter", sl->adapter->name), LOG_S("team", s.team));
        sl->warned_of_workspace = true;
        return NULL;
}

/* ---- greeting ---- */

static void set(char **at, const json_t *object, const char *key)
{
        free(*at);
        *at = mem_strdup(json_str(object, key, NULL));
}

static void on_greeted(void *arg, const struct sl_answer *a)
{
        struct slack *sl = arg;

        sl->call = NULL;
        if (sl->state == SLACK_STOPPED || sl_api_is_revoked(a->error))
                return; /* on_unauthorized follows */
        if (!a->ok || !json_str(a->result, "user_id", NULL) ||
            !json_str(a->result, "team_id", NULL)) {
                enter(sl, SLACK_WAITING);
                timer_start(
                        sl->timer,
                        adapter_retry_first(sl->adapter,
                                            a->ok ? "auth.test names no user or workspace" : a->why,
                                            sl->conf->api_base, a->retry_after_ms));
                return;
        }
        set(&sl->self.user, a->result, "user_id");
        set(&sl->self.bot, a->result, "bot_id");
        set(&sl->self.name, a->result, "user");
        set(&sl->self.team, a->result, "team_id");
        set(&sl->self.team_name, a->result, "team");
        set(&sl->self.url, a->result, "url");
        adapter_set_profile(sl->adapter, sl->self.name ? sl->self.name : "", sl->self.user);
        log_info("slack bot", LOG_S("adapter", sl->adapter->name), LOG_S("name", sl->self.name),
                 LOG_S("id", sl->self.user), LOG_S("workspace", sl->self.team_name),
                 LOG_S("team", sl->self.team));
        link_up(sl);
}

static void greet(struct slack *sl)
{
        enter(sl, SLACK_GREETING);
        sl->call = sl_api_call(sl->api,
                               &(struct sl_request){ .method = "auth.test", .priority = SL_URGENT },
                               on_greeted, sl);
}

static void on_timer(void *arg)
{
        struct slack *sl = arg;

        if (sl->state != SLACK_STOPPED) {
                greet(sl);
                return;
        }
        unlink_parts(sl);
        sl_api_cancel(sl->api);
}

/* ---- open and close ---- */

/* The configured token, or that of the environment; *out NULL without an error: there is none. */
static int take_token(const struct secret *given, const char *variable,
                      const char *(*fault)(const struct secret *), struct secret **out,
                      struct error *err)
{
        const char *ambient = getenv(variable), *wrong;

        *out = given                 ? secret_dup(given)
               : ambient && *ambient ? secret_new(ambient, strlen(ambient))
                                     : NULL;
        wrong = *out ? fault(*out) : NULL;
        return wrong ? error_set(err, ERR_INVALID, "%s%s%s", given ? "" : variable,
                                 given ? "" : ": ", wrong)
                     : 0;
}

static int take_tokens(struct slack *sl, struct error *err)
{
        const struct slack_conf *conf = sl->conf;
        const char *name = sl->adapter->name;

        if (take_token(conf->bot_token, BOT_VARIABLE, bot_token_fault, &sl->bot_token, err) < 0)
                return -1;
        if (!sl->bot_token)
                return error_set(err, ERR_INVALID,
                                 "there is no bot token: set " BOT_VARIABLE
                                 " in the environment, or adapters.%.60s.botToken",
                                 name);
        if (is_http(conf))
                return 0;
        if (take_token(conf->app_token, APP_VARIABLE, app_token_fault, &sl->app_token, err) < 0)
                return -1;
        if (!sl->app_token)
                return error_set(err, ERR_INVALID,
                                 "mode 'socket' needs an app-level token: set " APP_VARIABLE
                                 " in the environment, or adapters.%.60s.appToken",
                                 name);
        return 0;
}

static void slack_free(struct slack *sl)
{
        adapter_file_unlock(sl->lock);
        secret_free(sl->bot_token);
        secret_free(sl->app_token);
        timer_free(sl->timer);
        json_decref(sl->saved);
        free(sl->self.user);
        free(sl->self.bot);
        free(sl->self.name);
        free(sl->self.team);
        free(sl->self.team_name);
        free(sl->self.url);
        free(sl->self.app);
        free(sl);
}

static int slack_open(struct adapter *a, struct error *err)
{
        struct slack *sl = mem_zalloc(sizeof(*sl));

        sl->adapter = a;
        sl->conf = a->conf;
        sl->opened_ms = clock_wall_ms();
        sl->lock = -1;
        if (is_http(sl->conf) && !a->public_url)
                error_set(err, ERR_INVALID,
                          "mode 'http' needs http.publicUrl: the https address under which Slack "
                          "reaches us");
        else if (take_tokens(sl, err) == 0)
                sl->lock = adapter_file_lock(a, sl->bot_token, err);
        if (sl->lock < 0) {
                slack_free(sl);
                return -1;
        }
        a->self = sl;
        sl->saved = adapter_file_read(a);
        sl->timer = timer_new(a->loop, on_timer, sl);
        sl->api = sl_api_new(&(struct sl_api_options){ .loop = a->loop,
                                                       .http = a->http,
                                                       .base = sl->conf->api_base,
                                                       .bot_token = sl->bot_token,
                                                       .app_token = sl->app_token,
                                                       .name = a->name,
                                                       .unpaced = a->common->pace.per_second == 0,
                                                       .unauthorized = on_unauthorized,
                                                       .scoped = on_scoped,
                                                       .arg = sl });
        sl->cache = sl_cache_new(sl);
        sl_sends_open(sl);
        sl_streams_open(sl);
        greet(sl);
        return 0;
}

static void slack_close(struct adapter *a)
{
        struct slack *sl = a->self;

        unlink_parts(sl);
        sl_streams_close(sl);
        sl_sends_close(sl);
        sl_api_cancel(sl->api);
        sl_api_abort(sl->call);
        sl_cache_free(sl->cache);
        sl_api_free(sl->api);
        slack_free(sl);
}

/* ---- called by the road ---- */

static unsigned abilities(const struct adapter *a)
{
        const struct slack_conf *conf = a->conf;
        const struct slack *sl = a->self;
        unsigned can = a->ops->can;

        if (sl && !sl_assistant_shows_status(sl))
                can &= ~(unsigned)ADAPTER_TYPING;
        if (strcmp(conf->streaming, "off") == 0)
                can &= ~(unsigned)ADAPTER_STREAMS;
        if (strcmp(conf->streaming, "auto") != 0)
                can &= ~(unsigned)ADAPTER_APPENDS;
        if (strcmp(conf->details, "thread") != 0)
                can &= ~(unsigned)ADAPTER_DETAILS;
        return can;
}

/* As a status, which only threads have. */
static bool shows_typing(const struct adapter *a, const char *channel, const char *thread)
{
        (void)a;
        (void)channel;
        return sl_ts_valid(thread);
}

/* Ids of DMs begin with D; a person's id opens theirs. */
static bool is_group(const struct adapter *a, const char *channel)
{
        (void)a;
        return channel[0] == 'C' || channel[0] == 'G';
}

/* A name or, where that is not known, an id such as U012AB3CD. */
static bool mention(const struct adapter *a, struct slice name, struct buf *out)
{
        const struct slack *sl = a->self;
        const char *id = sl ? sl_cache_user_named(sl->cache, name.p, name.n) : NULL;
        bool digit = false, is_id = name.n >= 5 && (*name.p == 'U' || *name.p == 'W');

        if (id)
                return buf_addf(out, "<@%s>", id) == 0;
        for (size_t i = 0; is_id && i < name.n; i++) {
                digit |= isdigit((unsigned char)name.p[i]);
                is_id = isdigit((unsigned char)name.p[i]) || isupper((unsigned char)name.p[i]);
        }
        return is_id && digit && buf_addf(out, "<@%.*s>", (int)name.n, name.p) == 0;
}

/* A thread begins at any message, also one that was reacted to; a command has none. */
static const char *thread_at(const struct adapter *a, const struct incoming *in)
{
        (void)a;
        return in->chat == CHAT_GROUP && !in->thread && sl_ts_valid(in->id) ? in->id : NULL;
}

const struct platform_ops slack_platform = {
        .name = "slack",
        .title = "Slack",
        .help = "A Slack app in one workspace, by Socket Mode or the Events API.",
        .token_hint = "the Bot User OAuth Token (xoxb-...) of the page OAuth & Permissions",
        .token_variable = BOT_VARIABLE,
        .command_help = "Slack takes what begins with a slash for itself: write `stop` after the "
                        "app's own command, such as `/dragoman stop`, or mention me before it.",
        .command_prefix = "/dragoman ",
        .threads = CHAT_THREADS_AT_MESSAGE,
        .can = ADAPTER_CARDS | ADAPTER_READBACK | ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_TYPING |
               ADAPTER_THREADS | ADAPTER_REACTIONS | ADAPTER_FILES | ADAPTER_CHANNEL_HISTORY |
               ADAPTER_DIRECT | ADAPTER_BUTTONS | ADAPTER_FORMS | ADAPTER_APPENDS |
               ADAPTER_DETAILS | ADAPTER_EPHEMERAL,
        .text = { .dialect = MARKDOWN_SLACK, .unit = UTF8_CODE_POINTS, .max = 3500 },
        .upload_max = (int64_t)1 << 30,
        .debounce_ms = 1000,
        .manners = { .conversation_seconds = 300,
                     .dm_conversation_seconds = 900,
                     .thread_chars = 2000,
                     .slow_ms = 4000 },
        .pace = { .per_second = 10, .per_channel_second = 1, .burst = 4 },
        .settings = slack_settings,
        .conf_size = sizeof(struct slack_conf),
        .is_id = is_id,
        .needs_public_url = needs_public_url,
        .check = check_settings,
        .open = slack_open,
        .close = slack_close,
        .send = sl_send,
        .reconcile = sl_readback,
        .read_from = sl_readback_from,
        .abilities = abilities,
        .draft_ms = sl_stream_draft_ms,
        .shows_typing = shows_typing,
        .is_group = is_group,
        .mention = mention,
        .thread_at = thread_at,
        .webhook = sl_webhook_handle,
        .webhook_admits = sl_webhook_admits,
        .channel_history = sl_tools_history,
        .message = sl_tools_message,
        .channel_info = sl_tools_channel,
        .user_info = sl_tools_user,
        .tools = sl_tools,
        .files = &sl_files,
};
