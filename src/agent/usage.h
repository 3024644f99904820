/*
 * usage: what a run used, in any form agents and services report it, and what that costs.
 *
 * Services count cached input tokens in two ways. OpenAI's include them:
 *
 *     prompt_tokens 92500, prompt_tokens_details {cached_tokens 90000, cache_write_tokens 2000}
 *
 * Anthropic's name them beside the others:
 *
 *     input_tokens 500, cache_read_input_tokens 90000, cache_creation_input_tokens 2000
 */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct usage {
        int64_t in, out;             /* as reported */
        bool beside;                 /* `in` does not include those of the cache */
        int64_t cached;              /* read from the cache */
        int64_t written, written_1h; /* to the cache; the second is part of the first */
        int64_t reasoning;           /* part of `out` */
        int64_t cost_microusd;       /* 0: not reported */
};

/* US dollars per million tokens, which are microdollars per token. */
struct usage_rates {
        double in, out, cached, written, written_1h;
};

struct usage_prices {
        double in, out, cached, written, written_1h;
        int64_t above; /* input tokens above which the whole request has other rates; 0: none */
        struct usage_rates then;
};

/* Reads what the object has (it may be anything) and keeps the rest, as streams report in parts. */
void usage_read(struct usage *u, const json_t *object);
/* All input tokens, those of the cache included. */
int64_t usage_tokens_in(const struct usage *u);
/* As reported, or by the prices. */
int64_t usage_cost(const struct usage *u, const struct usage_prices *p);

#endif
