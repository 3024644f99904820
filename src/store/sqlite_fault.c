/*
 * Test builds only: a disk that fills up and an fsync that fails when a test wants it. A VFS in
 * front of SQLite's default one whose writing and syncing ask base/fault.h first.
 */
#ifdef DRAGOMAN_FAULTS

#include <pthread.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "store/sqlite.h"

/* The methods of a file of the real VFS, with three of them replaced. */
struct methods {
        sqlite3_io_methods ours; /* first: sqlite3_file.pMethods leads here */
        const sqlite3_io_methods *real;
};

/* SQLite's unix VFS has a few tables: for the database, and for files that need no locks. */
static struct methods known[8];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static const sqlite3_io_methods *real(const sqlite3_file *f)
{
        return ((const struct methods *)(const void *)f->pMethods)->real;
}

static int on_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
        return fault_disk_full() ? SQLITE_FULL : real(f)->xWrite(f, bytes, n, at);
}

static int on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
        return fault_disk_full() ? SQLITE_FULL : real(f)->xTruncate(f, size);
}

static int on_sync(sqlite3_file *f, int flags)
{
        return fault_fsync_fails() ? SQLITE_IOERR_FSYNC : real(f)->xSync(f, flags);
}

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
        sqlite3_vfs *below = vfs->pAppData;
        int rc = below->xOpen(below, name, f, flags, out_flags);
        size_t i = 0;

        if (!f->pMethods)
                return rc;
        pthread_mutex_lock(&known_lock);
        while (i < COUNT(known) && known[i].real && known[i].real != f->pMethods)
                i++;
        if (i == COUNT(known))
                abort();
        if (!known[i].real) {
                known[i] = (struct methods){ .ours = *f->pMethods, .real = f->pMethods };
                known[i].ours.xWrite = on_write;
                known[i].ours.xTruncate = on_truncate;
                known[i].ours.xSync = on_sync;
        }
        f->pMethods = &known[i].ours;
        pthread_mutex_unlock(&known_lock);
        return rc;
}

static sqlite3_vfs vfs;

static void set_up(void)
{
        sqlite3_vfs *below = sqlite3_vfs_find(NULL);

        vfs = *below; /* names, randomness, sleep and time are those of the VFS below */
        vfs.pNext = NULL;
        vfs.zName = "dragoman-fault";
        vfs.pAppData = below;
        vfs.xOpen = on_open;
        sqlite3_vfs_register(&vfs, 0);
}

const char *sqlite_fault_vfs(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, set_up);
        return vfs.zName;
}

#else
typedef int sqlite_fault_is_for_test_builds; /* a translation unit must not be empty */
#endif
