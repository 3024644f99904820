#include "sim/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

static const char *const names[FAULT_KINDS] = {
        [FAULT_CUT_BEFORE] = "cut_before",
        [FAULT_CUT_AFTER] = "cut_after",
        [FAULT_SLOW] = "slow",
        [FAULT_ERROR] = "error",
        [FAULT_ERROR_AFTER] = "error_after",
        [FAULT_FLOOD] = "flood",
        [FAULT_DUPLICATE] = "duplicate",
        [FAULT_REORDER] = "reorder",
        [FAULT_DROP] = "drop",
        [FAULT_CLOSE] = "close",
        [FAULT_REFUSE] = "refuse",
        [FAULT_MUTE] = "mute",
        [FAULT_LATE] = "late",
        [FAULT_CUT_AT] = "cut_at",
        [FAULT_CUT_PIECES] = "cut_pieces",
        [FAULT_OVERLOAD] = "overload",
        [FAULT_SLOW_PIECES] = "slow_pieces",
        [FAULT_NO_DONE] = "no_done",
        [FAULT_SAME_INDEX] = "same_index",
        [FAULT_BAD_JSON] = "bad_json",
        [FAULT_TRUNCATE] = "truncate",
        [FAULT_EMPTY] = "empty",
        [FAULT_PAUSE] = "pause",
        [FAULT_OVERFLOW] = "overflow",
};

void faults_init(struct faults *f, uint64_t seed)
{
        memset(f, 0, sizeof(*f));
        f->rng = seed ? seed : 1;
}

void faults_clear(struct faults *f)
{
        while (f->first) {
                struct fault *row = f->first;

                f->first = row->link;
                free(row);
        }
        memset(f->active, 0, sizeof(f->active));
}

/* splitmix64 */
static uint64_t next_random(struct faults *f)
{
        uint64_t z = (f->rng += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

uint64_t faults_random(struct faults *f, uint64_t below)
{
        return next_random(f) % below;
}

int faults_add(struct faults *f, const json_t *request, struct error *err)
{
        const char *name = json_str(request, "kind", "");
        const json_t *chance = json_object_get(request, "probability");
        const json_t *retry = json_object_get(request, "retry_after");
        struct fault *row;
        int kind = 0;

        while (kind < FAULT_KINDS && strcmp(names[kind], name) != 0)
                kind++;
        if (kind == FAULT_KINDS)
                return error_set(
                        err, ERR_INVALID,
                        "'kind' must be one of cut_before, cut_after, slow, error, error_after, "
                        "flood, duplicate, reorder, drop, close, refuse, mute, late, cut_at, "
                        "cut_pieces, overload, slow_pieces, no_done, same_index, bad_json, "
                        "truncate, empty, pause, overflow");
        row = mem_zalloc(sizeof(*row));
        row->kind = (enum fault_kind)kind;
        snprintf(row->method, sizeof(row->method), "%s", json_str(request, "method", ""));
        row->next = chance ? -1 : json_int(request, "next", 1);
        row->probability = json_number_value(chance);
        row->ms = json_int(request, "ms", 1000);
        row->at = json_int(request, "at", 1);
        row->status = (int)json_int(request, "status", 502);
        snprintf(row->description, sizeof(row->description), "%s",
                 json_str(request, "description", ""));
        row->retry_after = retry ? json_number_value(retry) : 1;
        row->code = (int)json_int(request, "code", 4000);
        snprintf(row->scope, sizeof(row->scope), "%s", json_str(request, "scope", ""));
        row->within_chat = json_flag(request, "within_chat", false);
        row->link = f->first;
        f->first = row;
        f->active[kind]++;
        return 0;
}

const struct fault *faults_fire(struct faults *f, enum fault_kind kind, const char *method)
{
        if (f->active[kind] == 0)
                return NULL;
        for (struct fault *row = f->first; row; row = row->link) {
                if (row->kind != kind || row->next == 0 ||
                    (row->method[0] && strcasecmp(row->method, method) != 0))
                        continue;
                if (row->next > 0)
                        row->next--;
                else if ((double)(next_random(f) >> 11) * 0x1.0p-53 >= row->probability)
                        continue;
                row->fired++;
                f->fired[kind]++;
                return row;
        }
        return NULL;
}

void faults_write(const struct faults *f, struct buf *b)
{
        jsonw_open_member(b, "faults", '[');
        for (const struct fault *row = f->first; row; row = row->link) {
                jsonw_open(b, '{');
                jsonw_str(b, "kind", names[row->kind]);
                if (row->method[0])
                        jsonw_str(b, "method", row->method);
                if (row->next >= 0)
                        jsonw_int(b, "next", row->next);
                else
                        jsonw_real(b, "probability", row->probability);
                jsonw_int(b, "fired", (int64_t)row->fired);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        jsonw_open_member(b, "fired", '{');
        for (int i = 0; i < FAULT_KINDS; i++)
                jsonw_int(b, names[i], (int64_t)f->fired[i]);
        jsonw_close(b, '}');
}
