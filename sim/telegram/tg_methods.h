/*
 * methods: the simulated methods, a table for each tg_method_*.c.
 */
#ifndef SIM_TELEGRAM_TG_METHODS_H
#define SIM_TELEGRAM_TG_METHODS_H

#include "sim/telegram/tg_call.h"

/* 0 with the result in c->out, -1 after tg_call_fail, TG_CALL_LATER or TG_CALL_FETCH. */
typedef int method_fn(struct call *c);

struct tg_method_row {
        const char *name; /* NULL ends the table */
        method_fn *run;
};

extern const struct tg_method_row tg_method_send[], tg_method_edit[], tg_method_chat[],
        tg_method_profile[];

/* NULL: known but not simulated. */
method_fn *tg_methods_find(const struct tg_spec_method *m);

#endif
