#include "platform/discord/discord.h"
const struct platform_tool dc_tools[] = { { 0 } };
