/*
 * slack_rig: a Slack adapter against a scripted Web API, with a fake link and a road that records.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_SLACK_RIG_H
#define TESTS_SLACK_RIG_H

#include "adapter_rig.h"
#include "platform/slack/slack.h"

#define BOT_TOKEN "xoxb-1-2-token_of-Slack"
#define APP_TOKEN "xapp-1-A7-token_of-Slack"

/* ---- the fake link ---- */

static struct {
        unsigned opened, closed;
} fake_link;

void sl_socket_open(struct slack *sl)
{
        fake_link.opened++;
        slack_up(sl);
}

void sl_socket_close(struct slack *sl)
{
        (void)sl;
        fake_link.closed++;
}

void sl_catchup_open(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_close(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_start(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_seen(struct slack *sl, const char *ts)
{
        (void)sl;
        (void)ts;
}

/* ---- the rig ---- */

#define ME                                                                             \
        "{\"ok\":true,\"url\":\"https://work.slack.com/\",\"team\":\"Work\",\"user\":" \
        "\"testbot\",\"team_id\":\"T1\",\"user_id\":\"U0BOT\",\"bot_id\":\"B0BOT\"}"

#define NONCE "70e34ab6e9d9f043e9da91d2" /* of delivery 42 */

static inline struct rig *rig_new(void)
{
        unsetenv("SLACK_BOT_TOKEN");
        unsetenv("SLACK_APP_TOKEN");
        memset(&fake_link, 0, sizeof(fake_link));
        return adapter_rig_new("slack", "sl");
}

static inline int rig_begin(void **state)
{
        *state = rig_new();
        return 0;
}

static inline struct slack *rig_slack(struct rig *g)
{
        return rig_adapter(g)->self;
}

/* Starts the server and the adapter; `more` are further settings and begin with a comma. */
static inline void rig_open(struct rig *g, const char *more)
{
        char *settings = mem_printf(",\"appToken\":\"" APP_TOKEN "\"%s", more);

        g->server = fake_server_new(g->loop, g->script, g->count);
        rig_apply(g, BOT_TOKEN, settings);
        free(settings);
}

/* Connects, ready to send. Answers scripted before follow that of the greeting. */
static inline void rig_connect(struct rig *g, const char *more)
{
        static const char *const greeting[] = { ME };

        says_first(g, greeting, COUNT(greeting));
        g->greetings = COUNT(greeting);
        rig_open(g, more);
        rig_until_state(g, ADAPTER_UP);
}

/* "chat.postMessage" of the i-th request after the greeting; static memory. */
static inline const char *rig_method(struct rig *g, unsigned i)
{
        static char method[100];
        const char *request = fake_server_request(g->server, g->greetings + i);

        assert_non_null(request);
        assert_int_equal(strncmp(request, "POST /", 6), 0);
        snprintf(method, sizeof(method), "%.*s", (int)(strstr(request, " HTTP/") - request - 6),
                 request + 6);
        return method;
}

/* Asks whether a delivery arrived; rig_sent awaits the answer. */
static inline void rig_look(struct rig *g, struct delivery d)
{
        d.id = 42;
        d.fence = 5;
        d.attempt = 1;
        d.created_ms = 1700000000000;
        d.adapter = g->name;
        if (d.reconcile_until_ms == 0)
                d.reconcile_until_ms = loop_now_ms(g->loop) + 60000;
        adapters_reconcile(g->adapters, &d);
        assert_int_equal(fake_road.count, 0);
}

#endif
