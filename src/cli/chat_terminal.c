/*
 * A conversation in a terminal. Two phases take turns: a line is edited, then its answer is shown
 * as it comes.
 *
 * What was streamed and what the daemon finally says the answer is are brought together: the pieces
 * are a preview, the end of the ask is the truth. When the stream breaks, the preview stops where
 * it is and the rest is printed at the end, so nothing is shown twice or missed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/chat.h"
#include "cli/chat_message.h"
#include "cli/editor.h"
#include "cli/event_reader.h"
#include "cli/print.h"
#include "cli/show.h"

#define OPEN_MS 2000 /* how long the first message waits for the stream */

struct terminal {
        struct chat *chat;
        struct client *client;
        struct loop *loop;
        struct editor *editor;
        struct event_reader *follow;
        struct chat_message *ask; /* NULL: nothing is being answered */
        struct buf streamed;      /* of the answer that comes */
        bool preview;             /* pieces may still be appended */
        bool midline;             /* the cursor is not at the start of a line */
        char turn[32];            /* that is running for us; "" when not known */
        char *last_event;         /* for /why */
        bool open, cancel_wanted, leaving;
        struct http_call *cancel;
        uv_signal_t signals[4];
        int signals_open;
};

/* ---- printing ---- */

static void say(struct terminal *t, const char *text, size_t n)
{
        if (n == 0)
                return;
        print_text(stdout, text, n);
        t->midline = text[n - 1] != '\n';
        fflush(stdout);
}

static void finish_line(struct terminal *t)
{
        if (t->midline)
                putchar('\n');
        t->midline = false;
        fflush(stdout);
}

static void aside(struct terminal *t, const char *mark, const char *text)
{
        finish_line(t);
        printf("%s%s ", print_style(stdout, STYLE_DIM), mark);
        print_line(stdout, text, 0);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
        fflush(stdout);
}

/* ---- stopping an answer ---- */

static void on_cancelled(void *arg, const struct http_result *result)
{
        (void)result; /* the end of the ask tells what became of it */
        ((struct terminal *)arg)->cancel = NULL;
}

static void cancel_turn(struct terminal *t)
{
        static const struct http_handlers handlers = { .on_done = on_cancelled };
        char *path;

        if (t->cancel || t->turn[0] == '\0')
                return;
        path = mem_printf("/api/v2/turns/%s/cancel", t->turn);
        t->cancel = client_start(
                t->client,
                &(struct client_request){ .method = "POST",
                                          .path = path,
                                          .body = "{\"reason\":\"stopped in the terminal\"}" },
                &handlers, t, NULL);
        free(path);
}

static void on_signal(uv_signal_t *s, int number)
{
        struct terminal *t = s->data;

        if (number == SIGWINCH) {
                editor_resized(t->editor);
                return;
        }
        if (number == SIGINT && t->ask && !t->cancel_wanted) {
                t->cancel_wanted = true;
                aside(t, "·", "stopping; Ctrl-C again to leave");
                cancel_turn(t);
                return;
        }
        t->leaving = true;
        editor_interrupt(t->editor);
}

/* ---- what the stream tells ---- */

static void on_started(struct terminal *t, const json_t *payload)
{
        if (!t->ask)
                return;
        snprintf(t->turn, sizeof(t->turn), "%s", json_str(payload, "turnId", ""));
        if (t->streamed.len > 0)
                /* it begins anew: what is shown stays, what follows comes at the end */
                t->preview = false;
        if (t->cancel_wanted)
                cancel_turn(t);
}

static bool is_ours(const struct terminal *t, const json_t *payload)
{
        return t->ask && strcmp(json_str(payload, "turnId", ""), t->turn) == 0;
}

static void on_delta(struct terminal *t, const json_t *payload)
{
        const char *text = json_str(payload, "text", "");

        if (!is_ours(t, payload) || !t->preview)
                return;
        buf_addstr(&t->streamed, text);
        say(t, text, strlen(text));
}

/* Something was sent here that answers nobody: a reminder, or another program. */
static void on_sent(struct terminal *t, const json_t *payload)
{
        const char *text = json_str(payload, "text", NULL);

        if (!text || json_str(payload, "turnId", NULL))
                return;
        editor_hide(t->editor);
        finish_line(t);
        say(t, text, strlen(text));
        finish_line(t);
        editor_show(t->editor);
}

