#include "sim/simulator.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim/console.h"

#define REQUEST_SECONDS 120 /* long polls */

struct simulator {
        struct loop *loop;
        struct http_client *client;
        struct world *world;
        struct http_route *routes;
        struct http_server *server;
        char *url;
};

static void on_signal(uv_signal_t *handle, int number)
{
        (void)number;
        loop_stop(handle->data);
}

/* Runs until SIGINT or SIGTERM. */
static void run(struct loop *l)
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
        loop_step(l, false); /* closes them before they go out of scope */
}

static int begin(struct simulator *h, const struct simulator_ops *ops, const struct options *o,
                 struct error *err)
{
        struct http_client_options client = { .ca_file = o->ca_file,
                                              .user_agent = ops->user_agent };
        struct http_server_hooks hooks = { .refuse = ops->refuse };
        char *address = options_address(o, o->port);
        struct http_server_options options = { .listen = address,
                                               .tls_cert_file = o->tls_cert,
                                               .tls_key_file = o->tls_key,
                                               .request_seconds = REQUEST_SECONDS };
        size_t count;

        h->loop = loop_new();
        h->client = http_client_new(h->loop, &client, err);
        h->world = h->client ? ops->open(h->loop, h->client, o, err) : NULL;
        if (!h->world) {
                free(address);
                return -1;
        }
        h->routes = ops->routes(&count);
        h->server = http_server_new(h->loop, &options, h->routes, count, &hooks, h->world, err);
        free(address);
        if (!h->server)
                return -1;
        h->url = mem_printf("%s://%s", o->tls_cert ? "https" : "http",
                            http_server_address(h->server));
        if (ops->reached)
                ops->reached(h->world, h->url);
        return 0;
}

static void end(struct simulator *h, const struct simulator_ops *ops)
{
        if (h->world)
                ops->close(h->world);
        http_server_free(h->server);
        http_client_free(h->client);
        free(h->routes);
        free(h->url);
        loop_free(h->loop);
}

int simulator_main(const struct simulator_ops *ops, int argc, char **argv)
{
        struct options o;
        struct simulator h = { 0 };
        struct error err = { 0 };
        struct console *console;
        int rc = options_read(&o, &ops->about, argc, argv);

        if (rc != 0)
                return rc < 0 ? 0 : rc;
        if (begin(&h, ops, &o, &err) != 0) {
                fprintf(stderr, "dragoman-sim %s: %s\n", ops->about.name, err.text);
                end(&h, ops);
                return 1;
        }
        printf("%s\n", h.url);
        if (!o.quiet)
                ops->greet(h.world, h.url);
        fflush(stdout);
        console = o.quiet ? NULL : console_new(h.loop, h.world, ops->send);
        run(h.loop);
        console_free(console);
        end(&h, ops);
        return 0;
}
