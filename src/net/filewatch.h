/*
 * filewatch: tells when a file or a directory's entries change.
 *
 * Changes within `settle_ms` are told once. A file that is replaced by rename (as editors do) keeps
 * being watched: the directory is what the kernel watches.
 */
#ifndef NET_FILEWATCH_H
#define NET_FILEWATCH_H

#include "base/error.h"
#include "net/loop.h"

struct filewatch;
/*
 * name: the file inside dir that changed (borrowed), or NULL when several did or the system did not
 * say.
 */
typedef void filewatch_fn(void *arg, const char *name);

/* file NULL: any entry of dir. NULL with an error. */
struct filewatch *filewatch_new(struct loop *l, const char *dir, const char *file,
                                int64_t settle_ms, filewatch_fn *fn, void *arg, struct error *err);
void filewatch_free(struct filewatch *w);

#endif
