#include "schedule/schedule_private.h"

const struct schedule_tool reminder_tools[] = {
        { { NULL }, NULL },
};
