#include "platform/discord/dc_intake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/attachment_fetch.h"
#include "platform/discord/dc_channel_lookup.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_member_lookup.h"
#include "platform/discord/discord.h"

#define POSTS_MAX 1000 /* interactions over HTTP that wait to be stored */
#define AGAIN_MS  500
#define AGAIN_MAX 10000

enum work_state { WORK_UNREADY, WORK_READY, WORK_STORING };

/* One file of a work that is being fetched. */
struct want {
        struct work *work;
        struct fetch *fetch;
};

/* The road answers to this; it outlives the work when it must. */
struct receipt {
        struct work *work; /* NULL: gone meanwhile */
        unsigned left;
        bool refused;
        char why[200];
};

struct work {
        struct dc_intake *in;
        struct dc_dispatch e; /* strings and d are our own */
        bool from_gateway;    /* its ticket counts */
        bool missed;          /* it was read back */
        void (*stored)(void *arg, bool ok);
        void *stored_arg;
        const char *place;
        struct dc_event item;
        bool placed, read;
        char *asked_guild, *asked_user; /* the member that is being looked up; NULL: none */
        enum work_state state;
        struct want *wants;
        unsigned fetching;
        struct receipt *receipt;
        TAILQ_ENTRY(work) next;
};

struct dc_intake {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_cache *cache;
        struct dc_channel_lookup *channels;
        struct dc_member_lookup *members;
        struct dc_gateway *gateway;
        char *self;
        bool role_mentions;
        TAILQ_HEAD(works, work) window; /* in the order in which they are handed over */
        size_t unready, posts, missing;
        struct map holds; /* place to how often it is held */
        struct fetches fetches;
        struct timer *again; /* the inbox refused */
        unsigned refusals;
};

static void flush(struct dc_intake *in);
static void on_where(void *arg, const char *place, bool known);
static void on_member(void *arg, const char *guild, const char *user, json_t *member);

/* ---- life ---- */

struct dc_intake *dc_intake_new(const struct dc_inbound_options *o,
                                const struct dc_inbound_hooks *hooks, struct dc_cache *cache)
{
        struct dc_intake *in = mem_zalloc(sizeof(*in));

        in->adapter = o->adapter;
        in->hooks = *hooks;
        in->cache = cache;
        in->role_mentions = o->role_mentions;
        TAILQ_INIT(&in->window);
        in->channels = dc_channel_lookup_new(o, hooks, cache, on_where, in);
        in->members = dc_member_lookup_new(o, hooks, on_member, in);
        map_init(&in->holds);
        in->fetches = (struct fetches){ .adapter = o->adapter,
                                        .from = "Discord",
                                        .max_bytes = o->media_max_bytes };
        fetches_init(&in->fetches);
        return in;
}

static void work_free(struct work *w)
{
        for (size_t i = 0; w->wants && i < w->item.attachment_count; i++)
                fetch_drop(w->wants[i].fetch);
        free(w->wants);
        if (w->receipt)
                w->receipt->work = NULL;
        dc_event_release(&w->item);
        json_decref(w->e.d);
        free((char *)(uintptr_t)w->e.type);
        free((char *)(uintptr_t)w->e.session);
        free(w->asked_guild);
        free(w->asked_user);
        free(w);
}

/* Out of the window, its sender told. */
static void finish(struct work *w, bool ok)
{
        struct dc_intake *in = w->in;

        TAILQ_REMOVE(&in->window, w, next);
        if (w->state == WORK_UNREADY)
                in->unready--;
        if (w->missed)
                in->missing--;
        if (w->stored) {
                in->posts--;
                w->stored(w->stored_arg, ok);
        }
        if (w->from_gateway && ok && in->gateway)
                dc_gateway_committed(in->gateway, w->e.ticket);
        work_free(w);
}

void dc_intake_free(struct dc_intake *in)
{
        struct work *w;

        if (!in)
                return;
        in->gateway = NULL;
        while ((w = TAILQ_FIRST(&in->window)))
                finish(w, false);
        dc_channel_lookup_free(in->channels);
        dc_member_lookup_free(in->members);
        map_release(&in->holds);
        timer_free(in->again);
        free(in->self);
        free(in);
}

void dc_intake_set_gateway(struct dc_intake *in, struct dc_gateway *g)
{
        in->gateway = g;
}

void dc_intake_set_self(struct dc_intake *in, const char *user_id)
{
        if (!user_id)
                return;
        free(in->self);
        in->self = mem_strdup(user_id);
        dc_channel_lookup_set_self(in->channels, user_id);
}

/* ---- storing ---- */

static bool is_interaction(const struct work *w)
{
        return strcmp(w->e.type, "INTERACTION_CREATE") == 0;
}

