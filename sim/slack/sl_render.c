/*
 * How the API shows users, conversations, messages, files and views.
 */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/slack/sl_world.h"

static void set(json_t *object, const char *key, const char *text)
{
        json_object_set_new(object, key, json_string(text ? text : ""));
}

static void set_flag(json_t *object, const char *key, bool yes)
{
        json_object_set_new(object, key, json_boolean(yes));
}

/* ---- users and bots ---- */

static json_t *render_profile(const struct slack_user *u)
{
        json_t *p = json_object();

        set(p, "title", "");
        set(p, "phone", "");
        set(p, "skype", "");
        json_object_set_new(p, "fields", json_null());
        set(p, "real_name", u->real_name);
        set(p, "real_name_normalized", u->real_name);
        set(p, "display_name", u->display_name);
        set(p, "display_name_normalized", u->display_name);
        set(p, "avatar_hash", "g0000000sim");
        set(p, "status_text", "");
        set(p, "status_emoji", "");
        set(p, "image_24", "https://secure.gravatar.com/avatar/sim24.png");
        set(p, "image_32", "https://secure.gravatar.com/avatar/sim32.png");
        set(p, "image_48", "https://secure.gravatar.com/avatar/sim48.png");
        set(p, "image_72", "https://secure.gravatar.com/avatar/sim72.png");
        set(p, "image_192", "https://secure.gravatar.com/avatar/sim192.png");
        set(p, "image_512", "https://secure.gravatar.com/avatar/sim512.png");
        set(p, "team", u->team->id);
        if (u->app) {
                set(p, "api_app_id", u->app->id);
                set(p, "bot_id", u->app->bot_id);
                set_flag(p, "always_active", true);
        }
        return p;
}

json_t *sl_render_user(const struct slack_user *u)
{
        json_t *o = json_object();

        set(o, "id", u->id);
        set(o, "team_id", u->team->id);
        set(o, "name", u->name);
        set_flag(o, "deleted", u->deleted);
        set(o, "color", "9f69e7");
        set(o, "real_name", u->real_name);
        set(o, "tz", u->tz);
        set(o, "tz_label", "Central European Time");
        json_object_set_new(o, "tz_offset", json_integer(3600));
        json_object_set_new(o, "profile", render_profile(u));
        set_flag(o, "is_admin", false);
        set_flag(o, "is_owner", false);
        set_flag(o, "is_primary_owner", false);
        set_flag(o, "is_restricted", u->guest);
        set_flag(o, "is_ultra_restricted", false);
        set_flag(o, "is_bot", u->app != NULL);
        set_flag(o, "is_app_user", false);
        json_object_set_new(o, "updated", json_integer(1700000000));
        return o;
}

json_t *sl_render_bot(const struct slack_app *a)
{
        json_t *o = json_object(), *icons = json_object();

        set(icons, "image_36", "https://a.slack-edge.com/80588/img/plugins/app/bot_36.png");
        set(icons, "image_48", "https://a.slack-edge.com/80588/img/plugins/app/bot_48.png");
        set(icons, "image_72", "https://a.slack-edge.com/80588/img/plugins/app/service_72.png");
        set(o, "id", a->bot_id);
        set(o, "app_id", a->id);
        set(o, "name", a->user->real_name);
        json_object_set_new(o, "icons", icons);
        set_flag(o, "deleted", false);
        json_object_set_new(o, "updated", json_integer(1700000000));
        set(o, "team_id", a->team->id);
        return o;
}

/* ---- conversations ---- */

static json_t *render_note(const char *text, const struct slack_channel *c)
{
        json_t *o = json_object();

        set(o, "value", text);
        set(o, "creator", *text && c->creator ? c->creator->id : "");
        json_object_set_new(o, "last_set", json_integer(*text ? c->created_s : 0));
        return o;
}

static json_t *render_im(const struct slack_channel *c)
{
        json_t *o = json_object();

        set(o, "id", c->id);
        json_object_set_new(o, "created", json_integer(c->created_s));
        set_flag(o, "is_archived", c->archived);
        set_flag(o, "is_im", true);
        set_flag(o, "is_org_shared", false);
        set(o, "context_team_id", c->team->id);
        json_object_set_new(o, "updated", json_integer(c->created_s * 1000));
        set(o, "user", c->person->id);
        set_flag(o, "is_user_deleted", c->person->deleted);
        set_flag(o, "is_open", true);
        json_object_set_new(o, "priority", json_integer(0));
        return o;
}

