/* One line in, one answer out, in order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/chat.h"
#include "cli/chat_message.h"
#include "cli/print.h"

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

static void tell_failure(const struct chat_reply *r)
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

static void print_answer(const char *text)
{
        size_t n = strlen(text);

        print_text(stdout, text, n);
        if (n == 0 || text[n - 1] != '\n')
                putchar('\n');
}

static void on_reply(void *arg, const struct chat_reply *r, const struct error *err)
{
        struct plain_chat *p = arg;
        bool answered = r && strcmp(r->status, "done") == 0;

        p->done = true;
        p->failed = p->failed || !answered;
        if (!r) {
                fprintf(stderr, "dragoman: %s\n", err->text);
                return;
        }
        if (p->chat->args->json)
                print_reply_json(r);
        else if (answered && r->text)
                print_answer(r->text);
        else if (answered)
                fputs("dragoman: the agent had nothing to say\n", stderr);
        else
                tell_failure(r);
}

static void ask_and_wait(struct plain_chat *p, const char *line, size_t n)
{
        struct chat_text m = { p->chat->adapter, p->chat->channel, line, n };

        p->done = false;
        chat_message_new(p->chat->client, &m, on_reply, p);
        while (!p->done)
                loop_step(client_loop(p->chat->client), true);
}

/* Without the end of the line; 0 for a line with nothing in it. */
static size_t trimmed(const char *line, ssize_t n)
{
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
                n--;
        return strspn(line, " \t\f\v") >= (size_t)n ? 0 : (size_t)n;
}

int chat_plain(struct chat *chat)
{
        struct plain_chat p = { .chat = chat };
        char *line = NULL;
        size_t cap = 0;
        ssize_t n;

        while ((n = getline(&line, &cap, stdin)) >= 0) {
                size_t len = trimmed(line, n);

                if (len > 0)
                        ask_and_wait(&p, line, len);
                if (fflush(stdout) != 0) {
                        fprintf(stderr, "dragoman: cannot write the answer: %s\n", strerror(errno));
                        p.failed = true;
                        break;
                }
        }
        free(line);
        return p.failed ? CLI_FAILED : CLI_OK;
}
