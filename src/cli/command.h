/*
 * command: a command of the program is a row: its name, how it is called, what it teaches, its
 * flags, its function.
 *
 * Help, parsing, the nearest name of a mistyped word and the exit codes come from the rows
 * (commands.c). A command's function gets its flags and operands parsed; it takes its operands one
 * by one, then calls args_end, which takes the optional DIR.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"

#define COMMAND_MAX_FLAGS 12
#define DEFAULT_DIR       "./data"

struct args;

struct flag {
        const char *name;  /* without the dashes; NULL ends a table */
        const char *value; /* what stands for the value in the help; NULL: a switch */
        const char *help;
        char letter; /* 0: none */
};

struct command {
        const char *name;
        const char *usage; /* what follows the name */
        const char *summary;
        const char *help; /* teaches, with examples */
        const struct flag *flags;
        int (*run)(struct args *a); /* returns an exit code */
};

extern const struct command commands[]; /* ended by a NULL name */
extern const struct flag common_flags[];

const struct command *command_find(const char *name);
/* NULL when none is near. */
const char *command_nearest(const char *word);

/* What was written behind the command's name. */
struct args {
        const struct command *command;
        const struct cli_env *env;
        const char *dir; /* the data directory */
        bool json, wants_help, dir_given;
        const char **operands;
        size_t operand_count, next;
        /* by the place in the command's table; "" for a switch */
        const char *values[COMMAND_MAX_FLAGS];
};

/*
 * argv begins behind the command's name. 0, or -1 after the mistake was told on stderr. Release in
 * both cases.
 */
int args_parse(struct args *a, const struct command *c, const struct cli_env *env, int argc,
               char **argv);
void args_release(struct args *a);
/* The value of a flag, or NULL when it was not given. */
const char *args_value(const struct args *a, const char *flag);
bool args_has(const struct args *a, const char *flag);
/* A number from min to max: 0, or -1 after telling. *out stays when the flag was not given. */
int args_number(const struct args *a, const char *flag, long min, long max, long *out);
/* One of `choices` (NULL-terminated): its place, `fallback` when not given, -1 after telling. */
int args_choice(const struct args *a, const char *flag, const char *const *choices, int fallback);
/* The next operand; NULL after telling that `what` is missing. */
const char *args_operand(struct args *a, const char *what);
/*
 * The next operand if it is one of `actions` (NULL-terminated), else `fallback` (NULL: one must be
 * given; NULL after telling).
 */
const char *args_action(struct args *a, const char *const *actions, const char *fallback);
/* Takes the optional DIR; nothing may follow. 0, or -1 after telling. */
int args_end(struct args *a);

/* Tells a mistake of usage, and where to learn more. Returns CLI_USAGE. */
int command_usage_error(const struct command *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/*
 * Tells a failure on stderr and, with --json, as {"error": ...} on stdout. Returns CLI_NO_DAEMON
 * for ERR_NET, else CLI_FAILED.
 */
int command_failed(const struct args *a, const struct error *err);
/* Prints a JSON value, indented, and a newline. */
struct json_t;
void print_json(const struct json_t *value);

/* ---- help (help.c) ---- */

void help_write_overview(struct buf *out);
void help_write(const struct command *c, struct buf *out);

/* ---- the commands, by the file that has them ---- */

int run_command(struct args *a);
int chat_command(struct args *a);
int status_command(struct args *a);
int why_command(struct args *a);
int route_command(struct args *a);
int route_replay_command(struct args *a); /* replay.c */
int send_command(struct args *a);
int events_command(struct args *a);
int dead_letters_command(struct args *a);
int persons_command(struct args *a);
int access_command(struct args *a);
int pairing_command(struct args *a);
int handover_command(struct args *a);
int rules_command(struct args *a);
int pause_command(struct args *a);
int resume_command(struct args *a);
int keys_command(struct args *a);
int api_command(struct args *a);
int backup_command(struct args *a);
int config_command(struct args *a);
int doctor_command(struct args *a);
int version_command(struct args *a);
int help_command(struct args *a);

/* Checks DIR/config.json and tells: `config check` and `run --check`. */
int config_check(const struct args *a);

#endif
