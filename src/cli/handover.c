/* Taking over a chat from its agent, and giving it back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "cli/print.h"
#include "cli/resource.h"

static void print_place(const json_t *item)
{
        printf("%s/", json_str(item, "instanceId", "?"));
        print_line(stdout, json_str(item, "channel", "?"), 60);
        if (json_str(item, "threadId", NULL)) {
                printf(" thread ");
                print_line(stdout, json_str(item, "threadId", ""), 60);
        }
}

static void print_pause(const json_t *item)
{
        print_place(item);
        printf(" is paused since %s by ", json_str(item, "since", "?"));
        print_line(stdout, json_str(item, "by", "somebody"), 100);
        if (json_str(item, "until", NULL))
                printf(", until %s", json_str(item, "until", ""));
        if (json_str(item, "reason", NULL)) {
                printf(": ");
                print_line(stdout, json_str(item, "reason", ""), 200);
        }
        putchar('\n');
}

static void print_resumed(const json_t *item)
{
        print_place(item);
        printf(" is the agent's again\n");
}

static int change(struct args *a, struct client *c, const char *verb, resource_print_fn *print,
                  struct error *err)
{
        char *path = resource_chat_path(a->operands[0], verb);
        struct client_request request = { .method = "POST", .path = path };
        bool pauses = strcmp(verb, "pause") == 0;
        struct buf body;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_opt(&body, "threadId", args_value(a, "thread"));
        jsonw_opt(&body, "until", pauses ? args_value(a, "until") : NULL);
        jsonw_opt(&body, "reason", pauses ? args_value(a, "reason") : NULL);
        jsonw_close(&body, '}');
        request.body = body.data;
        rc = resource_change(a, c, &request, print, err);
        buf_release(&body);
        free(path);
        return rc;
}

static int pause_chat(struct args *a, struct client *c, struct error *err)
{
        return change(a, c, "pause", print_pause, err);
}

static int resume_chat(struct args *a, struct client *c, struct error *err)
{
        return change(a, c, "resume", print_resumed, err);
}

static int list(struct args *a, struct client *c, struct error *err)
{
        return resource_list(a, c, "/api/v2/handover", "no chat is paused", print_pause, err);
}

static int run_on_chat(struct args *a,
                       int (*fn)(struct args *a, struct client *c, struct error *err))
{
        const char *place = args_operand(a, "ADAPTER/CHANNEL");

        if (!place || !args_channel(a, place) || args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, fn);
}

int pause_command(struct args *a)
{
        return run_on_chat(a, pause_chat);
}

int resume_command(struct args *a)
{
        return run_on_chat(a, resume_chat);
}

int handover_command(struct args *a)
{
        static const struct resource_action actions[] = { { "list", { NULL }, list }, { 0 } };

        return resource_run(a, actions);
}
