/*
 * What a platform may tell, and the one door through which an adapter changes its state.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapters.h"

const char *adapter_state_name(enum adapter_state s)
{
        static const char *const names[] = {
                [ADAPTER_OFF] = "off",         [ADAPTER_CONNECTING] = "connecting",
                [ADAPTER_UP] = "connected",    [ADAPTER_LOST] = "lost",
                [ADAPTER_STOPPED] = "stopped",
        };

        return names[s];
}

/* ---- the journal ---- */

/* A change of state on its way to the disk. */
struct adapter_move {
        struct bus *bus; /* NULL: forgotten */
        struct bus_batch batch;
        char *adapter, *payload;
        const char *type; /* a constant */
        int64_t time_ms;
        LIST_ENTRY(adapter_move) next;
};

static void move_free(struct adapter_move *m)
{
        bus_batch_release(&m->batch);
        free(m->adapter);
        free(m->payload);
        free(m);
}

static int write_move(struct store_tx *tx, void *arg, struct error *err)
{
        struct adapter_move *m = arg;
        const struct bus_event e = {
                .type = m->type, .time_ms = m->time_ms, .adapter = m->adapter, .payload = m->payload
        };
        int64_t seq;

        bus_batch_reset(&m->batch);
        return bus_append(tx, &m->batch, &e, &seq, err) < 0 ? -1 : 0;
}

static void on_written(void *arg, const struct error *err)
{
        struct adapter_move *m = arg;

        if (err)
                log_warn("a change of an adapter could not be journaled",
                         LOG_S("adapter", m->adapter), LOG_S("event", m->type),
                         LOG_S("why", err->text));
        else if (m->bus)
                bus_publish(m->bus, &m->batch);
        if (m->bus)
                LIST_REMOVE(m, next);
        move_free(m);
}

void adapter_moves_forget(struct adapters *as)
{
        struct adapter_move *m;

        while ((m = LIST_FIRST(&as->moves))) {
                LIST_REMOVE(m, next);
                m->bus = NULL;
        }
}

static void journal(const struct adapter *a, const char *type)
{
        struct adapter_move *m;
        struct buf payload;

        if (!a->all->store)
                return;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "platform", a->ops->name);
        jsonw_str(&payload, "state", adapter_state_name(a->state));
        jsonw_opt(&payload, "why", a->why[0] ? a->why : NULL);
        jsonw_close(&payload, '}');
        m = mem_zalloc(sizeof(*m));
        m->bus = a->all->bus;
        m->adapter = mem_strdup(a->name);
        m->payload = buf_take(&payload);
        m->type = type;
        m->time_ms = a->since_ms;
        LIST_INSERT_HEAD(&a->all->moves, m, next);
        store_write(a->all->store, write_move, on_written, m);
}

/* ---- the door ---- */

/* What entering a state means to the outside: an event, and how loud the log is. */
/* clang-format off */
static const struct {
        const char *event;
        enum log_level level;
} moves[] = {
        [ADAPTER_OFF]        = { "adapter.stopped",   LOG_INFO },
        [ADAPTER_CONNECTING] = { NULL,                LOG_DEBUG },
        [ADAPTER_UP]         = { "adapter.connected", LOG_INFO },
        [ADAPTER_LOST]       = { "adapter.lost",      LOG_WARN },
        [ADAPTER_STOPPED]    = { "adapter.stopped",   LOG_WARN },
};
/* clang-format on */

void adapter_enter(struct adapter *a, enum adapter_state state, const char *why)
{
        const char *text = why ? why : "";
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, sizeof(a->why) - 1);
        bool moved = a->state != state;

        if (!moved && strncmp(a->why, text, n) == 0 && a->why[n] == '\0')
                return;
        snprintf(a->why, sizeof(a->why), "%.*s", (int)n, text);
        log_write(moves[state].level, "adapter changes", LOG_S("adapter", a->name),
                  LOG_S("from", adapter_state_name(a->state)),
                  LOG_S("to", adapter_state_name(state)), LOG_S("why", a->why), LOG_END);
        a->state = state;
        a->since_ms = clock_wall_ms();
        if (moved && moves[state].event) /* another reason for the same state is for the log only */
                journal(a, moves[state].event);
        if (state == ADAPTER_UP && a->road)
                outbox_wake(a->road, a->name);
}

void adapter_set_profile(struct adapter *a, const char *name, const char *id)
{
        snprintf(a->bot_name, sizeof(a->bot_name), "%s", name);
        snprintf(a->bot_id, sizeof(a->bot_id), "%s", id);
}

void adapter_ready(struct adapter *a)
{
        adapter_enter(a, ADAPTER_UP, NULL);
}

void adapter_lost(struct adapter *a, const char *why)
{
        adapter_enter(a, ADAPTER_LOST, why);
}

void adapter_stopped(struct adapter *a, const char *why)
{
        adapter_enter(a, ADAPTER_STOPPED, why);
}

void adapter_received(struct adapter *a, struct incoming *in, inbox_ack_fn *ack, void *arg)
{
        assert(a->road); /* adapters are opened after the road and hear nothing after it */
        in->adapter = a->name;
        in->platform = a->ops->name;
        inbox_receive(a->road, in, ack, arg);
}
