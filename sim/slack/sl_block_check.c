/*
 * Slack's limits on blocks, by its reference of Block Kit.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/slack/sl_compose.h"

#define MAX_ID      255
#define MAX_IN_VIEW 100
#define MAX_TITLE   24
#define MAX_OPTIONS 100
#define MAX_CELLS   20
#define MAX_ROWS    100

struct slack_block_check {
        char *problem;
        size_t markdown; /* characters of all markdown blocks */
        size_t tables;
};

static bool complain(struct slack_block_check *k, const char *what, const char *where)
{
        snprintf(k->problem, SL_SPEC_PROBLEM_SIZE, "%.100s [json-pointer:%.60s]", what, where);
        return false;
}

/* A text member of this object, at most `most` characters. */
static bool check_text(struct slack_block_check *k, const json_t *object, const char *key,
                       size_t most, bool required)
{
        const char *text = json_str(object, key, NULL);

        if (!text)
                return !required && !json_object_get(object, key)
                               ? true
                               : complain(k, "missing required field", key);
        if (required && !*text)
                return complain(k, "must be more than 0 characters", key);
        return sl_compose_length(text) <= most ? true : complain(k, "must be less characters", key);
}

/* A text object: plain_text or mrkdwn. */
static bool check_object(struct slack_block_check *k, const json_t *object, const char *key,
                         size_t most, bool plain)
{
        const json_t *text = json_object_get(object, key);
        const char *type = json_str(text, "type", "");

        if (strcmp(type, "plain_text") != 0 && (plain || strcmp(type, "mrkdwn") != 0))
                return complain(k, plain ? "must be a plain_text object" : "must be a text object",
                                key);
        return check_text(k, text, "text", most, true);
}

static bool check_options(struct slack_block_check *k, const json_t *element)
{
        const json_t *options = json_object_get(element, "options"), *option;
        size_t i, n = json_array_size(options);

        if (n == 0 || n > MAX_OPTIONS)
                return complain(k, "must have 1 to 100 options", "options");
        json_array_foreach(options, i, option) {
                if (!check_object(k, option, "text", 75, false) ||
                    !check_text(k, option, "value", 150, true))
                        return false;
        }
        return true;
}

static bool check_button(struct slack_block_check *k, const json_t *e)
{
        const char *style = json_str(e, "style", "primary");

        if (strcmp(style, "primary") != 0 && strcmp(style, "danger") != 0)
                return complain(k, "style must be primary or danger", "style");
        return check_object(k, e, "text", 75, true) && check_text(k, e, "value", 2000, false) &&
               check_text(k, e, "url", 3000, false);
}

static bool check_element(struct slack_block_check *k, const json_t *e)
{
        static const char *const known[] = {
                "button",     "static_select",    "users_select",        "conversations_select",
                "overflow",   "plain_text_input", "datepicker",          "timepicker",
                "checkboxes", "radio_buttons",    "multi_static_select", "channels_select",
                "image",      "feedback_buttons", "icon_button",         "multi_users_select",
        };
        const char *type = json_str(e, "type", "");
        size_t i = 0;

        while (i < COUNT(known) && strcmp(known[i], type) != 0)
                i++;
        if (i == COUNT(known))
                return complain(k, "unsupported type of element", type);
        if (!check_text(k, e, "action_id", MAX_ID, false))
                return false;
        if (strcmp(type, "button") == 0)
                return check_button(k, e);
        if (strstr(type, "static_select") || strcmp(type, "checkboxes") == 0 ||
            strcmp(type, "radio_buttons") == 0)
                return check_options(k, e);
        return true;
}

/* ---- the kinds of blocks ---- */

static bool check_section(struct slack_block_check *k, const json_t *b)
{
        const json_t *fields = json_object_get(b, "fields"), *field;
        const json_t *accessory = json_object_get(b, "accessory");
        size_t i;

        if (!json_object_get(b, "text") && json_array_size(fields) == 0)
                return complain(k, "a section needs text or fields", "text");
        if (json_object_get(b, "text") && !check_object(k, b, "text", 3000, false))
                return false;
        if (json_array_size(fields) > 10)
                return complain(k, "no more than 10 items allowed", "fields");
        json_array_foreach(fields, i, field) {
                if (!check_text(k, field, "text", 2000, true))
                        return false;
        }
        return !accessory || check_element(k, accessory);
}

static bool check_header(struct slack_block_check *k, const json_t *b)
{
        return check_object(k, b, "text", 150, true);
}

static bool check_context(struct slack_block_check *k, const json_t *b)
{
        size_t n = json_array_size(json_object_get(b, "elements"));

        return n > 0 && n <= 10 ? true : complain(k, "must have 1 to 10 elements", "elements");
}

