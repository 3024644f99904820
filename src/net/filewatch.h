/*
 * filewatch: reports changes of a file or of a directory's entries.
 *
 * Changes within `settle_ms` are reported once. Watches the directory, because editors replace a
 * file by renaming another one.
 */
#ifndef NET_FILEWATCH_H
#define NET_FILEWATCH_H

#include "base/error.h"
#include "net/loop.h"

struct filewatch;
/* name: the file inside dir that changed (borrowed); NULL: several, or unknown. */
typedef void filewatch_fn(void *arg, const char *name);

/* file NULL: any entry of dir. NULL with an error. */
struct filewatch *filewatch_new(struct loop *l, const char *dir, const char *file,
                                int64_t settle_ms, filewatch_fn *fn, void *arg, struct error *err);
void filewatch_free(struct filewatch *w);

#endif
