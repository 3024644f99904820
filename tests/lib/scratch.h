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
/* Writes the file dir/name, and the folders above it that are missing. */
void scratch_put(const char *dir, const char *name, const char *text);

#endif
