#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "cli/resource.h"
#include "road/outbox/card.h"
#include "road/report/row_json.h"
#include "rows/delivery_row.h"
#include "rows/turn_row.h"

/* ---- list ---- */

/* The turn or delivery of a dead letter. */
static const json_t *subject(const json_t *item)
{
        return json_object_get(item, json_str(item, "kind", ""));
}

static void print_letter(const json_t *item)
{
        const json_t *d = subject(item);
        const json_t *error = json_object_get(d, "error");
        const char *text = card_said(json_object_get(d, "payload"));
        const char *agent = json_str(d, "agent", NULL);

        printf("%-10s %s%-8s%s %s  %s/", json_str(item, "id", "?"), print_style(stdout, STYLE_BAD),
               json_str(d, "state", "?"), print_style(stdout, STYLE_PLAIN),
               json_str(d, "endedAt", json_str(d, "createdAt", "?")),
               json_str(d, "instanceId", "?"));
        print_line(stdout, json_str(d, "channel", "?"), 60);
        if (agent)
                printf("  agent '%s'", agent);
        printf("\n           ");
        print_line(stdout, json_str(error, "message", "no reason recorded"), 300);
        putchar('\n');
        if (!text)
                return;
        printf("           %s\"", print_style(stdout, STYLE_DIM));
        print_line(stdout, text, 100);
        printf("\"%s\n", print_style(stdout, STYLE_PLAIN));
}

static void print_letters(const struct args *a, const json_t *items)
{
        const json_t *item;
        json_t *all;
        size_t i;

        if (a->json) {
                all = json_pack("{s:O}", "items", items);
                print_json(all);
                json_decref(all);
                return;
        }
        if (json_array_size(items) == 0) {
                puts("no dead letters");
                return;
        }
        json_array_foreach(items, i, item)
                print_letter(item);
        item = json_array_get(items, 0);
        printf("\nretry one with: dragoman dead-letters retry %s%s\n", json_str(item, "id", "ID"),
               strcmp(json_str(subject(item), "state", ""), "unknown") == 0
                       ? " --force   (it may have arrived already)"
                       : "");
}

/* Writes the list as the API does: deliveries, then turns, newest first. */
static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        static const enum turn_state failed = TURN_FAILED;
        struct store_stmt *s = delivery_row_list(
                tx, &(struct delivery_filter){ .dead = true, .limit = INT64_MAX });
        struct delivery_row delivery;
        struct turn_row turn;
        struct buf *json = arg;
        int rc;

        buf_clear(json);
        jsonw_open(json, '[');
        while ((rc = delivery_row_next(s, &delivery, err)) == 1)
                row_json_dead_delivery(json, &delivery);
        if (rc < 0)
                return -1;
        s = turn_row_list(tx, &(struct turn_filter){ .state = &failed, .limit = INT64_MAX });
        while ((rc = turn_row_next(s, &turn, err)) == 1)
                row_json_dead_turn(json, &turn);
        jsonw_close(json, ']');
        return rc;
}

static int fetch_offline(const char *dir, json_t *items)
{
        json_t *rows = NULL;
        struct buf json;
        int rc;

        buf_init(&json, 0);
        rc = local_store_read(dir, read_all, &json, NULL);
        if (rc == 0)
                rows = json_loadb(json.data, json.len, 0, NULL);
        if (rows)
                json_array_extend(items, rows);
        json_decref(rows);
        buf_release(&json);
        return rc;
}

static int list(struct args *a, struct client *c, struct error *err)
{
        json_t *items = json_array();
        int rc = resource_fetch(c, "/api/v2/dead-letters?limit=100", items, err);

        if (rc < 0 && err->kind == ERR_NET) {
                json_array_clear(items); /* the daemon may have sent some pages */
                rc = fetch_offline(a->dir, items);
        }
        if (rc == 0)
                print_letters(a, items);
        json_decref(items);
        return rc;
}

/* ---- retry ---- */

static int retry(struct args *a, struct client *c, struct error *err)
{
        const char *id = a->operands[1];
        char *path = resource_path("/api/v2/dead-letters/", id, "/retry");
        struct client_request request = { .method = "POST",
                                          .path = path,
                                          .body = args_has(a, "force") ? "{\"force\":true}"
                                                                       : "{}" };
        json_t *json = NULL, *data;
        int rc = client_ask(c, &request, &json, err);

        data = json_object_get(json, "data");
        if (rc == 0 && a->json)
                print_json(data);
        else if (rc == 0)
                printf("%s is %s again; follow it with: dragoman why %s\n",
                       json_str(data, "id", id), json_str(data, "status", "queued"), id);
        json_decref(json);
        free(path);
        return rc;
}

int dead_letters_command(struct args *a)
{
        static const struct resource_action actions[] = {
                { "list", { NULL }, list },
                { "retry", { "ID" }, retry },
                { 0 },
        };
        bool retries = a->operand_count > 0 && strcmp(a->operands[0], "retry") == 0;

        if (!retries && args_has(a, "force"))
                return command_usage_error(a->command, "--force belongs to retry");
        return resource_run(a, actions);
}
