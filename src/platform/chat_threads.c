/* Which threads a chat offers: asked of its platform, and remembered for a while. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "platform/adapters.h"

#define KNOWN_MAX 1000
#define KNOWN_MS  600000 /* a group may become a forum */

struct known_chat {
        enum chat_threads threads;
        int64_t until_ms;
};

/* One question. */
struct chat_question {
        struct adapters *all;
        char *key; /* of the chat; NULL: it is not remembered */
        enum chat_threads threads;
        struct error error;
        chat_threads_fn *done;
        void *arg;
};

void chat_threads_forget(struct adapters *as)
{
        void *value;

        for (size_t i = 0; map_each(&as->known_chats, &i, NULL, &value);)
                free(value);
        map_release(&as->known_chats);
        map_init(&as->known_chats);
}

static void remember(struct adapters *as, const char *key, enum chat_threads threads)
{
        struct known_chat *known = mem_alloc(sizeof(*known));

        if (as->known_chats.count >= KNOWN_MAX)
                chat_threads_forget(as);
        *known = (struct known_chat){ threads, clock_mono_ms() + KNOWN_MS };
        free(map_put(&as->known_chats, key, known));
}

static const struct known_chat *recall(const struct adapters *as, const char *key)
{
        const struct known_chat *known = map_get(&as->known_chats, key);

        return known && known->until_ms > clock_mono_ms() ? known : NULL;
}

static void answer(void *arg)
{
        struct chat_question *q = arg;

        q->done(q->arg, q->threads, q->error.kind ? &q->error : NULL);
        free(q->key);
        free(q);
}

static void on_channel(void *arg, const struct channel_info *info, const struct error *err)
{
        struct chat_question *q = arg;

        if (info) {
                q->threads = info->threads;
                remember(q->all, q->key, q->threads);
        } else {
                q->error = *err;
        }
        answer(q);
}

/* The direct chat of a person, however its platform names it. */
static bool is_person(const struct adapter *a, const char *channel)
{
        return (a->ops->can & ADAPTER_OPENS_DIRECT) &&
               (strncmp(channel, "user:", 5) == 0 || strcmp(channel, "operator") == 0);
}

void adapters_threads(struct adapters *as, const char *adapter, const char *channel,
                      chat_threads_fn *done, void *arg)
{
        const struct adapter *a = adapters_find(as, adapter);
        struct chat_question *q = mem_zalloc(sizeof(*q));
        const struct known_chat *known;

        q->all = as;
        q->done = done;
        q->arg = arg;
        q->threads = a && a->ops->threads != CHAT_THREADS_VARY ? a->ops->threads : CHAT_NO_THREADS;
        if (a && a->ops->threads == CHAT_THREADS_VARY && !is_person(a, channel)) {
                q->key = mem_printf("%s/%s", adapter, channel);
                known = recall(as, q->key);
                if (known)
                        q->threads = known->threads;
                else if (adapters_channel_info(as, adapter, channel, on_channel, q, &q->error) == 0)
                        return;
        } else if (!a) {
                error_set(&q->error, ERR_MISSING, "there is no adapter '%s'", adapter);
        }
        loop_defer(as->loop, answer, q);
}
