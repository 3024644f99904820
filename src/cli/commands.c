/* The table of commands. A new command is a file and a row. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/settings.h"
#include "cli/command.h"
#include "cli/print.h"

const struct flag common_flags[] = {
        { "dir", "DIR", "the data directory (default " DEFAULT_DIR ")", 'C' },
        { "json", NULL, "print JSON for programs instead of text for people", 0 },
        { "help", NULL, "show this help", 'h' },
        { 0 },
};

static const struct flag chat_flags[] = {
        { "channel", "NAME", "continue this conversation instead of a new one", 0 },
        { "adapter", "NAME", "use this adapter of type cli", 0 },
        { "listen", "HOST:PORT", "address of a daemon that has to be started", 0 },
        { 0 },
};

static const struct flag run_flags[] = {
        { "check", NULL, "only check the configuration: exit 0 if it is valid, else 78", 0 },
        { "listen", "HOST:PORT", "override http.listen; port 0 picks a free one", 0 },
        { "log-format", "FORMAT", "text or json; one line per event, on standard error", 0 },
        { "log-level", "LEVEL", "lowest level to log: debug, info, warn or error", 0 },
        { "parent-watch", NULL, "exit when the parent process does", 0 },
        { 0 },
};

static const struct flag send_flags[] = {
        { "idempotency-key", "KEY", "a repeated key sends nothing twice", 0 },
        { "thread", "ID", "a thread inside the channel", 0 },
        { "reply-to", "ID", "the platform's id of the message to answer", 0 },
        { 0 },
};

static const struct flag events_flags[] = {
        { "type", "TYPES", "only these types, comma-separated; a trailing * matches anything", 0 },
        { "since", "WHERE",
          "begin after an event (evt-42), at a time, or 30m, 2h, 1d ago; default: now", 0 },
        { "adapter", "NAME", "only events of this adapter", 0 },
        { "channel", "ID", "only events of this channel", 0 },
        { "count", "N", "exit after this many events", 'n' },
        { 0 },
};

static const struct flag route_flags[] = {
        { "since", "WHERE", "replay from an event (evt-42), a time, or 30m, 2h, 1d ago (1d)", 0 },
        { "config", "FILE", "replay with this configuration instead of DIR/config.json", 0 },
        { "all", NULL, "also list events whose decision would not change", 0 },
        { 0 },
};

static const struct flag approvals_flags[] = {
        { "note", "TEXT", "the reason, for the agent", 0 },
        { "always", NULL, "also allow such calls in this channel, by storing the offered rule", 0 },
        { 0 },
};

static const struct flag steer_flags[] = {
        { "follow-up", NULL, "the agent reads it when it would stop, not before its next step", 0 },
        { "abort", NULL, "the agent stops; there is no TEXT", 0 },
        { 0 },
};

static const struct flag schedule_flags[] = {
        { "to", "ADAPTER/CHANNEL", "the chat", 0 },
        { "thread", "ID", "a thread inside the chat", 0 },
        { "person", "ID", "for whom (per-3); without --to wherever they are reached", 0 },
        { "turn", NULL, "give an agent a turn with the text instead of sending it", 0 },
        { "agent", "NAME", "this agent's turn; implies --turn", 0 },
        { "name", "NAME", "a title; default: the beginning of the text", 0 },
        { "timezone", "ZONE", "of WHEN, such as Europe/Berlin", 0 },
        { "missed", "POLICY", "once, all or skip: times while the daemon was down", 0 },
        { 0 },
};

static const struct flag dead_letters_flags[] = {
        { "force", NULL, "also retry a send that may have arrived: it may arrive twice", 0 },
        { 0 },
};

static const struct flag rules_flags[] = {
        { "position", "N", "lower ones come first; negative ones before those of the file", 0 },
        { 0 },
};

static const struct flag access_flags[] = {
        { "adapter", "NAME", "only on this adapter", 0 },
        { "place", "PLACE", "only in dm or group", 0 },
        { "until", "TIME", "expiry: 2026-11-15T18:00:00Z, or 30m, 2h, 1d from now", 0 },
        { "reason", "TEXT", "a reason, for operators", 0 },
        { "message", "TEXT", "with deny: notice to the sender, once an hour", 0 },
        { "force", NULL, "store it even if the person, name or platform is unknown", 0 },
        { "yes", NULL, "do not ask before everyone is allowed", 0 },
        { 0 },
};

static const struct flag persons_flags[] = {
        { "name", "NAME", "with set: the name to use here", 0 },
        { "timezone", "ZONE", "their time zone, such as Europe/Berlin", 0 },
        { "quiet-hours", "HOURS", "as '22:00-07:00; sat,sun 22:00-10:00', or off", 0 },
        { "daily-cap", "N", "unasked messages per day; 0: none, -1: as everybody", 0 },
        { "reach-at", "CHAT", "where they get messages first: ADAPTER or ADAPTER/CHANNEL", 0 },
        { 0 },
};

static const struct flag pairing_flags[] = {
        { "until", "TIME", "with approve: expiry of the access; as 2h or 2026-11-15T18:00:00Z", 0 },
        { 0 },
};

static const struct flag pause_flags[] = {
        { "thread", "ID", "only a thread inside the channel", 0 },
        { "until", "TIME", "when the agent resumes by itself: 2h, or 2026-11-15T18:00:00Z", 0 },
        { "reason", "TEXT", "a reason, for operators", 0 },
        { "force", NULL, "even if nothing has been said there yet", 0 },
        { 0 },
};

static const struct flag resume_flags[] = {
        { "thread", "ID", "the paused thread", 0 },
        { 0 },
};

static const struct flag keys_flags[] = {
        { "scope", "WORDS", "read (default), write, admin or messages:write etc.; comma-separated",
          0 },
        { "adapter", "NAMES", "only these adapters, comma-separated; default: all", 0 },
        { "agent", "NAMES",
          "only these agents may be asked by name; default: all, or those --adapter can choose",
          0 },
        { "expires", "TIME", "expiry: 2030-01-31T00:00:00Z, or 90d from now; default: never", 0 },
        { "rate", "N", "requests per minute; default: 1000", 0 },
        { 0 },
};

static const struct flag backup_flags[] = {
        { "to", "FILE", "a new file; default: a dated one in DIR/state/backups", 0 },
        { 0 },
};

static const struct flag import_flags[] = {
        { "adapter", "NAME", "the channels' adapter, for mom's published layout; default: Slack's",
          0 },
        { "agent", "NAME", "the agent that remembers the conversations; default: the builtin one",
          0 },
        { "dry-run", NULL, "show what the import would do", 0 },
        { 0 },
};

static const struct flag prompt_flags[] = {
        { "agent", "NAME", "an agent of type builtin; default: the default agent", 0 },
        { 0 },
};

const struct cli_command commands[] = {
        { "chat", "[DIR] [--channel NAME] [--adapter NAME] [--listen HOST:PORT]",
          "talk to the default agent in the terminal",
          "Talks to the agent of DIR. When no daemon runs there, starts one that ends with the\n"
          "chat and logs to DIR/state/daemon.log. Without an account or key a demo agent answers.\n"
          "\n"
          "In a terminal: lines can be edited, answers are streamed, Ctrl-C stops an answer,\n"
          "Ctrl-D leaves, /help shows more, /new starts over; without it the next chat goes on\n"
          "where this one ended. Otherwise each line of input is a message and each answer goes\n"
          "to standard output, in order. Exits with 0 when all were answered, else with 1;\n"
          "reasons go to standard error.\n"
          "\n"
          "Examples:\n"
          "  dragoman chat\n"
          "  echo 'What is a dragoman?' | dragoman chat ./data\n"
          "  dragoman chat --channel notes < questions.txt > answers.txt\n",
          chat_flags, chat_command },

        { "run",
          "[DIR] [--check] [--listen HOST:PORT] [--log-format text|json] [--log-level LEVEL]",
          "start the daemon on a data directory",
          "Starts the daemon on DIR, which is created when missing. It contains:\n"
          "  config.json   your configuration; never written by the daemon; may be absent\n"
          "  workspace/    files that agents see\n"
          "  state/        database, operator key, address; private\n"
          "\n"
          "SIGTERM or Ctrl-C stops it cleanly. SIGHUP reloads the configuration; a malformed one\n"
          "changes nothing. `dragoman DIR` is short for `dragoman run DIR`.\n"
          "\n"
          "Examples:\n"
          "  dragoman run                         on " DEFAULT_DIR "\n"
          "  dragoman run /srv/bot --check        check the configuration\n"
          "  dragoman run --listen 127.0.0.1:0    on a free port; see DIR/state/http.addr\n",
          run_flags, run_command },

        { "status", "[DIR]", "show adapters, agents, queues and the store",
          "Shows the state of the daemon. When none runs, shows figures from the database and\n"
          "exits with 69.\n"
          "\n"
          "Examples:\n"
          "  dragoman status\n"
          "  dragoman status --json | jq .status.road\n",
          NULL, status_command },

        { "why", "[ID] [DIR]", "show what happened to a message, and why",
          "Traces a message step by step: stored, decided by which rule, answered, delivered. ID\n"
          "is the platform's own id of the message, alone or as ADAPTER/CHAT/ID; an event\n"
          "(evt-12), a turn (trn-7), a delivery (dlv-9) or a trace id. If several messages have\n"
          "it, they are listed. ADAPTER/CHAT shows the last messages of a chat; no ID shows the\n"
          "last ones of all, with their outcome. Works without a daemon.\n"
          "\n"
          "Examples:\n"
          "  dragoman why\n"
          "  dragoman why tg/-100123/77\n"
          "  dragoman why evt-12\n"
          "  dragoman why dlv-9 --json\n",
          NULL, why_command },

        { "route", "test FILE|evt-N [DIR] | replay [DIR] [--since WHERE] [--config FILE]",
          "show what the rules would do with events",
          "`test` applies the current DIR/config.json to an event: one of the journal (evt-12) or\n"
          "one from a file (- is standard input) in the form of the API. Shows for each rule why\n"
          "it does or does not match. `replay` decides past events again, with another file, and\n"
          "shows what would change. Neither acts on anything; both work without a daemon.\n"
          "\n"
          "Examples:\n"
          "  dragoman route test evt-12\n"
          "  dragoman route test event.json\n"
          "  echo '{\"instanceId\":\"tg\",\"channel\":\"7\",\"payload\":{\"chatType\":\"dm\",\n"
          "    \"sender\":{\"id\":\"7\"},\"text\":\"hi\"}}' | dragoman route test -\n"
          "  dragoman route replay --since 2d --config new.json\n",
          route_flags, route_command },

        { "send", "ADAPTER/CHANNEL|PERSON TEXT [--idempotency-key KEY]", "send a message",
          "Puts a message into the outbox, which delivers it like an answer, with pacing and\n"
          "retries. TEXT is Markdown; - reads it from standard input. Put -- before a text that\n"
          "begins with a dash. PERSON is somebody (per-3, telegram:42, or a name that only one\n"
          "has): they get it wherever they are reached best, after their quiet hours.\n"
          "\n"
          "Examples:\n"
          "  dragoman send tg/12345 'The build is **green**.'\n"
          "  dragoman send per-3 'The build is **red**.'\n"
          "  make 2>&1 | tail -5 | dragoman send tg/12345 - --idempotency-key build-17\n",
          send_flags, send_command },

        { "events", "[tail | consumers] [DIR] [--type TYPES] [--since WHERE] [--count N]",
          "follow events as they happen",
          "tail prints each event of the journal as it comes, one line each; with --json one JSON\n"
          "object each. Resumes a broken connection where it broke; gives up after 30 s without a\n"
          "daemon. consumers lists the durable readers of the journal: position, lag, when each\n"
          "was last seen, and how many events expired before it read them.\n"
          "\n"
          "Examples:\n"
          "  dragoman events tail\n"
          "  dragoman events tail --type 'message.*' --since 2026-11-15T06:00:00Z\n"
          "  dragoman events tail --json -n 10 | jq .payload.text\n"
          "  dragoman events consumers\n",
          events_flags, events_command },

        { "approvals",
          "[list | history | show ID | approve ID | refuse ID | rules | forget RULE] [DIR]",
          "answer agents that ask for approval",
          "An agent asks and waits before a call for which its policy requires an approval. The\n"
          "first decision counts, here, by a button or in the chat; no answer in time is a\n"
          "refusal.\n"
          "\n"
          "  list           open questions\n"
          "  history        decided ones too\n"
          "  show ID        the exact call, and everything the approval is bound to\n"
          "  approve        --always also allows such calls in this channel in future\n"
          "  rules, forget  list or remove rules made by --always and the button Always\n"
          "\n"
          "Examples:\n"
          "  dragoman approvals\n"
          "  dragoman approvals approve apr-12 --note 'but only this once'\n"
          "  dragoman approvals forget apl-1\n",
          approvals_flags, approvals_command },

        { "sessions", "[list | all | show ID | commands ID] [DIR]",
          "list coding agents that run elsewhere",
          "Coding agents that report what they do, see docs/CODING-AGENTS.md. ID is the number\n"
          "(ses-3), the program's id, or the beginning of it.\n"
          "\n"
          "  list         active ones; all: archived and ended ones too\n"
          "  show ID      where it runs, tokens and cost\n"
          "  commands ID  what people told it, who, and what became of it\n"
          "\n"
          "Examples:\n"
          "  dragoman sessions\n"
          "  dragoman sessions commands ses-3\n",
          NULL, sessions_command },

        { "steer", "ID TEXT [--follow-up | --abort]", "tell a coding agent something",
          "The program of the session fetches it and gives it to the agent, at most once. What\n"
          "nobody fetches within sessions.commandSeconds expires.\n"
          "\n"
          "Examples:\n"
          "  dragoman steer ses-3 'Use the other branch.'\n"
          "  dragoman steer 0199c3f2 --abort\n",
          steer_flags, steer_command },

        { "schedule",
          "[list | all | next | add WHEN TEXT | show ID | run ID | cancel ID | history ID] [DIR]",
          "list, add, run and cancel schedules and reminders",
          "Event files, reminders, notices and what programs asked for. WHEN is a time as people\n"
          "write it, in the zone of the person, else schedule.timezone, else the system's.\n"
          "\n"
          "  list        active ones; all: ended ones too; next: by when they are due\n"
          "  add         --to ADAPTER/CHANNEL or --person ID says where\n"
          "  run ID      now, besides its times\n"
          "  cancel ID   those of files and calendar events end with these\n"
          "  history ID  each time it was due, and what happened\n"
          "\n"
          "Examples:\n"
          "  dragoman schedule add 30m 'The tea is ready.' --to tg/42\n"
          "  dragoman schedule add 'every weekday 9:00' 'What is new?' --to tg/42 --turn\n"
          "  dragoman schedule history sch-3\n",
          schedule_flags, schedule_command },

        { "cron",
          "[list | all | next | add WHEN TEXT | show ID | run ID | cancel ID | history ID] [DIR]",
          "the same as schedule",
          "The same as `dragoman schedule`.\n"
          "\n"
          "Examples:\n"
          "  dragoman cron next\n",
          schedule_flags, schedule_command },

        { "dead-letters", "[list | retry ID [--force]] [DIR]",
          "list what failed for good, and retry it",
          "A dead letter is a failed delivery, a delivery that may have arrived (unknown), or a\n"
          "failed turn. retry queues it again; an unknown one needs --force, because it may then\n"
          "arrive twice. The list works without a daemon.\n"
          "\n"
          "Examples:\n"
          "  dragoman dead-letters\n"
          "  dragoman dead-letters retry dlv-9\n",
          dead_letters_flags, dead_letters_command },

        { "rules", "[list | show NAME | set NAME FILE | on NAME | off NAME | remove NAME] [DIR]",
          "list the rules in force, and store more of them",
          "Rules are tried in order; the first match decides. Rules of config.json change with\n"
          "the file; stored rules change here, at once. FILE contains one rule as in config.json\n"
          "(- is standard input). A rule of the file overrides a stored one of the same name.\n"
          "\n"
          "  list         all rules in order\n"
          "  show NAME    one rule, as JSON\n"
          "  set          store or replace a rule\n"
          "  on, off      enable or disable a stored rule; --position moves it\n"
          "  remove       delete a stored rule\n"
          "\n"
          "Examples:\n"
          "  dragoman rules\n"
          "  echo '{\"when\":{\"adapter\":\"tg\",\"hours\":\"22:00-06:00\"},\"mode\":\"off\"}' |\n"
          "    dragoman rules set night - --position -1\n"
          "  dragoman rules off night\n",
          rules_flags, rules_command },

        { "persons",
          "[list | search TEXT | show ID | set ID | link A B | unlink A | merge SOURCE TARGET] "
          "[DIR]",
          "show people across platforms, link their accounts, say how they are reached",
          "Everyone with access is stored as a person, with an identity on each platform\n"
          "(telegram:7). People link their own accounts by sending /link to the bot.\n"
          "\n"
          "  set ID       changes a name, or when and where messages reach them that they did\n"
          "               not ask for; an empty value returns to everybody's\n"
          "  link A B     identity B belongs to the person of identity A\n"
          "  unlink A     undoes that\n"
          "  merge        moves everything of person SOURCE (per-2) to person TARGET\n"
          "\n"
          "Examples:\n"
          "  dragoman persons search ann\n"
          "  dragoman persons set per-3 --timezone Europe/Berlin --quiet-hours 22:00-07:00\n"
          "  dragoman persons link telegram:12345 discord:67890\n",
          persons_flags, persons_command },

        { "access", "[list | allow WHO | deny WHO | remove ID | check ADAPTER USER] [DIR]",
          "allow or deny people, at once",
          "Stored access rules complement the lists of config.json; a deny wins over everything.\n"
          "WHO is an id, optionally with its platform (telegram:7; * matches anything), the\n"
          "name of someone who has written (@ada), or a person (per-3). What is unknown is\n"
          "refused unless --force is given. At a terminal you are asked whom you mean if several\n"
          "people have the name, and before everyone is allowed ('*'); elsewhere the first is\n"
          "refused with their ids, and --yes answers the second.\n"
          "\n"
          "Examples:\n"
          "  dragoman access allow telegram:12345 --adapter tg --reason 'a tester'\n"
          "  dragoman access deny 'discord:99*' --until 2026-12-01T00:00:00Z\n"
          "  dragoman access check tg 12345\n"
          "  dragoman access remove acr-3\n",
          access_flags, access_command },

        { "pairing", "[list | approve CODE | deny CODE | revoke ID] [DIR]",
          "admit strangers by a code",
          "Where an adapter's `dm` is \"pairing\", a stranger who writes receives a code and\n"
          "gives it to you by other means. approve admits them at once and for good, deny keeps\n"
          "them out, revoke undoes either.\n"
          "\n"
          "Examples:\n"
          "  dragoman pairing list\n"
          "  dragoman pairing approve ABCD-2345\n"
          "  dragoman pairing revoke pair-3\n",
          pairing_flags, pairing_command },

        { "pause", "ADAPTER/CHANNEL [--thread ID] [--until TIME] [--reason TEXT]",
          "take over a chat from its agent",
          "Stops the agent from answering there until the chat is resumed. Messages are still\n"
          "stored; you answer with `dragoman send`, and the agent sees both when it resumes. An\n"
          "answer in progress is still finished. A chat in which nothing has been said is\n"
          "refused unless --force is given; at a terminal you may choose one of the last chats.\n"
          "\n"
          "Examples:\n"
          "  dragoman pause tg/12345 --until 2h --reason 'a refund'\n"
          "  dragoman pause discord/7 --thread 9 --until 2026-11-15T18:00:00Z\n",
          pause_flags, handover_change_command },

        { "resume", "ADAPTER/CHANNEL [--thread ID]", "give a chat back to its agent",
          "Ends a `dragoman pause`.\n"
          "\n"
          "Examples:\n"
          "  dragoman resume tg/12345\n",
          resume_flags, handover_change_command },

        { "handover", "[list] [DIR]", "list the chats taken over by people",
          "Lists the paused chats: since when, by whom and why.\n"
          "\n"
          "Examples:\n"
          "  dragoman handover list\n",
          NULL, handover_command },

        { "keys",
          "[list | create NAME [--scope WORDS] [--adapter NAMES] [--agent NAMES] | revoke ID] "
          "[DIR]",
          "give other software access, and revoke it",
          "A key opens the HTTP API within its scopes, adapters, agents and rate. create prints\n"
          "it once; it cannot be shown again. revoke takes an id, a name or a prefix from the\n"
          "list, and works at once, also for the keys made with it.\n"
          "\n"
          "Examples:\n"
          "  dragoman keys create shop --scope messages:write,events:read --adapter api\n"
          "  dragoman keys create board --scope read --expires 2030-01-31T00:00:00Z\n"
          "  dragoman keys revoke shop\n",
          keys_flags, keys_command },

        { "prompt", "ADAPTER/CHANNEL [DIR] [--agent NAME]",
          "print an agent's system prompt for a channel",
          "Prints the system prompt that an agent of type builtin would get now, and on standard\n"
          "error the size of its parts in tokens and what is wrong with skills or memory. Works\n"
          "without a daemon. Tools of MCP servers are left out: they would have to be started.\n"
          "\n"
          "Examples:\n"
          "  dragoman prompt tg/12345\n"
          "  dragoman prompt discord/998 --json | jq .tokens\n",
          prompt_flags, prompt_command },

        { "import", "mom FOLDER [DIR] [--adapter NAME] [--agent NAME] [--dry-run]",
          "import a workspace of mom",
          "Copies memory, skills, events, attachments and all other files of channels. Puts old\n"
          "lines first in log.jsonl, and makes the end of context.jsonl the agent's memory of the\n"
          "channel. Keeps existing files that differ, and conversations the agent already\n"
          "remembers, so the import can be repeated. Knows both of mom's layouts. The daemon must\n"
          "not run.\n"
          "\n"
          "Examples:\n"
          "  dragoman import mom ~/mom-data --dry-run\n"
          "  dragoman import mom ~/mom-data ./data --adapter slack\n",
          import_flags, import_command },

        { "workspace", "rebuild [DIR]", "rebuild logs and sessions of the workspace",
          "Rebuilds log.jsonl and context.jsonl of each channel from the database. Keeps lines of\n"
          "messages that the journal no longer has. The daemon must not run.\n"
          "\n"
          "Examples:\n"
          "  dragoman workspace rebuild\n",
          NULL, workspace_command },

        { "backup", "[DIR] [--to FILE]", "copy the database while the daemon runs",
          "Makes a consistent copy and prints its path. The file must not exist. To restore: stop\n"
          "the daemon, replace DIR/state/main.db by the copy, and remove main.db-wal and\n"
          "main.db-shm.\n"
          "\n"
          "Examples:\n"
          "  dragoman backup\n"
          "  dragoman backup --to /backup/dragoman-$(date +%F).db\n",
          backup_flags, backup_command },

        { "api", "doc|openapi", "print the reference of the HTTP API",
          "doc      prints the reference of all routes, as Markdown\n"
          "openapi  prints the OpenAPI 3.1 document, for programs\n"
          "\n"
          "Examples:\n"
          "  dragoman api doc\n"
          "  dragoman api openapi > dragoman.openapi.json\n",
          NULL, api_command },

        { "config", "check|schema|doc [DIR]", "check the configuration, or print its reference",
          "check   reads DIR/config.json like the daemon; lists every mistake with its line and\n"
          "        what would have been accepted, and warnings; exits with 78 if there are\n"
          "        mistakes or nothing to check, else with 0\n"
          "schema  prints the JSON Schema of the file, for editors\n"
          "doc     prints the reference of all settings, as Markdown\n"
          "\n"
          "Examples:\n"
          "  dragoman config check ./data\n"
          "  dragoman config schema > dragoman.schema.json\n",
          NULL, config_command },

        { "doctor", "[DIR]", "check for common problems",
          "Checks configuration, permissions, disk, daemon, adapters, agents, database,\n"
          "certificates and clock. Each line is ok, warn or fail, with advice. An adapter that\n"
          "is refused, such as by a wrong token, or not connected for five minutes is a failure.\n"
          "Changes nothing. Exits with 0 unless a check fails.\n"
          "\n"
          "Examples:\n"
          "  dragoman doctor ./data\n",
          NULL, doctor_command },

        { "version", "", "print the version", "Prints the version of this program.\n", NULL,
          help_version_command },

        { "help", "[COMMAND]", "explain a command",
          "Without a command: the overview. With one: its usage, flags and examples.\n"
          "\n"
          "Examples:\n"
          "  dragoman help run\n"
          "  dragoman help --json    the whole command table, for programs\n",
          NULL, help_command },
        { 0 },
};

const struct cli_command *command_find(const char *name)
{
        for (const struct cli_command *c = commands; c->name; c++) {
                if (strcmp(c->name, name) == 0)
                        return c;
        }
        return NULL;
}

const char *command_nearest(const char *word)
{
        const char *names[COUNT(commands)];

        for (size_t i = 0; i < COUNT(commands); i++)
                names[i] = commands[i].name;
        return settings_nearest(word, names);
}

int command_usage_error(const struct cli_command *c, const char *fmt, ...)
{
        va_list ap;

        fputs("dragoman", stderr);
        if (c)
                fprintf(stderr, " %s", c->name);
        fputs(": ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        if (c)
                fprintf(stderr, "\nusage: dragoman %s %s\nmore: dragoman help %s\n", c->name,
                        c->usage, c->name);
        else
                fputs("\nmore: dragoman help\n", stderr);
        return CLI_USAGE;
}

int command_failed(const struct args *a, const struct error *err)
{
        struct buf json;

        print_stderr("dragoman: ", err->text);
        if (a->json) {
                buf_init(&json, 0);
                jsonw_open(&json, '{');
                jsonw_open_member(&json, "error", '{');
                jsonw_str(&json, "kind", error_kind_name(err->kind));
                jsonw_str(&json, "message", err->text);
                jsonw_close(&json, '}');
                jsonw_close(&json, '}');
                puts(json.data);
                buf_release(&json);
        }
        return err->kind == ERR_NET ? CLI_NO_DAEMON : CLI_FAILED;
}
