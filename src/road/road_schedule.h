/*
 * road_schedule: what agents and dispatch ask of the schedule, the road's contract with it.
 *
 * The schedule speaks first: a tick that is due enters the inbox as schedule.fired, or the outbox
 * as a message. Its tools serve agents, its commands people.
 *
 * The text of a schedule.fired event is complete: "[EVENT:NAME:TYPE:INFO] TEXT", and perhaps what
 * its check found and how late it is. Its metadata is an object of "scheduleId", "tickId", "name",
 * "source", "type" ("one-shot"), "dueAt", "runs", "lateMs" (if late), "createdBy", "untrusted", and
 * "queues" if a turn follows although the last time's has not ended.
 */
#ifndef ROAD_ROAD_SCHEDULE_H
#define ROAD_ROAD_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "road/chat_caller.h"
#include "road/inbox/decision.h"
#include "road/inbox/inbox.h"
#include "road/outbox/delivery.h"

struct schedule;

struct road_schedule {
        struct schedule *schedule;
        /* The i-th tool for agents; NULL: there are no more. */
        const struct road_tool *(*tool_at)(struct schedule *s, size_t i);
        /* Calls done once, later. The same request key has the same effect once. */
        void (*call_tool)(struct schedule *s, const struct chat_caller *by, const char *tool,
                          const struct tool_request *q, platform_tool_fn *done, void *arg);
        /*
         * A chat command without its slash, such as "remind" with "30m tea" ("" for none). The
         * effect is written in the decision's transaction; its report is the answer. `in` and args
         * outlive effect.committed, `by` does not outlive the call. Time counts from in->time_ms:
         * the daemon may have been down. The person may be recorded in the same transaction, before
         * effect.write but after effect.report. NULL: there is no such command.
         */
        struct effect *(*command)(struct schedule *s, const struct chat_caller *by,
                                  const struct incoming *in, const char *name, const char *args);
};

/* A tick that asks an agent. Strings are borrowed. */
struct schedule_fired {
        int64_t schedule, tick;
        const char *name;        /* of the schedule */
        const char *kind, *info; /* "periodic" and "0 9 * * 1-5"; of others the time, or the kind */
        const char *adapter, *platform, *channel;
        const char *thread; /* may be NULL */
        const char *person; /* the platform's id of whom it is for; NULL: the chat */
        const char *agent;  /* that is to answer; NULL: the rules say */
        const char *text;
        /* JSON object; "untrusted": false if only the operator wrote the text */
        const char *metadata;
        const char *trace; /* may be NULL */
        bool direct;       /* a direct chat, even without a message there */
};

/*
 * Commits schedule.fired with the dedup key "tick:N" and the text "[EVENT:name:kind:info] text";
 * dispatch decides it like a message that addresses the bot. The chat's facts come from its last
 * message; in a direct chat the sender is the person there. Calls ack once, later.
 */
void schedule_fired_receive(struct road *r, const struct schedule_fired *f, inbox_ack_fn *ack,
                            void *arg);
/* The last message of a person in the chat, yours to free; NULL: none is kept. 0 or -1. */
int schedule_fired_last(struct store_tx *tx, const char *adapter, const char *channel,
                        struct incoming **out, struct error *err);

#endif
