/*
 * reply: one envelope for success, one for errors, an id for each request.
 */
#ifndef API_CORE_REPLY_H
#define API_CORE_REPLY_H

#include "api/core/body.h"
#include "base/buf.h"
#include "base/error.h"
#include "net/http_server.h"

struct api;

/* {"data": <data>}; takes the text. */
void reply_data(struct http_exchange *x, int status, struct buf *data);
/* The whole body; takes the text. */
void reply_json(struct http_exchange *x, int status, struct buf *json);
/* details: members of an object as JSON text, or NULL. */
void reply_error(struct http_exchange *x, int status, const char *code, const char *details,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Only the envelope; below "/v1/" with the members OpenAI's clients expect. */
void reply_write_error(struct buf *json, const char *path, int status, const char *code,
                       const char *details, const char *message);
/* Status and code follow the kind. */
void reply_failed(struct http_exchange *x, const struct error *err);
/* 404 with details {resourceType, resourceId}. */
void reply_missing(struct http_exchange *x, const char *type, const char *id);
/* 400 with details.fields. */
void reply_mistakes(struct http_exchange *x, const struct body *b);
/* For an error text that begins with its field: "rule.when: unknown key ...". */
void reply_field_error(struct http_exchange *x, struct body *b, const struct error *err);
/* The server's refuse hook. */
void reply_refused(void *api, struct http_exchange *x, int status, const char *code,
                   const char *message);
/* Sets request id and anonymous caller, once. */
void reply_identify(struct api *a, struct http_exchange *x);

#endif
