/*
 * kinds: the kinds of agents, one row each in kinds.c.
 */
#ifndef AGENT_KINDS_H
#define AGENT_KINDS_H

#include "agent/agent.h"

extern const struct agent_ops echo_agent;
extern const struct agent_ops demo_agent;
extern const struct agent_ops script_agent;
extern const struct agent_ops openai_agent;
extern const struct agent_ops anthropic_agent;
extern const struct agent_ops builtin_agent;
extern const struct agent_ops webhook_agent;
extern const struct agent_ops agent_chat_agent;
extern const struct agent_ops agno_agent;

#endif
