/*
 * Every example of the OpenAPI document fits its schema, and every answer has the shape of its
 * example. The tests ask all routes, also those added later.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/schema_fit.h"
#include "api/core/routes.h"
#include "base/json.h"
#include "base/mem.h"

static json_t *document(void)
{
        struct buf b;
        json_t *doc;

        buf_init(&b, 0);
        openapi_write(&b);
        doc = json_loadb(b.data, b.len, 0, NULL);
        buf_release(&b);
        assert_non_null(doc);
        return doc;
}

/* The operation of a route; ":x" is "{x}" there. */
static const json_t *operation_of(const json_t *doc, const struct route *r)
{
        struct buf path;
        char method[8] = "";
        const json_t *op;

        buf_init(&path, 0);
        for (const char *p = r->path; *p;) {
                size_t n = strcspn(p, "/");

                if (*p == ':')
                        buf_addf(&path, "{%.*s}", (int)n - 1, p + 1);
                else
                        buf_add(&path, p, n);
                p += n;
                if (*p == '/')
                        buf_addch(&path, *p++);
        }
        for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
                method[i] = (char)tolower((unsigned char)r->method[i]);
        op = json_object_get(json_object_get(json_object_get(doc, "paths"), path.data), method);
        buf_release(&path);
        assert_non_null(op);
        return op;
}

static const json_t *json_content(const json_t *part)
{
        return json_object_get(json_object_get(part, "content"), "application/json");
}

static void every_example_fits_its_schema(void **state)
{
        json_t *doc = document();
        size_t checked = 0;

        (void)state;
        ROUTES_FOREACH(r) {
                const json_t *content =
                        json_content(json_object_get(operation_of(doc, r), "requestBody"));

                if (!r->body)
                        continue;
                assert_non_null(json_object_get(content, "example"));
                if (!schema_fits(doc, json_object_get(content, "schema"),
                                 json_object_get(content, "example")))
                        fail_msg("%s %s: its example does not fit", r->method, r->path);
                checked++;
        }
        assert_true(checked > 10);
        json_decref(doc);
}

static void a_body_with_an_unknown_field_fits_no_schema(void **state)
{
        json_t *doc = document();

        (void)state;
        ROUTES_FOREACH(r) {
                const json_t *content =
                        json_content(json_object_get(operation_of(doc, r), "requestBody"));
                json_t *body = json_deep_copy(json_object_get(content, "example"));

                if (body && json_object_get(json_object_get(content, "schema"), "properties")) {
                        json_object_set_new(body, "noSuchField", json_true());
                        assert_false(schema_fits(doc, json_object_get(content, "schema"), body));
                }
                json_decref(body);
        }
        json_decref(doc);
}

static void example_answers_have_the_envelope(void **state)
{
        (void)state;
        ROUTES_FOREACH(r) {
                json_t *answer = r->example_answer ? json_loads(r->example_answer, 0, NULL) : NULL;

                if (!r->example_answer)
                        continue;
                assert_non_null(answer);
                if (strncmp(r->path, "/api/v2/", 8) == 0)
                        assert_true(json_object_get(answer, "data") ||
                                    json_object_get(answer, "items"));
                json_decref(answer);
        }
}

/*
 * Every member of the example is in the answer, down to the leaves; lists by their first element.
 */
static bool has_shape(const json_t *example, const json_t *real)
{
        const char *name;
        json_t *v;

        if (json_is_array(example))
                return json_is_array(real) &&
                       (json_array_size(example) == 0 || json_array_size(real) == 0 ||
                        has_shape(json_array_get(example, 0), json_array_get(real, 0)));
        if (!json_is_object(example))
                return true;
        json_object_foreach((json_t *)(uintptr_t)example, name, v)
                if (!json_object_get(real, name) || !has_shape(v, json_object_get(real, name)))
                        return false;
        return true;
}

static void answers_have_the_shape_of_the_example(void **state)
{
        struct api_rig *r = api_rig_new();
        size_t compared = 0;

        (void)state;
        ROUTES_FOREACH(route) {
                struct api_answer a;
                json_t *example;

                if (!route->example_answer || strchr(route->path, ':') || route->content_type)
                        continue;
                a = api_rig_ask(r, route->method, route->path, route->example);
                /* some examples name adapters that the rig lacks */
                if (a.status != 404 && a.status != 409) {
                        example = json_loads(route->example_answer, 0, NULL);
                        if (a.status != route->status || !has_shape(example, a.json))
                                fail_msg("%s %s: %s", route->method, route->path, a.text);
                        json_decref(example);
                        compared++;
                }
                api_answer_release(&a);
        }
        assert_true(compared >= 6);
        api_rig_free(r);
}

static void the_reference_has_every_route(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        rest_doc_write(&b);
        ROUTES_FOREACH(r) {
                char *title = mem_printf("\n### `%s %s`\n", r->method, r->path);

                assert_non_null(strstr(b.data, title));
                free(title);
        }
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_example_fits_its_schema),
                cmocka_unit_test(a_body_with_an_unknown_field_fits_no_schema),
                cmocka_unit_test(example_answers_have_the_envelope),
                cmocka_unit_test(answers_have_the_shape_of_the_example),
                cmocka_unit_test(the_reference_has_every_route),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
