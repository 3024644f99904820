/* human_code: codes for people to type: eight unambiguous letters or digits, 40 random bits. */
#ifndef BASE_HUMAN_CODE_H
#define BASE_HUMAN_CODE_H

#include <stdbool.h>

#define HUMAN_CODE_SIZE      9  /* "ABCD2345" and the NUL */
#define HUMAN_CODE_TEXT_SIZE 10 /* "ABCD-2345" and the NUL */

char *human_code_new(char out[HUMAN_CODE_SIZE]);
/* As shown to people. */
char *human_code_format(const char *code, char out[HUMAN_CODE_TEXT_SIZE]);
/* Ignores case, spaces and dashes. False when it cannot be a code. */
bool human_code_parse(const char *text, char out[HUMAN_CODE_SIZE]);

#endif
