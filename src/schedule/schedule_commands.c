#include "schedule/schedule_private.h"

const struct schedule_command reminder_commands[] = {
        { NULL, NULL },
};
