/*
 * shell: the simple commands that a bash script consists of.
 *
 * Each part of a script is judged by itself: what a pipe, a list, a subshell, $(...), `...`, <(...)
 * or a here-document holds is a command like any other. What this parser does not understand, or
 * what bash would only know when it runs it, is an error, never a guess.
 */
#ifndef AGENT_POLICY_SHELL_H
#define AGENT_POLICY_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define SHELL_BYTES_MAX    65536
#define SHELL_COMMANDS_MAX 256
#define SHELL_DEPTH_MAX    20

/* literal: text is what the program gets; else it is as written, with expansions to come. */
struct shell_word {
        const char *text;
        bool literal;
};

/* A redirection to or from a file. */
struct shell_path {
        const char *path;
        bool literal, writes;
};

struct shell_command {
        struct shell_word *words; /* the program first; none: only assignments or redirections */
        size_t count;
        const char **assignments; /* "NAME=value" before the program, as written */
        size_t assignment_count;
        struct shell_path *paths;
        size_t path_count;
        bool open; /* xargs adds words */
};

struct shell_script {
        struct arena arena;
        struct shell_command *commands;
        size_t count;
};

/* -1: ERR_INVALID, what was not understood, or ERR_LIMIT. Release it in any case. */
int shell_split(struct shell_script *out, const char *text, struct error *err);
void shell_release(struct shell_script *s);

#endif
