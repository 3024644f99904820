#include "schema_fit.h"

#include <string.h>

#include "base/json.h"

static const json_t *resolve(const json_t *spec, const json_t *schema)
{
        const char *ref = json_str(schema, "$ref", NULL);
        const json_t *schemas = json_object_get(json_object_get(spec, "components"), "schemas");

        return ref ? resolve(spec, json_object_get(schemas, strrchr(ref, '/') + 1)) : schema;
}

/* The schema of a property, also from the parts of an allOf; NULL when it is not known. */
static const json_t *property(const json_t *spec, const json_t *schema, const char *key)
{
        const json_t *found =
                json_object_get(json_object_get(resolve(spec, schema), "properties"), key);
        const json_t *parts = json_object_get(resolve(spec, schema), "allOf");

        for (size_t i = 0; !found && i < json_array_size(parts); i++)
                found = property(spec, json_array_get(parts, i), key);
        return found;
}

static bool has_required(const json_t *spec, const json_t *schema, const json_t *value)
{
        const json_t *required = json_object_get(resolve(spec, schema), "required");
        const json_t *parts = json_object_get(resolve(spec, schema), "allOf");

        for (size_t i = 0; i < json_array_size(required); i++) {
                if (!json_object_get(value, json_string_value(json_array_get(required, i))))
                        return false;
        }
        for (size_t i = 0; i < json_array_size(parts); i++) {
                if (!has_required(spec, json_array_get(parts, i), value))
                        return false;
        }
        return true;
}

static bool object_fits(const json_t *spec, const json_t *schema, const json_t *value)
{
        const char *key;
        json_t *member;

        if (!json_is_object(value) || !has_required(spec, schema, value))
                return false;
        if (!json_object_get(resolve(spec, schema), "properties") &&
            !json_object_get(resolve(spec, schema), "allOf"))
                return true;
        json_object_foreach((json_t *)(uintptr_t)value, key, member) {
                const json_t *known = property(spec, schema, key);

                if (!known || !schema_fits(spec, known, member))
                        return false;
        }
        return true;
}

static bool array_fits(const json_t *spec, const json_t *schema, const json_t *value)
{
        if (!json_is_array(value) ||
            (json_int_t)json_array_size(value) < json_int(schema, "minItems", 0))
                return false;
        for (size_t i = 0; i < json_array_size(value); i++) {
                if (!schema_fits(spec, json_object_get(schema, "items"), json_array_get(value, i)))
                        return false;
        }
        return true;
}

static bool any_fits(const json_t *spec, const json_t *schemas, const json_t *value)
{
        for (size_t i = 0; i < json_array_size(schemas); i++) {
                if (schema_fits(spec, json_array_get(schemas, i), value))
                        return true;
        }
        return false;
}

static bool is_one_of(const json_t *words, const json_t *value)
{
        for (size_t i = 0; i < json_array_size(words); i++) {
                if (json_equal(json_array_get(words, i), value))
                        return true;
        }
        return !words;
}

static bool number_fits(const json_t *schema, const json_t *value)
{
        const json_t *min = json_object_get(schema, "minimum"),
                     *max = json_object_get(schema, "maximum");
        double x = json_number_value(value);

        return json_is_number(value) && (!min || x >= json_number_value(min)) &&
               (!max || x <= json_number_value(max));
}

bool schema_fits(const json_t *spec, const json_t *schema, const json_t *value)
{
        const char *type;

        schema = resolve(spec, schema);
        type = json_str(schema, "type", "");
        if (json_is_null(value) && json_flag(schema, "nullable", false))
                return true;
        if (json_object_get(schema, "anyOf"))
                return any_fits(spec, json_object_get(schema, "anyOf"), value);
        if (json_object_get(schema, "oneOf"))
                return any_fits(spec, json_object_get(schema, "oneOf"), value);
        if (json_object_get(schema, "allOf") || json_object_get(schema, "properties") ||
            strcmp(type, "object") == 0)
                return object_fits(spec, schema, value);
        if (strcmp(type, "array") == 0)
                return array_fits(spec, schema, value);
        if (strcmp(type, "string") == 0)
                return json_is_string(value) && is_one_of(json_object_get(schema, "enum"), value);
        if (strcmp(type, "integer") == 0)
                return json_is_integer(value) && number_fits(schema, value);
        if (strcmp(type, "number") == 0)
                return number_fits(schema, value);
        if (strcmp(type, "boolean") == 0)
                return json_is_boolean(value);
        if (strcmp(type, "null") == 0)
                return json_is_null(value);
        return type[0] == '\0' && json_is_object(schema); /* kept by name only: anything */
}

bool schema_named_fits(const json_t *spec, const char *name, const json_t *value)
{
        return schema_fits(
                spec,
                json_object_get(json_object_get(json_object_get(spec, "components"), "schemas"),
                                name),
                value);
}
