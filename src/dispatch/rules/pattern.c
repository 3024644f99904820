#include "dispatch/rules/pattern.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"

/* Measured: the worst pattern stops after about 2 ms. */
#define MATCH_LIMIT    50000
#define DEPTH_LIMIT    5000
#define HEAP_LIMIT_KIB 4096

struct pattern {
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *context;
};

/* No \C, which could split a character. Invalid bytes never match instead of raising errors. */
#define OPTIONS \
        (PCRE2_UTF | PCRE2_UCP | PCRE2_CASELESS | PCRE2_NEVER_BACKSLASH_C | PCRE2_MATCH_INVALID_UTF)

struct pattern *pattern_new(const char *text, struct error *err)
{
        struct pattern *p;
        PCRE2_SIZE offset;
        pcre2_code *code;
        PCRE2_UCHAR sentence[160] = "";
        int problem;

        if (strlen(text) > PATTERN_MAX_BYTES) {
                error_set(err, ERR_INVALID, "it is longer than %d bytes", PATTERN_MAX_BYTES);
                return NULL;
        }
        code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, OPTIONS, &problem, &offset,
                             NULL);
        if (!code) {
                pcre2_get_error_message(problem, sentence, sizeof(sentence));
                error_set(err, ERR_INVALID, "%s at offset %zu", (const char *)sentence, offset);
                return NULL;
        }
        p = mem_zalloc(sizeof(*p));
        p->code = code;
        p->data = pcre2_match_data_create(1, NULL);
        p->context = pcre2_match_context_create(NULL);
        pcre2_set_match_limit(p->context, MATCH_LIMIT);
        pcre2_set_depth_limit(p->context, DEPTH_LIMIT);
        pcre2_set_heap_limit(p->context, HEAP_LIMIT_KIB);
        return p;
}

void pattern_free(struct pattern *p)
{
        if (!p)
                return;
        pcre2_match_context_free(p->context);
        pcre2_match_data_free(p->data);
        pcre2_code_free(p->code);
        free(p);
}

int pattern_find(const struct pattern *p, const char *text)
{
        int rc = pcre2_match(p->code, (PCRE2_SPTR)text, strnlen(text, PATTERN_TEXT_MAX), 0, 0,
                             p->data, p->context);

        if (rc >= 0)
                return 1;
        return rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

bool pattern_glob(const char *glob, const char *text)
{
        const char *star = NULL, *resume = NULL; /* the last star, and where its run may grow */

        while (*text) {
                if (*glob == '*') {
                        star = glob++;
                        resume = text;
                } else if (*glob == *text) {
                        glob++;
                        text++;
                } else if (star) {
                        glob = star + 1;
                        text = ++resume;
                } else {
                        return false;
                }
        }
        while (*glob == '*')
                glob++;
        return *glob == '\0';
}
