/*
 * Methods for the bot itself: its commands, texts and files.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sim/telegram/tg_compose.h"
#include "sim/telegram/tg_methods.h"

static int get_me(struct call *c)
{
        static const char *const no[] = { "supports_inline_queries", "can_connect_to_business",
                                          "has_main_web_app", "has_topics_enabled",
                                          "allows_users_to_create_topics" };

        tg_render_user(&c->out, NULL, &c->bot->user);
        buf_truncate(&c->out, c->out.len - 1); /* the closing brace */
        jsonw_bool(&c->out, "can_join_groups", true);
        jsonw_bool(&c->out, "can_read_all_group_messages", !c->bot->privacy);
        for (size_t i = 0; i < COUNT(no); i++)
                jsonw_bool(&c->out, no[i], false);
        jsonw_close(&c->out, '}');
        return 0;
}

/* ---- commands ---- */

/* Commands exist per scope and language. */
static char *commands_key(const struct call *c)
{
        const json_t *scope = json_object_get(c->args, "scope");
        char *text = scope ? json_text(scope) : mem_strdup("{\"type\":\"default\"}");
        char *key = mem_printf("%s/%s", text, json_str(c->args, "language_code", ""));

        free(text);
        return key;
}

static int check_command(struct call *c, const json_t *command)
{
        const char *name = json_str(command, "command", ""),
                   *about = json_str(command, "description", "");
        size_t n = utf8_length(about, strlen(about), UTF8_UTF16);

        if (*name == '/')
                name++;
        if (!*name || strlen(name) > 32 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
                return tg_call_fail(c, 400, "Bad Request: BOT_COMMAND_INVALID");
        if (n < 1 || n > 256)
                return tg_call_fail(c, 400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID");
        return 0;
}

static void record_commands(struct call *c, const char *key, const json_t *list)
{
        struct buf *b = tg_compose_record(c, "commands", NULL);
        char *text = list ? json_text(list) : mem_strdup("[]");

        jsonw_str(b, "scope", key);
        jsonw_raw(b, "commands", text);
        journal_close(c->world->base.sent);
        free(text);
}

static int set_commands(struct call *c)
{
        json_t *list = json_object_get(c->args, "commands"), *command;
        char *key;
        size_t i;

        if (json_array_size(list) > 100)
                return tg_call_fail(c, 400, "Bad Request: BOT_COMMANDS_TOO_MUCH");
        json_array_foreach(list, i, command) {
                if (check_command(c, command) != 0)
                        return -1;
        }
        key = commands_key(c);
        json_decref(map_put(&c->bot->commands, key, json_incref(list)));
        record_commands(c, key, list);
        free(key);
        return tg_call_true(c);
}

static int get_commands(struct call *c)
{
        char *key = commands_key(c);
        const json_t *list = map_get(&c->bot->commands, key);
        char *text = list ? json_text(list) : mem_strdup("[]");

        jsonw_raw(&c->out, NULL, text);
        free(text);
        free(key);
        return 0;
}

static int delete_commands(struct call *c)
{
        char *key = commands_key(c);

        json_decref(map_remove(&c->bot->commands, key));
        record_commands(c, key, NULL);
        free(key);
        return tg_call_true(c);
}

/* ---- name and descriptions ---- */

static const struct {
        const char *method, *member; /* the method without "set" and "get" */
} texts[] = {
        { "MyName", "name" },
        { "MyDescription", "description" },
        { "MyShortDescription", "short_description" },
};

static const char *text_member(const struct call *c)
{
        for (size_t i = 0; i < COUNT(texts); i++) {
                if (strcmp(c->method->name + 3, texts[i].method) == 0)
                        return texts[i].member;
        }
        return "name";
}

static int set_text(struct call *c)
{
        const char *member = text_member(c);
        char *key = mem_printf("%s/%s", member, json_str(c->args, "language_code", ""));

        free(map_put(&c->bot->texts, key, mem_strdup(json_str(c->args, member, ""))));
        free(key);
        return tg_call_true(c);
}

static int get_text(struct call *c)
{
        const char *member = text_member(c), *text;
        char *key = mem_printf("%s/%s", member, json_str(c->args, "language_code", ""));

        text = map_get(&c->bot->texts, key);
        free(key);
        if (!text || !*text)
                text = strcmp(member, "name") == 0 ? c->bot->user.first_name : "";
        jsonw_open(&c->out, '{');
        jsonw_str(&c->out, member, text);
        jsonw_close(&c->out, '}');
        return 0;
}

static int log_out(struct call *c)
{
        c->bot->logged_out = true;
        return tg_call_true(c);
}

/* ---- files ---- */

static int get_file(struct call *c)
{
        const struct file *f = tg_files_by_id(c->world->files, json_str(c->args, "file_id", ""));

        if (!f)
                return tg_call_fail(c, 400, "Bad Request: invalid file_id");
        if (f->size > FILES_MAX_DOWNLOAD)
                return tg_call_fail(c, 400, "Bad Request: file is too big");
        if (f->dropped)
                return tg_call_fail(
                        c, 400,
                        "Bad Request: wrong file_id or the file is temporarily unavailable");
        jsonw_open(&c->out, '{');
        jsonw_str(&c->out, "file_id", f->id);
        jsonw_str(&c->out, "file_unique_id", f->unique_id);
        jsonw_int(&c->out, "file_size", (int64_t)f->size);
        jsonw_str(&c->out, "file_path", f->path);
        jsonw_close(&c->out, '}');
        return 0;
}

static int get_photos(struct call *c)
{
        buf_addstr(&c->out, "{\"total_count\":0,\"photos\":[]}");
        return 0;
}

const struct tg_method_row tg_method_profile[] = {
        { "getMe", get_me },
        { "setMyCommands", set_commands },
        { "getMyCommands", get_commands },
        { "deleteMyCommands", delete_commands },
        { "setMyName", set_text },
        { "setMyDescription", set_text },
        { "setMyShortDescription", set_text },
        { "getMyName", get_text },
        { "getMyDescription", get_text },
        { "getMyShortDescription", get_text },
        { "logOut", log_out },
        { "getFile", get_file },
        { "getUserProfilePhotos", get_photos },
        { 0 },
};
