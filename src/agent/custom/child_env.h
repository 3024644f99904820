/*
 * child_env: the environment of tools: PATH, HOME, LANG, TZ and what is configured, nothing else.
 */
#ifndef AGENT_CUSTOM_CHILD_ENV_H
#define AGENT_CUSTOM_CHILD_ENV_H

#include "base/settings.h"

/* "NAME=value", NULL-terminated. */
char **child_env_new(const struct setting_pairs *more);
/* Wipes it. */
void child_env_free(char **env);

#endif
