/*
 * Reads and compiles rules of the configuration.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/timezone.h"
#include "dispatch/rules/pattern.h"
#include "dispatch/rules/rules.h"

#define LIST_MAX 100 /* patterns or hours of one condition */
#define TOO_LONG "the list is longer than 100"

static const char *const rule_modes[] = { "reply", "thread", "ambient", "silent", "off", NULL };
static const char *const reply_places[] = { "thread", NULL };
static const char *const bot_policies[] = { "none", "mentions", "all", NULL };

#define AT(field) offsetof(struct rule, field)

/* clang-format off */
const struct setting rule_when_settings[] = {
        { "adapter", SETTING_STRINGS, "[]", .at = AT(adapter),
          .help = "Names of adapters; `*` globs." },
        { "platform", SETTING_STRINGS, "[]", .at = AT(platform),
          .help = "Kinds of platform, such as `telegram`." },
        { "guild", SETTING_STRINGS, "[]", .at = AT(guild),
          .help = "Ids of guilds or workspaces; `*` globs." },
        { "channel", SETTING_STRINGS, "[]", .at = AT(channel),
          .help = "Ids of channels or chats, or `#general` by their name; `*` globs. A name can be "
                  "given to another channel." },
        { "thread", SETTING_STRINGS, "[]", .at = AT(thread),
          .help = "Ids of threads; `*` means any thread." },
        { "event", SETTING_STRINGS, "[]", .at = AT(event),
          .help = "Event types; without it `message.received` and `schedule.fired`, or "
                  "`reaction.received` with `reaction`." },
        { "schedule", SETTING_STRINGS, "[]", .at = AT(schedule),
          .help = "Names of schedules, such as `nightly.json` of an event file, that fire; `*` "
                  "globs. The rule concerns nothing else then." },
        { "reaction", SETTING_STRINGS, "[]", .at = AT(reaction),
          .help = "Emoji, or names of emoji, of a reaction; skin tones are ignored; `*` is any." },
        { "sender", SETTING_STRINGS, "[]", .at = AT(sender),
          .help = "Ids of people, `*` globs; or `person:ID`, by any account. A bot whose full id "
                  "is listed is accepted regardless of `bots`." },
        { "role", SETTING_STRINGS, "[]", .at = AT(role),
          .help = "Ids of roles, one of which the sender must have, on platforms that have them; "
                  "`*` globs." },
        { "bots", SETTING_CHOICE, "\"none\"", .choices = bot_policies, .at = AT(bots),
          .help = "Which other bots are accepted: `none`, those whose message addresses this one "
                  "(`mentions`), or `all`." },
        { "dm", SETTING_BOOL, "false", .at = AT(dm),
          .help = "A direct message. `dm`, `mention`, `reply`, `conversation` and "
                  "`mentionPattern` are alternatives: one of them suffices." },
        { "mention", SETTING_BOOL, "false", .at = AT(mention),
          .help = "The message addresses the bot." },
        { "reply", SETTING_BOOL, "false", .at = AT(reply),
          .help = "The message answers one of the bot's messages." },
        { "conversation", SETTING_BOOL, "false", .at = AT(conversation),
          .help = "The message continues a conversation: its sender has just talked with the bot "
                  "there, or it is in a thread where someone has (see `conversationSeconds` of "
                  "the adapter)." },
        { "mentionPattern", SETTING_STRINGS, "[]", .at = AT(mention_pattern),
          .help = "Regular expressions (PCRE2, ignoring case); a text that matches one counts as "
                  "a mention." },
        { "text", SETTING_STRINGS, "[]", .at = AT(text),
          .help = "Regular expressions (PCRE2, ignoring case), one of which the text must match." },
        { "hours", SETTING_STRINGS, "[]", .at = AT(hours),
          .help = "When the rule applies: `09:00-17:00`, `mon-fri 09:00-17:00`, "
                  "`sat,sun 22:00-06:00`." },
        { "timezone", SETTING_STRING, "null", 1, 100, .at = AT(timezone),
          .help = "The time zone of `hours`, such as `Europe/Berlin`; without it the system's." },
        SETTING_END,
};

static const struct setting rate_settings[] = {
        { "turns", SETTING_INT, "-1", -1, 1000, .at = offsetof(struct turn_rate, turns),
          .help = "Turns one person may cause in one channel within the time; 0: no limit, -1: "
                  "the adapter's." },
        { "seconds", SETTING_INT, "-1", -1, 86400, .at = offsetof(struct turn_rate, seconds),
          .help = "The time in which they are counted; -1: the adapter's." },
        SETTING_END,
};

