/*
 * model_facts: what services say about their models.
 */
#ifndef AGENT_LLM_MODEL_FACTS_H
#define AGENT_LLM_MODEL_FACTS_H

#include "agent/llm/model.h"

/* A row of a table of models; -1: not said. */
struct model_row {
        int64_t window, output;
        int images, documents, thinking, adaptive;
        struct usage_prices prices; /* in < 0: not said; of the cache < 0: the wire's shares */
};

struct model_facts;
/* NULL is fine. */
void model_facts_free(struct model_facts *f);
/* Reads an answer to the question; false: it says nothing about this model. For tests. */
bool model_facts_read(const struct llm_wire *wire, const char *model, const json_t *answer,
                      struct model_row *out);

/* Of the built-in table, by the longest name that begins `model`. NULL: none. */
const struct model_row *model_table_find(const char *model);
/*
 * Reads a table from JSON text: {"MODEL": {"in", "out", "cacheRead", "cacheWrite5m",
 * "cacheWrite1h", "window", "maxOut", "images", "documents", "thinking", "tiers": [{"above",
 * "in", ...}]}}. 1: has the model, 0: has not, -1: ERR_INVALID. model NULL: checks only.
 */
int model_table_read(const char *text, size_t n, const char *model, struct model_row *out,
                     struct error *err);

#endif
