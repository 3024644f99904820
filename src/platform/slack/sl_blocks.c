#include "platform/slack/sl_blocks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define FENCE      "```"
#define ZERO_WIDTH "\xe2\x80\x8b" /* the renderer puts it between backticks of code */
#define LONG_CODE  15             /* lines; shorter code is as readable in text */

/* ---- sections ---- */

/* Where to end a section: a line, a word, but never inside <...> or an entity. */
static size_t section_end(const char *p, size_t n)
{
        size_t most = utf8_prefix(p, n, UTF8_CODE_POINTS, SL_BLOCKS_TEXT_MAX), end;

        if (most == n)
                return n;
        for (end = most; end > most / 2 && p[end - 1] != '\n'; end--) {
        }
        if (end > most / 2)
                return end;
        for (end = most; end > most / 2 && p[end - 1] != ' '; end--) {
        }
        if (end <= most / 2)
                end = most;
        for (size_t i = end; i > 0 && end - i < 300; i--) {
                if (p[i - 1] == '>' || p[i - 1] == ';')
                        break;
                if (p[i - 1] == '<' || p[i - 1] == '&')
                        return i - 1 > 0 ? i - 1 : end;
        }
        return end;
}

static void add_sections(json_t *blocks, const char *p, size_t n)
{
        while (n > 0) {
                size_t end, shown;

                for (; n > 0 && *p == '\n'; p++, n--) {
                }
                end = section_end(p, n);
                for (shown = end; shown > 0 && strchr("\n ", p[shown - 1]); shown--) {
                }
                if (shown > 0)
                        json_array_append_new(blocks, json_pack("{s:s, s:{s:s, s:s%}, s:b}", "type",
                                                                "section", "text", "type", "mrkdwn",
                                                                "text", p, shown, "expand", true));
                p += end;
                n -= end;
        }
}

/* ---- code and tables ---- */

