/* The one table of commands. Adding one is a file and a row. */
#include "cli/command.h"

/* clang-format off: a row is a row */
const struct flag common_flags[] = {
        { "dir", "DIR", "the data directory (default " DEFAULT_DIR ")", 'C' },
        { "json", NULL, "print JSON for programs instead of text for people", 0 },
        { "help", NULL, "show this help", 'h' },
        { 0 },
};

static const struct flag chat_flags[] = {
        { "channel", "NAME", "go on with this conversation instead of a new one", 0 },
        { "adapter", "NAME", "speak through this adapter of type cli", 0 },
        { "listen", "HOST:PORT", "where a daemon that has to be started listens", 0 },
        { 0 },
};

static const struct flag run_flags[] = {
        { "check", NULL, "only check the configuration: exit 0 when it is fine, 78 when not", 0 },
        { "listen", "HOST:PORT", "listen here instead of http.listen; port 0 takes a free one", 0 },
        { "log-format", "FORMAT", "text or json; one line an event, on standard error", 0 },
        { "log-level", "LEVEL", "debug, info, warn or error: the least that is logged", 0 },
        { "parent-watch", NULL, "end when the parent process ends", 0 },
        { 0 },
};

static const struct flag send_flags[] = {
        { "idempotency-key", "KEY", "the same key again sends nothing twice", 0 },
        { "thread", "ID", "a thread inside the channel", 0 },
        { "reply-to", "ID", "the platform's id of the message to answer", 0 },
        { 0 },
};

static const struct flag events_flags[] = {
        { "type", "TYPES", "only these, separated by commas; a * at the end stands for anything",
          0 },
        { "since", "WHERE", "begin after an event (evt-42) or at a time instead of now", 0 },
        { "adapter", "NAME", "only events of this adapter", 0 },
        { "channel", "ID", "only events of this channel", 0 },
        { "count", "N", "end after so many events", 'n' },
        { 0 },
};

static const struct flag route_flags[] = {
        { "since", "WHERE",
          "replay what came after an event (evt-42), at a time or later, or within 30m, 2h, 1d (1d)",
          0 },
        { "config", "FILE", "replay by this configuration instead of DIR/config.json", 0 },
        { "all", NULL, "list also the events about which nothing would be different", 0 },
        { 0 },
};

static const struct flag dead_letters_flags[] = {
        { "force", NULL, "retry also what may have arrived: it may then arrive twice", 0 },
        { 0 },
};

static const struct flag rules_flags[] = {
        { "position", "N", "lower ones are tried first; those below 0 before the rules of the file",
          0 },
        { 0 },
};

static const struct flag access_flags[] = {
        { "adapter", "NAME", "only on this adapter", 0 },
        { "place", "PLACE", "dm or group: only there", 0 },
        { "until", "TIME", "when it ends, such as 2026-11-15T18:00:00Z", 0 },
        { "reason", "TEXT", "why, for operators", 0 },
        { "message", "TEXT", "with deny: what the sender is told, once an hour", 0 },
        { 0 },
};

static const struct flag pairing_flags[] = {
        { "until", "TIME", "with approve: how long the person is let in", 0 },
        { 0 },
};

static const struct flag pause_flags[] = {
        { "thread", "ID", "only a thread inside the channel", 0 },
        { "until", "TIME", "when the agent comes back by itself, such as 2026-11-15T18:00:00Z", 0 },
        { "reason", "TEXT", "why, for whoever asks", 0 },
        { 0 },
};

static const struct flag resume_flags[] = {
        { "thread", "ID", "the thread that was paused", 0 },
        { 0 },
};

static const struct flag keys_flags[] = {
        { "scope", "WORDS",
          "what it may: read (default), write, admin, or messages:write and so on; commas part them",
          0 },
        { "adapter", "NAMES", "the only adapters it reaches, parted by commas; without it all", 0 },
        { "expires", "TIME", "when it ends, such as 2030-01-31T00:00:00Z; without it never", 0 },
        { "rate", "N", "requests a minute; without it 1000", 0 },
        { 0 },
};

static const struct flag backup_flags[] = {
        { "to", "FILE", "a new file for the copy; without it a dated one in DIR/state/backups", 0 },
        { 0 },
};

