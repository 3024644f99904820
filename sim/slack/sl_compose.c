#include "sim/slack/sl_compose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TEXT_MAX        40000 /* longer text is cut */
#define UPDATE_MAX      4000
#define ATTACHMENTS_MAX 100
#define EVENT_TYPE_MAX  255

size_t sl_compose_length(const char *text)
{
        return utf8_length(text, strlen(text), UTF8_CODE_POINTS);
}

static int check_metadata(struct slack_call *c, const json_t *metadata)
{
        const char *type = json_str(metadata, "event_type", "");

        if (!json_is_object(metadata))
                return sl_call_fail(c, "invalid_metadata_format");
        if (json_object_size(metadata) == 0)
                return 0;
        if (!*type || strlen(type) > EVENT_TYPE_MAX ||
            !json_is_object(json_object_get(metadata, "event_payload")))
                return sl_call_fail_because(c, "invalid_metadata_schema",
                                            "metadata needs event_type and event_payload");
        return 0;
}

int sl_compose_metadata(struct slack_call *c, struct slack_message *m)
{
        json_t *metadata = json_object_get(c->args, "metadata");

        if (!metadata)
                return 0;
        if (check_metadata(c, metadata) != 0)
                return -1;
        json_decref(m->metadata);
        m->metadata = json_object_size(metadata) > 0 ? json_incref(metadata) : NULL;
        return 0;
}

static bool is_color(const char *text)
{
        return strcmp(text, "good") == 0 || strcmp(text, "warning") == 0 ||
               strcmp(text, "danger") == 0 ||
               (text[0] == '#' && strlen(text) == 7 &&
                strspn(text + 1, "0123456789abcdefABCDEF") == 6);
}

static int check_attachments(struct slack_call *c, const json_t *attachments)
{
        char problem[SL_SPEC_PROBLEM_SIZE] = "";
        const json_t *a;
        size_t i;

        json_array_foreach(attachments, i, a) {
                const json_t *blocks = json_object_get(a, "blocks");

                if (!json_is_object(a))
                        return sl_call_fail(c, "invalid_attachments");
                if (json_array_size(blocks) == 0 && !json_str(a, "text", NULL) &&
                    !json_str(a, "title", NULL) && !json_object_get(a, "fields"))
                        snprintf(problem, sizeof(problem), "attachment %zu shows nothing", i);
                if (!is_color(json_str(a, "color", "good")))
                        snprintf(problem, sizeof(problem), "attachment %zu: color", i);
                if (blocks && !*problem)
                        sl_compose_check_blocks(blocks, SL_BLOCKS_MAX, problem);
                if (*problem) {
                        c->base.valid = false;
                        snprintf(c->problem, sizeof(c->problem), "%s", problem);
                        return sl_call_fail_because(c, "invalid_attachments", "%s", problem);
                }
        }
        return 0;
}

static int check_structure(struct slack_call *c)
{
        const json_t *blocks = json_object_get(c->args, "blocks");
        const json_t *attachments = json_object_get(c->args, "attachments");
        char problem[SL_SPEC_PROBLEM_SIZE] = "";
        const char *error;

        if (blocks && (error = sl_compose_check_blocks(blocks, SL_BLOCKS_MAX, problem))) {
                c->base.valid = false;
                snprintf(c->problem, sizeof(c->problem), "%s", problem);
                return sl_call_fail_because(c, error, "%s", problem);
        }
        if (attachments && !json_is_array(attachments))
                return sl_call_fail(c, "invalid_attachments");
        if (json_array_size(attachments) > ATTACHMENTS_MAX)
                return sl_call_fail(c, "too_many_attachments");
        return check_attachments(c, attachments);
}

/* "<@U1>", "<#C1|x>", "<!here>", "<https://..|label>": from < to >; 0: no such thing */
static size_t control_length(const char *p)
{
        static const char *const starts[] = { "@U",       "@W",        "#C",        "!here",
                                              "!channel", "!everyone", "!subteam^", "!date^",
                                              "http://",  "https://",  "mailto:",   "tel:" };
        size_t n = strcspn(p, ">\n");

        for (size_t i = 0; i < COUNT(starts); i++) {
                if (p[n] == '>' && strncmp(p + 1, starts[i], strlen(starts[i])) == 0)
                        return n + 1;
        }
        return 0;
}

