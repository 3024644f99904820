#include "platform/platform.h"

#include <string.h>

const struct platform_ops *const platform_kinds[] = {
        &api_platform, &cli_platform, &discord_platform, &slack_platform, &telegram_platform, NULL,
};

const struct platform_ops *platform_find(const char *name)
{
        for (size_t i = 0; platform_kinds[i]; i++) {
                if (strcmp(platform_kinds[i]->name, name) == 0)
                        return platform_kinds[i];
        }
        return NULL;
}
