/*
 * dragoman-sim: simulated platforms and models, to try rules without a token and to test against.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/simulator.h"

static const struct {
        const char *name, *summary;
        int (*run)(int argc, char **argv);
} simulators[] = {
        { "telegram", "a Bot API server with simulated users", tg_main },
        { "discord", "a gateway and HTTP API with simulated people", dc_main },
        { "slack", "the Web API, Socket Mode and simulated people", sl_main },
        { "llm", "the model services of Anthropic and OpenAI", lm_main },
};

static int usage(FILE *to, int rc)
{
        fprintf(to, "usage: dragoman-sim NAME [options]\n\nsimulators:\n");
        for (size_t i = 0; i < COUNT(simulators); i++)
                fprintf(to, "  %-10s %s\n", simulators[i].name, simulators[i].summary);
        fprintf(to, "\n'dragoman-sim NAME --help' shows the options.\n");
        return rc;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "";

        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
                return usage(stdout, 0);
        if (strcmp(name, "--version") == 0) {
                printf("dragoman-sim %s\n", DRAGOMAN_VERSION);
                return 0;
        }
        for (size_t i = 0; i < COUNT(simulators); i++) {
                if (strcmp(name, simulators[i].name) == 0)
                        return simulators[i].run(argc - 1, argv + 1);
        }
        if (*name)
                fprintf(stderr, "dragoman-sim: no simulator '%s'\n", name);
        return usage(stderr, 64);
}
