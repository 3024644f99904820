#include "sim/slack/sl_people.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/file_content.h"

#define MAX_GROUP 8

/* ---- members of requests ---- */

struct slack_app *sl_people_find_app(struct slack_world *w, const json_t *request,
                                     struct error *err)
{
        const char *name = json_str(request, "app", NULL);
        struct slack_app *a = sl_app_find(w, name);

        if (!a)
                error_set(err, ERR_MISSING, "no app '%s'", name ? name : "");
        return a;
}

/* "U0SIM1", "W012": capitals and digits. */
static bool is_user_id(const char *text)
{
        return (*text == 'U' || *text == 'W') && strlen(text) > 3 && strlen(text) < SL_ID_SIZE &&
               strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == strlen(text);
}

/* A person by number, id or name. */
static struct slack_user *make_user(struct slack_world *w, const json_t *value, struct error *err)
{
        const char *name = json_string_value(value);
        struct slack_user *u;
        char id[32], handle[32];

        if (json_is_integer(value)) {
                long long n = json_integer_value(value) % 1000000000;

                snprintf(id, sizeof(id), "U%lld", n);
                snprintf(handle, sizeof(handle), "user%lld", n);
                u = sl_user_find(w, id);
                return u ? u : sl_user_make(w, NULL, id, handle, NULL);
        }
        if (!name || !*name) {
                error_set(err, ERR_INVALID, "a person is a name, an id or a number");
                return NULL;
        }
        u = sl_user_by_name(w, name);
        return u ? u
                 : sl_user_make(w, NULL, is_user_id(name) ? name : NULL,
                                is_user_id(name) ? NULL : name, NULL);
}

struct slack_user *sl_people_find_user(struct slack_world *w, const json_t *request,
                                       struct error *err)
{
        const json_t *from = json_object_get(request, "from");
        json_t *ada = from ? NULL : json_string("ada");
        struct slack_user *u = make_user(w, from ? from : ada, err);

        json_decref(ada);
        return u;
}

/* The group direct messages of "from" and "users". */
static struct slack_channel *find_group(struct slack_world *w, const json_t *request,
                                        struct slack_app *a, struct slack_user *from,
                                        struct error *err)
{
        struct slack_user *users[MAX_GROUP] = { from };
        const json_t *value;
        size_t i, n = 1;

        json_array_foreach(json_object_get(request, "users"), i, value) {
                if (n == MAX_GROUP || !(users[n] = make_user(w, value, err))) {
                        error_set(err, ERR_INVALID, "'users' may list up to %d people",
                                  MAX_GROUP - 1);
                        return NULL;
                }
                n += users[n] != from;
        }
        return sl_channel_mpim(a, users, n, true);
}

struct slack_channel *sl_people_find_channel(struct slack_world *w, const json_t *request,
                                             struct error *err)
{
        const char *name = json_str(request, "channel", NULL);
        struct slack_channel *c = name ? sl_channel_by_name(w, name) : NULL;
        struct slack_user *from;
        struct slack_app *a;

        if (c)
                return c;
        if (name) {
                error_set(err, ERR_MISSING, "no channel '%s'", name);
                return NULL;
        }
        a = sl_people_find_app(w, request, err);
        from = a ? sl_people_find_user(w, request, err) : NULL;
        if (!from)
                return NULL;
        return json_object_get(request, "users") ? find_group(w, request, a, from, err)
                                                 : sl_channel_im(a, from, true);
}

struct slack_message *sl_people_find_message(struct slack_world *w, const json_t *request,
                                             struct error *err)
{
        const char *ts = json_str(request, "message_id", ""),
                   *channel = json_str(request, "channel", NULL);
        const struct slack_channel *c = channel ? sl_channel_by_name(w, channel) : NULL;
        struct slack_message *m = c ? sl_message_find(c, ts) : sl_message_search(w, ts);

        if (m && !m->tombstone)
                return m;
        error_set(err, ERR_MISSING, "no message '%s'", ts);
        return NULL;
}

/* ---- messages ---- */

/* What "<@ada>" and "<#general>" stand for: their ids. Anything else stays as it is. */
static void add_reference(struct slack_world *w, struct buf *b, const char *name, char sign)
{
        const struct slack_user *u = sign == '@' ? sl_user_by_name(w, name) : NULL;
        const struct slack_channel *c = sign == '#' ? sl_channel_by_name(w, name) : NULL;

        if (u)
                buf_addf(b, "<@%s>", u->id);
        else if (c)
                buf_addf(b, "<#%s|%s>", c->id, c->name);
        else
                buf_addf(b, "<%c%s>", sign, name);
}

