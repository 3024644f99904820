#include "net/stderr_tail.h"

#include <string.h>

#include "base/log.h"
#include "base/utf8.h"

#define KEPT         2000
#define LINE_LONGEST 200

void stderr_tail_init(struct stderr_tail *t)
{
        buf_init(&t->text, 0);
}

void stderr_tail_release(struct stderr_tail *t)
{
        buf_release(&t->text);
}

void stderr_tail_add(struct stderr_tail *t, const char *bytes, size_t n)
{
        buf_add(&t->text, bytes, n);
        if (t->text.len > KEPT)
                buf_consume(&t->text, t->text.len - KEPT);
}

char *stderr_tail_line(struct stderr_tail *t)
{
        const char *text = t->text.data;
        size_t end = t->text.len, start;

        log_redact(t->text.data); /* before it is cut */
        while (end > 0 && strchr(" \t\r\n", text[end - 1]))
                end--;
        for (start = end; start > 0 && text[start - 1] != '\n'; start--)
                ;
        if (end - start > LINE_LONGEST)
                start = end - LINE_LONGEST;
        return utf8_clean(text + start, end - start);
}
