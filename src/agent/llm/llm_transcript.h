/*
 * llm_transcript: messages that every service accepts, out of any list of them.
 *
 * A conversation that a service refuses once it refuses for ever, so nothing is sent as stored:
 *
 *   - answers that ended in an error are left out, as are blank blocks and messages without any;
 *   - each call is followed by its result, in the order of the calls; a missing result becomes an
 *     error result, one without call is left out; what people wrote in between comes after;
 *   - ids of calls are unique and in a form all services take;
 *   - thinking of another model is left out;
 *   - the first message is a person's, and the last one is not the model's.
 */
#ifndef AGENT_LLM_LLM_TRANSCRIPT_H
#define AGENT_LLM_LLM_TRANSCRIPT_H

#include <jansson.h>

#include "agent/llm/model.h"

#define LLM_NAME_MAX 64 /* of a tool */
#define LLM_ID_MAX   40 /* of a call */
#define LLM_NAMELESS "unnamed"
/* instead of files, for models that cannot see them */
#define LLM_UNSEEN_IMAGE    "[an image, which this model cannot see]"
#define LLM_UNSEEN_DOCUMENT "[a document, which this model cannot read]"

/* What a wire writes. */
struct llm_request {
        const struct model_request *q;
        json_t *messages;     /* built */
        const json_t **tools; /* sorted by name */
        size_t tool_count;
        struct model_limits limits;
        bool stream;
};

/* Builds; q->messages is not changed and may share blocks. */
void llm_request_init(struct llm_request *r, const struct llm *m, const struct model_request *q);
void llm_request_release(struct llm_request *r);

/*
 * Yours to decref. Every content is a non-empty array; calls have a short "id", and at the model
 * that made them the id of their item at the service as "item".
 */
json_t *llm_transcript_build(const json_t *messages, const struct llm *m);

bool llm_role_is(const json_t *message, const char *role);
bool llm_type_is(const json_t *block, const char *type);
/* White space alone? */
bool llm_is_blank(const char *text);
/* A tool's name in the form all services take. */
const char *llm_wire_name(const char *name, char out[LLM_NAME_MAX + 1]);
/* The tool that has this name on the wire; borrowed; `name` itself if there is none. */
const char *llm_tool_name(const json_t *tools, const char *name);
/* Has any message a call? */
bool llm_has_calls(const json_t *messages);
void llm_write_json(struct buf *out, const char *key, const json_t *value);
/* The mark of a prefix that Anthropic is to cache. */
void llm_write_mark(struct buf *out);
/* What joins requests of one conversation, cut to what OpenAI takes; NULL: none. */
void llm_write_cache_key(struct buf *out, const char *key, const char *value);
/* A tool's schema, made an object if it is none. */
void llm_write_schema(struct buf *out, const char *key, const json_t *schema);
/* The text of a result where errors have no other sign. */
void llm_write_output(struct buf *out, const char *key, const json_t *result, const char *text);
/* The service that answers, in messages: "anthropic", "openai", or the host of baseUrl. */
void llm_provider(const struct llm *m, struct buf *out);

#endif