static char *expand(struct slack_world *w, const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        while (*text) {
                const char *end = *text == '<' && (text[1] == '@' || text[1] == '#')
                                          ? strchr(text, '>')
                                          : NULL;
                char *name = end ? mem_strndup(text + 2, (size_t)(end - text - 2)) : NULL;

                if (name) {
                        add_reference(w, &b, name, text[1]);
                        text = end + 1;
                } else {
                        buf_addch(&b, *text++);
                }
                free(name);
        }
        return buf_take(&b);
}

/* The rich_text block that Slack's own editor makes; mentions are elements of their own. */
static json_t *typed_blocks(const char *text)
{
        json_t *elements = json_array();

        while (*text) {
                const char *end = strncmp(text, "<@", 2) == 0 ? strchr(text, '>') : NULL,
                           *next = strstr(text + 1, "<@");
                size_t n = end ? (size_t)(end + 1 - text)
                               : (next ? (size_t)(next - text) : strlen(text));
                json_t *element = end ? json_pack("{s:s,s:s%}", "type", "user", "user_id", text + 2,
                                                  strcspn(text + 2, ">|"))
                                      : json_pack("{s:s,s:s%}", "type", "text", "text", text, n);

                if (element)
                        json_array_append_new(elements, element);
                text += n;
        }
        return json_pack("[{s:s,s:s,s:[{s:s,s:o}]}]", "type", "rich_text", "block_id", "typed",
                         "elements", "type", "rich_text_section", "elements", elements);
}

static void set_text(struct slack_world *w, struct slack_message *m, const char *text)
{
        char *expanded = expand(w, text);

        free(m->text);
        m->text = expanded;
        if (m->app)
                return;
        json_decref(m->blocks);
        m->blocks = *expanded ? typed_blocks(expanded) : NULL;
}

static int add_files(struct slack_world *w, struct slack_message *m, const json_t *files,
                     struct error *err)
{
        const json_t *request;
        struct slack_file *f;
        struct buf data;
        int rc = 0;
        size_t i;

        buf_init(&data, 0);
        json_array_foreach(files, i, request) {
                buf_clear(&data);
                rc = file_content_read(request, &data, err);
                if (rc != 0)
                        break;
                f = sl_file_add(w, m->user, json_str(request, "file_name", "picture.png"),
                                json_str(request, "mime_type", NULL), data.data, data.len);
                if (!m->files)
                        m->files = json_array();
                json_array_append_new(m->files, json_string(f->id));
        }
        buf_release(&data);
        if (rc == 0 && m->files)
                m->subtype = mem_strdup("file_share");
        return rc;
}

static void set_client_id(struct slack_message *m)
{
        char hex[ID_TRACE_SIZE];

        id_trace(hex);
        m->client_msg_id = mem_printf("%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12,
                                      hex + 16, hex + 20);
}

static void set_json(json_t **slot, const json_t *request, const char *key)
{
        const json_t *value = json_object_get(request, key);

        if (!value)
                return;
        json_decref(*slot);
        *slot = json_deep_copy(value);
}

/* Another bot, which is an app of its own, speaks. */
static int set_speaker(struct slack_world *w, struct slack_message *m, const json_t *request,
                       struct error *err)
{
        const char *name = json_str(request, "bot", NULL);
        struct slack_app *a;

        if (!name)
                return 0;
        a = sl_app_find(w, name);
        if (!a)
                return error_set(err, ERR_MISSING,
                                 "no app '%s' to speak; make one with POST /sim/apps", name);
        m->app = a;
        m->user = a->user;
        m->subtype = json_flag(request, "classic", false) ? mem_strdup("bot_message") : NULL;
        return 0;
}

/* Events of people of another workspace have more members. */
static void introduce_stranger(struct slack_message *m)
{
        const struct slack_user *u = m->user;

        if (m->app || u->team == m->channel->team)
                return;
        if (!m->extra)
                m->extra = json_object();
        json_object_update_missing_new(
                m->extra,
                json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s}}", "user_team", u->team->id, "source_team",
                          u->team->id, "user_profile", "name", u->name, "real_name", u->real_name,
                          "display_name", u->display_name, "team", u->team->id));
}

static int fill(struct slack_world *w, struct slack_message *m, const json_t *request,
                struct error *err)
{
        const char *thread = json_str(request, "thread", NULL),
                   *subtype = json_str(request, "subtype", NULL),
                   *client = json_str(request, "client_msg_id", NULL);

        if (set_speaker(w, m, request, err) != 0)
                return -1;
        set_text(w, m, json_str(request, "text", ""));
        if (thread) {
                if (sl_message_parse_ts(thread) < 0)
                        return error_set(err, ERR_INVALID, "'thread' must be the ts of a message");
                snprintf(m->thread_ts, sizeof(m->thread_ts), "%s", thread);
                m->broadcast = json_flag(request, "broadcast", false);
                if (m->broadcast)
                        m->subtype = mem_strdup("thread_broadcast");
        }
        if (add_files(w, m, json_object_get(request, "files"), err) != 0)
                return -1;
        if (subtype) {
                free(m->subtype);
                m->subtype = mem_strdup(subtype);
        }
        set_json(&m->blocks, request, "blocks");
        set_json(&m->attachments, request, "attachments");
        set_json(&m->extra, request, "extra");
        introduce_stranger(m);
        if (client)
                m->client_msg_id = mem_strdup(client);
        else if (!m->app && !m->subtype)
                set_client_id(m);
        return 0;
}

