/*
 * Target and headers of a request, as a stranger may send them: splitting and decoding stay inside
 * the text, and no text is taken for a key, a token or our own page. The input is lines: target,
 * Authorization, x-api-key, Host, Origin, a turn's token.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "api/core/auth.h"
#include "base/mem.h"
#include "net/http_route.h"

#define LINES 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void run_nothing(struct http_exchange *x)
{
        (void)x;
}

static const struct http_route routes[] = {
        { "GET", "/api/v2/turns/:id", run_nothing, 0, NULL },
        { "POST", "/api/v2/turns/:id/reply", run_nothing, 0, NULL },
        { "GET", "/api/v2/turns/list", run_nothing, 0, NULL },
};

static void check_target(char *target)
{
        char *query = strchr(target, '?'), *end = target + strlen(target);
        struct http_segments segments;
        struct http_match match = { 0 };
        struct http_pair *pairs = NULL;
        size_t count = 0;
        struct buf allow;

        if (query)
                *query++ = '\0';
        buf_init(&allow, 0);
        if (http_route_split(&segments, target) > 0 &&
            http_route_find(routes, COUNT(routes), "GET", &segments, &match, &allow) > 0)
                for (size_t i = 0; i < match.param_count; i++)
                        if (match.params[i].value < target || match.params[i].value > end)
                                abort();
        buf_release(&allow);
        if (query && http_route_parse_query(query, &pairs, &count) == 0)
                for (size_t i = 0; i < count; i++)
                        if (pairs[i].name < query || pairs[i].value > end ||
                            strlen(pairs[i].name) + strlen(pairs[i].value) > (size_t)(end - query))
                                abort();
        free(pairs);
}

/* The digest belongs to no text, so whatever is accepted was not compared. */
static void check_headers(char **lines)
{
        static const unsigned char secret[SHA256_SIZE] = "a secret nobody can guess";
        char public_host[] = "bot.example.org";
        struct auth a = { .loopback = true, .public_host = public_host };
        struct key *caller = NULL;
        struct error err = { 0 };

        if (auth_check(&a, lines[1], lines[2], &caller) == AUTH_OK || caller)
                abort();
        if (auth_host_ok(&a, lines[3]) && strncasecmp(lines[3], "bot.example.org", 15) != 0 &&
            strncasecmp(lines[3], "localhost", 9) != 0 && !strstr(lines[3], "127.") &&
            !strchr(lines[3], '['))
                abort();
        if (auth_origin_ok(&a, lines[4], "127.0.0.1:8420") && !strstr(lines[4], "127.0.0.1:8420") &&
            !strcasestr(lines[4], public_host))
                abort();
        if (reply_token_check(secret, "trn-1", lines[5], 1, &err) == 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *text = mem_strndup((const char *)data, n), *at = text, *lines[LINES];

        for (size_t i = 0; i < LINES; i++) {
                lines[i] = at;
                at += strcspn(at, "\n");
                if (*at)
                        *at++ = '\0';
        }
        for (size_t i = 0; i < LINES; i++) /* copies, so that reading on is found */
                lines[i] = mem_strdup(lines[i]);
        check_headers(lines);
        if (lines[0][0] == '/') /* the guard lets nothing else through */
                check_target(lines[0]);
        for (size_t i = 0; i < LINES; i++)
                free(lines[i]);
        free(text);
        return 0;
}
