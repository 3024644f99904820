#include "agent/custom/child_env.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool is_given(const struct setting_pairs *pairs, const char *name)
{
        for (size_t i = 0; i < pairs->count; i++)
                if (strcmp(pairs->names[i], name) == 0)
                        return true;
        return false;
}

char **child_env_given(const struct setting_pairs *more, const char *const *pass, size_t count)
{
        char **env = mem_array(more->count + count + 1, sizeof(*env));
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                const char *value = getenv(pass[i]);

                if (value && !is_given(more, pass[i]))
                        env[n++] = mem_printf("%s=%s", pass[i], value);
        }
        for (size_t i = 0; i < more->count; i++)
                env[n++] = mem_printf("%s=%s", more->names[i], secret_reveal(more->values[i]));
        return env;
}

char **child_env_new(const struct setting_pairs *more)
{
        static const char *const inherited[] = { "PATH", "HOME", "LANG", "TZ" };

        return child_env_given(more, inherited, COUNT(inherited));
}

void child_env_free(char **env)
{
        for (char **e = env; e && *e; e++) {
                explicit_bzero(*e, strlen(*e));
                free(*e);
        }
        free(env);
}
