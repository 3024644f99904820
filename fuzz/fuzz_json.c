/*
 * JSON in and out. Properties: a parsed value survives a round trip; any bytes become a string that
 * reads back as their cleaned form; measuring and cutting stay within the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/utf8.h"

static void check_round_trip(const char *text, size_t n)
{
        json_t *value = json_read(text, n, NULL);
        char *again;
        json_t *back;

        if (!value)
                return;
        again = json_text(value);
        back = again ? json_read(again, strlen(again), NULL) : NULL;
        if (!back || !json_equal(value, back))
                abort();
        json_decref(value);
        json_decref(back);
        free(again);
}

static void check_quoting(const char *text, size_t n)
{
        struct buf b;
        json_t *value;

        buf_init(&b, 0);
        jsonw_quote(&b, text, n);
        if (!memchr(text, '\0', n)) {
                char *clean = utf8_clean(text, n);

                value = json_read(b.data, b.len, NULL);
                if (!value || strcmp(json_string_value(value), clean) != 0)
                        abort();
                json_decref(value);
                free(clean);
        }
        buf_release(&b);
}

static void check_cutting(const char *text, size_t n)
{
        for (int unit = UTF8_BYTES; unit <= UTF8_UTF16; unit++) {
                size_t units = n / 2;
                size_t cut = utf8_prefix(text, n, (enum utf8_unit)unit, units);

                if (cut > n || utf8_length(text, cut, (enum utf8_unit)unit) > units)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data;

        if (size == 0)
                return 0;
        check_round_trip(text, size);
        check_quoting(text, size);
        check_cutting(text, size);
        return 0;
}
