/*
 * The terminal as a platform. Terminals read answers from the journal, so an answer is delivered
 * once committed, and render Markdown themselves.
 */
#include "platform/platform.h"

static int cli_open(struct adapter *a, struct error *err)
{
        (void)err;
        adapter_ready(a);
        return 0;
}

const struct platform_ops cli_platform = {
        .name = "cli",
        .title = "Terminal",
        .help = "Terminals: `dragoman chat` and other clients that attach over the HTTP API.",
        .can = ADAPTER_JOURNALED | ADAPTER_THREADS,
        .as_written = true,
        .trusted = true,
        .open = cli_open,
};
