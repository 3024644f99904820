#include "sim/control.h"

#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "sim/world_base.h"
#include "sim/world_settings.h"

struct buf control_begin(void)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_bool(&b, "ok", true);
        return b;
}

void control_answer(struct http_exchange *x, struct buf *b)
{
        size_t n;

        jsonw_close(b, '}');
        n = b->len;
        http_answer_take(x, 200, "application/json", buf_take(b), n);
}

void control_refuse(struct http_exchange *x, const struct error *err)
{
        http_answer_json(x, err->kind == ERR_MISSING ? 404 : 400,
                         json_pack("{s:b,s:s}", "ok", 0, "error", err->text));
}

void control_run(struct http_exchange *x)
{
        const struct control_action *action = http_route_of(x)->more;
        struct error err = { 0 };
        size_t n;
        const char *body = http_body(x, &n);
        json_t *request = json_read(body, n, &err);
        struct buf b = control_begin();

        if (!request || action->run(http_server_arg(x), request, &b, &err) != 0) {
                control_refuse(x, &err);
                buf_release(&b);
        } else {
                control_answer(x, &b);
        }
        json_decref(request);
}

int control_run_each(struct world *w, const json_t *request, control_fn *one, struct buf *out,
                     struct error *err)
{
        const json_t *list = json_is_array(request) ? request
                                                    : json_object_get(request, "messages"),
                     *item;
        int rc = 0;
        size_t i;

        if (!list)
                return one(w, request, out, err);
        jsonw_open_member(out, "results", '[');
        json_array_foreach(list, i, item) {
                jsonw_open(out, '{');
                rc = one(w, item, out, err);
                jsonw_close(out, '}');
                if (rc != 0)
                        break;
        }
        jsonw_close(out, ']');
        return rc;
}

static struct world_base *base_of(struct world *w)
{
        return (struct world_base *)w;
}

int control_add_fault(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct faults *f = &base_of(w)->faults;
        int64_t seed = json_int(request, "seed", 0);

        if (seed)
                f->rng = (uint64_t)seed;
        if (json_object_get(request, "kind") && faults_add(f, request, err) != 0)
                return -1;
        faults_write(f, out);
        return 0;
}

int control_settings(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        if (world_settings_change(base_of(w), request, err) != 0)
                return -1;
        world_settings_write(base_of(w), out);
        return 0;
}

void control_write_state(const struct world *w, struct buf *b)
{
        const struct world_base *base = (const struct world_base *)w;

        world_settings_write(base, b);
        faults_write(&base->faults, b);
}

void control_faults(struct http_exchange *x)
{
        struct faults *f = &base_of(http_server_arg(x))->faults;
        struct buf b = control_begin();

        if (strcmp(http_method(x), "DELETE") == 0)
                faults_clear(f);
        faults_write(f, &b);
        control_answer(x, &b);
}

void control_messages(struct http_exchange *x)
{
        journal_serve(base_of(http_server_arg(x))->sent, x);
}

void control_calls(struct http_exchange *x)
{
        const struct world_base *w = base_of(http_server_arg(x));
        const char *valid = http_query(x, "valid");

        journal_serve(valid && strcmp(valid, "false") == 0 ? w->invalid : w->calls, x);
}

void control_help(struct http_exchange *x)
{
        const char *text = http_route_of(x)->more;

        http_answer(x, 200, "text/plain; charset=utf-8", text, strlen(text));
}