json_t *sl_render_channel(const struct slack_channel *c, const struct slack_app *viewer)
{
        json_t *o;

        if (c->kind == SLACK_IM)
                return render_im(c);
        o = json_object();
        set(o, "id", c->id);
        set(o, "name", c->name);
        set_flag(o, "is_channel", c->kind == SLACK_PUBLIC);
        set_flag(o, "is_group", c->kind == SLACK_PRIVATE);
        set_flag(o, "is_im", false);
        set_flag(o, "is_mpim", c->kind == SLACK_MPIM);
        set_flag(o, "is_private", c->kind != SLACK_PUBLIC);
        json_object_set_new(o, "created", json_integer(c->created_s));
        set(o, "creator", c->creator ? c->creator->id : "");
        set_flag(o, "is_archived", c->archived);
        set_flag(o, "is_general", c->general);
        json_object_set_new(o, "unlinked", json_integer(0));
        set(o, "name_normalized", c->name);
        set_flag(o, "is_shared", c->shared);
        set_flag(o, "is_org_shared", false);
        set_flag(o, "is_pending_ext_shared", false);
        json_object_set_new(o, "pending_shared", json_array());
        set(o, "context_team_id", c->team->id);
        json_object_set_new(o, "updated", json_integer(c->created_s * 1000));
        set_flag(o, "is_ext_shared", c->shared);
        json_object_set_new(o, "shared_team_ids", json_pack("[s]", c->team->id));
        json_object_set_new(o, "pending_connected_team_ids", json_array());
        set_flag(o, "is_member", viewer && sl_channel_has(c, viewer->user));
        json_object_set_new(o, "topic", render_note(c->topic, c));
        json_object_set_new(o, "purpose", render_note(c->purpose, c));
        json_object_set_new(o, "previous_names", json_array());
        return o;
}

/* ---- files ---- */

json_t *sl_render_file(const struct slack_world *w, const struct slack_file *f)
{
        json_t *o = json_object();
        char *url = mem_printf("%s/files-pri/%s-%s/%s", w->base_url, f->team->id, f->id, f->name);
        char *download = mem_printf("%s/files-pri/%s-%s/download/%s", w->base_url, f->team->id,
                                    f->id, f->name);
        char *link = mem_printf("https://%s.slack.com/files/%s/%s/%s", f->team->domain, f->user->id,
                                f->id, f->name);

        set(o, "id", f->id);
        json_object_set_new(o, "created", json_integer(f->created_s));
        json_object_set_new(o, "timestamp", json_integer(f->created_s));
        set(o, "name", f->name);
        set(o, "title", f->title);
        set(o, "mimetype", f->mimetype);
        set(o, "filetype", f->filetype);
        set(o, "pretty_type", f->filetype);
        set(o, "user", f->user->id);
        set(o, "user_team", f->team->id);
        set_flag(o, "editable", false);
        json_object_set_new(o, "size", json_integer((json_int_t)f->n));
        set(o, "mode", "hosted");
        set_flag(o, "is_external", false);
        set(o, "external_type", "");
        set_flag(o, "is_public", json_object_size(json_object_get(f->shares, "public")) > 0);
        set_flag(o, "public_url_shared", false);
        set_flag(o, "display_as_bot", false);
        set(o, "username", "");
        set(o, "url_private", url);
        set(o, "url_private_download", download);
        set(o, "permalink", link);
        set_flag(o, "is_starred", false);
        set_flag(o, "has_rich_preview", false);
        set(o, "file_access", "visible");
        if (f->alt_text)
                set(o, "alt_txt", f->alt_text);
        free(url);
        free(download);
        free(link);
        return o;
}

/* ---- messages ---- */

json_t *sl_render_reactions(const struct slack_message *m)
{
        json_t *list, *users;
        const char *name;

        if (json_object_size(m->reactions) == 0)
                return NULL;
        list = json_array();
        json_object_foreach(m->reactions, name, users) {
                json_array_append_new(list, json_pack("{s:s,s:O,s:I}", "name", name, "users", users,
                                                      "count", (json_int_t)json_array_size(users)));
        }
        return list;
}

char *sl_render_permalink(const struct slack_message *m)
{
        char digits[SL_TS_SIZE];
        size_t n = 0;

        for (const char *p = m->ts; *p; p++) {
                if (*p != '.')
                        digits[n++] = *p;
        }
        digits[n] = '\0';
        return mem_printf("https://%s.slack.com/archives/%s/p%s", m->channel->team->domain,
                          m->channel->id, digits);
}

static void add_thread(json_t *o, const struct slack_message *m)
{
        const struct slack_message *root;

        if (!m->thread_ts[0])
                return;
        set(o, "thread_ts", m->thread_ts);
        if (strcmp(m->thread_ts, m->ts) != 0) {
                root = sl_message_find(m->channel, m->thread_ts);
                if (root && root->user)
                        set(o, "parent_user_id", root->user->id);
                return;
        }
        json_object_set_new(o, "reply_count", json_integer(m->reply_count));
        json_object_set_new(o, "reply_users_count",
                            json_integer((json_int_t)json_array_size(m->reply_users)));
        set(o, "latest_reply", m->latest_reply);
        if (m->reply_users)
                json_object_set(o, "reply_users", m->reply_users);
        set_flag(o, "is_locked", false);
        set_flag(o, "subscribed", false);
}