static const struct setting budget_settings[] = {
        { "usdPerDay", SETTING_NUMBER, "0", 0, 1000000, .at = AT(budget.usd_per_day) - AT(budget),
          .help = "From midnight to midnight (UTC), in US dollars; 0: no limit." },
        SETTING_END,
};

/* Conditions are fields of struct rule itself, hence offset 0. */
const struct setting rule_settings[] = {
        { "name", SETTING_STRING, "null", 1, 200, .at = AT(name),
          .help = "Shown in logs and explanations; without it the rule's number." },
        { "when", SETTING_GROUP, "{}", .group = rule_when_settings, .at = 0,
          .help = "Conditions that must all hold; a list means any of its members." },
        { "agent", SETTING_STRING, "null", 1, 100, .at = AT(agent),
          .help = "The agent that answers; without it the adapter's." },
        { "mode", SETTING_CHOICE, "\"reply\"", .choices = rule_modes, .at = AT(mode_text),
          .help = "`reply` answers; `thread` answers in a thread begun at the message; `ambient` "
                  "follows the channels it names and answers only when it has something to say; "
                  "`silent` runs the agent and posts nothing; `off` answers nothing and "
                  "ends the search for a rule." },
        { "reply", SETTING_CHOICE, "null", .choices = reply_places, .at = AT(reply_in),
          .help = "`thread`: the same as `\"mode\": \"thread\"`." },
        { "history", SETTING_INT, "25", 1, 100, .at = AT(history),
          .help = "`ambient`: how many messages of the channel the agent sees, fetched from the "
                  "platform." },
        { "prompt", SETTING_STRING, "null", 1, 20000, .at = AT(prompt),
          .help = "A prompt that precedes the conversation; `ambient` has a default that asks "
                  "the agent to read the room." },
        { "silence", SETTING_STRINGS, "[]", .at = AT(silence),
          .help = "An answer that consists of one of these phrases is not posted; punctuation and "
                  "fillers such as \"at this time\" do not count, and after a phrase with a final "
                  "`*` any text may follow. An answer that begins with `[SILENT]` is never posted. "
                  "`ambient` has a default list." },
        { "silenceMaxChars", SETTING_INT, "100", 1, 1000, .at = AT(silence_chars),
          .help = "Phrases of `silence` apply to answers of at most this length." },
        { "debounceMs", SETTING_INT, "-1", -1, 600000, .at = AT(debounce_ms),
          .help = "Wait this long for further messages of the same person before answering; -1: "
                  "the adapter's." },
        { "debounceMaxMs", SETTING_INT, "-1", -1, 3600000, .at = AT(debounce_max_ms),
          .help = "The longest wait, however many messages follow; -1: the adapter's." },
        { "rateLimit", SETTING_GROUP, "{}", .group = rate_settings, .at = AT(rate),
          .help = "How many turns one person may cause." },
        { "maxAgeSeconds", SETTING_INT, "-1", -1, 31536000, .at = AT(max_age_seconds),
          .help = "Older messages are marked expired and not answered; 0: no limit, -1: the "
                  "adapter's." },
        { "budget", SETTING_GROUP, "{}", .group = budget_settings, .at = AT(budget),
          .help = "What the turns of this rule may cost." },
        SETTING_END,
};
/* clang-format on */

static const struct setting *const rule_tables[] = { rule_settings, NULL };

/* ---- parsing ---- */

/* path: the rule's. */
struct rule_source {
        const struct settings_source *src;
        const char *path;
};

/* "reply": "thread" is another spelling of the mode; ambient rules must name their channels. */
static int read_mode(const struct rule_source *s, struct rule *r, struct error *err)
{
        r->off = !reply_mode_parse(r->mode_text, &r->mode); /* the only other choice */
        if (r->reply_in && (r->off || !reply_mode_answers(r->mode)))
                return settings_member_error(s->src, s->path, "reply", err,
                                             "works only with mode 'reply' or 'thread'");
        if (r->reply_in) {
                free(r->mode_text);
                r->mode_text = mem_strdup("thread");
                r->mode = MODE_THREAD;
        }
        if (r->mode == MODE_AMBIENT && !r->channel.set && !r->thread.set && !r->guild.set)
                return settings_member_error(
                        s->src, s->path, "mode", err,
                        "'ambient' must know which channels to follow: name them in "
                        "'channel' ('*' is all)");
        return 0;
}

