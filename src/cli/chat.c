#include "cli/chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/print.h"

#define DEFAULT_ADAPTER "terminal"

/* ---- finding or starting a daemon ---- */

static int find_or_start(struct chat *chat)
{
        struct error err = { 0 };
        struct buf log;
        int code;

        if (client_alive(chat->client))
                return CLI_OK;
        chat->launch = launch_start(chat->client, chat->listen, &err);
        if (!chat->launch)
                return command_failed(chat->args, &err);
        if (launch_wait(chat->launch, &err) == 0)
                return CLI_OK;
        /* another daemon may have started at the same moment */
        if (launch_has_exited(chat->launch) && client_alive(chat->client)) {
                launch_stop(chat->launch, false);
                chat->launch = NULL;
                return CLI_OK;
        }
        code = launch_exit_code(chat->launch);
        buf_init(&log, 0);
        launch_log(chat->launch, &log);
        command_failed(chat->args, &err);
        if (log.len > 0)
                print_stderr("the end of its log:\n", log.data);
        buf_release(&log);
        return code == CLI_OK ? CLI_FAILED : code;
}

/* The adapter of type cli. */
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

/* ---- without a terminal: one answer per line ---- */

struct plain_chat {
        struct chat *chat;
        bool done, failed;
};

static void print_reply_json(const struct chat_reply *r)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "status", r->status);
        jsonw_str(&b, "text", r->text);
        jsonw_str(&b, "reason", r->reason);
        jsonw_str(&b, "eventId", r->event);
        jsonw_str(&b, "turnId", r->turn);
        jsonw_str(&b, "traceId", r->trace);
        jsonw_close(&b, '}');
        puts(b.data);
        buf_release(&b);
}

static void print_failure(const struct chat_reply *r)
{
        fprintf(stderr, "dragoman: no answer to %s (%s)", r->event ? r->event : "the message",
                r->status);
        if (r->reason) {
                fputs(": ", stderr);
                print_text(stderr, r->reason, strlen(r->reason));
        }
        fputc('\n', stderr);
        if (r->text) {
                print_text(stderr, r->text, strlen(r->text));
                fputc('\n', stderr);
        }
}

static void on_reply(void *arg, const struct chat_reply *r, const struct error *err)
{
        struct plain_chat *p = arg;
        bool answered = r && strcmp(r->status, "done") == 0;

        p->done = true;
        p->failed = p->failed || !answered;
        if (!r) {
                print_stderr("dragoman: ", err->text);
        } else if (p->chat->args->json) {
                print_reply_json(r);
        } else if (answered && r->text) {
                size_t n = strlen(r->text);

                print_text(stdout, r->text, n);
                if (n == 0 || r->text[n - 1] != '\n')
                        putchar('\n');
        } else if (answered) {
                fputs("dragoman: the agent chose not to reply\n", stderr);
        } else {
                print_failure(r);
        }
}

static int chat_plain(struct chat *chat)
{
        struct plain_chat p = { .chat = chat };
        char *line = NULL;
        size_t cap = 0;
        ssize_t n;

        while ((n = getline(&line, &cap, stdin)) >= 0) {
                struct chat_text text = { chat->adapter, chat->channel, line, (size_t)n };

                while (text.text_n > 0 &&
                       (line[text.text_n - 1] == '\n' || line[text.text_n - 1] == '\r'))
                        text.text_n--;
                if (strspn(line, " \t\f\v") < text.text_n) {
                        p.done = false;
                        chat_message_new(chat->client, &text, on_reply, &p);
                        while (!p.done)
                                loop_step(client_loop(chat->client), true);
                }
                if (fflush(stdout) != 0) {
                        fprintf(stderr, "dragoman: cannot write the answer: %s\n", strerror(errno));
                        p.failed = true;
                        break;
                }
        }
        free(line);
        return p.failed ? CLI_FAILED : CLI_OK;
}

/* A person goes on where they left off, and /new starts over; a script begins anew. */
static char *new_channel(bool terminal)
{
        if (terminal)
                return mem_strdup("home");
        /* with the time, because process ids repeat */
        return mem_printf("chat-%llx-%d", (unsigned long long)(clock_wall_ms() / 1000),
                          (int)getpid());
}

int chat_command(struct args *a)
{
        const char *adapter = args_value(a, "adapter"), *channel = args_value(a, "channel");
        bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !a->json;
        struct chat chat = { .args = a };
        struct error err = { 0 };
        struct loop *loop;
        int rc;

        if (args_listen(a, &chat.listen) < 0 || args_end(a) < 0)
                return CLI_USAGE;
        loop = loop_new();
        chat.client = client_new(loop, a->dir, &err);
        rc = chat.client ? find_or_start(&chat) : command_failed(a, &err);
        if (rc == CLI_OK) {
                chat.adapter = adapter ? mem_strdup(adapter) : find_adapter(chat.client);
                chat.channel = channel ? mem_strdup(channel) : new_channel(terminal);
                rc = terminal ? chat_terminal(&chat) : chat_plain(&chat);
        }
        launch_stop(chat.launch, chat.hurry);
        client_free(chat.client);
        loop_free(loop);
        free(chat.adapter);
        free(chat.channel);
        return rc;
}