static bool check_actions(struct slack_block_check *k, const json_t *b)
{
        const json_t *elements = json_object_get(b, "elements"), *e;
        size_t i, n = json_array_size(elements);

        if (n == 0 || n > 25)
                return complain(k, "must have 1 to 25 elements", "elements");
        json_array_foreach(elements, i, e) {
                const char *id = json_str(e, "action_id", NULL);

                if (!check_element(k, e))
                        return false;
                for (size_t other = 0; id && other < i; other++) {
                        if (strcmp(json_str(json_array_get(elements, other), "action_id", ""),
                                   id) == 0)
                                return complain(k, "action_id already exists", id);
                }
        }
        return true;
}

static bool check_markdown(struct slack_block_check *k, const json_t *b)
{
        k->markdown += sl_compose_length(json_str(b, "text", ""));
        return k->markdown <= SL_MARKDOWN_MAX && check_text(k, b, "text", SL_MARKDOWN_MAX, true)
                       ? true
                       : complain(k, "markdown of more than 12000 characters", "text");
}

static bool check_table(struct slack_block_check *k, const json_t *b)
{
        const json_t *rows = json_object_get(b, "rows"), *row;
        size_t i, n = json_array_size(rows);

        if (++k->tables > 1)
                return complain(k, "only one table allowed", "rows");
        if (n == 0 || n > MAX_ROWS)
                return complain(k, "must have 1 to 100 rows", "rows");
        json_array_foreach(rows, i, row) {
                if (json_array_size(row) == 0 || json_array_size(row) > MAX_CELLS)
                        return complain(k, "must have 1 to 20 cells", "rows");
        }
        return true;
}

static bool check_input(struct slack_block_check *k, const json_t *b)
{
        return check_object(k, b, "label", 2000, true) &&
               check_element(k, json_object_get(b, "element"));
}

static bool check_image(struct slack_block_check *k, const json_t *b)
{
        return check_text(k, b, "alt_text", 2000, true) &&
               check_text(k, b, "image_url", 3000, false);
}

static bool check_rich_text(struct slack_block_check *k, const json_t *b)
{
        return json_is_array(json_object_get(b, "elements"))
                       ? true
                       : complain(k, "missing required field", "elements");
}

static const struct {
        const char *type;
        bool (*check)(struct slack_block_check *k, const json_t *b);
} block_types[] = {
        { "section", check_section },
        { "header", check_header },
        { "context", check_context },
        { "actions", check_actions },
        { "markdown", check_markdown },
        { "table", check_table },
        { "input", check_input },
        { "image", check_image },
        { "divider", NULL },
        { "rich_text", check_rich_text },
        { "video", NULL },
        { "file", NULL },
        { "context_actions", check_actions },
};

static bool check_block(struct slack_block_check *k, const json_t *b)
{
        const char *type = json_str(b, "type", "");

        if (!check_text(k, b, "block_id", MAX_ID, false))
                return false;
        for (size_t i = 0; i < COUNT(block_types); i++) {
                if (strcmp(block_types[i].type, type) == 0)
                        return !block_types[i].check || block_types[i].check(k, b);
        }
        return complain(k, "unsupported type of block", type);
}

const char *sl_compose_check_blocks(const json_t *blocks, size_t most,
                                    char problem[SL_SPEC_PROBLEM_SIZE])
{
        struct slack_block_check k = { .problem = problem };
        const json_t *block;
        size_t i;

        if (!json_is_array(blocks))
                return "invalid_blocks_format";
        if (json_array_size(blocks) > most) {
                complain(&k, "no more items allowed", "blocks");
                return "invalid_blocks";
        }
        json_array_foreach(blocks, i, block) {
                const char *id = json_str(block, "block_id", NULL);

                if (!check_block(&k, block))
                        return "invalid_blocks";
                for (size_t other = 0; id && other < i; other++) {
                        if (strcmp(json_str(json_array_get(blocks, other), "block_id", ""), id) ==
                            0) {
                                complain(&k, "block_id already exists", id);
                                return "invalid_blocks";
                        }
                }
        }
        return NULL;
}

const char *sl_compose_check_view(const json_t *view, char problem[SL_SPEC_PROBLEM_SIZE])
{
        struct slack_block_check k = { .problem = problem };
        const char *type = json_str(view, "type", "");
        bool modal = strcmp(type, "modal") == 0;

        if (!modal && strcmp(type, "home") != 0)
                complain(&k, "must be modal or home", "/view/type");
        else if ((!modal || check_object(&k, view, "title", MAX_TITLE, true)) &&
                 check_text(&k, view, "private_metadata", 3000, false) &&
                 check_text(&k, view, "callback_id", MAX_ID, false) &&
                 !sl_compose_check_blocks(json_object_get(view, "blocks"), MAX_IN_VIEW, problem))
                return NULL;
        return "invalid_arguments";
}
