#include "schedule/notice.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rows/schedule_row.h"
#include "schedule/reach.h"
#include "schedule/schedule.h"

#define NAME_BYTES 60

static char *options_json(const struct notice_wish *w)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        if (w->buttons)
                jsonw_raw(&b, "buttons", w->buttons);
        jsonw_opt(&b, "requestHash", w->request_hash);
        if (w->asked)
                jsonw_bool(&b, "askedBySelf", true);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

/* When will it be sent? ERR_CONFLICT if it cannot be. */
static int plan(struct store_tx *tx, const struct schedule_conf *conf, const struct notice_wish *w,
                struct notice_receipt *out, struct error *err)
{
        struct reach_query q = { .person = out->person, .asked = w->asked, .now_ms = w->now_ms };
        struct reach_plan p;
        int rc = reach_plan_make(tx, conf, &q, &p, err);

        if (rc == 0 && p.verdict == REACH_NEVER)
                rc = error_set(err, ERR_CONFLICT, "%s", p.why);
        else if (rc == 0 && p.verdict == REACH_LATER)
                out->not_before_ms = p.not_before_ms;
        reach_plan_release(&p);
        return rc;
}

static int insert(struct store_tx *tx, const struct notice_wish *w, struct notice_receipt *out,
                  struct error *err)
{
        char *options = options_json(w);
        char *name =
                mem_strndup(w->text, utf8_prefix(w->text, strlen(w->text), UTF8_BYTES, NAME_BYTES));
        struct schedule_row row = { .source = "notice",
                                    .name = name,
                                    .request_key = w->request_key,
                                    .kind = SCHEDULE_IMMEDIATE,
                                    .action = SCHEDULE_MESSAGE,
                                    .person = out->person,
                                    .text = w->text,
                                    .options = options,
                                    .missed = MISSED_ONCE,
                                    .state = SCHEDULE_ACTIVE,
                                    .next_ms = w->now_ms,
                                    .created_ms = w->now_ms,
                                    .created_by = w->created_by,
                                    .trace = w->trace };
        int rc = schedule_row_insert(tx, &row, &out->schedule, err);

        free(options);
        free(name);
        return rc < 0 ? -1 : 0;
}

int notice_add(struct store_tx *tx, const struct schedule_conf *conf, const struct notice_wish *w,
               struct notice_receipt *out, struct error *err)
{
        struct schedule_row *known;
        char why[200];
        int rc = schedule_find_request(tx, w->request_key, w->request_hash, &known, err);

        *out = (struct notice_receipt){ 0 };
        if (rc == 1) {
                *out = (struct notice_receipt){ .schedule = known->id,
                                                .person = known->person,
                                                .duplicate = true };
                free(known);
        }
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        if (reach_find_person(tx, w->to, &out->person, err) != 1 ||
            plan(tx, conf, w, out, err) < 0 ||
            schedule_check_limits(tx, conf, out->person, err) < 0)
                return -1;
        if (!w->asked) {
                rc = reach_count(tx, conf, out->person, w->now_ms, why, err);
                if (rc == 0)
                        return error_set(err, ERR_LIMIT, "%s", why);
                if (rc < 0)
                        return -1;
        }
        return insert(tx, w, out, err);
}
