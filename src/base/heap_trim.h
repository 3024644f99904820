/*
 * trim: gives memory back that an idle process does not need.
 *
 * Start-up touches thousands of pages of shared libraries that are never looked at again. They are
 * clean, so the kernel can drop them for nothing and read them back from its cache when they are
 * needed after all; freed heap goes back as well.
 */
#ifndef BASE_HEAP_TRIM_H
#define BASE_HEAP_TRIM_H

/* Takes some milliseconds: only for moments when nobody waits. */
void heap_trim_idle(void);

/* Gives back only what was freed. Any thread; others that allocate meanwhile may wait a little. */
void heap_trim_freed(void);

#endif
