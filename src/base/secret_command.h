/*
 * secret_command: running the program behind a "cmd:" handle.
 */
#ifndef BASE_SECRET_COMMAND_H
#define BASE_SECRET_COMMAND_H

#include "base/buf.h"
#include "base/error.h"

#define SECRET_COMMAND_MS 10000

/*
 * Splits line into words at spaces ('...' and "..." keep a word together; nothing else is special:
 * there is no shell), runs it in dir (NULL: here) with no standard input and only PATH and HOME in
 * its environment, and collects at most out->max bytes of its output. Blocks until it ends or
 * SECRET_COMMAND_MS have passed; then it and what it started are killed. -1 unless it ends with
 * status 0.
 */
int secret_command_run(const char *line, const char *dir, struct buf *out, struct error *err);
/*
 * The words of line, NULL-terminated; NULL with an error when a quote is left open or there are
 * none. Free with secret_command_free.
 */
char **secret_command_split(const char *line, struct error *err);
void secret_command_free(char **words);

#endif
