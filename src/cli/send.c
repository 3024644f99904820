#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/client.h"
#include "cli/print.h"

/* "-" reads standard input. NULL: reported. */
static char *read_text(const struct args *a, const char *given)
{
        struct error err = { 0 };
        char *text;
        size_t n;

        if (strcmp(given, "-") != 0)
                return mem_strdup(given);
        text = args_file("-", &err);
        if (!text) {
                command_usage_error(a->command, "%s", err.text);
                return NULL;
        }
        for (n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
                text[n - 1] = '\0';
        return text;
}

static char *request_body(const struct args *a, const char *to, const char *text)
{
        const char *slash = strchr(to, '/');
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        if (slash) {
                jsonw_strn(&b, "instanceId", to, (size_t)(slash - to));
                jsonw_str(&b, "to", slash + 1);
        } else {
                jsonw_str(&b, "person", to);
        }
        jsonw_str(&b, "text", text);
        jsonw_opt(&b, "threadId", args_value(a, "thread"));
        jsonw_opt(&b, "replyTo", args_value(a, "reply-to"));
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static void print_sent(const json_t *data)
{
        const char *schedule = json_str(data, "scheduleId", NULL);
        const char *until = json_str(data, "notBefore", NULL);

        if (!schedule)
                printf("%s %s; follow it with: dragoman why %s\n",
                       json_str(data, "deliveryId", "?"), json_str(data, "status", "?"),
                       json_str(data, "deliveryId", "?"));
        else
                printf("%s %s%s%s; follow it with: dragoman schedule history %s\n", schedule,
                       json_str(data, "status", "?"), until ? " until " : "", until ? until : "",
                       schedule);
}

static int post(struct args *a, struct client *c, struct error *err)
{
        char *text = read_text(a, a->operands[1]);
        char *body = text ? request_body(a, a->operands[0], text) : NULL;
        struct client_request request = { .method = "POST",
                                          .path = "/api/v2/messages/send",
                                          .body = body,
                                          .idempotency_key = args_value(a, "idempotency-key") };
        json_t *json = NULL, *data;
        int rc = CLI_USAGE;

        if (text) {
                rc = client_ask(c, &request, &json, err);
                data = json_object_get(json, "data");
                if (rc == 0 && a->json)
                        print_json(data);
                else if (rc == 0)
                        print_sent(data);
        }
        json_decref(json);
        free(text);
        free(body);
        return rc;
}

int send_command(struct args *a)
{
        const char *to = args_operand(a, "ADAPTER/CHANNEL or PERSON");

        if (!to || !args_operand(a, "TEXT") || (strchr(to, '/') && !args_channel(a, to)))
                return CLI_USAGE;
        if (a->next < a->operand_count)
                return command_usage_error(a->command,
                                           "unexpected operand '%s'; put the text into quotes",
                                           a->operands[a->next]);
        return client_command(a, post);
}