static int bad_element(const struct rule_source *s, const char *key,
                       const struct setting_list *list, size_t i, struct error *err,
                       const char *why)
{
        char *one = mem_printf("%s.when.%s", s->path, key),
             *element = mem_printf("%s[%zu]", one, i);
        /* a single value may omit the brackets */
        bool listed = settings_source_line(s->src, element) > 0;

        settings_error(s->src, listed ? element : one, err, "'%.100s': %s", list->items[i], why);
        free(one);
        free(element);
        return -1;
}

static int compile_patterns(const struct rule_source *s, const char *key,
                            const struct setting_list *list, struct pattern ***out,
                            struct error *err)
{
        struct error why;

        if (list->count > LIST_MAX)
                return bad_element(s, key, list, LIST_MAX, err, TOO_LONG);
        *out = mem_array(list->count, sizeof(**out));
        for (size_t i = 0; i < list->count; i++) {
                (*out)[i] = pattern_new(list->items[i], &why);
                if (!(*out)[i])
                        return bad_element(s, key, list, i, err, why.text);
        }
        return 0;
}

static int compile_hours(const struct rule_source *s, struct rule *r, struct error *err)
{
        const struct setting_list *list = &r->hours;
        struct error why;

        if (list->count > LIST_MAX)
                return bad_element(s, "hours", list, LIST_MAX, err, TOO_LONG);
        r->compiled.hours = mem_array(list->count, sizeof(*r->compiled.hours));
        for (size_t i = 0; i < list->count; i++) {
                if (hours_parse(list->items[i], &r->compiled.hours[i]) < 0)
                        return bad_element(
                                s, "hours", list, i, err,
                                "expected hours such as '09:00-17:00' or 'mon-fri 09:00-17:00'");
        }
        r->compiled.zone = r->timezone ? timezone_new(r->timezone, &why) : NULL;
        if (r->timezone && !r->compiled.zone)
                return settings_member_error(s->src, s->path, "when.timezone", err, "%s", why.text);
        return 0;
}

int rule_conf_read_at(struct settings_source *src, const char *path, const json_t *object,
                      struct rule *out, struct error *err)
{
        struct rule_source s = { src, path };
        int rc;

        memset(out, 0, sizeof(*out));
        rc = settings_read(src, path, object, rule_tables, NULL, out, err);
        if (rc < 0 || read_mode(&s, out, err) < 0 ||
            compile_patterns(&s, "text", &out->text, &out->compiled.text, err) < 0 ||
            compile_patterns(&s, "mentionPattern", &out->mention_pattern, &out->compiled.mention,
                             err) < 0 ||
            compile_hours(&s, out, err) < 0) {
                rule_conf_release(out);
                return -1;
        }
        return 0;
}

int rule_conf_read(struct settings_source *src, size_t index, const json_t *object,
                   struct rule *out, struct error *err)
{
        char *path = mem_printf("rules[%zu]", index);
        int rc = rule_conf_read_at(src, path, object, out, err);

        if (rc == 0 && !out->name)
                out->name = mem_printf("rule %zu", index + 1);
        free(path);
        return rc;
}

void rule_conf_rename_aliases(json_t *rule)
{
        static const char *const names[][2] = { { "triggerEvents", "event" },
                                                { "triggerReactions", "reaction" },
                                                { "triggerMentionPatterns", "mentionPattern" } };
        json_t *when = json_object_get(rule, "when");

        for (size_t i = 0; i < COUNT(names); i++) {
                json_t *value = json_object_get(when, names[i][0]);

                if (!value || json_object_get(when, names[i][1]))
                        continue; /* both given: reported as a mistake later */
                if (!json_is_null(value))
                        json_object_set(when, names[i][1], value);
                json_object_del(when, names[i][0]);
        }
}

static void free_patterns(struct pattern **patterns, size_t count)
{
        for (size_t i = 0; patterns && i < count; i++)
                pattern_free(patterns[i]);
        free(patterns);
}

void rule_conf_release(struct rule *r)
{
        free_patterns(r->compiled.text, r->text.count);
        free_patterns(r->compiled.mention, r->mention_pattern.count);
        free(r->compiled.hours);
        timezone_free(r->compiled.zone);
        memset(&r->compiled, 0, sizeof(r->compiled));
        settings_release(rule_tables, r);
}
