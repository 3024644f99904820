/*
 * fuzz_json_schema: checks a value against a schema; the input is the schema, a NUL, the value.
 *
 * A refusal must have a reason that is valid text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tools/json_schema.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint8_t *nul = memchr(data, 0, size);
        size_t n = nul ? (size_t)(nul - data) : size, rest = nul ? size - n - 1 : 0;
        struct error err = { 0 };
        json_t *schema = json_read((const char *)data, n, &err);
        json_t *value = nul ? json_read((const char *)nul + 1, rest, &err) : NULL;

        error_clear(&err);
        if (schema && json_schema_check(schema, value ? value : schema, &err) < 0 &&
            (err.text[0] == '\0' || !utf8_valid(err.text, strlen(err.text))))
                abort();
        json_decref(schema);
        json_decref(value);
        return 0;
}
