/* rule_list: the rules of a test, from JSON. */
#ifndef TESTS_RULE_LIST_H
#define TESTS_RULE_LIST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/rules/rules.h"

/* The array is yours to free, or dispatch_set takes it over. Fails the test on a mistake. */
static inline struct rule *rule_list_read(const char *list, size_t *count)
{
        char *file = mem_printf("{\"rules\": %s}", list);
        struct error err = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", NULL, file, strlen(file), &err);
        const json_t *items = json_object_get(settings_source_root(src), "rules");
        struct rule *rules;

        *count = json_array_size(items);
        rules = mem_array(*count, sizeof(*rules));
        for (size_t i = 0; i < *count; i++) {
                if (rule_conf_read(src, i, json_array_get(items, i), &rules[i], &err) < 0)
                        fail_msg("%s", err.text);
        }
        settings_source_free(src);
        free(file);
        return rules;
}

#endif
