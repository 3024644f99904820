#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box/box.h"

int main(int argc, char **argv)
{
        if (argc > 2 && strcmp(argv[1], "launch") == 0)
                return launch(argv + 2);
        if (argc > 1 && strcmp(argv[1], "serve") == 0)
                return serve(argv + 2);
        dprintf(STDERR_FILENO,
                "usage: box launch [user=UID:GID] [folder=FD] [mount=FD]... PROGRAM ARG...\n"
                "       box serve [LIMIT=N]...\n");
        return 2;
}
