#include "name_swap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct name_swap {
        int folder;
        const char *one, *other;
        atomic_bool stop;
        pthread_t thread;
};

static void *swap(void *arg)
{
        struct name_swap *s = arg;

        while (!s->stop)
                renameat2(s->folder, s->one, s->folder, s->other, RENAME_EXCHANGE);
        return NULL;
}

struct name_swap *name_swap_start(int folder, const char *one, const char *other)
{
        struct name_swap *s = mem_zalloc(sizeof(*s));

        s->folder = folder;
        s->one = one;
        s->other = other;
        if (pthread_create(&s->thread, NULL, swap, s) != 0)
                abort();
        return s;
}

void name_swap_stop(struct name_swap *s)
{
        s->stop = true;
        pthread_join(s->thread, NULL);
        free(s);
}
