/*
 * heap_trim: returns memory that an idle process does not need.
 *
 * Start-up touches thousands of pages of shared libraries that are not used again. They are clean,
 * so the kernel can drop them and read them back from its cache on demand. Freed heap is returned
 * as well.
 */
#ifndef BASE_HEAP_TRIM_H
#define BASE_HEAP_TRIM_H

/* Takes some milliseconds; call it when idle. */
void heap_trim_idle(void);
/* Returns freed heap only. Any thread; briefly blocks other threads that allocate. */
void heap_trim_freed(void);

#endif
