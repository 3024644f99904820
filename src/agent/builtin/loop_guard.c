#include "agent/builtin/loop_guard.h"

#include <stdlib.h>
#include <string.h>

#include "agent/tools/output_file.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"

#define DIGEST_SIZE 17 /* 64 bits are enough to tell results of one turn apart */
#define TEXT_MIN    100

static char *digest(const char *a, const char *b, const char *c, char out[DIGEST_SIZE])
{
        char *whole = mem_printf("%s\x1f%s\x1f%s", a, b, c);
        unsigned char sum[SHA256_SIZE];

        crypto_sha256(whole, strlen(whole), sum);
        free(whole);
        return crypto_hex(sum, (DIGEST_SIZE - 1) / 2, out);
}

/* Long output is kept under a new name each time, see tools/output_file.h. */
static void forget_names(char *text)
{
        for (char *p = text; (p = strstr(p, "/" OUTPUT_FILE_NAME));) {
                p += strlen("/" OUTPUT_FILE_NAME);
                memset(p, '0', strspn(p, "0123456789abcdef-"));
        }
}

/* Results of the turn with this member. */
static int count_same(const struct steps *s, int64_t turn, const char *key, const char *value)
{
        int count = 0;

        for (size_t i = 0; i < s->count; i++) {
                const struct step *step = &s->items[i];

                if (step->turn == turn && step->kind == STEP_TOOL_DONE &&
                    strcmp(json_str(step->body, key, ""), value) == 0)
                        count++;
        }
        return count;
}

void loop_guard_mark(const struct steps *s, int64_t turn, const json_t *call, json_t *result)
{
        const json_t *whole = json_object_get(call, "arguments");
        json_t *arguments = whole ? json_copy((json_t *)whole) : json_object(), *content;
        const char *name = json_str(call, "name", "");
        char same[DIGEST_SIZE], error[DIGEST_SIZE] = "";
        char *text = steps_text(result), *args;
        int count;

        json_object_del(arguments, "label"); /* for people; need not repeat */
        args = json_text(arguments);
        forget_names(text);
        digest(name, args, text, same);
        count = 1 + count_same(s, turn, "same", same);
        json_object_set_new(result, "same", json_string(same));
        if (json_flag(result, "isError", false)) {
                int errors = 1 + count_same(s, turn, "sameError", digest(name, "", text, error));

                json_object_set_new(result, "sameError", json_string(error));
                count = errors > count ? errors : count;
        }
        content = json_object_get(result, "content");
        if (count >= GUARD_WARNS)
                json_array_append_new(
                        content,
                        json_pack("{s:s, s:s}", "type", "text", "text",
                                  "[You have had this same result several times in this turn. "
                                  "Repeating the call will not change it: do something else, or "
                                  "say what stops you. The turn ends if it goes on.]"));
        json_decref(arguments);
        free(args);
        free(text);
}

static bool repeats(const struct steps *s, const struct step *done, const char *key, int limit)
{
        const char *value = json_str(done->body, key, "");

        return *value && count_same(s, done->turn, key, value) >= limit;
}

/* The same words in the last two answers: it talks to itself. */
static bool repeats_itself(const struct steps *s, int64_t turn)
{
        char *last = NULL;
        bool same = false;

        for (size_t i = s->count; i > 0; i--) {
                const struct step *step = &s->items[i - 1];
                char *text;

                if (step->turn != turn || step->kind != STEP_ASSISTANT)
                        continue;
                text = steps_text(step->body);
                if (!last) {
                        last = text;
                        continue;
                }
                same = strlen(text) >= TEXT_MIN && strcmp(last, text) == 0;
                free(text);
                break;
        }
        free(last);
        return same;
}

const char *loop_guard_verdict(const struct steps *s, int64_t turn)
{
        for (size_t i = s->count; i > 0; i--) {
                const struct step *step = &s->items[i - 1];

                if (step->turn != turn)
                        break;
                if (step->kind != STEP_TOOL_DONE)
                        continue;
                if (repeats(s, step, "same", GUARD_STOPS))
                        return "it made the same call with the same result five times";
                if (repeats(s, step, "sameError", GUARD_STOPS))
                        return "it got the same error five times";
        }
        return repeats_itself(s, turn) ? "it repeated itself word for word" : NULL;
}
