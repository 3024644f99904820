/* Finds a daemon or starts one, then talks. */
#include "cli/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define DEFAULT_ADAPTER "terminal"

/* ---- somebody to talk to ---- */

/* A failed start tells its last words; its exit code becomes ours. */
static int start_failed(const struct chat *chat, const struct error *err)
{
        struct buf log;

        buf_init(&log, 0);
        launch_log(chat->launch, &log);
        command_failed(chat->args, err);
        if (log.len > 0)
                fprintf(stderr, "its last words:\n%s", log.data);
        buf_release(&log);
        return launch_exit_code(chat->launch) == CLI_OK ? CLI_FAILED
                                                        : launch_exit_code(chat->launch);
}

static int find_or_start(struct chat *chat)
{
        struct error err = { 0 };
        int rc;

        if (client_alive(chat->client))
                return CLI_OK;
        chat->launch = launch_start(chat->client, args_value(chat->args, "listen"), &err);
        if (!chat->launch)
                return command_failed(chat->args, &err);
        if (launch_wait(chat->launch, &err) == 0)
                return CLI_OK;
        /* somebody else may have started one at the same moment */
        if (launch_ended(chat->launch) && client_alive(chat->client)) {
                launch_stop(chat->launch, false);
                chat->launch = NULL;
                return CLI_OK;
        }
        rc = start_failed(chat, &err);
        return rc;
}

/* The configured adapter of type cli; its name is the operator's choice. */
static char *find_adapter(struct client *c)
{
        json_t *page = NULL, *item;
        char *name = NULL;
        size_t i;

        if (client_get(c, "/api/v2/instances", &page, NULL) == 0)
                json_array_foreach(json_object_get(page, "items"), i, item)
                        if (!name && strcmp(json_str(item, "channel", ""), "cli") == 0)
                                name = mem_strdup(json_str(item, "name", NULL));
        json_decref(page);
        return name ? name : mem_strdup(DEFAULT_ADAPTER);
}

/* Process ids come again; with the time they do not continue somebody else's conversation. */
static char *new_channel(void)
{
        return mem_printf("chat-%llx-%d", (unsigned long long)(clock_wall_ms() / 1000),
                          (int)getpid());
}

static int talk(struct chat *chat)
{
        const char *adapter = args_value(chat->args, "adapter"),
                   *channel = args_value(chat->args, "channel");
        bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !chat->args->json;

        chat->adapter = adapter ? mem_strdup(adapter) : find_adapter(chat->client);
        chat->channel = channel ? mem_strdup(channel) : new_channel();
        return terminal ? chat_terminal(chat) : chat_plain(chat);
}

int chat_command(struct args *a)
{
        struct chat chat = { .args = a };
        struct error err = { 0 };
        struct loop *loop;
        int rc;

        if (args_end(a) < 0)
                return CLI_USAGE;
        loop = loop_new();
        chat.client = client_new(loop, a->dir, &err);
        rc = chat.client ? find_or_start(&chat) : command_failed(a, &err);
        if (rc == CLI_OK)
                rc = talk(&chat);
        launch_stop(chat.launch, chat.hurry);
        client_free(chat.client);
        loop_free(loop);
        free(chat.adapter);
        free(chat.channel);
        return rc;
}
