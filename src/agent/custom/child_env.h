/*
 * child_env: the environment of tools: PATH, HOME, LANG, TZ and what is configured, nothing else.
 */
#ifndef AGENT_CUSTOM_CHILD_ENV_H
#define AGENT_CUSTOM_CHILD_ENV_H

#include "base/settings.h"

/* "NAME=value", NULL-terminated. */
char **child_env_new(const struct setting_pairs *more);
/* With these of our own variables instead. */
char **child_env_given(const struct setting_pairs *more, const char *const *pass, size_t count);
/* Wipes it. */
void child_env_free(char **env);

#endif