static void all_stored(struct work *w)
{
        struct dc_intake *in = w->in;
        const struct incoming *first = w->item.items;

        in->refusals = 0;
        if (first->chat == CHAT_DM && !first->is_own && !first->sender_is_bot && first->sender_id &&
            in->hooks.dm)
                in->hooks.dm(in->hooks.ctx, first->sender_id, first->channel);
        if (is_interaction(w) && w->from_gateway && in->hooks.stored)
                in->hooks.stored(in->hooks.ctx, w->e.d);
        finish(w, true);
}

static void on_again(void *arg)
{
        flush(arg);
}

static int64_t again_ms(unsigned failures)
{
        int64_t ms = AGAIN_MS << (failures < 5 ? failures : 5);

        return ms < AGAIN_MAX ? ms : AGAIN_MAX;
}

/* Whoever posted is told to come back; what the gateway gave is kept and handed over again. */
static void refused(struct work *w, const char *why)
{
        struct dc_intake *in = w->in;
        int64_t wait = again_ms(in->refusals);

        if (in->refusals++ == 0)
                log_warn(
                        "the inbox takes nothing at the moment; what Discord told is offered again",
                        LOG_S("adapter", in->adapter->name), LOG_S("why", why));
        if (w->stored) {
                finish(w, false);
                return;
        }
        w->state = WORK_READY;
        if (!in->again)
                in->again = timer_new(in->adapter->loop, on_again, in);
        if (!timer_active(in->again))
                timer_start(in->again, wait);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct receipt *t = arg;
        struct work *w = t->work;

        if (r->outcome == INBOX_FAILED && r->error.kind != ERR_INVALID) {
                t->refused = true;
                snprintf(t->why, sizeof(t->why), "%.199s", r->error.text);
        } else if (r->outcome == INBOX_FAILED) {
                log_warn("something Discord told was left out: it will never be accepted",
                         LOG_S("why", r->error.text));
        }
        if (--t->left > 0)
                return;
        if (w) {
                w->receipt = NULL;
                if (t->refused)
                        refused(w, t->why);
                else
                        all_stored(w);
        }
        free(t);
}

static void note_files(struct dc_event *item)
{
        json_t *files = json_array();

        for (size_t i = 0; i < item->attachment_count; i++) {
                json_t *file = json_object();

                if (item->files[i].id)
                        json_object_set_new(file, "id", json_string(item->files[i].id));
                if (item->files[i].error)
                        json_object_set_new(file, "error", json_string(item->files[i].error));
                json_array_append_new(files, file);
        }
        if (item->attachment_count > 0)
                json_object_set(item->metadata, "files", files);
        json_decref(files);
}

static void store(struct work *w)
{
        struct receipt *t = mem_zalloc(sizeof(*t));
        char *metadata;

        w->state = WORK_STORING;
        w->receipt = t;
        t->work = w;
        t->left = (unsigned)w->item.count;
        note_files(&w->item);
        metadata = json_text(w->item.metadata);
        for (size_t i = 0; i < w->item.count; i++) {
                struct incoming in = w->item.items[i];

                in.metadata = metadata;
                adapter_received(w->in->adapter, &in, on_receipt, t);
        }
        free(metadata);
}

/*
 * Does something earlier of the same place still wait? A command cannot: it must be acknowledged
 * within three seconds.
 */
static bool is_behind(const struct work *w)
{
        const struct work *p;

        if (is_interaction(w))
                return false;
        TAILQ_FOREACH(p, &w->in->window, next) {
                if (p == w)
                        return false;
                if (p->state != WORK_STORING && strcmp(p->place, w->place) == 0)
                        return true;
        }
        return false;
}

/* Hands over whatever may go. */
static void flush(struct dc_intake *in)
{
        struct work *w;

        if (in->again && timer_active(in->again))
                return;
        TAILQ_FOREACH(w, &in->window, next)
                if (w->state == WORK_READY && (in->unready == 0 || !is_behind(w)))
                        store(w);
}

/* ---- making ready ---- */

/* What was missed is what the others wait for, and a command cannot wait. */
static bool is_held(const struct work *w)
{
        const struct map *holds = &w->in->holds;

        return !w->missed && !is_interaction(w) &&
               (map_get(holds, w->place) || map_get(holds, DC_EVERYWHERE));
}

/* Looks whether it is ready now. */
static void settle(struct work *w)
{
        if (w->state != WORK_UNREADY || !w->read || w->fetching > 0 || is_held(w))
                return;
        w->state = WORK_READY;
        w->in->unready--;
}

