#include <stdio.h>

#include "cli/command.h"

int version_command(struct args *a)
{
        if (args_end(a) < 0)
                return CLI_USAGE;
        if (a->json)
                puts("{\"name\":\"dragoman\",\"version\":\"" DRAGOMAN_VERSION "\"}");
        else
                puts("dragoman " DRAGOMAN_VERSION);
        return CLI_OK;
}
