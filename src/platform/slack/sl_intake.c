#include "platform/slack/sl_intake.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_ts.h"

#define FULL 1000

struct sl_update {
        struct intake_update base; /* first */
        struct sl_intake *in;
        struct sl_intake *from; /* whose link waits for `stored`; NULL: none */
        enum sl_arrival kind;
        json_t *payload;
        int retry;
        sl_stored_fn *stored;
        void *stored_arg;
        unsigned missing; /* names that are being looked up */
};

/* ---- reading ---- */

static void read_event(struct sl_update *u)
{
        const struct slack *sl = u->in->sl;
        const struct sl_event_context context = {
                .user = sl->self.user,
                .bot = sl->self.bot,
                .team = sl->self.team,
                .cache = sl->cache,
                .reply_in_thread = strcmp(sl->conf->reply_in, "thread") == 0,
        };
        struct intake_content *content = &u->base.content;

        sl_event_read(content, &context, u->kind, u->payload, u->retry);
        if (content->event_count > 0 && u->kind == SL_EVENT && content->events->reply_to)
                sl_cache_put_reply(sl->cache, content->events->channel, content->events->id,
                                   content->events->reply_to);
        if (content->event_count > 0 && content->events->is_own) {
                /* the journal has it as message.sent */
                content->event_count = 0;
                content->ignored = "done by the bot itself";
        }
        if (content->event_count == 0) {
                log_debug("slack event ignored", LOG_S("adapter", sl->adapter->name),
                          LOG_S("type", json_str(json_object_get(u->payload, "event"), "type",
                                                 json_str(u->payload, "type", NULL))),
                          LOG_S("why", content->ignored));
                intake_skip(&u->base);
                return;
        }
        if (u->kind == SL_COMMAND)
                sl_interaction_remember(u->in, content->events->id,
                                        json_str(u->payload, "response_url", NULL));
        intake_prepared(&u->base);
}

static void on_named(struct sl_update *u)
{
        if (--u->missing == 0)
                read_event(u);
}

static void on_user(void *arg, const struct sl_user *user)
{
        (void)user;
        on_named(arg);
}

static void on_channel(void *arg, const struct sl_channel *channel)
{
        (void)channel;
        on_named(arg);
}

/* Reads the update once the names of its people and its channel are known. */
static void find_names(struct sl_update *u)
{
        const struct slack *sl = u->in->sl;
        char users[SL_USERS_MAX][SL_ID_SIZE];
        size_t n = sl_event_users(u->kind, u->payload, users);

        u->missing = 1; /* this function */
        for (size_t i = 0; i < n; i++) {
                if (strcmp(users[i], sl->self.user) == 0)
                        continue;
                u->missing++;
                sl_cache_find_user(sl->cache, users[i], on_user, u);
        }
        /* others name it themselves, and a DM has no name */
        if (u->base.chat && u->base.chat[0] != 'D' && u->kind == SL_EVENT) {
                u->missing++;
                sl_cache_find_channel(sl->cache, u->base.chat, on_channel, u);
        }
        on_named(u);
}

static void add_update(struct sl_intake *in, struct sl_update *u, json_t *payload)
{
        u->in = in;
        u->payload = json_incref(payload);
        u->base.chat = sl_event_channel(u->kind, payload);
        if (u->kind != SL_EVENT)
                u->base.order = INTAKE_URGENT;
        intake_add(&in->window, &u->base);
        find_names(u);
}

static void on_done(struct intake_update *base, bool stored)
{
        struct sl_update *u = (struct sl_update *)base;
        struct slack *sl = u->in->sl;
        const struct incoming *first = base->content.event_count > 0 ? base->content.events : NULL;

        if (stored && first && u->kind == SL_EVENT && !first->type) {
                sl_catchup_seen(sl, first->id);
                if (first->chat == CHAT_DM && first->text)
                        sl_assistant_said(sl, first->channel, first->reply_to, first->text);
        }
        if (stored && first && u->kind == SL_INTERACTIVE)
                sl_interaction_stored(sl, u->payload);
        if (u->from)
                u->stored(u->stored_arg, stored, NULL);
        u->from = NULL;
}

static void on_free(struct intake_update *base)
{
        struct sl_update *u = (struct sl_update *)base;

        if (u->missing > 0)
                sl_cache_stop_waiting(u->in->sl->cache, u);
        json_decref(u->payload);
        free(u);
}

/* ---- news about people, channels and the app ---- */

