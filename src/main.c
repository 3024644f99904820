#include "cli/cli.h"
#include "daemon.h"

int main(int argc, char **argv)
{
        const struct cli_env env = { .run_daemon = daemon_run };

        return cli_main(argc, argv, &env);
}
