#include "base/human_code.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"

static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"; /* 32: no I, O, 0 and 1 */

char *human_code_new(char out[HUMAN_CODE_SIZE])
{
        for (int i = 0; i < HUMAN_CODE_SIZE - 1; i++)
                out[i] = letters[id_random_below(sizeof(letters) - 1)];
        out[HUMAN_CODE_SIZE - 1] = '\0';
        return out;
}

char *human_code_format(const char *code, char out[HUMAN_CODE_TEXT_SIZE])
{
        snprintf(out, HUMAN_CODE_TEXT_SIZE, "%.4s-%.4s", code, code + 4);
        return out;
}

bool human_code_parse(const char *text, char out[HUMAN_CODE_SIZE])
{
        int n = 0;

        for (; *text; text++) {
                char c = (char)toupper((unsigned char)*text);

                if (c == ' ' || c == '-')
                        continue;
                if (n == HUMAN_CODE_SIZE - 1 || !strchr(letters, c))
                        return false;
                out[n++] = c;
        }
        out[n] = '\0';
        return n == HUMAN_CODE_SIZE - 1;
}