static void learn(struct slack *sl, const json_t *event)
{
        static const struct {
                const char *type;
                enum { USER, NEW_USER, CHANNEL, MEMBER, GONE } what;
        } rows[] = {
                { "user_change", USER },        { "team_join", NEW_USER },
                { "channel_rename", CHANNEL },  { "group_rename", CHANNEL },
                { "channel_shared", CHANNEL },  { "channel_unshared", CHANNEL },
                { "channel_left", CHANNEL },    { "group_left", CHANNEL },
                { "channel_deleted", CHANNEL }, { "member_joined_channel", MEMBER },
                { "app_uninstalled", GONE },    { "tokens_revoked", GONE },
        };
        const json_t *user = json_object_get(event, "user");
        const char *type = json_str(event, "type", ""), *id;
        size_t i = 0;

        while (i < COUNT(rows) && strcmp(rows[i].type, type) != 0)
                i++;
        if (i == COUNT(rows))
                return;
        switch (rows[i].what) {
        case USER: /* most people of a workspace never write to us */
                if (sl_cache_user(sl->cache, json_str(user, "id", NULL)))
                        sl_cache_put_user(sl->cache, user);
                break;
        case NEW_USER:
                sl_cache_put_user(sl->cache, user);
                break;
        case MEMBER:
                if (strcmp(json_str(event, "user", ""), sl->self.user) != 0)
                        break;
                /* fallthrough */
        case CHANNEL: /* an object in some, an id in others; incomplete in all */
                id = json_str(json_object_get(event, "channel"), "id",
                              json_str(event, "channel", NULL));
                if (id)
                        sl_cache_forget_channel(sl->cache, id);
                break;
        case GONE:
                slack_check_token(sl);
                break;
        }
}

/* ---- sources of updates ---- */

void sl_intake_take(struct slack *sl, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *arg)
{
        struct slack *owner = sl->intake ? slack_serving(sl, kind, payload) : NULL;
        const json_t *event = json_object_get(payload, "event");
        struct sl_update *u;

        if (!sl->intake || (owner && (!owner->intake || !owner->adapter->road ||
                                      owner->intake->window.count >= 2 * FULL))) {
                stored(arg, false, NULL);
                return;
        }
        if (!owner) {
                stored(arg, true, NULL);
                return;
        }
        if (kind == SL_EVENT) {
                learn(owner, event);
                sl_readback_event(owner, event);
        }
        if (kind == SL_EVENT && !sl_event_channel(kind, payload)) {
                sl_assistant_event(owner, event);
                stored(arg, true, NULL);
                return;
        }
        u = mem_zalloc(sizeof(*u));
        u->from = sl->intake;
        u->kind = kind;
        u->retry = retry;
        u->stored = stored;
        u->stored_arg = arg;
        /* a post is answered within seconds; what came over a socket is kept in order */
        u->base.sender_retries = strcmp(sl->conf->mode, "http") == 0;
        add_update(owner->intake, u, payload);
}

void sl_intake_missed(struct slack *sl, const char *channel, json_t *message)
{
        struct sl_update *u;
        json_t *event, *payload;

        if (!sl->intake || !sl_id_valid(channel) || !sl_ts_valid(json_str(message, "ts", NULL)))
                return;
        event = json_copy(message); /* the original is not ours */
        json_object_set_new(event, "type", json_string("message"));
        json_object_set_new(event, "channel", json_string(channel));
        payload = json_pack("{s:o}", "event", event);
        u = mem_zalloc(sizeof(*u));
        u->base.order = INTAKE_BACKFILL;
        add_update(sl->intake, u, payload);
        json_decref(payload);
}

bool sl_intake_is_full(const struct slack *sl)
{
        return sl->intake && sl->intake->window.count >= FULL;
}

/* ---- opening and closing ---- */

void sl_intake_open(struct slack *sl)
{
        static const struct intake_handlers handlers = { .done = on_done, .free = on_free };
        struct sl_intake *in;

        if (sl->intake)
                return;
        in = sl->intake = mem_zalloc(sizeof(*in));
        in->sl = sl;
        TAILQ_INIT(&in->urls.list);
        intake_open(&in->window, sl->adapter, &handlers);
}

/* Our link waits no longer for what another adapter stores. */
static void give_back(void *arg, struct adapter *a)
{
        const struct sl_intake *leaving = arg;
        const struct slack *sl = a->ops == &slack_platform ? a->self : NULL;
        struct intake_update *base;

        if (!sl || !sl->intake)
                return;
        TAILQ_FOREACH(base, &sl->intake->window.window, next) {
                struct sl_update *u = (struct sl_update *)base;

                if (u->from != leaving)
                        continue;
                u->from = NULL;
                u->stored(u->stored_arg, false, NULL);
        }
}

void sl_intake_close(struct slack *sl)
{
        struct sl_intake *in = sl->intake;

        if (!in)
                return;
        sl->intake = NULL;
        intake_close(&in->window);
        if (sl->adapter->all)
                adapters_each(sl->adapter->all, give_back, in);
        sl_interaction_close(in);
        free(in);
}
