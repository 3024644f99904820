/*
 * queue: turns that wait for a place at an agent with a limit of its own.
 *
 * First come, first served. That is fair to conversations, because a conversation's lane hands over
 * one turn at a time: whoever has just been served stands behind all the others with the next one.
 */
#ifndef AGENT_AGENT_QUEUE_H
#define AGENT_AGENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct queue_entry {
        TAILQ_ENTRY(queue_entry) next;
        bool waits;
};

struct queue {
        TAILQ_HEAD(, queue_entry) entries;
        size_t waiting, working;
};

void queue_init(struct queue *q);
/* places 0: as many as come. */
bool queue_has_place(const struct queue *q, int64_t places);
bool queue_has_room(const struct queue *q, int64_t longest);
void queue_push(struct queue *q, struct queue_entry *e);
/* The first, taken out; NULL when nobody waits. */
struct queue_entry *queue_pop(struct queue *q);
/* One that gives up waiting; harmless for one that does not wait. */
void queue_remove(struct queue *q, struct queue_entry *e);

#endif
