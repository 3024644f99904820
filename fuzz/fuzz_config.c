/*
 * The configuration text: comments, lines, tables. Properties: a mistake has an error text, every
 * key has a line, values that were read can be released.
 *
 * No SETTING_SECRET: a handle found by the fuzzer would run commands and read files. The splitter
 * of command lines runs nothing and gets the bytes as they are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"
#include "base/settings.h"

struct inner {
        int64_t turns;
        double seconds;
};

struct outer {
        bool flag;
        int64_t number;
        char *name;
        char *url;
        char *mode;
        struct setting_list list;
        struct inner inner;
};

static const char *const modes[] = { "polling", "webhook", NULL };

static const struct setting inner_settings[] = {
        { "turns", SETTING_INT, "5", 0, 100, .at = offsetof(struct inner, turns) },
        { "seconds", SETTING_NUMBER, "60", 1, 3600, .at = offsetof(struct inner, seconds) },
        SETTING_END
};

static const struct setting outer_settings[] = {
        { "flag", SETTING_BOOL, "true", .at = offsetof(struct outer, flag) },
        { "number", SETTING_INT, "0", -5, 60000, .at = offsetof(struct outer, number) },
        { "name", SETTING_STRING, "null", 2, 8, .at = offsetof(struct outer, name) },
        { "url", SETTING_URL, "\"http://localhost\"", .at = offsetof(struct outer, url) },
        { "mode", SETTING_CHOICE, "\"polling\"", .choices = modes,
          .at = offsetof(struct outer, mode) },
        { "list", SETTING_STRINGS, "[]", .at = offsetof(struct outer, list) },
        { "inner", SETTING_GROUP, "{}", .group = inner_settings,
          .at = offsetof(struct outer, inner) },
        SETTING_END
};

static void check_lines(const struct settings_source *src)
{
        const json_t *root = settings_source_root(src);

        for (void *it = json_object_iter((json_t *)(uintptr_t)root); it;
             it = json_object_iter_next((json_t *)(uintptr_t)root, it)) {
                const char *key = json_object_iter_key(it);

                /* "" names the root, and a dot in front of a key reads as a separator */
                if (*key && *key != '.' && settings_source_line(src, key) == 0)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const struct setting *const tables[] = { outer_settings, NULL };
        struct error err = { 0 };
        struct outer out = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", NULL, (const char *)data, size, &err);
        char *line = mem_strndup((const char *)data, size);

        secret_free_words(secret_split_command(line, NULL));
        if (src) {
                check_lines(src);
                settings_source_line(src, line);
                if (settings_read(src, "", settings_source_root(src), tables, NULL, &out, &err) ==
                    0)
                        settings_release(tables, &out);
                else if (strncmp(err.text, "config.json:", 12) != 0)
                        abort();
        } else if (err.text[0] == '\0') {
                abort();
        }
        settings_source_free(src);
        free(line);
        return 0;
}
