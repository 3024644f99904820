/*
 * kinds: the platforms there are, one row each in kinds.c.
 */
#ifndef PLATFORM_KINDS_H
#define PLATFORM_KINDS_H

#include "platform/platform.h"

extern const struct platform_ops api_platform;
extern const struct platform_ops cli_platform;
extern const struct platform_ops discord_platform;
extern const struct platform_ops telegram_platform;

#endif
