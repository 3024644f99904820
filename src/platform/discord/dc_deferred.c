/*
 * Slash commands and buttons are acknowledged within three seconds, by putting the answer off:
 * Discord shows that the bot is thinking. The answer then takes that message's place, with a token
 * that is worth fifteen minutes, or a delivery withdraws it. Whatever comes later goes to the
 * channel.
 *
 * Nothing can be put in that place before Discord has taken the acknowledgement: deliveries wait
 * for its answer. When it was the answer to a post nobody tells us, so for a moment a place that is
 * not there is one that is not there yet.
 *
 * The tokens are secrets. They are in memory and in a file of the state directory, so that a
 * command is answered in its place also after a crash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/discord.h"
#include "platform/state_file.h"

#define TOKEN_MS   870000 /* a little before Discord's end */
#define TOKENS_MAX 1000
#define SAVE_MS    50
#define POSTED_MS  3000 /* after so long Discord has read our answer to its post */

enum { INTERACTION_COMPONENT = 3 };
enum { CALLBACK_LATER = 5, CALLBACK_UPDATE_LATER = 6 };

#define ALREADY_ACKNOWLEDGED 40060

struct dc_token {
        char *interaction, *application, *token;
        int64_t until_ms; /* wall clock */
        /* the same: before this time Discord may not know of the acknowledgement; 0: it does */
        int64_t settles_ms;
        bool acknowledging; /* Discord has not answered the acknowledgement yet */
        bool taken;         /* a delivery was made for its place, and may be on its way */
        bool unsure;        /* an earlier life acknowledged it, and may have answered */
        /* answered, or cannot be; remembered because it is no message one could react to */
        bool spent;
        TAILQ_ENTRY(dc_token) next;
};

/* ---- tokens ---- */

static void forget(struct discord *dc, struct dc_token *t)
{
        TAILQ_REMOVE(&dc->tokens, t, next);
        dc->token_count--;
        log_unhide(t->token, strlen(t->token));
        explicit_bzero(t->token, strlen(t->token));
        free(t->token);
        free(t->interaction);
        free(t->application);
        free(t);
        state_file_changed(dc->tokens_file, false);
}

/* It is answered, or cannot be. */
static void spend(struct discord *dc, struct dc_token *t)
{
        t->spent = true;
        state_file_changed(dc->tokens_file, false);
}

static struct dc_token *find(const struct discord *dc, const char *interaction)
{
        struct dc_token *t;

        TAILQ_FOREACH(t, &dc->tokens, next)
                if (strcmp(t->interaction, interaction) == 0)
                        return t;
        return NULL;
}

static void watch(struct discord *dc)
{
        const struct dc_token *oldest = TAILQ_FIRST(&dc->tokens);
        int64_t left;

        if (!oldest)
                return;
        /*
         * NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the freed one left the
         * list
         */
        left = oldest->until_ms - clock_wall_ms();
        timer_start(dc->tokens_timer, left > 0 ? left : 0);
}

static void on_withdrawn(void *arg, const struct dc_answer *a)
{
        (void)arg;
        (void)a; /* nobody is waiting for it */
}

/* What the bot seems to think about is taken away. */
static void withdraw(struct discord *dc, struct dc_token *t)
{
        spend(dc, t);
        dc_rest_ask(dc->rest,
                    &(struct dc_request){ .method = "DELETE",
                                          .route = DC_PLACE_OF_COMMAND,
                                          .args = { t->application, t->token },
                                          .priority = DC_IDLE,
                                          .repeatable = true },
                    on_withdrawn, NULL);
}

/* Nobody has answered, and soon nobody can. */
static void give_up(struct discord *dc, struct dc_token *t)
{
        if (!t->spent && !t->taken && !t->unsure)
                withdraw(dc, t);
        forget(dc, t);
}

/* NULL when it is none, or there already. */
static struct dc_token *keep(struct discord *dc, const char *interaction, const char *application,
                             const char *token, int64_t until_ms)
{
        struct dc_token *t;

        if (!dc_id_valid(interaction) || !dc_id_valid(application) || !token || !*token ||
            find(dc, interaction))
                return NULL;
        if (dc->token_count >= TOKENS_MAX)
                give_up(dc, TAILQ_FIRST(&dc->tokens));
        t = mem_zalloc(sizeof(*t));
        t->interaction = mem_strdup(interaction);
        t->application = mem_strdup(application);
        t->token = mem_strdup(token);
        t->until_ms = until_ms;
        log_hide(t->token, strlen(t->token));
        TAILQ_INSERT_TAIL(&dc->tokens, t, next);
        dc->token_count++;
        state_file_changed(dc->tokens_file, false);
        watch(dc);
        return t;
}

bool dc_reply_token(struct discord *dc, const char *interaction, const char **application,
                    const char **token)
{
        struct dc_token *t = find(dc, interaction);

        if (!t || t->spent || t->until_ms <= clock_wall_ms())
                return false;
        t->taken = true;
        *application = t->application;
        *token = t->token;
        return true;
}

void dc_reply_done(struct discord *dc, const char *interaction)
{
        struct dc_token *t = find(dc, interaction);

        if (t)
                spend(dc, t);
}

void dc_reply_withdraw(struct discord *dc, const char *interaction)
{
        struct dc_token *t = find(dc, interaction);

        if (t && !t->spent)
                withdraw(dc, t);
}

bool dc_reply_is(const struct discord *dc, const char *id)
{
        return find(dc, id) != NULL;
}

bool dc_reply_is_acknowledging(const struct discord *dc, const char *interaction)
{
        const struct dc_token *t = find(dc, interaction);

        return t && t->acknowledging;
}