static void on_fetched(void *arg, const char *path, int64_t size, const char *why)
{
        struct want *want = arg;
        struct work *w = want->work;
        size_t i = (size_t)(want - w->wants);

        want->fetch = NULL;
        if (path) {
                w->item.attachments[i].path = arena_strdup(&w->item.arena, path);
                w->item.attachments[i].size = size;
        } else {
                w->item.files[i].error = arena_strdup(&w->item.arena, why);
        }
        w->fetching--;
        settle(w);
        flush(w->in);
}

static void fetch(struct work *w, size_t i)
{
        const struct attachment *a = &w->item.attachments[i];
        struct dc_event_file *file = &w->item.files[i];
        const char *name = a->name ? a->name : "file";
        /* several files of a message may have one name: whatever is pasted is called image.png */
        const struct fetch_order order = {
                .key = file->url,
                .channel = w->item.items[0].channel,
                .message = w->item.items[0].id,
                .name = i == 0 ? name : arena_printf(&w->item.arena, "%zu-%s", i + 1, name)
        };

        if (!file->url)
                return;
        file->error = fetch_refusal(&w->in->fetches, a->size);
        if (file->error)
                return;
        w->fetching++;
        w->wants[i].work = w;
        w->wants[i].fetch = fetch_start(&w->in->fetches, &order, on_fetched, &w->wants[i]);
}

/*
 * Place and person are known, as far as they can be. False: there was nothing in it, and the work
 * is gone.
 */
static bool read_it(struct work *w)
{
        struct dc_intake *in = w->in;
        const struct dc_event_context reader = { .self = in->self,
                                                 .cache = in->cache,
                                                 .role_mentions = in->role_mentions };

        dc_event_read(&w->item, &reader, &w->e);
        w->read = true;
        if (w->item.count == 0) {
                log_debug("something Discord told is left out", LOG_S("adapter", in->adapter->name),
                          LOG_S("type", w->e.type), LOG_S("why", w->item.ignored));
                finish(w, true);
                return false;
        }
        if (w->item.items->is_own && in->hooks.own && strcmp(w->e.type, "MESSAGE_CREATE") == 0)
                in->hooks.own(in->hooks.ctx, w->e.d);
        if (!w->item.items->is_own)
                dc_cache_set_username(in->cache, w->item.items->sender_username,
                                      w->item.items->sender_id);
        w->wants = mem_array(w->item.attachment_count, sizeof(*w->wants));
        for (size_t i = 0; i < w->item.attachment_count; i++)
                fetch(w, i);
        settle(w);
        return true;
}

/* ---- the member ---- */

/*
 * The guild whose member Discord should have sent with the event; NULL: nothing is missing. In a
 * DM, or of the bot itself, there is none.
 */
static const char *guild_to_ask(const struct work *w, const char *user)
{
        const char *guild = json_str(w->e.d, "guild_id", NULL);
        struct dc_channel_info place = { .type = -1 };

        if (!user || (w->in->self && strcmp(user, w->in->self) == 0))
                return NULL;
        dc_cache_channel(w->in->cache, w->place, &place);
        guild = guild ? guild : place.guild;
        return dc_id_valid(guild) ? guild : NULL;
}

/* Adds the member to the event, in a copy: the original is not ours. `place` is in both. */
static bool introduce(struct work *w, json_t *member)
{
        json_t *d = json_copy(w->e.d);

        json_object_set(d, "member", member);
        json_decref(w->e.d);
        w->e.d = d;
        return read_it(w);
}

/* The place is known. False: the work is gone. */
static bool meet(struct work *w)
{
        const char *user = dc_event_missing_member(w->e.type, w->e.d),
                   *guild = guild_to_ask(w, user);
        json_t *member = NULL;

        if (!guild)
                return read_it(w);
        member = dc_member_lookup_get(w->in->members, guild, user, w->missed);
        if (member)
                return introduce(w, member);
        w->asked_guild = mem_strdup(guild);
        w->asked_user = mem_strdup(user);
        return true;
}

/* Continues everything that waits for the member. */
static void on_member(void *arg, const char *guild, const char *user, json_t *member)
{
        struct dc_intake *in = arg;
        struct work *w, *after;

        for (w = TAILQ_FIRST(&in->window); w; w = after) {
                after = TAILQ_NEXT(w, next);
                if (!w->asked_user || strcmp(w->asked_user, user) != 0 ||
                    strcmp(w->asked_guild, guild) != 0)
                        continue;
                free(w->asked_guild);
                free(w->asked_user);
                w->asked_guild = w->asked_user = NULL;
                introduce(w, member);
        }
        flush(in);
}

/* ---- which place? ---- */

