#include "base/human_code.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"

static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"; /* 32: no I, O, 0 and 1 */

char *code_new(char out[CODE_SIZE])
{
        for (int i = 0; i < CODE_SIZE - 1; i++)
                out[i] = letters[id_random_below(sizeof(letters) - 1)];
        out[CODE_SIZE - 1] = '\0';
        return out;
}

char *code_show(const char *code, char out[CODE_SHOWN_SIZE])
{
        snprintf(out, CODE_SHOWN_SIZE, "%.4s-%.4s", code, code + 4);
        return out;
}

bool code_read(const char *text, char out[CODE_SIZE])
{
        int n = 0;

        for (; *text; text++) {
                char c = (char)toupper((unsigned char)*text);

                if (c == ' ' || c == '-')
                        continue;
                if (n == CODE_SIZE - 1 || !strchr(letters, c))
                        return false;
                out[n++] = c;
        }
        out[n] = '\0';
        return n == CODE_SIZE - 1;
}
