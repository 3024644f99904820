/*
 * Deferred replies: to slash commands and forms.
 *
 * An interaction must be acknowledged within three seconds: Discord then shows a placeholder
 * ("thinking"), which the reply replaces or a delivery removes, with a token valid for fifteen
 * minutes. Later replies go to the channel. A button has no placeholder.
 *
 *     stored ──► pending ──► open ──► gone        pending: Discord has not confirmed yet
 *                  └──────────────────►           gone: replied, removed, refused or expired
 *
 * Deliveries wait while it is pending. Discord does not confirm our response to a post over HTTP:
 * for a moment 404 means that the placeholder is not there yet. Tokens, which are secrets, are also
 * in a file of the state directory, so that commands can be answered after a restart.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/discord.h"
#include "platform/state_file.h"

#define TOKEN_MS             870000 /* a little before Discord's end */
#define DEFERRED_MAX         1000
#define SAVE_MS              50
#define POSTED_MS            3000

#define ALREADY_ACKNOWLEDGED 40060

enum { CALLBACK_DEFER = 5, CALLBACK_DEFER_UPDATE = 6 };

struct dc_deferred {
        char *interaction, *application, *token;
        int64_t until_ms;   /* of the token */
        int64_t settles_ms; /* until then 404 means not yet; 0: confirmed */
        enum dc_placeholder state;
        bool claimed; /* a delivery may be on its way */
        bool unsure;  /* an earlier run may have replied */
        TAILQ_ENTRY(dc_deferred) next;
};

/* ---- the list ---- */

static struct dc_deferred *find(const struct discord *dc, const char *interaction)
{
        struct dc_deferred *d;

        TAILQ_FOREACH(d, &dc->deferred.list, next)
                if (strcmp(d->interaction, interaction) == 0)
                        return d;
        return NULL;
}

/* Stays in the list: its id is not that of a message, so it cannot get reactions. */
static void close_deferred(struct discord *dc, struct dc_deferred *d)
{
        d->state = DC_PLACEHOLDER_GONE;
        state_file_changed(dc->deferred.file, false);
}

static void forget(struct discord *dc, struct dc_deferred *d)
{
        TAILQ_REMOVE(&dc->deferred.list, d, next);
        dc->deferred.count--;
        log_unhide(d->token, strlen(d->token));
        explicit_bzero(d->token, strlen(d->token));
        free(d->token);
        free(d->interaction);
        free(d->application);
        free(d);
        state_file_changed(dc->deferred.file, false);
}

static void remove_placeholder(struct discord *dc, struct dc_deferred *d)
{
        close_deferred(dc, d);
        dc_rest_ask(dc->rest,
                    &(struct dc_request){ .method = "DELETE",
                                          .route = DC_PLACEHOLDER_ROUTE,
                                          .args = { d->application, d->token },
                                          .priority = DC_IDLE,
                                          .repeatable = true },
                    NULL, NULL);
}

static void expire(struct discord *dc, struct dc_deferred *d)
{
        if (d->state != DC_PLACEHOLDER_GONE && !d->claimed && !d->unsure)
                remove_placeholder(dc, d);
        forget(dc, d);
}

static void watch_oldest(struct discord *dc)
{
        const struct dc_deferred *oldest = TAILQ_FIRST(&dc->deferred.list);
        int64_t left = oldest ? oldest->until_ms - clock_wall_ms() : 0;

        if (oldest)
                timer_start(dc->deferred.timer, left > 0 ? left : 0);
}

static void on_timer(void *arg)
{
        struct discord *dc = arg;
        struct dc_deferred *d, *after;

        for (d = TAILQ_FIRST(&dc->deferred.list); d && d->until_ms <= clock_wall_ms(); d = after) {
                after = TAILQ_NEXT(d, next);
                expire(dc, d);
        }
        watch_oldest(dc);
}

static struct dc_deferred *add(struct discord *dc, const char *interaction, const char *application,
                               const char *token, int64_t until_ms)
{
        struct dc_deferred *d;

        if (!dc_id_valid(interaction) || !dc_id_valid(application) || !token || !*token ||
            find(dc, interaction))
                return NULL;
        if (dc->deferred.count >= DEFERRED_MAX)
                expire(dc, TAILQ_FIRST(&dc->deferred.list));
        d = mem_zalloc(sizeof(*d));
        d->interaction = mem_strdup(interaction);
        d->application = mem_strdup(application);
        d->token = mem_strdup(token);
        d->until_ms = until_ms;
        d->state = DC_PLACEHOLDER_OPEN;
        log_hide(d->token, strlen(d->token));
        TAILQ_INSERT_TAIL(&dc->deferred.list, d, next);
        dc->deferred.count++;
        state_file_changed(dc->deferred.file, false);
        watch_oldest(dc);
        return d;
}

/* ---- acknowledging ---- */

/* Returns the body of the acknowledgement. A button adds nothing. */
static json_t *defer(struct discord *dc, const json_t *interaction, struct dc_deferred **added)
{
        bool button = json_int(interaction, "type", 0) == DC_INTERACTION_COMPONENT;

        *added = button ? NULL
                        : add(dc, json_str(interaction, "id", NULL),
                              json_str(interaction, "application_id", dc->self.application),
                              json_str(interaction, "token", NULL), clock_wall_ms() + TOKEN_MS);
        return json_pack("{s:i}", "type", button ? CALLBACK_DEFER_UPDATE : CALLBACK_DEFER);
}

json_t *dc_deferred_posted(struct discord *dc, const json_t *interaction)
{
        struct dc_deferred *d;
        json_t *body = defer(dc, interaction, &d);

        if (d)
                d->settles_ms = clock_wall_ms() + POSTED_MS;
        return body;
}

