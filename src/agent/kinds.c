#include "agent/kinds.h"

const struct agent_ops *const agent_kinds[] = {
        &echo_agent,
        &demo_agent,
        NULL,
};