/* Text must have & < > escaped; else Slack guesses. NULL: fine; else where it is not. */
static const char *unescaped(const char *text)
{
        for (const char *p = text; *p; p++) {
                size_t n = *p == '<' ? control_length(p) : 0;

                if ((*p == '<' && n == 0) ||
                    (*p == '&' && strncmp(p, "&amp;", 5) != 0 && strncmp(p, "&lt;", 4) != 0 &&
                     strncmp(p, "&gt;", 4) != 0))
                        return p;
                p += n > 0 ? n - 1 : 0;
        }
        return NULL;
}

/* What is shown, a new text; or NULL after sl_call_fail. */
static char *read_text(struct slack_call *c, bool edit)
{
        const char *text = sl_call_text(c, "text"), *markdown = sl_call_text(c, "markdown_text");
        bool other = json_array_size(json_object_get(c->args, "blocks")) > 0 ||
                     json_array_size(json_object_get(c->args, "attachments")) > 0 ||
                     json_array_size(json_object_get(c->args, "file_ids")) > 0;
        size_t n;

        if (markdown && (text || json_object_get(c->args, "blocks"))) {
                sl_call_fail(c, "markdown_text_conflict");
                return NULL;
        }
        if (!text && !markdown && !other) {
                sl_call_fail(c, "no_text");
                return NULL;
        }
        n = sl_compose_length(text ? text : markdown ? markdown : "");
        if (n > (markdown ? SL_MARKDOWN_MAX : edit ? UPDATE_MAX : SIZE_MAX)) {
                sl_call_fail(c, "msg_too_long");
                return NULL;
        }
        if (text && unescaped(text)) {
                c->base.valid = false;
                snprintf(c->problem, sizeof(c->problem), "not escaped: %.60s", unescaped(text));
        }
        text = text ? text : markdown ? markdown : "";
        if (n <= TEXT_MAX)
                return mem_strdup(text);
        c->base.valid = false;
        snprintf(c->problem, sizeof(c->problem), "text of %zu characters is cut at %d", n,
                 TEXT_MAX);
        return mem_strndup(text, utf8_prefix(text, strlen(text), UTF8_CODE_POINTS, TEXT_MAX));
}

static void replace(json_t **slot, json_t *value)
{
        json_decref(*slot);
        *slot = json_array_size(value) > 0 ? json_incref(value) : NULL;
}

/* As Slack returns them: numbered, and colours without "#". */
static void set_attachments(struct slack_message *m, const json_t *attachments)
{
        json_t *a;
        size_t i;

        json_decref(m->attachments);
        m->attachments = json_array_size(attachments) > 0 ? json_deep_copy(attachments) : NULL;
        json_array_foreach(m->attachments, i, a) {
                const char *color = json_str(a, "color", NULL);

                json_object_set_new(a, "id", json_integer((json_int_t)i + 1));
                if (color && color[0] == '#')
                        json_object_set_new(a, "color", json_string(color + 1));
        }
}

int sl_compose(struct slack_call *c, struct slack_message *m, bool edit)
{
        char *text;

        if (check_structure(c) != 0 || !(text = read_text(c, edit)))
                return -1;
        if (sl_compose_metadata(c, m) != 0) {
                free(text);
                return -1;
        }
        free(m->text);
        m->text = text;
        /* text without blocks removes the blocks of an edited message, not its attachments */
        replace(&m->blocks, json_object_get(c->args, "blocks"));
        if (!edit || json_object_get(c->args, "attachments"))
                set_attachments(m, json_object_get(c->args, "attachments"));
        return 0;
}

void sl_compose_record(const struct slack_call *c, struct buf *b, const struct slack_message *m)
{
        json_t *message = sl_render_message(c->world, m, SLACK_RENDER_METADATA);
        char *text;

        json_object_del(message, "bot_profile");
        text = json_text(message);
        jsonw_str(b, "ts", m->ts);
        jsonw_str(b, "message_id", m->ts);
        jsonw_str(b, "text", m->text);
        if (m->thread_ts[0] && strcmp(m->thread_ts, m->ts) != 0)
                jsonw_str(b, "thread_ts", m->thread_ts);
        jsonw_raw(b, "message", text);
        free(text);
        json_decref(message);
}
