/*
 * scratch: a private folder for one test.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

/* A new empty folder; give it to scratch_free. */
char *scratch_new(void);
/* Removes the folder with everything in it. */
void scratch_free(char *dir);
/* dir/name; yours to free. */
char *scratch_path(const char *dir, const char *name);

#endif
