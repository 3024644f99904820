/*
 * command: the table of commands (commands.c), and the arguments of one.
 *
 * A command's function takes its operands one by one, then calls args_end for the optional DIR.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"

#define COMMAND_MAX_FLAGS 12
#define DEFAULT_DIR       "./data"

struct args;

struct flag {
        const char *name;  /* NULL ends a table */
        const char *value; /* in help; NULL: a switch */
        const char *help;
        char letter; /* 0: none */
};

struct cli_command {
        const char *name;
        const char *usage; /* follows the name */
        const char *summary;
        const char *help; /* with examples */
        const struct flag *flags;
        int (*run)(struct args *a); /* returns an exit code */
};

/* ---- commands.c ---- */

extern const struct cli_command commands[]; /* ended by a NULL name */
extern const struct flag common_flags[];

const struct cli_command *command_find(const char *name);
/* NULL: none is similar. */
const char *command_nearest(const char *word);
/* c may be NULL. Returns CLI_USAGE. */
int command_usage_error(const struct cli_command *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/*
 * Reports on stderr and, with --json, as {"error": ...} on stdout. CLI_NO_DAEMON for ERR_NET, else
 * CLI_FAILED.
 */
int command_failed(const struct args *a, const struct error *err);

/* ---- args.c ---- */

struct args {
        const struct cli_command *command;
        const struct cli_env *env;
        const char *dir; /* the data directory */
        bool json, wants_help, dir_given;
        const struct resource_action *action; /* resource.c: the chosen one */
        const char **operands;
        size_t operand_count, next;
        const char *values[COMMAND_MAX_FLAGS]; /* in the order of the flags; "" for a switch */
};

/*
 * The words after the command's name. This and all functions below report mistakes on stderr and
 * return -1 or NULL. Release the args in any case.
 */
int args_parse(struct args *a, const struct cli_command *c, const struct cli_env *env, int argc,
               char **argv);
void args_release(struct args *a);
/* NULL: not given. */
const char *args_value(const struct args *a, const char *flag);
bool args_has(const struct args *a, const char *flag);
/* *out is unchanged when the flag was not given. */
int args_number(const struct args *a, const char *flag, long min, long max, long *out);
/*
 * A time as RFC 3339, or a span from now (30m, 2h, 1d): ARGS_AGO before now, ARGS_AHEAD after it,
 * where the past is refused. 1; 0: not given, iso ""; -1: reported.
 */
enum args_span { ARGS_AGO, ARGS_AHEAD };
int args_time(const struct args *a, const char *flag, enum args_span span, char *iso);
/* The index in `choices`; `fallback` when not given. */
int args_choice(const struct args *a, const char *flag, const char *const *choices, int fallback);
/* The next operand, called `what` in the error. */
const char *args_operand(struct args *a, const char *what);
/* The next operand if it is an action, else `fallback` (NULL: required). */
const char *args_action(struct args *a, const char *const *actions, const char *fallback);
/* Takes the optional DIR; no operand may follow. */
int args_end(struct args *a);
/* "12345" of "tg/12345"; it may contain slashes. */
const char *args_channel(const struct args *a, const char *chat);
/* --listen, or NULL. -1: not an address and port, reported. */
int args_listen(const struct args *a, const char **out);
/* "-": standard input. At most 1 MiB, yours to free. */
char *args_file(const char *path, struct error *err);

/* ---- help.c ---- */

/* NULL: the overview. */
void help_write(const struct cli_command *c, struct buf *out);

/* ---- shown by a chat as well; yours to decref ---- */

struct client;

/* {"status": ..., "instances": [...], "agents": [...]} */
int status_fetch(struct client *c, json_t **out, struct error *err);
void status_print(const json_t *all, const struct client *c);
/* A trace report (road/report/trace_report.h). */
int why_fetch(struct client *c, const char *id, json_t **out, struct error *err);
void why_print(const json_t *report);

/* ---- the commands ---- */

int run_command(struct args *a);
int chat_command(struct args *a);
int status_command(struct args *a);
int why_command(struct args *a);
int route_command(struct args *a);
int route_replay_command(struct args *a);
int send_command(struct args *a);
int schedule_command(struct args *a);
int sessions_command(struct args *a);
int steer_command(struct args *a);
int events_command(struct args *a);
int approvals_command(struct args *a);
int dead_letters_command(struct args *a);
int persons_command(struct args *a);
int access_command(struct args *a);
int pairing_command(struct args *a);
int handover_command(struct args *a);
int rules_command(struct args *a);
int handover_change_command(struct args *a);
int keys_command(struct args *a);
int prompt_command(struct args *a);
int import_command(struct args *a);
int workspace_command(struct args *a);
int api_command(struct args *a);
int backup_command(struct args *a);
int config_command(struct args *a);
int doctor_command(struct args *a);
int help_version_command(struct args *a);
int help_command(struct args *a);

/* `config check` and `run --check`. */
int config_check(const struct args *a);

#endif
