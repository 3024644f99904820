/*
 * a2a_wire: objects of the Agent2Agent protocol in the forms of its versions 1.0 and 0.3, without
 * network. Readers take either form, writers are told which; what is read is borrowed.
 * https://a2a-protocol.org/latest/specification/
 */
#ifndef AGENT_A2A_A2A_WIRE_H
#define AGENT_A2A_A2A_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum a2a_version { A2A_1_0, A2A_0_3 };

#define A2A_CARD_PATH      "/.well-known/agent-card.json"
#define A2A_VERSION_HEADER "A2A-Version" /* without it, a request is of version 0.3 */

const char *a2a_version_name(enum a2a_version v); /* "1.0" */
/* "1.0" and "1.0.1" are the same. False: another version. */
bool a2a_version_parse(const char *text, enum a2a_version *out);

/* ---- states ---- */

enum a2a_state {
        A2A_UNKNOWN,
        A2A_SUBMITTED,
        A2A_WORKING,
        A2A_INPUT_REQUIRED,
        A2A_AUTH_REQUIRED,
        A2A_COMPLETED,
        A2A_FAILED,
        A2A_CANCELED,
        A2A_REJECTED,
        A2A_STATES,
};
const char *a2a_state_name(enum a2a_version v, enum a2a_state state);
enum a2a_state a2a_state_parse(const char *name); /* NULL is unknown */
/* It has ended, and takes no more messages. */
bool a2a_state_is_final(enum a2a_state state);
/* It waits for somebody. */
bool a2a_state_is_waiting(enum a2a_state state);

/* ---- methods and errors ---- */

enum a2a_method {
        A2A_SEND,
        A2A_SEND_STREAM,
        A2A_GET,
        A2A_LIST,
        A2A_CANCEL,
        A2A_SUBSCRIBE,
        A2A_PUSH_SET,
        A2A_PUSH_GET,
        A2A_PUSH_LIST,
        A2A_PUSH_DELETE,
        A2A_EXTENDED_CARD,
        A2A_METHODS,
};
const char *a2a_method_name(enum a2a_version v, enum a2a_method m);
/* The name tells the version. False: unknown. */
bool a2a_method_parse(const char *name, enum a2a_version *v, enum a2a_method *m);

enum a2a_error {
        A2A_PARSE_ERROR = -32700,
        A2A_INVALID_REQUEST = -32600,
        A2A_METHOD_NOT_FOUND = -32601,
        A2A_INVALID_PARAMS = -32602,
        A2A_INTERNAL_ERROR = -32603,
        A2A_TASK_NOT_FOUND = -32001,
        A2A_TASK_NOT_CANCELABLE = -32002,
        A2A_PUSH_NOT_SUPPORTED = -32003,
        A2A_UNSUPPORTED_OPERATION = -32004,
        A2A_CONTENT_TYPE = -32005,
        A2A_CARD_NOT_CONFIGURED = -32007,
        A2A_VERSION_NOT_SUPPORTED = -32009,
};
/* "TASK_NOT_FOUND"; NULL: one of JSON-RPC itself. */
const char *a2a_error_reason(int64_t code);

/* ---- parts of messages and artifacts ---- */

enum a2a_part_kind { A2A_TEXT, A2A_RAW, A2A_URL, A2A_DATA };

struct a2a_part {
        enum a2a_part_kind kind;
        const char *text;        /* the text, the bytes in base64, or the URL */
        const json_t *data;      /* A2A_DATA */
        const char *name, *mime; /* may be NULL */
};
/* False: none of these. */
bool a2a_part_read(const json_t *object, struct a2a_part *out);
/* Appends an element of a list. */
void a2a_part_write(struct buf *b, enum a2a_version v, const struct a2a_part *p);

/* ---- messages ---- */

struct a2a_message {
        const char *id;
        const char *context, *task; /* NULL: none */
        const char *refers_to;      /* another task; NULL: none */
        bool by_agent;
};
/* Begins the member `key` (NULL: an element), up to the list of its parts. */
void a2a_message_open(struct buf *b, const char *key, enum a2a_version v,
                      const struct a2a_message *m);
void a2a_message_close(struct buf *b);

/* ---- results ---- */

enum a2a_kind { A2A_NOTHING, A2A_TASK, A2A_MESSAGE, A2A_STATUS, A2A_ARTIFACT };

/* A result, or an event of a stream. Members that are not there are NULL. */
struct a2a_result {
        enum a2a_kind kind;
        const char *task, *context;
        enum a2a_state state;              /* of a task or a status */
        const char *time;                  /* of the status */
        const json_t *message;             /* the message, or that of the status */
        const json_t *artifacts, *history; /* of a task: lists */
        const json_t *artifact;
        bool append;
        const json_t *metadata;
};
void a2a_result_read(const json_t *result, struct a2a_result *out);

#endif
