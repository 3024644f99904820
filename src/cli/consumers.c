/* Who reads the journal, how far each has come, and who has stopped coming. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "bus/bus.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "cli/show.h"

static void add_reader(void *arg, const struct bus_cursor *c)
{
        char iso[CLOCK_ISO_SIZE], id[BUS_ID_SIZE];

        json_array_append_new(arg, json_pack("{s:s, s:s, s:I, s:s, s:I}", "name", c->name, "at",
                                             bus_event_id(c->seq, id), "lag", (json_int_t)c->lag,
                                             "seenAt", clock_iso(c->seen_ms, iso), "missed",
                                             (json_int_t)c->missed));
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        json_array_clear(arg);
        return bus_cursors(tx, add_reader, arg, err);
}

static void print_reader(const json_t *item)
{
        int64_t lag = json_int(item, "lag", 0), missed = json_int(item, "missed", 0);

        print_line(stdout, json_str(item, "name", "?"), 0);
        printf("  at %s, ", json_str(item, "at", "?"));
        if (lag > 0)
                printf("%lld %s behind", (long long)lag, print_plural(lag, "event", "events"));
        else
                fputs("has read everything", stdout);
        printf(", last seen %s", json_str(item, "seenAt", "?"));
        if (missed > 0)
                printf("  %s%lld deleted unread%s", print_style(stdout, STYLE_WARN),
                       (long long)missed, print_style(stdout, STYLE_PLAIN));
        putchar('\n');
}

int consumers_list(struct args *a)
{
        json_t *items = json_array(), *item;
        struct error err = { 0 };
        size_t i;
        int rc = local_store_read(a->dir, read_all, items, &err);

        if (rc < 0)
                rc = command_failed(a, &err);
        else if (a->json)
                print_json(items);
        else
                json_array_foreach(items, i, item)
                        print_reader(item);
        json_decref(items);
        return rc;
}
