/*
 * Shell commands of a model: taken apart, they never crash the program, and what was found in a
 * command is found in it again when another one follows.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/shell_parts.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = mem_strndup((const char *)data, size);
        char *longer = mem_printf("%s\n:", text);
        struct shell_parts one, two;
        struct error err;
        int rc = shell_parts_split(&one, text, &err);

        for (size_t i = 0; i < one.count; i++) {
                if (!one.parts[i].text == !one.parts[i].path)
                        abort();
        }
        if (rc == 0) {
                /* a newline never makes less of it */
                if (shell_parts_split(&two, longer, &err) == 0 && two.count < one.count)
                        abort();
                shell_parts_release(&two);
        }
        shell_parts_release(&one);
        free(longer);
        free(text);
        return 0;
}
