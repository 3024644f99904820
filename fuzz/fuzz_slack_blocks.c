/*
 * Whatever an agent writes, its blocks are within Slack's limits, and there is text where there was
 * text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "platform/markdown/markdown.h"
#include "platform/slack/sl_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why, const char *text)
{
        fprintf(stderr, "%s:\n%s\n", why, text);
        abort();
}

static void check_section(const json_t *block)
{
        const char *text = json_str(json_object_get(block, "text"), "text", "");
        size_t n = utf8_length(text, strlen(text), UTF8_CODE_POINTS);

        if (n < 1 || n > SL_BLOCKS_TEXT_MAX)
                fail("length of a section", text);
}

static void check_table(const json_t *block, const char *text)
{
        const json_t *rows = json_object_get(block, "rows"), *row, *cell;
        size_t columns = json_array_size(json_array_get(rows, 0)), i, j;

        if (json_array_size(rows) > SL_BLOCKS_TABLE_ROWS || columns < 1 ||
            columns > SL_BLOCKS_TABLE_COLS)
                fail("size of a table", text);
        json_array_foreach(rows, i, row) {
                if (json_array_size(row) != columns)
                        fail("columns of a row", text);
                json_array_foreach(row, j, cell)
                        if (!*json_str(cell, "text", ""))
                                fail("an empty cell", text);
        }
}

static void check(const char *text, const json_t *buttons, bool plain)
{
        struct error err = { 0 };
        json_t *blocks, *block;
        size_t i, tables = 0;

        if (sl_blocks_make(text, buttons, plain, &blocks, &err) < 0)
                fail(err.text, text);
        if (!blocks)
                return;
        if (json_array_size(blocks) > SL_BLOCKS_MAX || json_array_size(blocks) == 0)
                fail("number of blocks", text);
        json_array_foreach(blocks, i, block) {
                const char *type = json_str(block, "type", "");

                if (strcmp(type, "section") == 0)
                        check_section(block);
                if (strcmp(type, "table") == 0) {
                        check_table(block, text);
                        tables++;
                }
        }
        if (tables > 1)
                fail("more than one table", text);
        json_decref(blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct markdown_limits limits = { .dialect = MARKDOWN_SLACK,
                                                .unit = UTF8_CODE_POINTS,
                                                .max = 3500 };
        json_t *buttons = json_pack("[[{s:s, s:s}]]", "text", "Go", "data", "go");
        struct markdown_parts parts;

        if (markdown_render((const char *)data, size, &limits, &parts, NULL) == 0) {
                for (size_t i = 0; i < parts.count; i++) {
                        check(parts.items[i], NULL, false);
                        check(parts.items[i], buttons, false);
                        check(parts.items[i], buttons, true);
                }
                markdown_parts_release(&parts);
        }
        json_decref(buttons);
        return 0;
}
