#include <stddef.h>
#include <string.h>

#include "remote/remote.h"

#define AT(field) offsetof(struct remote_conf, field)

const struct setting remote_settings[] = {
        { "commandSeconds", SETTING_INT, "3600", 1, 604800, .at = AT(command_seconds),
          .help = "A command that the coding agent has not fetched for so long expires." },
        { "archiveSeconds", SETTING_INT, "86400", 60, 31536000, .at = AT(archive_seconds),
          .help = "A session without an event for so long is archived; its next event makes it "
                  "active again." },
        { "active", SETTING_INT, "1000", 1, 1000000, .at = AT(active),
          .help = "How many sessions may be active; the first event of a further one is refused." },
        { "queued", SETTING_INT, "50", 1, 10000, .at = AT(queued),
          .help = "How many commands may wait for one session; further ones are refused, except "
                  "answers to its questions." },
        { "adapter", SETTING_STRING, "null", 1, 100, .at = AT(adapter),
          .help = "The adapter of sessions that name none; not needed with a single Discord "
                  "adapter." },
        { "channel", SETTING_STRING, "null", 1, 512, .at = AT(channel),
          .help = "The channel in which sessions that name no chat get their thread; without it "
                  "they are shown once they are linked." },
        { "threads", SETTING_BOOL, "true", .at = AT(threads),
          .help = "Each session gets a thread of its own where the chat has threads (on Telegram: "
                  "topics of a forum); else all are shown in the channel itself." },
        { "updateMs", SETTING_INT, "2000", 250, 600000, .at = AT(update_ms),
          .help = "How long what happens in a session is gathered before its messages are sent or "
                  "edited again; questions, answers and errors do not wait." },
        { "people", SETTING_STRINGS, "[]", .at = AT(people),
          .help = "Who may steer every session besides the admins of its adapter and the person "
                  "it belongs to: accounts such as `discord:42` or persons such as `per-1`. "
                  "Steering runs commands on somebody's machine." },
        SETTING_END,
};

void remote_conf_check(const struct settings_source *src, const struct remote_conf *conf)
{
        for (size_t i = 0; i < conf->people.count; i++) {
                const char *who = conf->people.items[i], *colon = strchr(who, ':');

                if (strncmp(who, "per-", 4) != 0 && (!colon || colon == who || !colon[1]))
                        settings_error(src, "sessions.people", NULL,
                                       "'%.60s': expected an account such as 'discord:42', or a "
                                       "person such as 'per-1'",
                                       who);
        }
        if (conf->channel && !conf->adapter)
                settings_error(src, "sessions.channel", NULL, "needs sessions.adapter");
}
