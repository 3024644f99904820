#include "platform/discord/dc_parse.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

struct dc_parsing {
        char *text;
        size_t n;
        json_t *value;
        dc_parsed_fn *done; /* NULL: nobody waits */
        void *arg;
};

json_t *dc_parse(const char *text, size_t n)
{
        json_t *value = json_read(text, n, NULL);

        return value ? value : json_loadb(text, n, JSON_ALLOW_NUL, NULL);
}

static void on_work(void *arg)
{
        struct dc_parsing *p = arg;

        p->value = dc_parse(p->text, p->n);
        free(p->text);
        p->text = NULL;
}

static void on_parsed(void *arg)
{
        struct dc_parsing *p = arg;

        if (p->done)
                p->done(p->arg, p->value);
        json_decref(p->value);
        free(p);
}

struct dc_parsing *dc_parse_apart(struct loop *l, const char *text, size_t n, dc_parsed_fn *done,
                                  void *arg)
{
        struct dc_parsing *p = mem_zalloc(sizeof(*p));

        p->text = mem_dup(text, n);
        p->n = n;
        p->done = done;
        p->arg = arg;
        loop_work(l, on_work, on_parsed, p);
        return p;
}

void dc_parse_drop(struct dc_parsing *p)
{
        if (p)
                p->done = NULL;
}
