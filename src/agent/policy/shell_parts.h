/*
 * shell_parts: what of a shell command is judged by itself.
 *
 * Each simple command and each file of a redirection is a part. Programs that run other programs
 * (env, timeout, sh -c, xargs, ...) add the inner command as a part.
 */
#ifndef AGENT_POLICY_SHELL_PARTS_H
#define AGENT_POLICY_SHELL_PARTS_H

#include "agent/policy/shell.h"

#define SHELL_ANY '\1' /* any text, with the blank before it */

struct shell_part {
        const char *text;    /* "git push origin", words quoted where needed; NULL: a file */
        const char *plain;   /* the same with the program's name without its folder */
        const char *program; /* without its folder */
        /* plain, with SHELL_ANY for each word that is not literal; NULL: there is none */
        const char *pattern;
        bool assigned; /* variables are set for it; text begins with them */
        bool open;     /* words follow that are only known when it runs */
        bool wraps;    /* a program of the system that only runs another part: needs no rule */
        const struct shell_word *words;
        size_t count;
        /* a file: */
        const char *path;
        bool literal, writes;
};

struct shell_parts {
        struct shell_script scripts[SHELL_DEPTH_MAX + 1]; /* hold the memory; the outer one first */
        size_t script_count;
        struct shell_part *parts;
        size_t count;
        bool moves; /* it changes the working directory: relative paths are not known */
};

/* -1: it cannot be taken apart; says why, and out has what was found. Release it in any case. */
int shell_parts_split(struct shell_parts *out, const char *text, struct error *err);
void shell_parts_release(struct shell_parts *p);
/* By its name alone, or in /bin or /usr/bin: another one may do anything, whatever its name. */
bool shell_is_system(const char *program);

#endif
