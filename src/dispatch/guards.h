/*
 * guards: those that need no file of their own. Each is asked about one matter; see
 * dispatch_private.h.
 */
#ifndef DISPATCH_GUARDS_H
#define DISPATCH_GUARDS_H

#include <stdbool.h>

struct matter;

bool is_configured(struct matter *m);
bool is_not_own(struct matter *m);
bool has_content(struct matter *m);
bool may_talk(struct matter *m);
bool is_no_command(struct matter *m); /* commands.c */
bool is_noted(struct matter *m);
bool is_not_paused(struct matter *m);
bool is_not_too_fast(struct matter *m);
bool is_no_repetition(struct matter *m);
bool is_no_loop(struct matter *m);
bool is_affordable(struct matter *m);

#endif