static void on_event(void *arg, const char *type, const json_t *event)
{
        struct terminal *t = arg;
        const json_t *payload = json_object_get(event, "payload");

        if (strcmp(type, "turn.started") == 0)
                on_started(t, payload);
        else if (strcmp(type, "turn.delta") == 0)
                on_delta(t, payload);
        else if (strcmp(type, "turn.progress") == 0 && is_ours(t, payload))
                aside(t, "·", json_str(payload, "label", ""));
        else if (strcmp(type, "message.sent") == 0)
                on_sent(t, payload);
}

static void on_open(void *arg)
{
        ((struct terminal *)arg)->open = true;
}

static void on_lost(void *arg)
{
        ((struct terminal *)arg)->preview = false;
}

/* Without the stream answers still come, only not piece by piece. */
static void on_failed(void *arg, const struct error *err)
{
        struct terminal *t = arg;

        (void)err;
        t->open = true;
        event_reader_free(t->follow);
        t->follow = NULL;
}

/* ---- an answer ---- */

static void show_rest(struct terminal *t, const char *text)
{
        size_t n = t->streamed.len;

        if (strncmp(text, t->streamed.data, n) == 0) {
                say(t, text + n, strlen(text + n));
                return;
        }
        aside(t, "·", "the answer was made anew:");
        say(t, text, strlen(text));
}

static void on_reply(void *arg, const struct chat_reply *r, const struct error *err)
{
        struct terminal *t = arg;

        t->ask = NULL;
        if (err) {
                aside(t, "!", err->text);
                return;
        }
        free(t->last_event);
        t->last_event = mem_strdup(r->event);
        if (r->text)
                show_rest(t, r->text);
        finish_line(t);
        if (strcmp(r->status, "done") == 0 && !r->text)
                aside(t, "·", "the agent had nothing to say");
        else if (strcmp(r->status, "cancelled") == 0)
                aside(t, "·", "stopped");
        else if (strcmp(r->status, "done") != 0)
                aside(t, "!", r->reason ? r->reason : r->status);
}

static void answer(struct terminal *t, const char *line)
{
        struct chat_text m = { t->chat->adapter, t->chat->channel, line, strlen(line) };

        buf_clear(&t->streamed);
        t->turn[0] = '\0';
        t->cancel_wanted = false;
        t->preview = t->follow && t->open;
        t->ask = chat_message_new(t->client, &m, on_reply, t);
        while (t->ask && !t->leaving)
                loop_step(t->loop, true);
        t->chat->hurry = t->ask != NULL;
        chat_message_free(t->ask);
        t->ask = NULL;
        finish_line(t);
}

/* ---- words for us ---- */

static void tell_error(const struct error *err)
{
        printf("%s%s%s\n", print_style(stdout, STYLE_BAD), err->text,
               print_style(stdout, STYLE_PLAIN));
}

static void do_help(struct terminal *t)
{
        (void)t;
        puts("Write a message and press Enter. Besides:\n"
             "  /why      what became of your last message, step by step\n"
             "  /status   adapters, agents, queues\n"
             "  /quit     leave (or Ctrl-D); Ctrl-C stops an answer, or leaves\n"
             "Anything else that begins with / goes to the agent.");
}

static void do_quit(struct terminal *t)
{
        t->leaving = true;
}

static void do_why(struct terminal *t)
{
        struct error err = { 0 };
        json_t *story = NULL;

        if (!t->last_event) {
                puts("Nothing was answered yet.");
                return;
        }
        if (why_fetch(t->client, t->last_event, &story, &err) < 0)
                tell_error(&err);
        else
                why_print(story);
        json_decref(story);
}

static void do_status(struct terminal *t)
{
        struct error err = { 0 };
        json_t *all = NULL;

        if (status_fetch(t->client, &all, &err) < 0)
                tell_error(&err);
        else
                status_print(all, client_dir(t->client));
        json_decref(all);
}

static const struct {
        const char *word;
        void (*run)(struct terminal *t);
} words[] = { { "/help", do_help },
              { "/quit", do_quit },
              { "/exit", do_quit },
              { "/why", do_why },
              { "/status", do_status } };

static void take(struct terminal *t, char *line)
{
        size_t n = strlen(line);

        while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
                line[--n] = '\0';
        line += strspn(line, " \t");
        for (size_t i = 0; i < COUNT(words); i++) {
                if (strcmp(line, words[i].word) == 0) {
                        words[i].run(t);
                        return;
                }
        }
        if (*line)
                answer(t, line);
}

/* ---- the whole ---- */

