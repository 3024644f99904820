#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_call.h"

void lm_prompt_user(struct lm_prompt *p, const char *text)
{
        json_array_append_new(p->turns, json_pack("{s:s,s:s}", "role", "user", "text", text));
}

void lm_prompt_assistant(struct lm_prompt *p, const char *text, json_t *calls)
{
        json_array_append_new(p->turns, json_pack("{s:s,s:s,s:o}", "role", "assistant", "text",
                                                  text, "calls", calls));
}

/* The name of the tool that was called with this id. */
static const char *name_of_call(const struct lm_prompt *p, const char *id)
{
        for (size_t i = json_array_size(p->turns); i-- > 0;) {
                const json_t *calls = json_object_get(json_array_get(p->turns, i), "calls"), *call;
                size_t k;

                json_array_foreach(calls, k, call) {
                        if (strcmp(json_str(call, "id", ""), id) == 0)
                                return json_str(call, "name", "");
                }
        }
        return "";
}

void lm_prompt_tool(struct lm_prompt *p, const char *id, const char *text)
{
        json_array_append_new(p->turns, json_pack("{s:s,s:s,s:s,s:s}", "role", "tool", "id", id,
                                                  "name", name_of_call(p, id), "text", text));
}

void lm_prompt_add_tool(struct lm_prompt *p, const char *name, const json_t *schema)
{
        json_array_append_new(p->tools, json_pack("{s:s,s:O?}", "name", name, "schema", schema));
}

char *lm_prompt_text(const json_t *content)
{
        const json_t *part;
        struct buf b;
        size_t i;

        if (json_is_string(content))
                return mem_strdup(json_string_value(content));
        buf_init(&b, 0);
        json_array_foreach(content, i, part) {
                const char *text = json_str(part, "text", NULL);

                if (!text)
                        continue;
                if (b.len > 0)
                        buf_addch(&b, '\n');
                buf_addstr(&b, text);
        }
        return buf_take(&b);
}

bool lm_prompt_is(const json_t *object, const char *key, const char *text)
{
        return strcmp(json_str(object, key, ""), text) == 0;
}

bool lm_prompt_is_blank(const char *text)
{
        return text[strspn(text, " \t\r\n\v\f")] == '\0';
}

bool lm_prompt_is_name(const char *text)
{
        return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-")] == '\0';
}

/* ---- signatures ---- */

/* One for all simulators, so that a conversation outlives a restart. */
static const char secret[] = "dragoman-sim llm";

static void digest(char out[33], const char *model, const char *answer, size_t at, size_t count,
                   const char *text)
{
        unsigned char sum[SHA256_SIZE];
        char *all = mem_printf("%s\n%s\n%zu\n%zu\n%s", model, answer, at, count, text);

        crypto_hmac_sha256(secret, sizeof(secret) - 1, all, strlen(all), sum);
        crypto_hex(sum, 16, out);
        free(all);
}

void lm_sign(char out[LM_SIGNATURE_SIZE], const char *model, const char *answer, size_t at,
             size_t count, const char *text)
{
        char sum[33];

        digest(sum, model, answer, at, count, text);
        snprintf(out, LM_SIGNATURE_SIZE, "EsIM%.23sX%02zx%02zx%s", answer, at & 0xff, count & 0xff,
                 sum);
}

bool lm_sign_check(const char *signature, const char *model, const char *text,
                   struct lm_signed *out)
{
        char sum[33], expected[33];
        unsigned at, count;

        if (sscanf(signature, "EsIM%23[a-z0-9]X%2x%2x%32[0-9a-f]", out->answer, &at, &count, sum) !=
                    4 ||
            strlen(signature) != 4 + strlen(out->answer) + 1 + 4 + 32)
                return false;
        out->at = at;
        out->count = count;
        digest(expected, model, out->answer, at, count, text);
        return strcmp(sum, expected) == 0;
}