/* An event of a shared channel says only that there is a file of the other workspace. */
static json_t *render_attached(const struct slack_world *w, const struct slack_message *m,
                               const char *id, unsigned how)
{
        const struct slack_file *f = sl_file_find(w, id);

        if (!f || f->deleted)
                return json_pack("{s:s,s:s}", "id", id, "mode", "tombstone");
        if ((how & SLACK_RENDER_EVENT) && m->channel->shared && f->team != m->channel->team)
                return json_pack("{s:s,s:i,s:i,s:s,s:s,s:s}", "id", id, "created", 0, "timestamp",
                                 0, "user", "", "mode", "file_access", "file_access",
                                 "check_file_info");
        return sl_render_file(w, f);
}

static void add_files(const struct slack_world *w, json_t *o, const struct slack_message *m,
                      unsigned how)
{
        json_t *list = json_array();
        const json_t *id;
        size_t i;

        json_array_foreach(m->files, i, id) {
                json_array_append_new(list, render_attached(w, m, json_string_value(id), how));
        }
        json_object_set_new(o, "files", list);
        set_flag(o, "upload", false);
}

static const char *subtype_of(const struct slack_message *m)
{
        return m->tombstone          ? "tombstone"
               : m->broadcast        ? "thread_broadcast"
               : m->subtype          ? m->subtype
               : m->username         ? "bot_message"
               : m->files && !m->app ? "file_share"
                                     : NULL;
}

static void add_author(json_t *o, const struct slack_message *m)
{
        if (m->tombstone) {
                set(o, "user", "USLACKBOT");
                return;
        }
        if (m->user && !(m->app && m->username))
                set(o, "user", m->user->id);
        if (m->user)
                set(o, "team", m->user->team->id);
        if (m->client_msg_id)
                set(o, "client_msg_id", m->client_msg_id);
        if (!m->app)
                return;
        set(o, "bot_id", m->app->bot_id);
        set(o, "app_id", m->app->id);
        if (m->username)
                set(o, "username", m->username);
        else
                json_object_set_new(o, "bot_profile", sl_render_bot(m->app));
}

json_t *sl_render_message(const struct slack_world *w, const struct slack_message *m, unsigned how)
{
        json_t *o = json_object(), *reactions = sl_render_reactions(m);

        set(o, "type", "message");
        if (subtype_of(m))
                set(o, "subtype", subtype_of(m));
        add_author(o, m);
        set(o, "text", m->text);
        set(o, "ts", m->ts);
        if (m->tombstone)
                set_flag(o, "hidden", true);
        add_thread(o, m);
        if (m->blocks)
                json_object_set(o, "blocks", m->blocks);
        if (m->attachments)
                json_object_set(o, "attachments", m->attachments);
        if (m->files)
                add_files(w, o, m, how);
        if (m->metadata && (how & SLACK_RENDER_METADATA))
                json_object_set(o, "metadata", m->metadata);
        if (m->edited_ts[0])
                json_object_set_new(o, "edited",
                                    json_pack("{s:s,s:s}", "user",
                                              m->edited_by ? m->edited_by->id : "", "ts",
                                              m->edited_ts));
        if (reactions)
                json_object_set_new(o, "reactions", reactions);
        if (m->pinned)
                json_object_set_new(o, "pinned_to", json_pack("[s]", m->channel->id));
        if (m->stream != SLACK_WHOLE)
                set(o, "streaming_state",
                    m->stream == SLACK_STREAMING ? "in_progress" : "completed");
        if (m->chunks)
                json_object_set(o, "chunks", m->chunks);
        if (m->extra)
                json_object_update_missing(o, m->extra);
        if (how & SLACK_RENDER_EVENT) {
                set(o, "channel", m->channel->id);
                set(o, "channel_type", sl_channel_type(m->channel));
                set(o, "event_ts", m->ts);
        }
        return o;
}

/* ---- views ---- */

/* Slack names what the app left unnamed. */
static void add_ids(json_t *blocks)
{
        json_t *block;
        size_t i;

        json_array_foreach(blocks, i, block) {
                if (!json_str(block, "block_id", NULL)) {
                        char *id = mem_printf("block%zu", i);

                        set(block, "block_id", id);
                        free(id);
                }
        }
}

json_t *sl_render_view(const struct slack_view *v)
{
        json_t *o = json_deep_copy(v->view);

        add_ids(json_object_get(o, "blocks"));
        set(o, "id", v->id);
        set(o, "team_id", v->app->team->id);
        set(o, "app_id", v->app->id);
        set(o, "app_installed_team_id", v->app->team->id);
        set(o, "bot_id", v->app->bot_id);
        set(o, "hash", v->hash);
        set(o, "root_view_id", v->root_id);
        json_object_set_new(o, "previous_view_id",
                            v->previous_id[0] ? json_string(v->previous_id) : json_null());
        if (!json_object_get(o, "state"))
                json_object_set_new(o, "state", json_pack("{s:{}}", "values"));
        if (!json_object_get(o, "callback_id"))
                set(o, "callback_id", "");
        if (!json_object_get(o, "private_metadata"))
                set(o, "private_metadata", "");
        if (!json_object_get(o, "external_id"))
                set(o, "external_id", "");
        return o;
}