static void print_agents(struct client *c)
{
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(c, "/api/v2/agents", &page, NULL) < 0)
                return;
        json_array_foreach(json_object_get(page, "items"), i, item) {
                const char *type = json_str(item, "type", "?");

                if (strcmp(type, "demo") == 0)
                        printf("  agent    a %sdemo%s that repeats what you write; with "
                               "ANTHROPIC_API_KEY or OPENAI_API_KEY\n"
                               "           in the environment a real model answers instead\n",
                               print_style(stdout, STYLE_WARN), print_style(stdout, STYLE_PLAIN));
                else
                        printf("  agent    %s (%s)\n", json_str(item, "name", "?"), type);
        }
        json_decref(page);
}

static void print_banner(struct terminal *t)
{
        const char *dir = client_dir(t->client), *base;

        printf("\n"
               "%sDragoman %s%s: chat platforms and agents, connected. You are talking to your "
               "own daemon%s.\n"
               "\n",
               print_style(stdout, STYLE_BOLD), DRAGOMAN_VERSION, print_style(stdout, STYLE_PLAIN),
               t->chat->launch ? ", started just now" : "");
        print_agents(t->client);
        base = client_base(t->client);
        printf("  API      %s\n", base);
        printf("           curl -H \"Authorization: Bearer $(cat %s/state/operator.key)\" %s/api/v2/status\n",
               dir, base);
        printf("  data     %s (your settings go to %s/config.json)\n", dir, dir);
        printf("  next     connect Discord or Telegram: docs/platforms/ (Slack is coming)\n"
               "           in another terminal: dragoman status %s\n"
               "\n",
               dir);
        printf("%sWrite a message; /help for more, Ctrl-D to leave.%s\n",
               print_style(stdout, STYLE_DIM), print_style(stdout, STYLE_PLAIN));
        fflush(stdout);
}

static void start_follow(struct terminal *t)
{
        static const struct event_reader_handlers handlers = {
                .on_open = on_open, .on_event = on_event, .on_lost = on_lost, .on_failed = on_failed
        };
        char *adapter = http_escape(t->chat->adapter), *channel = http_escape(t->chat->channel);
        char *query =
                mem_printf("instanceId=%s&channel=%s&types=turn.*,message.sent", adapter, channel);
        struct event_reader_options options = { .query = query };

        t->follow = event_reader_new(t->client, &options, &handlers, t);
        free(adapter);
        free(channel);
        free(query);
}

static void on_time(void *arg)
{
        ((struct terminal *)arg)->open = true;
}

static void wait_for_stream(struct terminal *t)
{
        struct timer *timer = timer_new(t->loop, on_time, t);

        timer_start(timer, OPEN_MS);
        while (!t->open)
                loop_step(t->loop, true);
        timer_free(timer);
}

static void watch_signals(struct terminal *t)
{
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };

        for (size_t i = 0; i < COUNT(numbers); i++) {
                uv_signal_init(loop_uv(t->loop), &t->signals[i]);
                t->signals[i].data = t;
                uv_signal_start(&t->signals[i], on_signal, numbers[i]);
                t->signals_open++;
        }
}

static void on_signal_closed(uv_handle_t *h)
{
        ((struct terminal *)h->data)->signals_open--;
}

static void unwatch_signals(struct terminal *t)
{
        for (size_t i = 0; i < COUNT(t->signals); i++)
                uv_close((uv_handle_t *)&t->signals[i], on_signal_closed);
        while (t->signals_open > 0)
                loop_step(t->loop, true);
}

static void terminal_open(struct terminal *t, struct chat *chat)
{
        char *history = mem_printf("%s/state/chat_history", client_dir(chat->client));

        *t = (struct terminal){ .chat = chat,
                                .client = chat->client,
                                .loop = client_loop(chat->client) };
        buf_init(&t->streamed, 0);
        t->editor = editor_new(t->loop, "> ", history);
        watch_signals(t);
        start_follow(t);
        free(history);
}

static void terminal_close(struct terminal *t)
{
        http_abort(t->cancel);
        event_reader_free(t->follow);
        unwatch_signals(t);
        editor_free(t->editor);
        buf_release(&t->streamed);
        free(t->last_event);
}

int chat_terminal(struct chat *chat)
{
        struct terminal t;

        terminal_open(&t, chat);
        wait_for_stream(&t);
        print_banner(&t);
        while (!t.leaving) {
                char *line = editor_read(t.editor);

                if (!line)
                        break;
                take(&t, line);
                free(line);
        }
        terminal_close(&t);
        puts(chat->launch ? "\nGood bye; the daemon ends with you." : "\nGood bye.");
        fflush(stdout);
        return CLI_OK;
}
