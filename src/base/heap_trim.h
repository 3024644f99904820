/*
 * heap_trim: returns memory that an idle process does not need.
 */
#ifndef BASE_HEAP_TRIM_H
#define BASE_HEAP_TRIM_H

/*
 * Also drops pages of shared libraries that only start-up used; the kernel rereads them on demand.
 * Takes some milliseconds.
 */
void heap_trim_idle(void);
/* Freed heap only. Any thread; briefly blocks others that allocate. */
void heap_trim_freed(void);

#endif
