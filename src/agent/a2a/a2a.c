#include "agent/a2a/a2a.h"

#include <stdlib.h>
#include <string.h>

#include "agent/http/call_headers.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_text.h"

#define AT(field) offsetof(struct a2a_conf, field)

static const char *const contexts[] = { "agent", "session", NULL };
static const char *const lates[] = { "deliver", "discard", NULL };

static const struct setting settings[] = {
        { "url", SETTING_URL, NULL, 0, 0, .at = AT(url),
          .help = "Where the agent is; `" A2A_CARD_PATH "` is appended, unless this is the address "
                  "of the agent card itself (it ends with `.json`)." },
        { "endpoint", SETTING_URL, "null", 0, 0, .at = AT(endpoint),
          .help = "Send requests there, whatever URL the card names." },
        { "origins", SETTING_STRINGS, "[]", .at = AT(origins),
          .help = "Origins such as `https://rpc.example.org` that the card may name besides its "
                  "own, and that get `apiKey` and `headers`. Other ones must be https, in no "
                  "private network, and get neither." },
        { "apiKey", SETTING_SECRET, "null", 0, 0, .at = AT(key),
          .help = "Sent as `Authorization: Bearer`." },
        { "headers", SETTING_STRINGS, "[]", .at = AT(headers),
          .help = "Further header lines, each `Name: value`." },
        { "stream", SETTING_BOOL, "true", 0, 0, .at = AT(stream),
          .help = "Show the answer while it is being written, if the agent can stream." },
        { "contextId", SETTING_CHOICE, "\"agent\"", .choices = contexts, .at = AT(context),
          .help = "Who names the context of a conversation: the `agent` with its first answer, as "
                  "the protocol wishes, or we by the name of the `session`." },
        { "timeoutMs", SETTING_INT, "600000", 100, 86400000, .at = AT(timeout_ms),
          .help = "The longest time to the end of a task." },
        { "firstByteMs", SETTING_INT, "120000", 100, 3600000, .at = AT(first_byte_ms),
          .help = "The longest time until the response to a request begins." },
        { "silenceMs", SETTING_INT, "60000", 100, 3600000, .at = AT(silence_ms),
          .help = "The longest pause within a response; then the agent is asked how the task "
                  "is." },
        { "pollMs", SETTING_INT, "2000", 50, 600000, .at = AT(poll_ms),
          .help = "The longest pause between such questions." },
        { "retries", SETTING_INT, "2", 0, 5, .at = AT(retries),
          .help = "How often a message is sent again that certainly did not arrive." },
        { "repeatable", SETTING_BOOL, "false", 0, 0, .at = AT(repeatable),
          .help = "The agent recognises a message by its id: one that may have arrived is sent "
                  "again." },
        { "late", SETTING_CHOICE, "\"deliver\"", .choices = lates, .at = AT(late),
          .help = "What to do with a task that has not ended in time: `deliver` its answer when "
                  "it comes, or cancel it and `discard` its answer." },
        { "lateSeconds", SETTING_INT, "3600", 1, 604800, .at = AT(late_seconds),
          .help = "How long such an answer is waited for, and the one of a task that waits for an "
                  "authorization." },
        { "maxFileBytes", SETTING_INT, "4194304", 0, 12582912, .at = AT(max_file_bytes),
          .help = "Files of messages up to this size are sent along; 0: none." },
        SETTING_END
};

static int check_origin(const struct settings_source *src, const char *path, const char *origin,
                        struct error *err)
{
        if (http_text_same_origin(origin, origin))
                return 0;
        return settings_member_error(src, path, "origins", err,
                                     "'%.100s' is not an origin such as https://rpc.example.org",
                                     origin);
}

static int check(struct settings_source *src, const char *path, const void *given,
                 struct error *err)
{
        const struct a2a_conf *conf = given;

        for (size_t i = 0; i < conf->origins.count; i++)
                if (check_origin(src, path, conf->origins.items[i], err) < 0)
                        return -1;
        if (call_headers_check_key(src, path, conf->key, err) < 0)
                return -1;
        return call_headers_check(src, path, &conf->headers, err);
}

/* ---- agent_ops ---- */

static int open_agent(struct agent *a, struct error *err)
{
        struct a2a_agent *o = mem_zalloc(sizeof(*o));

        (void)err;
        o->agent = a;
        o->conf = a->conf;
        LIST_INIT(&o->turns);
        a2a_discovery_open(o);
        a->self = o;
        return 0;
}

static void close_agent(struct agent *a)
{
        struct a2a_agent *o = a->self;
        struct a2a_turn *t;

        while ((t = LIST_FIRST(&o->turns))) {
                t->held = false; /* nothing is left to be held */
                a2a_turn_free(t);
        }
        a2a_discovery_close(o);
        free(o);
}

static void on_card(void *arg, struct a2a_card *card, const struct error *err, int64_t elapsed_ms)
{
        (void)card;
        agent_health_report(arg, !err, elapsed_ms, err ? err->text : "");
}

static void check_health(struct agent *a, void *token)
{
        a2a_discover(a->self, true, on_card, token);
}

static void write_status(const struct agent *a, struct buf *out)
{
        const struct a2a_agent *o = a->self;

        if (!o->card)
                return;
        jsonw_open_member(out, "card", '{');
        jsonw_str(out, "name", o->card->name);
        jsonw_opt(out, "version", o->card->agent_version);
        jsonw_str(out, "protocol", a2a_version_name(o->card->version));
        jsonw_bool(out, "streams", o->card->streams);
        jsonw_close(out, '}');
}

/* The answer of a task that outlived its turn, and that of one that waited for a person. */
static void late_replies(const struct agent *a, struct late_reply_policy *out)
{
        const struct a2a_conf *conf = a->conf;

        out->deliver_failed = strcmp(conf->late, "deliver") == 0;
        out->max_replies = 2;
}

const struct agent_ops a2a_agent = {
        .type = "a2a",
        .help = "An agent that speaks the Agent2Agent protocol (A2A), 1.0 or 0.3; see "
                "`docs/A2A.md`.",
        .can = AGENT_BATCHES | AGENT_STREAMS | AGENT_CANCELS | AGENT_RECOVERS,
        .settings = settings,
        .conf_size = sizeof(struct a2a_conf),
        .check = check,
        .open = open_agent,
        .close = close_agent,
        .start = a2a_start,
        .cancel = a2a_stop,
        .check_health = check_health,
        .status = write_status,
        .late_replies = late_replies,
};