/* Whatever waits for the place goes on. */
static void on_where(void *arg, const char *place, bool known)
{
        struct dc_intake *in = arg;
        struct work *w, *after;

        for (w = TAILQ_FIRST(&in->window); w; w = after) {
                after = TAILQ_NEXT(w, next);
                if (w->placed || strcmp(w->place, place) != 0)
                        continue;
                w->placed = true;
                if (known)
                        meet(w);
                else /* missed, and not even known to be a DM */
                        finish(w, true);
        }
        flush(in);
}

/* Interactions bring their channel along. */
static void learn_channel(struct dc_intake *in, const json_t *d)
{
        const json_t *channel = json_object_get(d, "channel");

        if (json_is_object(channel))
                dc_cache_add(in->cache, json_str(d, "guild_id", NULL), channel);
}

static void prepare(struct work *w)
{
        const char *guild = json_str(w->e.d, "guild_id", NULL);

        if (is_interaction(w))
                learn_channel(w->in, w->e.d);
        w->placed = !guild || dc_channel_lookup_has(w->in->channels, w->place,
                                                    is_interaction(w) ? NULL : guild);
        if (!w->placed)
                dc_channel_lookup_ask(w->in->channels, w->place, guild);
        else if (meet(w) && w->state == WORK_READY)
                flush(w->in);
}

/* ---- the doors ---- */

static struct work *work_new(struct dc_intake *in, const struct dc_dispatch *e, const char *place)
{
        struct work *w = mem_zalloc(sizeof(*w));

        w->in = in;
        w->e = *e;
        w->e.type = mem_strdup(e->type);
        w->e.session = mem_strdup(e->session);
        w->e.d = json_incref(e->d);
        w->place = place;
        in->unready++;
        return w;
}

void dc_intake_event(struct dc_intake *in, const struct dc_dispatch *e)
{
        const char *place = dc_event_channel(e->type, e->d);
        struct work *w;

        dc_cache_learn(in->cache, in->self, e->type, e->d);
        if (!place) {
                dc_gateway_committed(in->gateway, e->ticket);
                return;
        }
        w = work_new(in, e, place);
        w->from_gateway = true;
        TAILQ_INSERT_TAIL(&in->window, w, next);
        prepare(w);
}

void dc_intake_interaction(struct dc_intake *in, const json_t *interaction,
                           void (*stored)(void *arg, bool ok), void *arg)
{
        const struct dc_dispatch e = { .type = "INTERACTION_CREATE",
                                       .d = (json_t *)(uintptr_t)interaction };
        const char *place = dc_event_channel(e.type, interaction);
        struct work *w;

        if (!place || in->posts >= POSTS_MAX || !in->adapter->road) {
                stored(arg, false);
                return;
        }
        w = work_new(in, &e, place);
        w->stored = stored;
        w->stored_arg = arg;
        in->posts++;
        TAILQ_INSERT_TAIL(&in->window, w, next);
        prepare(w);
}

/* ---- holding ---- */

void dc_intake_hold(struct dc_intake *in, const char *place)
{
        uintptr_t n = (uintptr_t)map_get(&in->holds, place);

        map_put(&in->holds, place, (void *)(n + 1));
}

void dc_intake_release(struct dc_intake *in, const char *place)
{
        uintptr_t n = (uintptr_t)map_get(&in->holds, place);
        struct work *w;

        if (n > 1) {
                map_put(&in->holds, place, (void *)(n - 1));
                return;
        }
        if (n == 0)
                return;
        map_remove(&in->holds, place);
        TAILQ_FOREACH(w, &in->window, next)
                if (strcmp(w->place, place) == 0 || strcmp(place, DC_EVERYWHERE) == 0)
                        settle(w);
        flush(in);
}

void dc_intake_missed(struct dc_intake *in, const char *place, json_t *message)
{
        const struct dc_dispatch e = { .type = "MESSAGE_CREATE", .d = message };
        const char *named = dc_event_channel(e.type, message);
        struct work *w, *before;

        if (!named || strcmp(named, place) != 0)
                return;
        w = work_new(in, &e, named);
        w->missed = true;
        in->missing++;
        TAILQ_FOREACH(before, &in->window, next)
                if (before->from_gateway && before->state == WORK_UNREADY &&
                    strcmp(before->place, place) == 0)
                        break;
        if (before)
                TAILQ_INSERT_BEFORE(before, w, next);
        else
                TAILQ_INSERT_TAIL(&in->window, w, next);
        /* whether this is a DM is not in the message */
        w->placed = dc_channel_lookup_has(in->channels, place, NULL);
        if (!w->placed)
                dc_channel_lookup_ask(in->channels, place, NULL);
        else if (meet(w))
                flush(in);
}

size_t dc_intake_missing(const struct dc_intake *in)
{
        return in->missing;
}
