/*
 * code: short random codes that people read aloud and type: eight of 32 letters and digits that do
 * not look alike, 40 random bits.
 */
#ifndef BASE_HUMAN_CODE_H
#define BASE_HUMAN_CODE_H

#include <stdbool.h>

#define CODE_SIZE       9  /* "ABCD2345" and the NUL */
#define CODE_SHOWN_SIZE 10 /* "ABCD-2345" and the NUL */

char *code_new(char out[CODE_SIZE]);
/* As it is shown to people. */
char *code_show(const char *code, char out[CODE_SHOWN_SIZE]);
/* As people write it: case, spaces and dashes do not count. False when it can be no code. */
bool code_read(const char *text, char out[CODE_SIZE]);

#endif
