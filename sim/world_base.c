#include "sim/world_base.h"

#include "base/jsonw.h"

#define KEEP_SENT  200000
#define KEEP_CALLS 20000
#define MAX_SENT   ((size_t)256 << 20)
#define MAX_CALLS  ((size_t)64 << 20)

void world_base_init(struct world_base *w, struct loop *l, size_t keep_messages,
                     const struct world_setting *own)
{
        *w = (struct world_base){
                .loop = l,
                .strict = true,
                .limits = true,
                .record_calls = true,
                .keep_messages = keep_messages,
                .own_settings = own,
                .sent = journal_new(l, KEEP_SENT, MAX_SENT),
                .calls = journal_new(l, KEEP_CALLS, MAX_CALLS),
                .invalid = journal_new(l, KEEP_CALLS, MAX_CALLS),
        };
        faults_init(&w->faults, 1);
        LIST_INIT(&w->live);
}

void world_base_release(struct world_base *w)
{
        journal_free(w->sent);
        journal_free(w->calls);
        journal_free(w->invalid);
        faults_clear(&w->faults);
}

void world_base_apply(struct world_base *w, struct http_client *client, const struct options *o)
{
        w->client = client;
        w->quiet = o->quiet;
        w->limits = !o->no_limits;
        w->strict = !o->lax;
        if (o->keep)
                w->keep_messages = o->keep;
        if (o->seed)
                w->faults.rng = o->seed;
}

void world_base_write_counters(const struct world_base *w, struct buf *b)
{
        jsonw_int(b, "calls", (int64_t)w->call_count);
        jsonw_int(b, "invalid_calls", (int64_t)w->invalid_count);
        jsonw_int(b, "messages", (int64_t)w->message_count);
        jsonw_int(b, "last_message", (int64_t)journal_last(w->sent));
        jsonw_int(b, "last_call", (int64_t)journal_last(w->calls));
}
