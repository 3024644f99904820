/*
 * completions: chat completions in OpenAI's protocol that are being answered.
 */
#ifndef API_COMPAT_COMPLETIONS_H
#define API_COMPAT_COMPLETIONS_H

#include "api/core/api_core.h"

struct completions *completions_new(struct api *a);
void completions_free(struct completions *c);

#endif
