#include "sim/discord/dc_rate_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/map.h"
#include "base/mem.h"

#define GLOBAL_PER_SECOND 50

struct window {
        int used;
        int64_t began_ms; /* 0: never */
};

struct rate_limits {
        struct map windows; /* bucket, bot and major id -> struct window */
};

/* Observed by other implementers; Discord may change them at any time. */
static const struct {
        const char *name; /* of the bucket, which operations may share */
        const char *op;
        int limit;
        int64_t window_ms;
} rows[] = {
        { "messages", "create_message", 5, 5000 },
        { "edits", "update_message", 5, 5000 },
        { "deletes", "delete_message", 5, 1000 },
        { "reactions", "add_my_message_reaction", 1, 250 },
        { "reactions", "delete_my_message_reaction", 1, 250 },
        { "reactions", "delete_user_message_reaction", 1, 250 },
        { "typing", "trigger_typing_indicator", 5, 5000 },
        { "read", "list_messages", 5, 5000 },
        { "dm", "create_dm", 10, 10000 },
        { "gateway", "get_bot_gateway", 2, 5000 },
        { "threads", "create_thread_from_message", 50, 300000 },
        { "threads", "create_thread", 50, 300000 },
};

struct rate_limits *dc_rate_limit_new(void)
{
        struct rate_limits *r = mem_zalloc(sizeof(*r));

        map_init(&r->windows);
        return r;
}

void dc_rate_limit_free(struct rate_limits *r)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&r->windows, &i, &key, &value);)
                free(value);
        map_release(&r->windows);
        free(r);
}

static struct window *window_of(struct rate_limits *r, const char *key, int64_t window_ms,
                                int64_t now)
{
        struct window *w = map_get(&r->windows, key);

        if (!w) {
                w = mem_zalloc(sizeof(*w));
                map_put(&r->windows, key, w);
        }
        if (w->began_ms == 0 || now - w->began_ms >= window_ms) {
                w->began_ms = now;
                w->used = 0;
        }
        return w;
}

static bool count_global(struct rate_limits *r, const char *who, int64_t now,
                         struct rate_limit *out)
{
        char *key = mem_printf("global %s", who);
        struct window *w = window_of(r, key, 1000, now);

        free(key);
        if (++w->used <= GLOBAL_PER_SECOND)
                return true;
        *out = (struct rate_limit){ .passed = true,
                                    .global = true,
                                    .reset_after = (double)(w->began_ms + 1000 - now) / 1000 };
        return false;
}

struct rate_limit dc_rate_limit_count(struct rate_limits *r, const struct dc_spec_op *op,
                                      const char *who, const char *major)
{
        struct rate_limit out = { .limit = 100 };
        int64_t now = clock_mono_ms(), window_ms = 1000;
        const char *name = op->name;
        char hash[SHA256_HEX_SIZE];
        struct window *w;
        char *key;

        /* interactions are outside the global limit */
        if (!strstr(op->path, "/interactions/") && !strstr(op->path, "/webhooks/") &&
            !count_global(r, who, now, &out))
                return out;
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (strcmp(rows[i].op, op->name) == 0) {
                        name = rows[i].name;
                        out.limit = rows[i].limit;
                        window_ms = rows[i].window_ms;
                }
        }
        key = mem_printf("%s %s %s", name, who, major);
        w = window_of(r, key, window_ms, now);
        free(key);
        out.passed = ++w->used > out.limit;
        out.remaining = out.passed ? 0 : out.limit - w->used;
        out.reset_after = (double)(w->began_ms + window_ms - now) / 1000;
        snprintf(out.bucket, sizeof(out.bucket), "%.32s",
                 crypto_sha256_hex(name, strlen(name), hash));
        return out;
}
