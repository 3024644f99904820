#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/client.h"
#include "cli/print.h"

#define TICK_MS 500

/* Relative to our directory, not the daemon's. */
static char *request_body(const char *path)
{
        char *here = path && *path != '/' ? getcwd(NULL, 0) : NULL;
        char *absolute = here ? mem_printf("%s/%s", here, path) : mem_strdup(path);
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_opt(&b, "path", absolute);
        jsonw_close(&b, '}');
        free(absolute);
        free(here);
        return buf_take(&b);
}

static void on_tick(void *arg)
{
        (void)arg;
        fputc('.', stderr);
}

static int copy(struct args *a, struct client *c, struct error *err)
{
        char *body = request_body(args_value(a, "to"));
        struct client_request request = {
                .method = "POST", .path = "/api/v2/backup", .body = body, .total_ms = -1
        };
        bool show = isatty(STDERR_FILENO) && !a->json;
        struct timer *tick = timer_new(client_loop(c), on_tick, NULL);
        json_t *json = NULL, *data;
        int rc;

        if (show) {
                fputs("copying the database ", stderr);
                timer_repeat(tick, TICK_MS);
        }
        rc = client_ask(c, &request, &json, err);
        timer_free(tick);
        data = json_object_get(json, "data");
        if (show)
                fprintf(stderr, "%s\n", rc == 0 ? " done" : " failed");
        if (show && rc == 0)
                fprintf(stderr, "%lld bytes in %lld ms:\n", (long long)json_int(data, "bytes", 0),
                        (long long)json_int(data, "durationMs", 0));
        if (rc == 0 && a->json)
                print_json(data);
        else if (rc == 0)
                puts(json_str(data, "path", "?"));
        json_decref(json);
        free(body);
        return rc;
}

int backup_command(struct args *a)
{
        if (args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, copy);
}