/* Code without the escapes of mrkdwn. */
static void add_code(struct buf *out, const char *p, size_t n)
{
        static const struct {
                const char *escaped, *text;
        } escapes[] = {
                { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { ZERO_WIDTH "`", "`" }
        };

        for (size_t i = 0; i < n;) {
                size_t e, length = 0;

                for (e = 0; e < COUNT(escapes); e++) {
                        length = strlen(escapes[e].escaped);
                        if (i + length <= n && memcmp(p + i, escapes[e].escaped, length) == 0)
                                break;
                }
                if (e < COUNT(escapes)) {
                        buf_addstr(out, escapes[e].text);
                        i += length;
                } else {
                        buf_addch(out, p[i++]);
                }
        }
}

static json_t *code_block(const char *code)
{
        return json_pack("{s:s, s:[{s:s, s:[{s:s, s:s}]}]}", "type", "rich_text", "elements",
                         "type", "rich_text_preformatted", "elements", "type", "text", "text",
                         code);
}

/* A table as the renderer aligns it has "---+---" as its second line. 0: it is none. */
static size_t table_columns(const char *code)
{
        const char *rule = strchr(code, '\n');
        size_t n, columns = 1;

        if (!rule)
                return 0;
        rule++;
        n = strspn(rule, "-+");
        if (n < 3 || (rule[n] != '\n' && rule[n] != '\0'))
                return 0;
        for (size_t i = 0; i < n; i++)
                columns += rule[i] == '+';
        return columns > 1 && columns <= SL_BLOCKS_TABLE_COLS ? columns : 0;
}

/* A line as a row of cells; NULL: it has another number of cells. */
static json_t *table_row(const char *line, size_t n, size_t columns)
{
        json_t *row = json_array();
        const char *end = line + n;

        for (const char *p = line; p <= end;) {
                const char *bar = memmem(p, (size_t)(end - p), " | ", 3), *last = bar ? bar : end;

                for (; p < last && *p == ' '; p++) {
                }
                for (; last > p && last[-1] == ' '; last--) {
                }
                /* Slack refuses an empty cell */
                json_array_append_new(row, json_pack("{s:s, s:o}", "type", "raw_text", "text",
                                                     last > p ? json_stringn(p, (size_t)(last - p))
                                                              : json_string(" ")));
                p = bar ? bar + 3 : end + 1;
        }
        if (json_array_size(row) == columns)
                return row;
        json_decref(row);
        return NULL;
}

/* NULL: the code is no table, or one with more than Slack shows. */
static json_t *table_block(const char *code)
{
        size_t columns = table_columns(code), at = 0;
        json_t *rows;

        if (columns == 0)
                return NULL;
        rows = json_array();
        for (const char *line = code; *line; at++) {
                size_t n = strcspn(line, "\n");
                json_t *row = at == 1 ? NULL : table_row(line, n, columns);

                if (row)
                        json_array_append_new(rows, row);
                if ((!row && at != 1) || json_array_size(rows) > SL_BLOCKS_TABLE_ROWS) {
                        json_decref(rows);
                        return NULL;
                }
                line += n + (line[n] == '\n');
        }
        return json_pack("{s:s, s:o}", "type", "table", "rows", rows);
}

static size_t count_lines(const char *text)
{
        size_t lines = 1;

        for (; *text; text++)
                lines += *text == '\n';
        return lines;
}

/* ---- the text ---- */

/* The next fenced code from p on: its fence, code and end. NULL: none. */
static const char *find_code(const char *text, const char *p, const char **code, size_t *n,
                             const char **after)
{
        const char *open, *close;

        for (open = p; (open = strstr(open, FENCE "\n")); open++)
                if (open == text || open[-1] == '\n')
                        break;
        close = open ? strstr(open + strlen(FENCE), "\n" FENCE) : NULL;
        if (!close)
                return NULL;
        *code = open + strlen(FENCE "\n");
        *n = close >= *code ? (size_t)(close - *code) : 0;
        *after = close + strlen("\n" FENCE);
        return open;
}

/* Adds all of the text; false: it has nothing that needs blocks. */
static bool add_text(json_t *blocks, const char *text)
{
        const char *p = text, *open, *code, *after;
        bool needed = false, has_table = false;
        struct buf plain;
        size_t n;

        buf_init(&plain, 0);
        while ((open = find_code(text, p, &code, &n, &after))) {
                json_t *table;

                add_sections(blocks, p, (size_t)(open - p));
                buf_clear(&plain);
                add_code(&plain, code, n);
                table = has_table ? NULL : table_block(plain.data); /* Slack permits one */
                needed = needed || table || count_lines(plain.data) > LONG_CODE;
                has_table = has_table || table;
                if (table || plain.len > 0)
                        json_array_append_new(blocks, table ? table : code_block(plain.data));
                p = after;
        }
        buf_release(&plain);
        add_sections(blocks, p, strlen(p));
        return needed;
}

/* ---- buttons ---- */

static json_t *button(const json_t *wanted, size_t row, size_t column, struct error *err)
{
        const char *url = json_str(wanted, "url", NULL), *data = json_str(wanted, "data", "");
        const char *text = json_str(wanted, "text", data);
        size_t label = utf8_prefix(text, strlen(text), UTF8_CODE_POINTS, SL_BLOCKS_LABEL_MAX);
        char action[64];
        json_t *b;

        if (label == 0 || (url ? strlen(url) > 3000 : strlen(data) < 1) ||
            utf8_length(data, strlen(data), UTF8_CODE_POINTS) > SL_BLOCKS_VALUE_MAX) {
                error_set(err, ERR_INVALID,
                          "button '%.40s' needs data of 1 to %d characters or a URL of at most "
                          "3000",
                          text, SL_BLOCKS_VALUE_MAX);
                return NULL;
        }
        snprintf(action, sizeof(action), "button:%zu:%zu", row, column); /* unique in a message */
        b = json_pack("{s:s, s:s, s:{s:s, s:s%, s:b}}", "type", "button", "action_id", action,
                      "text", "type", "plain_text", "text", text, label, "emoji", true);
        json_object_set_new(b, url ? "url" : "value", json_string(url ? url : data));
        return b;
}

int sl_blocks_add_buttons(json_t *blocks, const json_t *rows, struct error *err)
{
        if (json_array_size(rows) > SL_BLOCKS_ROWS_MAX)
                return error_set(err, ERR_INVALID, "a message has at most %d rows of buttons",
                                 SL_BLOCKS_ROWS_MAX);
        for (size_t i = 0; i < json_array_size(rows); i++) {
                const json_t *wanted = json_array_get(rows, i);
                json_t *elements;

                if (json_array_size(wanted) == 0)
                        continue;
                if (json_array_size(wanted) > SL_BLOCKS_BUTTONS)
                        return error_set(err, ERR_INVALID, "a row has at most %d buttons",
                                         SL_BLOCKS_BUTTONS);
                elements = json_array();
                json_array_append_new(
                        blocks, json_pack("{s:s, s:o}", "type", "actions", "elements", elements));
                for (size_t j = 0; j < json_array_size(wanted); j++) {
                        json_t *b = button(json_array_get(wanted, j), i, j, err);

                        if (!b)
                                return -1;
                        json_array_append_new(elements, b);
                }
        }
        return 0;
}

void sl_blocks_add_text(json_t *blocks, const char *text)
{
        add_sections(blocks, text, strlen(text));
}

int sl_blocks_make(const char *text, const json_t *buttons, bool plain, json_t **out,
                   struct error *err)
{
        bool has_buttons = json_array_size(buttons) > 0, needed = has_buttons;

        *out = json_array();
        if (!plain)
                needed = add_text(*out, text) || needed;
        if (plain || json_array_size(*out) > SL_BLOCKS_MAX - SL_BLOCKS_ROWS_MAX) {
                json_array_clear(*out);
                add_sections(*out, text, strlen(text));
                needed = has_buttons;
        }
        if (needed && sl_blocks_add_buttons(*out, buttons, err) < 0) {
                json_decref(*out);
                *out = NULL;
                return -1;
        }
        if (!needed || json_array_size(*out) == 0) {
                json_decref(*out);
                *out = NULL;
        }
        return 0;
}