const struct command commands[] = {
        { "chat", "[DIR] [--channel NAME] [--adapter NAME] [--listen HOST:PORT]",
          "talk to the default agent here in the terminal",
          "Talks to the agent of DIR. When no daemon runs there, one is started and ends with the\n"
          "chat; its log is DIR/state/daemon.log. Without an account or key a demo agent answers.\n"
          "\n"
          "In a terminal: lines can be edited, answers come word by word, Ctrl-C stops an answer,\n"
          "Ctrl-D leaves, /help tells more. Otherwise every input line is a message and its answer\n"
          "goes to standard output, in order; exit 0 when all were answered, 1 when one was not\n"
          "(the reason is on standard error).\n"
          "\n"
          "Examples:\n"
          "  dragoman chat\n"
          "  echo 'What is a dragoman?' | dragoman chat ./data\n"
          "  dragoman chat --channel notes < questions.txt > answers.txt\n",
          chat_flags, chat_command },

        { "run",
          "[DIR] [--check] [--listen HOST:PORT] [--log-format text|json] [--log-level LEVEL]",
          "start the daemon on a data directory",
          "Starts the daemon on DIR, which is made when it is not there. In it:\n"
          "  config.json   yours; never written by the daemon. Without it the defaults apply.\n"
          "  workspace/    what agents see\n"
          "  state/        database, operator key, address; private\n"
          "\n"
          "SIGTERM or Ctrl-C ends it cleanly, SIGHUP reads the configuration again; a wrong one\n"
          "keeps the old one in force. `dragoman DIR` is the same as `dragoman run DIR`.\n"
          "\n"
          "Examples:\n"
          "  dragoman run                         on " DEFAULT_DIR "\n"
          "  dragoman run /srv/bot --check        is the configuration right?\n"
          "  dragoman run --listen 127.0.0.1:0    on a free port; see DIR/state/http.addr\n",
          run_flags, run_command },

        { "status", "[DIR]", "show adapters, agents, queues and the store",
          "Asks the daemon how everybody is. When none runs, the database is looked at and the exit\n"
          "code is 69.\n"
          "\n"
          "Examples:\n"
          "  dragoman status\n"
          "  dragoman status --json | jq .status.road\n",
          NULL, status_command },

        { "why", "ID [DIR]", "tell what became of a message, and why",
          "Tells the story of a message step by step: stored, decided, answered, delivered. ID is an\n"
          "event (evt-12), a turn (trn-7), a delivery (dlv-9), a trace, or the platform's own id of\n"
          "the message. Works without a daemon, too.\n"
          "\n"
          "Examples:\n"
          "  dragoman why evt-12\n"
          "  dragoman why dlv-9 --json\n",
          NULL, why_command },

        { "route", "test FILE|evt-N [DIR] | replay [DIR] [--since WHERE] [--config FILE]",
          "tell what the rules would do with events",
          "`test` tries DIR/config.json, as it is written now, on an event: one of the journal (evt-12), or\n"
          "one from a file (- is standard input) written as the API shows events. Each rule says why it\n"
          "does or does not match. `replay` decides again about what has happened, with another file,\n"
          "and tells what would be different. Nothing happens. Both work without a daemon.\n"
          "\n"
          "Examples:\n"
          "  dragoman route test evt-12\n"
          "  dragoman route test event.json\n"
          "  echo '{\"instanceId\":\"tg\",\"channel\":\"7\",\"payload\":{\"chatType\":\"dm\",\n"
          "    \"sender\":{\"id\":\"7\"},\"text\":\"hi\"}}' | dragoman route test -\n"
          "  dragoman route replay --since 2d --config new.json\n",
          route_flags, route_command },

        { "send", "ADAPTER/CHANNEL TEXT [--idempotency-key KEY]", "send a message",
          "Puts a message into the outbox; it is delivered as answers are, with pacing and retries.\n"
          "TEXT is Markdown; - reads it from standard input. Text that begins with a dash stands\n"
          "behind --.\n"
          "\n"
          "Examples:\n"
          "  dragoman send tg/12345 'The build is **green**.'\n"
          "  make 2>&1 | tail -5 | dragoman send tg/12345 - --idempotency-key build-17\n",
          send_flags, send_command },

        { "events", "[tail | consumers] [DIR] [--type TYPES] [--since WHERE] [--count N]",
          "follow what happens, as it happens",
          "Prints every event of the journal as it comes, one line each; with --json one JSON object\n"
          "each. A broken connection is taken up again where it broke; after 30 s without a daemon\n"
          "it gives up. consumers lists who reads the journal with a cursor of its own: how far each\n"
          "has come, how many events it is behind, when it was last there, and how many were deleted\n"
          "before it read them, because it stayed away for longer than events are kept.\n"
          "\n"
          "Examples:\n"
          "  dragoman events tail\n"
          "  dragoman events tail --type 'message.*' --since 2026-11-15T06:00:00Z\n"
          "  dragoman events tail --json -n 10 | jq .payload.text\n"
          "  dragoman events consumers\n",
          events_flags, events_command },

        { "dead-letters", "[list | retry ID [--force]] [DIR]",
          "list what failed for good, and put it back",
          "A dead letter is a delivery that failed, one of which nobody knows whether it arrived\n"
          "(unknown), or a turn that failed. retry puts it back; an unknown one only with --force,\n"
          "because it may then arrive twice. The list works without a daemon, too.\n"
          "\n"
          "Examples:\n"
          "  dragoman dead-letters\n"
          "  dragoman dead-letters retry dlv-9\n",
          dead_letters_flags, dead_letters_command },

        { "rules", "[list | show NAME | set NAME FILE | on NAME | off NAME | remove NAME] [DIR]",
          "list the rules in force, and store some beside those of the file",
          "Rules are tried from the top; the first that matches decides. Those of config.json change with\n"
          "the file; stored ones change here, at once. FILE has a rule as it would stand in the\n"
          "file (- is standard input). Where the file has a rule of the same name, the file's holds.\n"
          "\n"
          "  list         all, in the order in which they are tried\n"
          "  show NAME    one, as JSON\n"
          "  set          store a rule, or replace the stored one\n"
          "  on, off      switch a stored rule on or off, keeping it; --position moves it\n"
          "  remove       forget a stored rule\n"
          "\n"
          "Examples:\n"
          "  dragoman rules\n"
          "  echo '{\"when\":{\"adapter\":\"tg\",\"hours\":\"22:00-06:00\"},\"mode\":\"off\"}' |\n"
          "    dragoman rules set night - --position -1\n"
          "  dragoman rules off night\n",
          rules_flags, rules_command },

        { "persons",
          "[list | search TEXT | show ID | link A B | unlink A | merge SOURCE TARGET] [DIR]",
          "show people across platforms, and who is the same",
          "Whoever was let in is known as a person, with an identity on each platform (telegram:7). People\n"
          "link their own accounts by writing /link to the bot; here the operator does.\n"
          "\n"
          "  link A B     the identities A and B are one person: that of A\n"
          "  unlink A     takes that back\n"
          "  merge        the person SOURCE (per-2) is the person TARGET; nothing is lost\n"
          "\n"
          "Examples:\n"
          "  dragoman persons search ann\n"
          "  dragoman persons link telegram:12345 discord:67890\n",
          NULL, persons_command },

        { "access", "[list | allow WHO | deny WHO | remove ID | check ADAPTER USER] [DIR]",
          "let people in or keep them out, at once",
          "Stored access rules stand beside the lists of config.json. A deny wins over everything. WHO is\n"
          "an id, perhaps behind its platform (telegram:7; * stands for anything), or a person (per-3).\n"
          "\n"
          "Examples:\n"
          "  dragoman access allow telegram:12345 --adapter tg --reason 'a tester'\n"
          "  dragoman access deny 'discord:99*' --until 2026-12-01T00:00:00Z\n"
          "  dragoman access check tg 12345\n"
          "  dragoman access remove acr-3\n",
          access_flags, access_command },

        { "pairing", "[list | approve CODE | deny CODE | revoke ID] [DIR]",
          "let strangers in by the code they were told",
          "Where an adapter's `dm` says \"pairing\", a stranger who writes is told a code. He gives it to "
          "you by\n"
          "another way; approve lets him in at once and for good, deny keeps him out, revoke takes\n"
          "either back.\n"
          "\n"
          "Examples:\n"
          "  dragoman pairing list\n"
          "  dragoman pairing approve ABCD-2345\n"
          "  dragoman pairing revoke pair-3\n",
          pairing_flags, pairing_command },

        { "pause", "ADAPTER/CHANNEL [--thread ID] [--until TIME] [--reason TEXT]",
          "take over a chat from its agent",
          "People are not answered by the agent there until it is resumed: everything is stored, you\n"
          "answer with `dragoman send`, and the agent knows both when it comes back. An answer that is\n"
          "under way is still finished.\n"
          "\n"
          "Examples:\n"
          "  dragoman pause tg/12345 --reason 'a refund'\n"
          "  dragoman pause discord/7 --thread 9 --until 2026-11-15T18:00:00Z\n",
          pause_flags, pause_command },

        { "resume", "ADAPTER/CHANNEL [--thread ID]", "give a chat back to its agent",
          "Ends what `dragoman pause` began.\n"
          "\n"
          "Examples:\n"
          "  dragoman resume tg/12345\n",
          resume_flags, resume_command },

        { "handover", "[list] [DIR]", "list the chats that people have taken over",
          "Lists where the agent is paused, since when, by whom and why.\n"
          "\n"
          "Examples:\n"
          "  dragoman handover list\n",
          NULL, handover_command },

        { "keys", "[list | create NAME [--scope WORDS] [--adapter NAMES] | revoke ID] [DIR]",
          "give other software access, and take it back",
          "A key opens the HTTP API for what its scopes name, on the adapters it was made for, so many\n"
          "times a minute. create prints it once; afterwards nobody knows it. revoke takes an id, a\n"
          "name or a beginning as the list shows it, and works at once.\n"
          "\n"
          "Examples:\n"
          "  dragoman keys create shop --scope messages:write,events:read --adapter api\n"
          "  dragoman keys create board --scope read --expires 2030-01-31T00:00:00Z\n"
          "  dragoman keys revoke shop\n",
          keys_flags, keys_command },

        { "backup", "[DIR] [--to FILE]", "copy the database while the daemon runs",
          "Makes a consistent copy and prints its path. The file must not exist yet. To restore: stop\n"
          "the daemon and put the copy in the place of DIR/state/main.db, without main.db-wal and\n"
          "main.db-shm.\n"
          "\n"
          "Examples:\n"
          "  dragoman backup\n"
          "  dragoman backup --to /backup/dragoman-$(date +%F).db\n",
          backup_flags, backup_command },

        { "api", "doc|openapi", "print what the HTTP API offers",
          "doc      prints the reference of all routes, as Markdown\n"
          "openapi  prints the OpenAPI 3.1 document, for programs\n"
          "\n"
          "Examples:\n"
          "  dragoman api doc\n"
          "  dragoman api openapi > dragoman.openapi.json\n",
          NULL, api_command },

        { "config", "check|schema|doc [DIR]",
          "check the configuration, or print what may stand in it",
          "check   reads DIR/config.json as the daemon would, tells the first mistake with its line\n"
          "        and what would have been accepted, or the warnings; exit 0 or 78\n"
          "schema  prints the JSON Schema of the file, for editors\n"
          "doc     prints the reference of all settings, as Markdown\n"
          "\n"
          "Examples:\n"
          "  dragoman config check ./data\n"
          "  dragoman config schema > dragoman.schema.json\n",
          NULL, config_command },

        { "doctor", "[DIR]", "look for what commonly goes wrong",
          "Checks configuration, permissions, disk, daemon, adapters, database, certificates and\n"
          "clock. Each line is ok, warn or fail, with what to do. Changes nothing. Exit 0 unless\n"
          "something fails.\n"
          "\n"
          "Examples:\n"
          "  dragoman doctor ./data\n",
          NULL, doctor_command },

        { "version", "", "print the version", "Prints the version of this program.\n", NULL,
          version_command },

        { "help", "[COMMAND]", "explain a command",
          "Without a word: all commands. With one: what it does, its flags, examples.\n"
          "\n"
          "Examples:\n"
          "  dragoman help run\n"
          "  dragoman help --json    the whole command table, for programs\n",
          NULL, help_command },
        { 0 },
};
/* clang-format on */
