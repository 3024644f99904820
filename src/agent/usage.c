#include "agent/usage.h"

#include "base/json.h"
#include "base/mem.h"

#define TOKENS_MAX   1000000000 /* keeps sums and prices far from overflow */
#define COST_MAX_USD 1000000.0

/* The first of the members that is a number, clamped. False: none. */
static bool read_count(const json_t *object, const char *const *keys, int64_t *out)
{
        for (; *keys; keys++) {
                const json_t *value = json_object_get(object, *keys);

                if (!json_is_integer(value))
                        continue;
                *out = json_integer_value(value);
                *out = *out < 0 ? 0 : *out > TOKENS_MAX ? TOKENS_MAX : *out;
                return true;
        }
        return false;
}

static void read_cost(struct usage *u, const json_t *object)
{
        static const char *const keys[] = { "costUsd", "usd", "cost" };

        if (u->cost_microusd > 0)
                return;
        for (size_t i = 0; i < COUNT(keys); i++) {
                const json_t *usd = json_object_get(object, keys[i]);

                if (!json_is_number(usd) || json_number_value(usd) <= 0 ||
                    json_number_value(usd) >= COST_MAX_USD)
                        continue;
                u->cost_microusd = (int64_t)(json_number_value(usd) * 1e6 + 0.5);
                return;
        }
}

void usage_read(struct usage *u, const json_t *object)
{
        /* OpenAI, Anthropic and OpenAI's responses, what webhooks report */
        static const char *const in[] = { "prompt_tokens", "input_tokens", "inputTokens", NULL };
        static const char *const out[] = { "completion_tokens", "output_tokens", "outputTokens",
                                           NULL };
        /* OpenAI and vLLM; then Moonshot, DeepSeek, Agno, the AI SDK, ACP; Anthropic's come last */
        static const char *const in_details[] = { "cached_tokens", NULL };
        static const char *const cached[] = { "cached_tokens",
                                              "prompt_cache_hit_tokens",
                                              "cache_read_tokens",
                                              "cachedInputTokens",
                                              "cachedTokens",
                                              "cacheReadTokens",
                                              "cacheReadInputTokens",
                                              "cachedReadTokens",
                                              NULL };
        static const char *const written[] = { "cache_write_tokens", "cacheWriteTokens",
                                               "cacheCreationInputTokens", "cachedWriteTokens",
                                               NULL };
        static const char *const anthropic_cached[] = { "cache_read_input_tokens", NULL };
        static const char *const anthropic_written[] = { "cache_creation_input_tokens", NULL };
        static const char *const one_hour[] = { "ephemeral_1h_input_tokens", NULL };
        static const char *const reasoning[] = { "reasoning_tokens", "thinking_tokens", NULL };
        const json_t *details = json_object_get(object, "prompt_tokens_details");
        const json_t *out_details = json_object_get(object, "completion_tokens_details");
        bool beside;

        if (!details)
                details = json_object_get(object, "input_tokens_details");
        if (!out_details)
                out_details = json_object_get(object, "output_tokens_details");
        read_count(out_details, reasoning, &u->reasoning);
        read_count(object, in, &u->in);
        read_count(object, out, &u->out);
        read_count(object, cached, &u->cached);
        read_count(object, written, &u->written);
        read_count(details, in_details, &u->cached);
        read_count(details, written, &u->written);
        beside = read_count(object, anthropic_cached, &u->cached);
        beside = read_count(object, anthropic_written, &u->written) || beside;
        read_count(json_object_get(object, "cache_creation"), one_hour, &u->written_1h);
        /* proxies add Anthropic's names to OpenAI's count, which includes them */
        if (beside && !json_object_get(object, "prompt_tokens"))
                u->beside = true;
        read_cost(u, object);
}

/* Counts of the cache that exceed `in` cannot be part of it, whatever their names. */
static bool is_beside(const struct usage *u)
{
        return u->beside || u->cached + u->written > u->in;
}

int64_t usage_tokens_in(const struct usage *u)
{
        return is_beside(u) ? u->in + u->cached + u->written : u->in;
}

/* Nanodollars, which are exact for any price a service has. */
static int64_t price_of(int64_t tokens, double microusd)
{
        return tokens * (int64_t)(microusd * 1000 + 0.5);
}

int64_t usage_cost(const struct usage *u, const struct usage_prices *p)
{
        int64_t plain = is_beside(u) ? u->in : u->in - u->cached - u->written;
        int64_t hour = u->written_1h < u->written ? u->written_1h : u->written;
        struct usage_rates r = { p->in, p->out, p->cached, p->written, p->written_1h };

        if (u->cost_microusd > 0)
                return u->cost_microusd;
        if (p->above > 0 && usage_tokens_in(u) > p->above)
                r = p->then;
        return (price_of(plain, r.in) + price_of(u->cached, r.cached) +
                price_of(u->written - hour, r.written) + price_of(hour, r.written_1h) +
                price_of(u->out, r.out) + 500) /
               1000;
}
