/* The OpenAPI document comes from the route tables, which are checked here. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/core/body.h"
#include "api/core/routes.h"
#include "base/json.h"
#include "base/mem.h"

static json_t *document(void)
{
        struct buf b;
        json_t *doc;

        buf_init(&b, 0);
        openapi_write(&b);
        doc = json_read(b.data, b.len, NULL);
        buf_release(&b);
        assert_non_null(doc);
        return doc;
}

/* "/turns/:id" → "/turns/{id}", independently of the code under test. */
static char *templated(const char *path)
{
        struct buf b;
        bool in_name = false;

        buf_init(&b, 0);
        for (; *path; path++) {
                if (*path == ':') {
                        buf_addch(&b, '{');
                        in_name = true;
                        continue;
                }
                if (*path == '/' && in_name) {
                        buf_addch(&b, '}');
                        in_name = false;
                }
                buf_addch(&b, *path);
        }
        if (in_name)
                buf_addch(&b, '}');
        return buf_take(&b);
}

static const json_t *operation_of(const json_t *doc, const struct route *r)
{
        char *path = templated(r->path);
        const json_t *item = json_object_get(json_object_get(doc, "paths"), path);
        char method[8] = "";

        free(path);
        for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
                method[i] = (char)tolower((unsigned char)r->method[i]);
        return json_object_get(item, method);
}

static void every_route_is_documented(void **state)
{
        json_t *doc = document();

        (void)state;
        assert_string_equal(json_str(doc, "openapi", ""), "3.1.0");
        ROUTES_FOREACH(r) {
                const json_t *op = operation_of(doc, r);

                assert_non_null(op);
                assert_non_null(r->run);
                assert_true(strlen(json_str(op, "summary", "")) > 5);
                assert_true(r->status >= 200 && r->status < 300);
                assert_non_null(r->answer);
                assert_true(json_object_size(json_object_get(op, "responses")) == 2);
        }
        json_decref(doc);
}

static void operation_ids_are_unique(void **state)
{
        json_t *doc = document(), *seen = json_object();

        (void)state;
        ROUTES_FOREACH(r) {
                const char *id = json_str(operation_of(doc, r), "operationId", "");

                assert_null(json_object_get(seen, id));
                json_object_set_new(seen, id, json_true());
        }
        json_decref(seen);
        json_decref(doc);
}

static void check_table(const struct field *fields)
{
        for (const struct field *f = fields; f && f->name; f++) {
                assert_non_null(f->help);
                assert_true(f->type != FIELD_CHOICE || f->choices);
                assert_true(f->type != FIELD_ID || f->prefix);
                assert_true((f->type != FIELD_GROUP && f->type != FIELD_LIST) || f->group);
                assert_true(f->type != FIELD_LIST || f->item_size > 0);
                if (f->group)
                        check_table(f->group);
        }
}

static void every_field_and_parameter_is_explained(void **state)
{
        (void)state;
        ROUTES_FOREACH(r) {
                check_table(r->query);
                check_table(r->body);
        }
}

static void every_example_is_accepted_by_its_own_table(void **state)
{
        (void)state;
        ROUTES_FOREACH(r) {
                _Alignas(max_align_t) char out[1024] = { 0 };
                struct body b;

                if (!r->body)
                        continue;
                assert_non_null(r->example);
                body_init(&b);
                assert_int_equal(body_read(&b, r->example, strlen(r->example), r->body, out), 0);
                body_release(&b);
        }
}

static bool is_among(const char *path, const char *const *paths, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (strcmp(path, paths[i]) == 0)
                        return true;
        }
        return false;
}

/*
 * Webhooks carry the adapter's secret instead of a key, replies of agents the turn's token, and a
 * feed its own.
 */
static void only_health_openapi_and_webhooks_are_public(void **state)
{
        static const char *const open[] = { "/healthz",
                                            "/readyz",
                                            "/api/openapi.json",
                                            "/api/v2/channels/:platform/:adapter/webhook",
                                            "/api/v2/channels/:platform/:adapter/interactions",
                                            "/api/v2/channels/:platform/:adapter/events",
                                            "/api/v2/turns/:id/reply",
                                            "/api/v2/calendar/feed.ics" };
        size_t found = 0;

        (void)state;
        ROUTES_FOREACH(r) {
                if (r->scope != SCOPE_NONE)
                        continue;
                found++;
                assert_true(is_among(r->path, open, COUNT(open)));
        }
        assert_int_equal(found, COUNT(open));
}

static void changes_need_more_than_the_read_scope(void **state)
{
        /* these have a secret of their own, or change nothing */
        static const char *const apart[] = { "/api/v2/channels/:platform/:adapter/webhook",
                                             "/api/v2/channels/:platform/:adapter/interactions",
                                             "/api/v2/channels/:platform/:adapter/events",
                                             "/api/v2/turns/:id/reply",
                                             "/api/v2/route-test",
                                             "/api/v2/access/check" };

        (void)state;
        ROUTES_FOREACH(r)
                if (strcmp(r->method, "GET") != 0 && !is_among(r->path, apart, COUNT(apart)))
                        assert_true(r->scope == SCOPE_WRITE || r->scope == SCOPE_ADMIN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_route_is_documented),
                cmocka_unit_test(operation_ids_are_unique),
                cmocka_unit_test(every_field_and_parameter_is_explained),
                cmocka_unit_test(every_example_is_accepted_by_its_own_table),
                cmocka_unit_test(only_health_openapi_and_webhooks_are_public),
                cmocka_unit_test(changes_need_more_than_the_read_scope),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
