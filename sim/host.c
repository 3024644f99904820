#include "sim/host.h"

#include <signal.h>

#include "base/mem.h"

static void on_signal(uv_signal_t *handle, int number)
{
        (void)number;
        loop_stop(handle->data);
}

void host_run(struct loop *l)
{
        static const int numbers[] = { SIGINT, SIGTERM };
        uv_signal_t signals[COUNT(numbers)];

        signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < COUNT(numbers); i++) {
                uv_signal_init(loop_uv(l), &signals[i]);
                signals[i].data = l;
                uv_signal_start(&signals[i], on_signal, numbers[i]);
        }
        loop_run(l);
        for (size_t i = 0; i < COUNT(numbers); i++)
                uv_close((uv_handle_t *)&signals[i], NULL);
        loop_step(l, false); /* lets go of them before they go out of scope */
}
