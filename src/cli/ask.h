/*
 * ask: questions to the person at a terminal.
 */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/command.h"

/* Standard input and output are a terminal, and the output is for people. */
bool ask_possible(const struct args *a);
/* False: no. */
bool ask_yes(const char *question);
/*
 * Lists {"id", "label"} with numbers and asks which one `what` means. NULL: none was chosen, with
 * an error; else the id, borrowed.
 */
const char *ask_which(const char *what, const json_t *candidates, struct error *err);

#endif
