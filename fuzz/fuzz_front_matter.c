/* Heads of SKILL.md files, and patterns of ignore files: agents write both. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/skills.h"
#include "base/mem.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pattern(const char *text, size_t n)
{
        const char *nl = memchr(text, '\n', n);
        size_t pattern_n = nl ? (size_t)(nl - text) : n;
        char *path;

        if (!nl || pattern_n > SKILLS_PATTERN_MAX)
                return;
        path = mem_strndup(nl + 1, n - pattern_n - 1);
        skill_ignore_match((struct slice){ text, pattern_n }, path, n % 2);
        free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = mem_dup(data, size);
        struct buf warnings;
        struct skill s;

        buf_init(&warnings, 0);
        if (skill_parse(&s, text, size, "folder", "/skills/folder/SKILL.md", &warnings, NULL) ==
            0) {
                assert(s.name[0] && strlen(s.name) <= SKILL_NAME_MAX);
                assert(s.description[0] && strlen(s.description) <= SKILL_DESCRIPTION_MAX);
                assert(utf8_valid(s.name, strlen(s.name)));
                assert(utf8_valid(s.description, strlen(s.description)));
                skill_release(&s);
        }
        buf_release(&warnings);
        check_pattern(text, size);
        free(text);
        return 0;
}
