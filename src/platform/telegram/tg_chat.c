/*
 * Chats: those that changed their id, and lookups of chats and users.
 *
 * A group that becomes a supergroup gets a new id, which Telegram mentions once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

#define LOOKUP_MS 10000

const char *tg_chat_id(const struct telegram *tg, const char *chat)
{
        const char *moved = adapter_file_get(tg->saved, "moved", chat);

        return moved ? moved : chat;
}

void tg_chat_moved(struct telegram *tg, const char *from, const char *to)
{
        if (strcmp(tg_chat_id(tg, from), to) == 0 || strcmp(from, to) == 0)
                return;
        log_info("a group became a supergroup and has a new id",
                 LOG_S("adapter", tg->adapter->name), LOG_S("from", from), LOG_S("to", to));
        adapter_file_set(tg->adapter, tg->saved, "moved", from, to);
}

/* ---- lookups ---- */

/* getChat, and for groups getChatMemberCount. */
struct tg_lookup {
        struct telegram *tg;
        struct tg_call *call;
        channel_info_fn *channel; /* NULL: a user is looked up */
        user_info_fn *user;
        void *arg;
        json_t *chat; /* the answer to getChat */
        LIST_ENTRY(tg_lookup) next;
};

static bool has_topics(const struct tg_lookup *l)
{
        return json_flag(l->chat, "is_forum", false) ||
               (l->tg->private_topics && tg_describe_kind(l->chat) == CHAT_DM);
}

/* Reports the chat, or the error, and frees the lookup. */
static void finish(struct tg_lookup *l, int64_t members, const struct error *err)
{
        struct channel_info channel = { .members = members };
        struct user_info user = { 0 };
        struct arena arena;
        char id[24];

        LIST_REMOVE(l, next);
        arena_init(&arena);
        snprintf(id, sizeof(id), "%" PRId64, json_int(l->chat, "id", 0));
        channel.id = user.id = id;
        channel.name = user.name = tg_describe_name(&arena, l->chat);
        if (l->channel) {
                channel.kind = tg_describe_kind(l->chat);
                channel.topic = json_str(l->chat, "description", NULL);
                channel.threads = has_topics(l) ? CHAT_THREADS_BY_NAME : CHAT_NO_THREADS;
                l->channel(l->arg, err ? NULL : &channel, err);
        } else {
                user.username = json_str(l->chat, "username", NULL);
                user.is_bot = json_int(l->chat, "id", 0) == l->tg->self.id;
                l->user(l->arg, err ? NULL : &user, err);
        }
        arena_release(&arena);
        json_decref(l->chat);
        free(l);
}

static void on_member_count(void *arg, const struct tg_answer *answer)
{
        /* the count is optional */
        finish(arg, answer->ok ? json_integer_value(answer->result) : -1, NULL);
}

static void ask(struct tg_lookup *l, const char *method, const char *chat, tg_answer_fn *done)
{
        json_t *params = json_object();

        tg_call_set_id(params, "chat_id", chat);
        l->call = tg_call_start(l->tg,
                                &(struct tg_request){ .method = method,
                                                      .params = params,
                                                      .total_ms = LOOKUP_MS,
                                                      .repeatable = true },
                                done, l);
        json_decref(params);
}

static void on_chat(void *arg, const struct tg_answer *answer)
{
        struct tg_lookup *l = arg;
        bool private = tg_describe_kind(answer->result) == CHAT_DM;
        struct error err = { 0 };
        char id[24];

        if (!answer->ok || !json_is_object(answer->result))
                error_set(&err,
                          answer->genuine && answer->status == 400 ? ERR_MISSING
                          : answer->status == 429                  ? ERR_LIMIT
                                                                   : ERR_NET,
                          "%s", answer->why);
        else if (!l->channel && !private)
                error_set(&err, ERR_MISSING, "this is the id of a chat, not of a user");
        l->chat = json_incref((json_t *)(uintptr_t)answer->result);
        if (err.kind != ERR_NONE) {
                finish(l, -1, &err);
        } else if (private) {
                finish(l, -1, NULL);
        } else {
                snprintf(id, sizeof(id), "%" PRId64, json_int(l->chat, "id", 0));
                ask(l, "getChatMemberCount", id, on_member_count);
        }
}

static void look_up(struct telegram *tg, const char *id, channel_info_fn *channel,
                    user_info_fn *user, void *arg)
{
        struct tg_lookup *l = mem_zalloc(sizeof(*l));

        l->tg = tg;
        l->channel = channel;
        l->user = user;
        l->arg = arg;
        LIST_INSERT_HEAD(&tg->lookups, l, next);
        ask(l, "getChat", tg_chat_id(tg, id), on_chat);
}

int tg_chat_channel_info(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                         struct error *err)
{
        (void)err;
        look_up(a->self, channel, done, NULL, arg);
        return 0;
}

int tg_chat_user_info(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                      struct error *err)
{
        if (!*user || user[strspn(user, "0123456789")] != '\0')
                return error_set(err, ERR_MISSING, "'%.40s' is not a Telegram user id", user);
        look_up(a->self, user, NULL, done, arg);
        return 0;
}

void tg_chat_close(struct telegram *tg)
{
        const struct error err = { .kind = ERR_CANCELLED, .text = "the adapter was stopped" };
        struct tg_lookup *l;

        while ((l = LIST_FIRST(&tg->lookups))) {
                tg_call_abort(l->call);
                finish(l, -1, &err);
        }
}
