/*
 * name_swap: exchanges two names of a folder as fast as it can, in a thread, as a program in a
 * sandbox would while we open a file.
 */
#ifndef TESTS_NAME_SWAP_H
#define TESTS_NAME_SWAP_H

struct name_swap;

/* Both names exist in the folder, which stays open meanwhile. */
struct name_swap *name_swap_start(int folder, const char *one, const char *other);
void name_swap_stop(struct name_swap *s);

#endif
