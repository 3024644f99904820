/*
 * show: answers of the daemon, fetched and printed for people; used by the commands and inside a
 * chat.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/client.h"

/* {"status": ..., "instances": [...], "agents": [...]}; yours to decref. */
int status_fetch(struct client *c, json_t **out, struct error *err);
void status_print(const json_t *all, const char *dir);

/* The story of a message (road/story.h); yours to decref. */
int why_fetch(struct client *c, const char *id, json_t **out, struct error *err);
void why_print(const json_t *story);

/* The readers of the journal, from the database itself; the command's exit code. */
int consumers_list(struct args *a);

#endif
