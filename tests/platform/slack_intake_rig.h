/*
 * slack_intake_rig: a Slack adapter without a network, with two people and three channels in its
 * cache. The test answers the calls of the Web API, see fake_slack_api.h.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_SLACK_INTAKE_RIG_H
#define TESTS_SLACK_INTAKE_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/slack.h"

#define SELF "U0BOT"
#define TEAM "T1"

struct slack_intake_rig {
        struct platform_ops ops;
        struct adapter adapter;
        struct slack_conf conf;
        struct slack sl;
        struct sl_event_context context;
        json_t *payload;
        struct intake_content item;
};

/* JSON with single quotes; yours to free. */
static inline json_t *parse(const char *text)
{
        char *copy = mem_strdup(text);
        struct error err = { 0 };
        json_t *j;

        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        j = json_read(copy, strlen(copy), &err);
        if (!j)
                fail_msg("%s in %s", err.text, copy);
        free(copy);
        return j;
}

static inline void know_user(struct slack_intake_rig *g, const char *text)
{
        json_t *user = parse(text);

        sl_cache_put_user(g->sl.cache, user);
        json_decref(user);
}

static inline void know_channel(struct slack_intake_rig *g, const char *text)
{
        json_t *channel = parse(text);

        sl_cache_put_channel(g->sl.cache, channel);
        json_decref(channel);
}

static inline void rig_open(struct slack_intake_rig *g)
{
        g->ops.name = "slack";
        g->conf.cached_users = 100;
        g->conf.reply_in = (char *)(uintptr_t) "channel";
        g->conf.mode = (char *)(uintptr_t) "socket";
        g->adapter.ops = &g->ops;
        g->adapter.name = "work";
        g->adapter.conf = &g->conf;
        g->adapter.self = &g->sl;
        g->sl.adapter = &g->adapter;
        g->sl.conf = &g->conf;
        g->sl.self.user = (char *)(uintptr_t)SELF;
        g->sl.self.bot = (char *)(uintptr_t) "B0BOT";
        g->sl.self.team = (char *)(uintptr_t)TEAM;
        g->sl.cache = sl_cache_new(&g->sl);
        g->context = (struct sl_event_context){
                .user = SELF, .bot = "B0BOT", .team = TEAM, .cache = g->sl.cache
        };
        know_user(g, "{'id':'U1','name':'anna.k','team_id':'T1',"
                     "'profile':{'display_name':'Anna','real_name':'Anna Karlsson'}}");
        know_user(g, "{'id':'U2','name':'bo','team_id':'T2','real_name':'Bo of Elsewhere'}");
        know_channel(g, "{'id':'C1','name':'general','is_member':true}");
        know_channel(g, "{'id':'G1','name':'secret','is_private':true}");
        know_channel(g, "{'id':'D1','is_im':true,'user':'U1'}");
}

static inline void rig_forget(struct slack_intake_rig *g)
{
        if (g->payload)
                intake_content_release(&g->item);
        json_decref(g->payload);
        g->payload = NULL;
}

static inline void rig_close(struct slack_intake_rig *g)
{
        rig_forget(g);
        sl_cache_free(g->sl.cache);
}

#endif
