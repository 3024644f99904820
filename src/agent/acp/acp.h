/*
 * acp: agents that speak the Agent Client Protocol (version 1) over stdin and stdout, on the
 * foundation of agent/child/child.h. https://agentclientprotocol.com
 *
 *     acp.c           the handshake, prompts and how they end
 *     acp_settings.c  settings of the session: mode and model
 *     acp_update.c    what the agent reports
 *     acp_request.c   what it requests of us
 *     acp_permission.c, acp_file.c, acp_terminal.c   of that: permissions, files, commands
 *     acp_prompt.c    content of a prompt
 *
 * JSON-RPC in both directions, an object per line. Ids of the two directions are separate, and the
 * agent's may be numbers or texts. Agents send what a version later than ours knows: what is not
 * known is skipped, and a request for it refused.
 */
#ifndef AGENT_ACP_ACP_H
#define AGENT_ACP_ACP_H

#include <jansson.h>
#include <sys/queue.h>

#include "agent/child/child.h"
#include "base/buf.h"

struct acp_conf {
        struct child_conf child; /* first */
        char *mode, *model, *auth_method;
        bool files, terminals;
};

enum acp_error {
        ACP_METHOD_NOT_FOUND = -32601,
        ACP_INVALID_PARAMS = -32602,
        ACP_INTERNAL_ERROR = -32603,
        ACP_AUTH_REQUIRED = -32000,
        ACP_NOT_FOUND = -32002,
        ACP_REQUEST_CANCELLED = -32800,
};

/*
 *     INITIALIZING ──► (AUTHENTICATING) ──► RESUMING ──► (CONFIGURING) ──► READY
 *                                              └───► BEGINNING ───┘
 */
enum acp_phase {
        ACP_INITIALIZING,
        ACP_AUTHENTICATING,
        ACP_RESUMING,  /* session/load, which replays what was said, or session/resume */
        ACP_BEGINNING, /* session/new */
        ACP_CONFIGURING,
        ACP_READY,
};

/* A question of the agent's that a person answers. */
struct acp_permission {
        struct acp *acp;
        json_t *id;
        char *allow, *reject; /* option ids; NULL: none */
        LIST_ENTRY(acp_permission) next;
};

/* The state of a process. */
struct acp {
        struct child *child;
        enum acp_phase phase;
        int64_t last_id;
        int64_t awaited;   /* id of the request that ends the phase */
        int64_t prompt_id; /* of session/prompt; 0: none is open */
        bool load, resume, images, resumed;
        char *session;
        json_t *opened;            /* the answer that has modes and options */
        unsigned setting;          /* index of what is being configured */
        char *auth_names;          /* ways to log in, for people */
        char *message;             /* id of the message that is being said */
        struct child_files *files; /* of a prompt, being read; NULL: none */
        LIST_HEAD(, acp_permission) permissions;
        unsigned permission_count; /* asked in this process */
        LIST_HEAD(, acp_file) file_requests;
        unsigned file_count;
        LIST_HEAD(, acp_terminal) terminals;
        unsigned terminal_count, last_terminal;
        double cost, cost_before; /* of the session, and when the turn began */
        bool costs;               /* it reports them */
};

/* ---- acp.c ---- */

extern const struct child_dialect acp_dialect;

/* Both take params. The id of the request. */
int64_t acp_request(struct acp *a, const char *method, json_t *params);
void acp_notify(struct acp *a, const char *method, json_t *params);
/* Answers a request of the agent; id is borrowed, result taken. */
void acp_answer(struct acp *a, const json_t *id, json_t *result);
void acp_answer_error(struct acp *a, const json_t *id, enum acp_error code, const char *text);
/* The phase CONFIGURING is done. */
void acp_ready(struct acp *a);
void acp_refuse(struct acp *a, const char *notice, const char *why);
/* "message (data)" of an error, for people; yours to free. */
char *acp_error_text(const json_t *error);

/* ---- acp_settings.c ---- */

/* Requests the next setting, or ends the phase. */
void acp_configure(struct acp *a);
/* error NULL: it is set. */
void acp_configured(struct acp *a, const json_t *error);

/* ---- acp_update.c ---- */

void acp_update(struct acp *a, const json_t *params);
/* The same of a tool call that a permission names. */
void acp_update_tool(struct acp *a, const json_t *call, bool runs);

/* ---- acp_request.c ---- */

void acp_requested(struct acp *a, const char *method, const json_t *id, const json_t *params);

/* ---- acp_permission.c ---- */

void acp_permission_ask(struct acp *a, const json_t *id, const json_t *params);
/* Answers all of them as cancelled. */
void acp_permissions_cancel(struct acp *a);
/* The agent no longer wants an answer to its request. */
void acp_permission_withdraw(struct acp *a, const json_t *id);
void acp_permissions_release(struct acp *a);

/* What a tool call does, as policies name it: "bash" and {"command": ...}. Yours to release. */
struct acp_action {
        const char *tool;
        json_t *arguments;
        json_t *files; /* if there are several; else NULL */
};
void acp_action_read(struct acp_action *out, const json_t *call);

/* ---- acp_file.c ---- */

void acp_file_read(struct acp *a, const json_t *id, const json_t *params);
void acp_file_write(struct acp *a, const json_t *id, const json_t *params);
void acp_files_release(struct acp *a);

/* ---- acp_terminal.c ---- */

void acp_terminal_create(struct acp *a, const json_t *id, const json_t *params);
void acp_terminal_output(struct acp *a, const json_t *id, const json_t *params);
void acp_terminal_wait(struct acp *a, const json_t *id, const json_t *params);
void acp_terminal_kill(struct acp *a, const json_t *id, const json_t *params);
void acp_terminal_release(struct acp *a, const json_t *id, const json_t *params);
void acp_terminals_release(struct acp *a);

/* ---- acp_prompt.c ---- */

json_t *acp_prompt_content(struct acp *a, const struct child_file *files, size_t count);

#endif
