#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "cli/event_reader.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "net/http_text.h"
#include "road/outbox/card.h"

#define TEXT_SHOWN   160
#define MEMBER_SHOWN 60

struct event_tail {
        struct args *args;
        struct error *err;
        long left; /* -1: no end */
        bool over, failed;
};

/* ---- one line per event ---- */

static void print_member(const char *before, const char *text)
{
        if (!text)
                return;
        fputs(before, stdout);
        print_line(stdout, text, MEMBER_SHOWN);
}

/* Which, what it asks, and who it is from. */
static void print_session(const json_t *p)
{
        const json_t *said = json_object_get(p, "metadata");

        print_member(" ", json_str(p, "session", json_str(p, "sessionId", NULL)));
        print_member(" ", json_str(p, "approvalId", json_str(said, "approval_id", NULL)));
        print_member(" by ", json_str(p, "by", json_str(said, "by", NULL)));
}

/* NULL: nothing. */
static const char *what_it_says(const json_t *p)
{
        static const char *const members[] = { "label", "error", "why", "content" };
        const char *said = card_said(p);

        for (size_t i = 0; !said && i < COUNT(members); i++)
                said = json_str(p, members[i], NULL);
        return said && *said ? said : NULL;
}

static void print_event(const char *type, const json_t *e)
{
        char iso[CLOCK_ISO_SIZE];
        const json_t *p = json_object_get(e, "payload");
        const char *what = what_it_says(p);

        printf("%s%s%s %-10s %s", print_style(stdout, STYLE_DIM),
               clock_iso(json_int(e, "timestamp", 0), iso), print_style(stdout, STYLE_PLAIN),
               json_str(e, "id", "-"), print_style(stdout, STYLE_BOLD));
        print_line(stdout, type, MEMBER_SHOWN);
        printf("%*s%s", strlen(type) < 18 ? (int)(18 - strlen(type)) : 0, "",
               print_style(stdout, STYLE_PLAIN));
        if (json_str(e, "instanceId", NULL))
                printf(" %s/", json_str(e, "instanceId", ""));
        print_line(stdout, json_str(e, "channel", ""), MEMBER_SHOWN);
        print_member(" ", json_str(p, "turnId", NULL));
        if (strncmp(type, "session.", strlen("session.")) == 0)
                print_session(p);
        if (what) {
                fputs("  ", stdout);
                print_line(stdout, what, TEXT_SHOWN);
        }
        putchar('\n');
}

static void on_event(void *arg, const char *type, const json_t *event)
{
        struct event_tail *t = arg;

        if (t->over)
                return;
        if (t->args->json) {
                print_json_line(event);
        } else {
                print_event(type, event);
        }
        if (fflush(stdout) != 0)
                t->over = true;
        if (t->left > 0 && --t->left == 0)
                t->over = true;
}

static void on_failed(void *arg, const struct error *err)
{
        struct event_tail *t = arg;

        *t->err = *err;
        t->failed = t->over = true;
}

/* ---- first event ---- */

/* By an event id or a time; yours to free. */
static char *find_start(struct client *c, const char *since, struct error *err)
{
        char *escaped, *path, *start = NULL, iso[CLOCK_ISO_SIZE];
        json_t *page = NULL;
        int64_t ms, seq;

        if (strncmp(since, "evt-", 4) == 0)
                return mem_strdup(since);
        if (clock_parse_span(since, &ms) == 0) {
                ms = clock_wall_ms() - ms;
        } else if (clock_parse_iso(since, &ms) < 0) {
                error_set(err, ERR_INVALID,
                          "--since: '%s' is neither an event such as evt-42, a time such as "
                          "2026-11-15T06:00:00Z nor a span such as 30m, 2h or 1d",
                          since);
                return NULL;
        }
        escaped = http_text_escape(clock_iso(ms, iso));
        path = mem_printf("/api/v2/events?after=0&limit=1&since=%s", escaped);
        if (client_get(c, path, &page, err) == 0) {
                const char *id =
                        json_str(json_array_get(json_object_get(page, "items"), 0), "id", NULL);

                seq = id ? strtoll(id + strcspn(id, "0123456789"), NULL, 10) : 0;
                start = id ? mem_printf("evt-%lld", (long long)(seq > 0 ? seq - 1 : 0))
                           : mem_strdup("");
        }
        json_decref(page);
        free(escaped);
        free(path);
        return start;
}