static void share_files(struct slack_world *w, const struct slack_message *m)
{
        const json_t *id;
        size_t i;

        json_array_foreach(m->files, i, id) {
                struct slack_file *f = sl_file_find(w, json_string_value(id));

                sl_file_share(f, m);
                sl_event_file_shared(w, f, m->channel, m->user);
        }
}

static unsigned post(struct slack_world *w, struct slack_message *m)
{
        w->base.message_count++;
        sl_message_post(w, m);
        if (m->files)
                share_files(w, m);
        return sl_event_posted(w, m);
}

/* Slack has delivered one gesture under two timestamps. */
static unsigned post_again(struct slack_world *w, const struct slack_message *m)
{
        struct slack_message *copy = sl_message_new(m->channel, m->user, m->text);

        memcpy(copy->thread_ts, m->thread_ts, sizeof(copy->thread_ts));
        copy->client_msg_id = mem_strdup(m->client_msg_id);
        copy->blocks = json_deep_copy(m->blocks);
        return post(w, copy);
}

static int send_one(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_channel *c = sl_people_find_channel(w, request, err);
        struct slack_user *from = c ? sl_people_find_user(w, request, err) : NULL;
        struct slack_message *m;

        if (!from)
                return -1;
        m = sl_message_new(c, from, NULL);
        if (fill(w, m, request, err) != 0) {
                sl_message_free(m);
                return -1;
        }
        if (!m->app)
                sl_channel_join(c, from);
        jsonw_str(out, "channel", c->id);
        jsonw_str(out, "message_id", m->ts);
        jsonw_int(out, "apps", post(w, m));
        if (json_flag(request, "twice", false))
                post_again(w, m);
        return 0;
}

int sl_people_send(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        return control_run_each(world, request, send_one, out, err);
}

/* With "unfurl" a preview of a link appears: the same event, but no one edited. */
int sl_people_edit(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_message *m = sl_people_find_message(w, request, err);
        const char *text = json_str(request, "text", NULL),
                   *unfurl = json_str(request, "unfurl", NULL);
        json_t *previous;

        if (!m)
                return -1;
        if (!text && !unfurl)
                return error_set(err, ERR_INVALID, "an edit needs 'text' or 'unfurl'");
        previous = sl_render_message(w, m, SLACK_RENDER_PLAIN);
        if (unfurl) {
                json_decref(m->attachments);
                m->attachments = json_pack("[{s:s,s:s,s:i,s:s}]", "from_url", unfurl, "title",
                                           "A page", "id", 1, "fallback", "A page");
        }
        if (text) {
                set_text(w, m, text);
                sl_message_edited(m, m->user);
        }
        jsonw_str(out, "channel", m->channel->id);
        jsonw_str(out, "message_id", m->ts);
        jsonw_int(out, "apps", sl_event_changed(w, m, previous));
        return 0;
}

int sl_people_delete(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_message *m = sl_people_find_message(w, request, err);

        if (!m)
                return -1;
        jsonw_int(out, "apps", sl_event_delete(w, m));
        return 0;
}

/* ---- reactions ---- */

static int react(struct slack_world *w, const json_t *request, bool add, struct buf *out,
                 struct error *err)
{
        struct slack_message *m = sl_people_find_message(w, request, err);
        struct slack_user *u = m ? sl_people_find_user(w, request, err) : NULL;
        const char *emoji = json_str(request, "emoji", "");
        char name[64];

        if (!u)
                return -1;
        snprintf(name, sizeof(name), "%s", emoji + (*emoji == ':'));
        name[strcspn(name, ":")] = '\0';
        if (!*name || !isascii((unsigned char)*name))
                return error_set(err, ERR_INVALID, "'emoji' must be a name such as thumbsup");
        if (add)
                sl_channel_join(m->channel, u);
        if (!(add ? sl_message_react(m, name, u) : sl_message_unreact(m, name, u)))
                return error_set(err, ERR_CONFLICT,
                                 add ? "they reacted with it already"
                                     : "they did not react with it");
        jsonw_int(out, "apps", sl_event_reaction(w, m, name, u, add));
        return 0;
}

int sl_people_react(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        return react(sl_world_of(world), request, true, out, err);
}

int sl_people_unreact(struct world *world, const json_t *request, struct buf *out,
                      struct error *err)
{
        return react(sl_world_of(world), request, false, out, err);
}