bool dc_reply_may_come(const struct discord *dc, const char *interaction)
{
        const struct dc_token *t = find(dc, interaction);

        return t && t->settles_ms > clock_wall_ms();
}

/* ---- acknowledging ---- */

/* A button's message stays as it is; the answer to it is a message of its own. */
static bool has_place(const json_t *interaction)
{
        return json_int(interaction, "type", 0) != INTERACTION_COMPONENT;
}

static json_t *acknowledgement_of(const json_t *interaction)
{
        return json_pack("{s:i}", "type",
                         has_place(interaction) ? CALLBACK_LATER : CALLBACK_UPDATE_LATER);
}

static struct dc_token *keep_of(struct discord *dc, const json_t *interaction)
{
        if (!has_place(interaction))
                return NULL;
        return keep(dc, json_str(interaction, "id", NULL),
                    json_str(interaction, "application_id", dc->self.application),
                    json_str(interaction, "token", NULL), clock_wall_ms() + TOKEN_MS);
}

json_t *dc_reply_keep(struct discord *dc, const json_t *interaction)
{
        struct dc_token *t = keep_of(dc, interaction);

        if (t)
                t->settles_ms = clock_wall_ms() + POSTED_MS;
        return acknowledgement_of(interaction);
}

struct acknowledgement {
        struct discord *dc;
        char *interaction;
};

static void on_acknowledged(void *arg, const struct dc_answer *a)
{
        struct acknowledgement *ack = arg;
        struct discord *dc = ack->dc;
        struct dc_token *t = find(dc, ack->interaction);
        bool again = a->code == ALREADY_ACKNOWLEDGED, stopped = a->kind == ERR_CANCELLED;

        if (!a->ok && !again && !stopped)
                log_warn("Discord did not take the acknowledgement of a command; its answer goes "
                         "to the channel",
                         LOG_S("adapter", dc->adapter->name),
                         LOG_S("interaction", ack->interaction), LOG_S("why", a->why));
        if (t && t->acknowledging) {
                t->acknowledging = false;
                t->unsure = again;
                if (!a->ok && !again && !stopped)
                        spend(dc, t);
        }
        dc_sends_acknowledged(dc, ack->interaction);
        free(ack->interaction);
        free(ack);
}

void dc_reply_stored(void *discord, const json_t *interaction)
{
        struct discord *dc = discord;
        struct acknowledgement *ack = mem_zalloc(sizeof(*ack));
        struct dc_token *t = keep_of(dc, interaction);
        json_t *body = acknowledgement_of(interaction);

        if (t)
                t->acknowledging = true;
        ack->dc = dc;
        ack->interaction = mem_strdup(json_str(interaction, "id", ""));
        dc_rest_ask(dc->rest,
                    &(struct dc_request){
                            .method = "POST",
                            .route = "/interactions/{interaction_id}/{interaction_token}/callback",
                            .args = { ack->interaction, json_str(interaction, "token", NULL) },
                            .body = body,
                            .priority = DC_URGENT,
                            .total_ms = 3000,
                            .wait_ms = 2500 },
                    on_acknowledged, ack);
        json_decref(body);
}

/* ---- the end ---- */

static void on_timer(void *arg)
{
        struct discord *dc = arg;
        struct dc_token *t, *after;

        for (t = TAILQ_FIRST(&dc->tokens); t && t->until_ms <= clock_wall_ms(); t = after) {
                after = TAILQ_NEXT(t, next);
                give_up(dc, t);
        }
        watch(dc);
}

/* ---- in a file ---- */

static char *text_of(void *arg)
{
        const struct discord *dc = arg;
        const struct dc_token *t;
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '[');
        TAILQ_FOREACH(t, &dc->tokens, next) {
                if (t->spent)
                        continue;
                jsonw_open(&b, '{');
                jsonw_str(&b, "id", t->interaction);
                jsonw_str(&b, "application", t->application);
                jsonw_str(&b, "token", t->token);
                jsonw_int(&b, "until", t->until_ms);
                jsonw_close(&b, '}');
        }
        jsonw_close(&b, ']');
        return buf_take(&b);
}

static void restore(struct discord *dc, const json_t *kept)
{
        struct dc_token *t;
        json_t *entry;
        size_t i;

        json_array_foreach(kept, i, entry) {
                int64_t until = json_int(entry, "until", 0);

                if (until <= clock_wall_ms())
                        continue;
                t = keep(dc, json_str(entry, "id", NULL), json_str(entry, "application", NULL),
                         json_str(entry, "token", NULL), until);
                if (t)
                        t->unsure = true;
        }
}

void dc_replies_open(struct discord *dc)
{
        char *path =
                mem_printf("%s/state/interactions-%s.json", dc->adapter->dir, dc->adapter->name);
        json_t *kept = file_read_json(path, STATE_FILE_MAX);

        TAILQ_INIT(&dc->tokens);
        dc->tokens_timer = timer_new(dc->adapter->loop, on_timer, dc);
        timer_unref(dc->tokens_timer);
        restore(dc, kept);
        json_decref(kept);
        dc->tokens_file = state_file_new(dc->adapter->loop, path, SAVE_MS, text_of, dc);
        free(path);
}

void dc_replies_release(struct discord *dc)
{
        struct dc_token *t, *after;

        state_file_close(dc->tokens_file);
        dc->tokens_file = NULL;
        for (t = TAILQ_FIRST(&dc->tokens); t; t = after) {
                after = TAILQ_NEXT(t, next);
                forget(dc, t);
        }
        timer_free(dc->tokens_timer);
}