/* Begin there, so that nothing is missed when the first connection breaks. */
static char *newest_event(struct client *c, struct error *err)
{
        json_t *json = NULL;
        char *start = NULL;

        if (client_get(c, "/api/v2/status", &json, err) == 0) {
                const json_t *journal = json_object_get(json_object_get(json, "data"), "journal");

                start = mem_strdup(json_str(journal, "head", ""));
        }
        json_decref(json);
        return start;
}

static char *stream_query(const struct args *a)
{
        static const char *const names[][2] = { { "type", "types" },
                                                { "adapter", "instanceId" },
                                                { "channel", "channel" } };
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(names); i++) {
                const char *value = args_value(a, names[i][0]);
                char *escaped = value ? http_text_escape(value) : NULL;

                if (escaped)
                        buf_addf(&b, "%s%s=%s", b.len > 0 ? "&" : "", names[i][1], escaped);
                free(escaped);
        }
        return buf_take(&b);
}

/* ---- tail ---- */

static void on_interrupt(uv_signal_t *s, int number)
{
        (void)number;
        ((struct event_tail *)s->data)->over = true;
}

static void on_closed(uv_handle_t *h)
{
        h->data = NULL;
}

static void run(struct event_tail *t, struct client *c, const struct event_reader_options *options)
{
        static const struct event_reader_handlers handlers = { .on_event = on_event,
                                                               .on_failed = on_failed };
        struct event_reader *f = event_reader_new(c, options, &handlers, t);
        uv_signal_t interrupt;

        uv_signal_init(loop_uv(client_loop(c)), &interrupt);
        interrupt.data = t;
        uv_signal_start(&interrupt, on_interrupt, SIGINT);
        while (!t->over)
                loop_step(client_loop(c), true);
        event_reader_free(f);
        uv_close((uv_handle_t *)&interrupt, on_closed);
        while (interrupt.data)
                loop_step(client_loop(c), true);
}

static int tail(struct args *a, struct client *c, struct error *err)
{
        struct event_tail t = { .args = a, .err = err, .left = -1 };
        const char *since = args_value(a, "since");
        struct event_reader_options options = { 0 };
        char *start, *query;

        if (args_number(a, "count", 1, 1000000000, &t.left) < 0)
                return CLI_USAGE;
        start = since ? find_start(c, since, err) : newest_event(c, err);
        if (!start)
                return -1;
        query = stream_query(a);
        options.query = query[0] ? query : NULL;
        options.after = start[0] ? start : NULL;
        run(&t, c, &options);
        free(query);
        free(start);
        return t.failed ? -1 : CLI_OK;
}

/* ---- consumers ---- */

static void add_consumer(void *arg, const struct bus_cursor *c)
{
        char iso[CLOCK_ISO_SIZE], id[BUS_ID_SIZE];

        json_array_append_new(arg, json_pack("{s:s, s:s, s:I, s:s, s:I}", "name", c->name, "at",
                                             bus_event_id(c->seq, id), "lag", (json_int_t)c->lag,
                                             "seenAt", clock_iso(c->seen_ms, iso), "missed",
                                             (json_int_t)c->missed));
}

static int read_consumers(struct store_tx *tx, void *arg, struct error *err)
{
        json_array_clear(arg);
        return bus_cursors(tx, add_consumer, arg, err);
}

static void print_consumer(const json_t *item)
{
        int64_t lag = json_int(item, "lag", 0), missed = json_int(item, "missed", 0);

        print_line(stdout, json_str(item, "name", "?"), 0);
        printf("  at %s, ", json_str(item, "at", "?"));
        if (lag > 0)
                printf("%lld %s behind", (long long)lag, print_plural(lag, "event", "events"));
        else
                fputs("up to date", stdout);
        printf(", last seen %s", json_str(item, "seenAt", "?"));
        if (missed > 0)
                printf("  %s%lld expired unread%s", print_style(stdout, STYLE_WARN),
                       (long long)missed, print_style(stdout, STYLE_PLAIN));
        putchar('\n');
}

static int list_consumers(struct args *a)
{
        json_t *items = json_array(), *item;
        struct error err = { 0 };
        size_t i;
        int rc = local_store_read(a->dir, read_consumers, items, &err);

        if (rc < 0)
                rc = command_failed(a, &err);
        else if (a->json)
                print_json(items);
        else
                json_array_foreach(items, i, item)
                        print_consumer(item);
        json_decref(items);
        return rc;
}

int events_command(struct args *a)
{
        static const char *const actions[] = { "tail", "consumers", NULL };
        const char *action = args_action(a, actions, "tail");

        if (!action || args_end(a) < 0)
                return CLI_USAGE;
        return strcmp(action, "tail") == 0 ? client_command(a, tail) : list_consumers(a);
}
