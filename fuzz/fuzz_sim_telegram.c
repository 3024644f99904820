/*
 * What the simulator reads from outside: markup, multipart bodies, parameters. The first byte
 * chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/multipart.h"
#include "sim/telegram/tg_rich_text.h"
#include "sim/telegram/tg_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void markup(int (*parse)(struct rich_text *, const char *, char *), const char *text)
{
        char problem[TG_RICH_TEXT_PROBLEM_SIZE];
        struct rich_text r;

        tg_rich_text_init(&r);
        if (parse(&r, text, problem) == 0) {
                tg_rich_text_trim(&r);
                tg_rich_text_detect(&r);
                free(tg_rich_text_entities(&r));
        }
        tg_rich_text_release(&r);
}

static void parts(const char *text, size_t n)
{
        struct multipart m;

        if (multipart_init(&m, "multipart/form-data; boundary=xyz", text, n, NULL) == 0)
                multipart_release(&m);
}

static void parameters(const char *text, size_t n)
{
        json_t *args = json_read(text, n, NULL);
        char problem[TG_SPEC_PROBLEM_SIZE];

        if (json_is_object(args))
                tg_spec_check(tg_spec_method("sendMediaGroup"), args, problem);
        json_decref(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *text;

        if (n == 0)
                return 0;
        text = mem_strndup((const char *)data + 1, n - 1);
        switch (data[0] % 5) {
        case 0:
                markup(tg_rich_text_html, text);
                break;
        case 1:
                markup(tg_rich_text_markdown_v2, text);
                break;
        case 2:
                markup(tg_rich_text_markdown, text);
                break;
        case 3:
                parts((const char *)data + 1, n - 1);
                break;
        default:
                parameters(text, strlen(text));
                break;
        }
        free(text);
        return 0;
}
