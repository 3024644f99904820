#include "agent/agent_queue.h"

void queue_init(struct queue *q)
{
        *q = (struct queue){ 0 };
        TAILQ_INIT(&q->entries);
}

bool queue_has_place(const struct queue *q, int64_t places)
{
        return places == 0 || (int64_t)q->working < places;
}

bool queue_has_room(const struct queue *q, int64_t longest)
{
        return (int64_t)q->waiting < longest;
}

void queue_push(struct queue *q, struct queue_entry *e)
{
        TAILQ_INSERT_TAIL(&q->entries, e, next);
        e->waits = true;
        q->waiting++;
}

void queue_remove(struct queue *q, struct queue_entry *e)
{
        if (!e->waits)
                return;
        TAILQ_REMOVE(&q->entries, e, next);
        e->waits = false;
        q->waiting--;
}

struct queue_entry *queue_pop(struct queue *q)
{
        struct queue_entry *e = TAILQ_FIRST(&q->entries);

        if (e)
                queue_remove(q, e);
        return e;
}
