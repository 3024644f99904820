/* The one table of commands. Adding one is a file and a row. */
#include "cli/command.h"

const struct flag common_flags[] = {
        {"dir",                                           "DIR", "the data directory (default " DEFAULT_DIR ")", 'C' },
        { "json", NULL, "print JSON for programs instead of text for people", 0 },
        { "help",                                              NULL, "show this help", 'h' },
        { 0                                          },
};

static const struct flag run_flags[] = {
        {"check",                                                              NULL, "only check the configuration: exit 0 when it is fine, 78 when not", 0 },
        { "listen", "HOST:PORT", "listen here instead of http.listen; port 0 takes a free one", 0 },
        { "log-format",                                                                   "FORMAT", "text or json; one line an event, on standard error", 0 },
        { "log-level",                                                         "LEVEL", "debug, info, warn or error: the least that is logged", 0 },
        { "parent-watch",                                                                   NULL, "end when the parent process ends", 0 },
        { 0                                                       },
};

const struct command commands[] = {
        {"run",                                  "[DIR] [--check] [--listen HOST:PORT] [--log-format text|json] [--log-level LEVEL]",
         "start the daemon on a data directory", "Starts the daemon on DIR, which is made when it is not there. In it:\n"
          "  config.json   yours; never written by the daemon. Without it the defaults apply.\n"
          "  workspace/    what agents see\n"
          "  state/        database, operator key, address; private\n"
          "\n"
          "SIGTERM or Ctrl-C ends it cleanly, SIGHUP reads the configuration again; a wrong one keeps\n"
          "the old one in force. `dragoman DIR` is the same as `dragoman run DIR`.\n"
          "\n"
          "Examples:\n"
          "  dragoman run                         on " DEFAULT_DIR "\n"
          "  dragoman run /srv/bot --check        is the configuration right?\n"
          "  dragoman run --listen 127.0.0.1:0    on a free port; see DIR/state/http.addr\n", run_flags, run_command },
        { "config", "check|schema|doc [DIR]", "check the configuration, or print what may stand in it",
         "check   reads DIR/config.json as the daemon would, tells the first mistake with its line and "
         "what\n"
          "        would have been accepted, or the warnings; exit 0 or 78\n"
          "schema  prints the JSON Schema of the file, for editors\n"
          "doc     prints the reference of all settings, as Markdown\n"
          "\n"
          "Examples:\n"
          "  dragoman config check ./data\n"
          "  dragoman config schema > dragoman.schema.json\n", NULL, config_command },
        { "version",                             "", "print the version", "Prints the version of this program.\n", NULL,
         version_command },
        { "help",                                     "[COMMAND]", "explain a command",
         "Without a word: all commands. With one: what it does, its flags, examples.\n"
          "\n"
          "Examples:\n"
          "  dragoman help run\n"
          "  dragoman help --json    the whole command table, for programs\n", NULL, help_about_command },
        { 0             },
};
