#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"

static void print_chat(const json_t *item)
{
        printf("%s/", json_str(item, "instanceId", "?"));
        print_line(stdout, json_str(item, "channel", "?"), 60);
        print_field(stdout, " thread ", json_str(item, "threadId", NULL), 60);
}

static void print_pause(const json_t *item)
{
        print_chat(item);
        printf(" paused since %s by ", json_str(item, "since", "?"));
        print_line(stdout, json_str(item, "by", "an unknown operator"), 100);
        if (json_str(item, "until", NULL))
                printf(", until %s", json_str(item, "until", ""));
        print_field(stdout, ": ", json_str(item, "reason", NULL), 200);
        putchar('\n');
}

static void print_resumed(const json_t *item)
{
        print_chat(item);
        puts(" resumed");
}

static int change(struct args *a, struct client *c, const char *verb, resource_print_fn *print,
                  struct error *err)
{
        const char *chat = a->operands[0];
        size_t n = strcspn(chat, "/");
        char *name = mem_strndup(chat, n), *adapter = http_escape(name),
             *channel = http_escape(chat + n + 1);
        char *path = mem_printf("/api/v2/chats/%s/%s/%s", adapter, channel, verb);
        bool pauses = strcmp(verb, "pause") == 0;
        struct buf body;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_opt(&body, "threadId", args_value(a, "thread"));
        jsonw_opt(&body, "until", pauses ? args_value(a, "until") : NULL);
        jsonw_opt(&body, "reason", pauses ? args_value(a, "reason") : NULL);
        jsonw_close(&body, '}');
        rc = resource_request(a, c, "POST", path, &body, print, err);
        free(name);
        free(adapter);
        free(channel);
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
        const char *chat = args_operand(a, "ADAPTER/CHANNEL");

        if (!chat || !args_channel(a, chat) || args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, fn);
}

int handover_pause_command(struct args *a)
{
        return run_on_chat(a, pause_chat);
}

int handover_resume_command(struct args *a)
{
        return run_on_chat(a, resume_chat);
}

int handover_command(struct args *a)
{
        static const struct resource_action actions[] = { { "list", { NULL }, list }, { 0 } };

        return resource_run(a, actions);
}
