/*
 * A conversation in a terminal: a line is edited, then its answer is shown as it grows.
 *
 * Streamed pieces are a preview; the reply to the message is the truth. When the stream breaks, the
 * rest is printed at the end, so nothing is shown twice or missed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/chat.h"
#include "cli/editor.h"
#include "cli/event_reader.h"
#include "cli/print.h"
#include "net/http_text.h"

#define OPEN_MS 2000 /* for the stream, before the first message */

struct terminal {
        struct chat *chat;
        struct client *client;
        struct loop *loop;
        struct editor *editor;
        struct event_reader *events;
        struct chat_message *message; /* being answered; NULL: none */
        struct buf streamed;          /* of its answer */
        bool preview;                 /* pieces may still be appended */
        bool midline;                 /* not at the start of a line */
        char turn[32];                /* of the answer; "": not known */
        char *last_event;             /* for /why */
        json_t *approvals;            /* ids of open questions in this chat */
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

/* ---- cancelling ---- */

static void on_cancelled(void *arg, const struct http_result *result)
{
        (void)result; /* the reply to the message shows the outcome */
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
        if (number == SIGINT && t->message && !t->cancel_wanted) {
                t->cancel_wanted = true;
                editor_hide(t->editor);
                editor_stop(t->editor); /* nothing is left to decide */
                aside(t, "·", "stopping; Ctrl-C again to leave");
                cancel_turn(t);
                return;
        }
        t->leaving = true;
        editor_interrupt(t->editor);
}

/* ---- event stream ---- */

/* Not an answer, such as a reminder or a question; on_reply prints answers, also of commands. */
static void on_sent(struct terminal *t, const json_t *payload)
{
        const char *text = json_str(payload, "text", NULL);
        const char *to = json_str(payload, "replyTo", "");

        if (!text || json_str(payload, "turnId", NULL))
                return;
        if (t->message && strcmp(to, chat_message_id(t->message)) == 0 &&
            !json_str(payload, "approvalId", NULL))
                return;
        editor_hide(t->editor);
        finish_line(t);
        say(t, text, strlen(text));
        finish_line(t);
        editor_show(t->editor);
}

static void on_approval(struct terminal *t, const char *type, const char *id)
{
        const json_t *open;
        size_t i;

        if (strcmp(type, "approval.requested") == 0) {
                json_array_append_new(t->approvals, json_string(id));
                return;
        }
        json_array_foreach(t->approvals, i, open) {
                if (strcmp(json_string_value(open), id) != 0)
                        continue;
                if (i == 0) { /* decided elsewhere, perhaps while it is asked here */
                        editor_hide(t->editor);
                        editor_stop(t->editor);
                }
                json_array_remove(t->approvals, i);
                break;
        }
}

static void on_event(void *arg, const char *type, const json_t *event)
{
        struct terminal *t = arg;
        const json_t *payload = json_object_get(event, "payload");
        const char *text = json_str(payload, "text", "");
        bool ours = t->message && strcmp(json_str(payload, "turnId", ""), t->turn) == 0;

        if (strcmp(type, "turn.started") == 0 && t->message) {
                snprintf(t->turn, sizeof(t->turn), "%s", json_str(payload, "turnId", ""));
                if (t->streamed.len > 0)
                        t->preview = false; /* a new attempt: print the rest at the end */
                if (t->cancel_wanted)
                        cancel_turn(t);
        } else if (strcmp(type, "turn.delta") == 0 && ours && t->preview) {
                buf_addstr(&t->streamed, text);
                say(t, text, strlen(text));
        } else if (strcmp(type, "turn.aside") == 0 && ours && t->preview) {
                finish_line(t); /* what follows is another text */
                buf_clear(&t->streamed);
        } else if (strcmp(type, "turn.progress") == 0 && ours) {
                editor_hide(t->editor);
                aside(t, "·", json_str(payload, "label", ""));
                editor_show(t->editor);
        } else if (strncmp(type, "approval.", 9) == 0) {
                on_approval(t, type, json_str(payload, "approvalId", ""));
        } else if (strcmp(type, "message.sent") == 0) {
                on_sent(t, payload);
        }
}

static void on_open(void *arg)
{
        ((struct terminal *)arg)->open = true;
}

static void on_lost(void *arg)
{
        ((struct terminal *)arg)->preview = false;
}

/* Without the stream answers still arrive, as a whole. */
static void on_failed(void *arg, const struct error *err)
{
        struct terminal *t = arg;

        (void)err;
        t->open = true;
        event_reader_free(t->events);
        t->events = NULL;
}

/* ---- answers ---- */

static void on_reply(void *arg, const struct chat_reply *r, const struct error *err)
{
        struct terminal *t = arg;

        t->message = NULL;
        editor_hide(t->editor);
        editor_stop(t->editor);
        if (err) {
                aside(t, "!", err->text);
                return;
        }
        if (r->turn)
                json_array_clear(t->approvals); /* the end of a turn closes its questions */
        free(t->last_event);
        t->last_event = mem_strdup(r->event);
        if (r->text && strncmp(r->text, t->streamed.data, t->streamed.len) == 0) {
                say(t, r->text + t->streamed.len, strlen(r->text + t->streamed.len));
        } else if (r->text) {
                aside(t, "·", "the answer was started over:");
                say(t, r->text, strlen(r->text));
        }
        finish_line(t);
        if (strcmp(r->status, "done") == 0 && !r->text)
                aside(t, "·", "the agent chose not to reply");
        else if (strcmp(r->status, "cancelled") == 0)
                aside(t, "·", "stopped");
        else if (strcmp(r->status, "done") != 0)
                aside(t, "!", r->reason ? r->reason : r->status);
}

/* Asks for a decision about the oldest open question, and sends it. */
static void decide(struct terminal *t)
{
        static const struct {
                const char *word, *path, *body;
        } words[] = { { "yes", "approve", "{}" },
                      { "y", "approve", "{}" },
                      { "no", "refuse", "{}" },
                      { "n", "refuse", "{}" },
                      { "always", "approve", "{\"always\":true}" } };
        char *id = mem_strdup(json_string_value(json_array_get(t->approvals, 0)));
        char *prompt = mem_printf("%s: yes or no? > ", id);
        char *line = editor_read(t->editor, prompt), *path;
        struct error err = { 0 };
        json_t *decided = NULL;
        size_t i = 0;

        if (line) {
                line[strcspn(line, " \t")] = '\0';
                while (i < COUNT(words) && strcasecmp(line, words[i].word) != 0)
                        i++;
                if (i == COUNT(words)) {
                        aside(t, "·",
                              "yes: allow it this once; no: refuse it; always: allow it here in "
                              "future, too; Ctrl-C stops the turn");
                } else {
                        path = mem_printf("/api/v2/approvals/%s/%s", id, words[i].path);
                        if (client_ask(t->client,
                                       &(struct client_request){ .method = "POST",
                                                                 .path = path,
                                                                 .body = words[i].body },
                                       &decided, &err) < 0)
                                aside(t, "!", err.text);
                        else
                                on_approval(t, "approval.decided", id);
                        free(path);
                }
        } else if (!editor_stopped(t->editor)) {
                t->leaving = true; /* Ctrl-D */
        }
        json_decref(decided);
        free(line);
        free(prompt);
        free(id);
}

static void answer(struct terminal *t, const char *line)
{
        struct chat_text m = { t->chat->adapter, t->chat->channel, line, strlen(line) };

        buf_clear(&t->streamed);
        t->turn[0] = '\0';
        t->cancel_wanted = false;
        t->preview = t->events && t->open;
        t->message = chat_message_new(t->client, &m, on_reply, t);
        while (t->message && !t->leaving) {
                if (json_array_size(t->approvals) > 0 && !t->cancel_wanted)
                        decide(t);
                else
                        loop_step(t->loop, true);
        }
        t->chat->hurry = t->message != NULL;
        chat_message_free(t->message);
        t->message = NULL;
        finish_line(t);
}

/* ---- commands ---- */

static void print_error(const struct error *err)
{
        fputs(print_style(stdout, STYLE_BAD), stdout);
        print_line(stdout, err->text, 0);
        printf("%s\n", print_style(stdout, STYLE_PLAIN));
}

static void do_help(struct terminal *t)
{
        (void)t;
        puts("Write a message and press Enter. Commands:\n"
             "  /why      trace your last message step by step\n"
             "  /status   show adapters, agents, queues\n"
             "  /new      start over; else the agent remembers this chat\n"
             "  /quit     leave (or Ctrl-D); Ctrl-C stops an answer, or leaves\n"
             "When the agent asks whether it may do something, answer yes, no or always.\n"
             "Anything else that begins with / goes to the agent.");
}

static void do_quit(struct terminal *t)
{
        t->leaving = true;
}

static void do_why(struct terminal *t)
{
        struct error err = { 0 };
        json_t *report = NULL;

        if (!t->last_event) {
                puts("There is no answered message yet.");
                return;
        }
        if (why_fetch(t->client, t->last_event, &report, &err) < 0)
                print_error(&err);
        else
                why_print(report);
        json_decref(report);
}

static void do_status(struct terminal *t)
{
        struct error err = { 0 };
        json_t *all = NULL;

        if (status_fetch(t->client, &all, &err) < 0)
                print_error(&err);
        else
                status_print(all, t->client);
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

static void handle_line(struct terminal *t, char *line)
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

/* ---- session ---- */

static void print_agents(struct client *c)
{
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(c, "/api/v2/agents", &page, NULL) < 0)
                return;
        json_array_foreach(json_object_get(page, "items"), i, item) {
                const char *type = json_str(item, "type", "?");

                if (strcmp(type, "demo") == 0)
                        printf("  agent    a %sdemo%s that repeats your messages; set "
                               "ANTHROPIC_API_KEY or OPENAI_API_KEY\n"
                               "           in the environment to talk to a real model\n",
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
               "%sDragoman %s%s connects chat platforms and agents. You are talking to your own "
               "daemon%s.\n"
               "\n",
               print_style(stdout, STYLE_BOLD), DRAGOMAN_VERSION, print_style(stdout, STYLE_PLAIN),
               t->chat->launch ? ", started just now" : "");
        print_agents(t->client);
        base = client_base(t->client);
        printf("  API      %s\n", base);
        printf("           curl -H \"Authorization: Bearer $(cat %s/state/operator.key)\" "
               "%s/api/v2/status\n",
               dir, base);
        printf("  data     %s (put your settings into %s/config.json)\n", dir, dir);
        printf("  next     connect Discord, Slack or Telegram: docs/platforms/\n"
               "           in another terminal: %s status %s\n"
               "\n",
               program_invocation_name, dir);
        printf("%sWrite a message; /help for more, Ctrl-D to leave.%s\n",
               print_style(stdout, STYLE_DIM), print_style(stdout, STYLE_PLAIN));
        fflush(stdout);
}

static void start_events(struct terminal *t)
{
        static const struct event_reader_handlers handlers = {
                .on_open = on_open, .on_event = on_event, .on_lost = on_lost, .on_failed = on_failed
        };
        char *adapter = http_text_escape(t->chat->adapter),
             *channel = http_text_escape(t->chat->channel);
        char *query = mem_printf("instanceId=%s&channel=%s&types=turn.*,approval.*,message.sent",
                                 adapter, channel);
        struct event_reader_options options = { .query = query };
        struct timer *timer = timer_new(t->loop, on_open, t);

        t->events = event_reader_new(t->client, &options, &handlers, t);
        timer_start(timer, OPEN_MS);
        while (!t->open)
                loop_step(t->loop, true);
        timer_free(timer);
        free(adapter);
        free(channel);
        free(query);
}

/* Questions that an earlier session left open: their turns wait. */
static void find_approvals(struct terminal *t)
{
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(t->client, "/api/v2/approvals?state=open&limit=100", &page, NULL) < 0)
                return;
        json_array_foreach(json_object_get(page, "items"), i, item) {
                if (strcmp(json_str(item, "instanceId", ""), t->chat->adapter) != 0 ||
                    strcmp(json_str(item, "channel", ""), t->chat->channel) != 0)
                        continue;
                printf("\nStill open: %s wants to %s (%s):\n", json_str(item, "agent", "?"),
                       json_str(item, "title", "?"), json_str(item, "id", "?"));
                say(t, json_str(item, "detail", ""), strlen(json_str(item, "detail", "")));
                finish_line(t);
                on_approval(t, "approval.requested", json_str(item, "id", ""));
        }
        json_decref(page);
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

int chat_terminal(struct chat *chat)
{
        char *history = mem_printf("%s/state/chat_history", client_dir(chat->client));
        struct terminal t = { .chat = chat,
                              .client = chat->client,
                              .loop = client_loop(chat->client) };

        buf_init(&t.streamed, 0);
        t.approvals = json_array();
        t.editor = editor_new(t.loop, history);
        free(history);
        watch_signals(&t);
        start_events(&t);
        print_banner(&t);
        find_approvals(&t);
        while (!t.leaving) {
                char *line;

                if (json_array_size(t.approvals) > 0) {
                        decide(&t);
                        continue;
                }
                line = editor_read(t.editor, "> ");
                if (!line)
                        break;
                handle_line(&t, line);
                free(line);
        }
        http_call_abort(t.cancel);
        event_reader_free(t.events);
        unwatch_signals(&t);
        editor_free(t.editor);
        buf_release(&t.streamed);
        json_decref(t.approvals);
        free(t.last_event);
        puts(chat->launch ? "\nGood bye; stopping the daemon." : "\nGood bye.");
        fflush(stdout);
        return CLI_OK;
}
