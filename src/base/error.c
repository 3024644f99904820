#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Cuts a truncated sentence at a whole character. */
static void end_at_character(char *text, size_t size, int wanted)
{
        if (wanted >= 0 && (size_t)wanted >= size)
                text[utf8_prefix(text, size - 1, UTF8_BYTES, size - 4)] = '\0';
}

int error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
{
        va_list ap;
        int n;

        if (!err)
                return -1;
        err->kind = kind;
        va_start(ap, fmt);
        n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        end_at_character(err->text, sizeof(err->text), n);
        return -1;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
        char old[sizeof(err->text)];
        char prefix[sizeof(err->text)];
        va_list ap;
        int n;

        if (!err)
                return -1;
        memcpy(old, err->text, sizeof(old));
        va_start(ap, fmt);
        n = vsnprintf(prefix, sizeof(prefix), fmt, ap);
        va_end(ap);
        end_at_character(prefix, sizeof(prefix), n);
        return error_set(err, err->kind, "%s: %s", prefix, old);
}

void error_clear(struct error *err)
{
        if (!err)
                return;
        err->kind = ERR_NONE;
        err->text[0] = '\0';
}

const char *error_kind_name(enum error_kind kind)
{
        static const char *const names[] = {
                [ERR_NONE] = "none",
                [ERR_INVALID] = "invalid",
                [ERR_MISSING] = "missing",
                [ERR_REFUSED] = "refused",
                [ERR_CONFLICT] = "conflict",
                [ERR_LIMIT] = "limit",
                [ERR_TIMEOUT] = "timeout",
                [ERR_NET] = "net",
                [ERR_PROTOCOL] = "protocol",
                [ERR_FULL] = "full",
                [ERR_IO] = "io",
                [ERR_BUSY] = "busy",
                [ERR_CORRUPT] = "corrupt",
                [ERR_CANCELLED] = "cancelled",
                [ERR_INTERNAL] = "internal",
        };

        return names[kind];
}
