/*
 * dispatch_rig: a dispatch with one open chat platform and the rules of a test; alone, or deciding
 * for a whole road.
 */
#ifndef TESTS_DISPATCH_RIG_H
#define TESTS_DISPATCH_RIG_H

#include <string.h>

#include "../lib/road_rig.h"
#include "../lib/rule_list.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

#define CHAT      "chat" /* the adapter */
#define SECONDS   1000
#define NOON      ((int64_t)1794744000000) /* 2026-11-15, 12:00 UTC */
#define WINDOW    300
#define DM_WINDOW 900

static inline struct access *rig_open_access(void)
{
        char star[] = "*", one[] = "1", *items[] = { star }, *admin[] = { one };
        struct setting_list everybody = { items, 1, true }, admins = { admin, 1, true };

        return access_new(
                &(struct access_lists){ .admins = &admins, .dm = &everybody, .allow = &everybody });
}

/* Discord's defaults without debounce; user 1 is an admin. */
static inline struct dispatch_adapter rig_adapter(void)
{
        return (struct dispatch_adapter){ .max_hops = 3,
                                          .conversation_seconds = WINDOW,
                                          .dm_conversation_seconds = DM_WINDOW,
                                          .commands = true };
}

static inline void rig_set(struct dispatch *d, const char *rules_json, struct dispatch_adapter chat)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        size_t count;
        struct rule *rules = rule_list_read(rules_json, &count);

        a[0] = chat;
        a[0].name = mem_strdup(CHAT);
        a[0].platform = mem_strdup("discord");
        a[0].access = rig_open_access();
        dispatch_set(d, a, 1, rules, count, "echo");
}

static inline struct dispatch *rig_dispatch(const char *rules_json, struct dispatch_adapter chat)
{
        struct dispatch *d = dispatch_new();

        rig_set(d, rules_json, chat);
        dispatch_set_clock(d, NOON);
        return d;
}

/* Lets this dispatch decide for the road. */
static inline void rig_decided_by(struct rig *g, struct dispatch *d)
{
        g->real = (struct road_dispatch){ .dispatch = d,
                                          .decide = dispatch_decide,
                                          .ending = dispatch_ending,
                                          .ended = dispatch_ended };
}

static inline struct incoming group_message(const char *sender, const char *text)
{
        return (struct incoming){ .adapter = CHAT,
                                  .platform = "discord",
                                  .channel = "456",
                                  .chat = CHAT_GROUP,
                                  .sender_id = sender,
                                  .text = text };
}

#endif
