#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "net/http_text.h"

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

/* `dragoman pause` and `dragoman resume`, which are also the names of the routes. */
static int change_chat(const struct args *a, struct client *c, const char *chat, const char *until,
                       char **meant, struct error *err)
{
        const char *verb = a->command->name;
        size_t n = strcspn(chat, "/");
        bool pauses = strcmp(verb, "pause") == 0;
        char *name = mem_strndup(chat, n), *adapter = http_text_escape(name),
             *channel = http_text_escape(chat + n + 1),
             *path = mem_printf("/api/v2/chats/%s/%s/%s", adapter, channel, verb);
        struct buf body;
        int rc;

        buf_init(&body, 0);
        jsonw_open(&body, '{');
        jsonw_opt(&body, "threadId", args_value(a, "thread"));
        jsonw_opt(&body, "until", until[0] ? until : NULL);
        jsonw_opt(&body, "reason", pauses ? args_value(a, "reason") : NULL);
        if (pauses && args_has(a, "force"))
                jsonw_bool(&body, "force", true);
        jsonw_close(&body, '}');
        rc = resource_request_named(a, c, path, &body, pauses ? print_pause : print_resumed, chat,
                                    meant, err);
        free(name);
        free(adapter);
        free(channel);
        free(path);
        return rc;
}

static int change(struct args *a, struct client *c, struct error *err)
{
        char until[CLOCK_ISO_SIZE] = "", *chat, *meant = NULL;
        int rc;

        if (strcmp(a->command->name, "pause") == 0 && args_time(a, "until", ARGS_AHEAD, until) < 0)
                return CLI_USAGE;
        chat = mem_strdup(a->operands[0]);
        while ((rc = change_chat(a, c, chat, until, &meant, err)) == 1) {
                free(chat);
                chat = meant;
        }
        free(chat);
        return rc;
}

int handover_change_command(struct args *a)
{
        const char *chat = args_operand(a, "ADAPTER/CHANNEL");

        if (!chat || !args_channel(a, chat) || args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, change);
}

int handover_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", .path = "/api/v2/handover", .none = "no chat is paused",
                  .print = print_pause },
                { 0 },
        };

        return resource_run(a, actions);
}
