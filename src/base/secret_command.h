/*
 * secret_command: runs the program of a "cmd:" handle.
 *
 * It spawns the child itself instead of using net/process: secrets are resolved before the loop
 * exists and on worker threads, where blocking is fine and the loop must not be touched.
 */
#ifndef BASE_SECRET_COMMAND_H
#define BASE_SECRET_COMMAND_H

#include "base/buf.h"
#include "base/error.h"

#define SECRET_COMMAND_MS 10000

/*
 * Runs line in dir (NULL: the current directory) without a shell, without standard input, and with
 * only PATH and HOME in its environment; collects at most out->max bytes of its output. Blocks
 * until it ends; after SECRET_COMMAND_MS kills it and its children. -1 unless it exits with
 * status 0.
 */
int secret_command_run(const char *line, const char *dir, struct buf *out, struct error *err);
/*
 * Splits line at spaces; '...' and "..." keep a word together. NULL-terminated; NULL with an error
 * when a quote is left open or there is no word. Free with secret_command_free.
 */
char **secret_command_split(const char *line, struct error *err);
void secret_command_free(char **words);

#endif
