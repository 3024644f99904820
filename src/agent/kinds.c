/* The kinds of agents. A new one is a file with its agent_ops and a row here. */
#include "agent/agent.h"

extern const struct agent_ops echo_agent, demo_agent, script_agent, openai_agent, anthropic_agent,
        builtin_agent, webhook_agent, agent_chat_agent, agno_agent, acp_agent, pi_agent, omp_agent,
        a2a_agent;

const struct agent_ops *const agent_kinds[] = {
        &echo_agent,       /* repeats */
        &demo_agent,       /* without a model */
        &script_agent,     /* from a file */
        &openai_agent,     /* chat completions */
        &anthropic_agent,  /* messages */
        &builtin_agent,    /* either, by the model's name */
        &webhook_agent,    /* any program that takes a POST */
        &agent_chat_agent, /* POST /api/agent/chat */
        &agno_agent,       /* AgentOS runs */
        &acp_agent,        /* a program that speaks ACP */
        &pi_agent,         /* started, in RPC mode */
        &omp_agent,        /* the same */
        &a2a_agent,        /* an agent that speaks A2A */
        NULL,
};