struct ack_job {
        struct discord *dc;
        char *interaction;
};

static void on_acknowledged(void *arg, const struct dc_answer *a)
{
        struct ack_job *job = arg;
        struct discord *dc = job->dc;
        struct dc_deferred *d = find(dc, job->interaction);
        bool again = a->code == ALREADY_ACKNOWLEDGED,
             refused = !a->ok && !again && a->kind != ERR_CANCELLED;

        if (refused)
                log_warn(
                        "Discord refused the acknowledgement of a command; replying in the channel",
                        LOG_S("adapter", dc->adapter->name), LOG_S("interaction", job->interaction),
                        LOG_S("why", a->why));
        if (d && d->state == DC_PLACEHOLDER_PENDING) {
                d->state = DC_PLACEHOLDER_OPEN;
                d->unsure = again;
                if (refused)
                        close_deferred(dc, d);
        }
        dc_sends_resume(dc, job->interaction);
        free(job->interaction);
        free(job);
}

void dc_deferred_stored(void *discord, const json_t *interaction)
{
        struct discord *dc = discord;
        struct ack_job *job = mem_zalloc(sizeof(*job));
        struct dc_deferred *d;
        json_t *body = defer(dc, interaction, &d);

        if (d)
                d->state = DC_PLACEHOLDER_PENDING;
        job->dc = dc;
        job->interaction = mem_strdup(json_str(interaction, "id", ""));
        dc_rest_ask(dc->rest,
                    &(struct dc_request){
                            .method = "POST",
                            .route = "/interactions/{interaction_id}/{interaction_token}/callback",
                            .args = { job->interaction, json_str(interaction, "token", NULL) },
                            .body = body,
                            .priority = DC_URGENT,
                            .total_ms = 3000,
                            .wait_ms = 2500 },
                    on_acknowledged, job);
        json_decref(body);
}

/* ---- for deliveries ---- */

bool dc_deferred_knows(const struct discord *dc, const char *id)
{
        return id && find(dc, id);
}

enum dc_placeholder dc_deferred_placeholder(const struct discord *dc, const char *interaction)
{
        const struct dc_deferred *d = find(dc, interaction);

        return d && d->until_ms > clock_wall_ms() ? d->state : DC_PLACEHOLDER_GONE;
}

bool dc_deferred_claim(struct discord *dc, const char *interaction)
{
        if (dc_deferred_placeholder(dc, interaction) == DC_PLACEHOLDER_GONE)
                return false;
        find(dc, interaction)->claimed = true;
        return true;
}

void dc_deferred_address(const struct discord *dc, const char *interaction,
                         const char **application, const char **token)
{
        const struct dc_deferred *d = find(dc, interaction);

        *application = d ? d->application : NULL;
        *token = d ? d->token : NULL;
}

enum dc_deferred_result dc_deferred_answered(struct discord *dc, const char *interaction,
                                             const struct dc_answer *a, bool is_message)
{
        struct dc_deferred *d = find(dc, interaction);
        /* Discord has ended it */
        bool ended = a->code == 10008 || a->code == 10015 || a->code == 10062 || a->code == 50027;
        bool refused = a->status >= 400 && a->status < 500 && a->status != 429;

        if (d && a->status == 404 && d->settles_ms > clock_wall_ms())
                return DC_DEFERRED_TOO_EARLY;
        if (d && (a->ok || ended))
                close_deferred(dc, d);
        else if (d && refused && is_message)
                remove_placeholder(dc, d);
        return refused && is_message ? DC_DEFERRED_LOST : DC_DEFERRED_SETTLED;
}

/* ---- the file ---- */

static char *file_text(void *arg)
{
        const struct discord *dc = arg;
        const struct dc_deferred *d;
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '[');
        TAILQ_FOREACH(d, &dc->deferred.list, next) {
                if (d->state == DC_PLACEHOLDER_GONE)
                        continue;
                jsonw_open(&b, '{');
                jsonw_str(&b, "id", d->interaction);
                jsonw_str(&b, "application", d->application);
                jsonw_str(&b, "token", d->token);
                jsonw_int(&b, "until", d->until_ms);
                jsonw_close(&b, '}');
        }
        jsonw_close(&b, ']');
        return buf_take(&b);
}

void dc_deferred_open(struct discord *dc)
{
        char *path =
                mem_printf("%s/state/interactions-%s.json", dc->adapter->dir, dc->adapter->name);
        json_t *kept = file_read_json(path, STATE_FILE_MAX), *entry;
        size_t i;

        TAILQ_INIT(&dc->deferred.list);
        dc->deferred.timer = timer_new(dc->adapter->loop, on_timer, dc);
        timer_unref(dc->deferred.timer);
        json_array_foreach(kept, i, entry) {
                int64_t until = json_int(entry, "until", 0);
                struct dc_deferred *d = until > clock_wall_ms()
                                                ? add(dc, json_str(entry, "id", NULL),
                                                      json_str(entry, "application", NULL),
                                                      json_str(entry, "token", NULL), until)
                                                : NULL;

                if (d)
                        d->unsure = true;
        }
        json_decref(kept);
        dc->deferred.file = state_file_new(dc->adapter->loop, path, SAVE_MS, file_text, dc);
        free(path);
}

void dc_deferred_release(struct discord *dc)
{
        struct dc_deferred *d;

        state_file_close(dc->deferred.file);
        dc->deferred.file = NULL;
        while ((d = TAILQ_FIRST(&dc->deferred.list)))
                forget(dc, d);
        timer_free(dc->deferred.timer);
}
