/*
 * Test builds only: a disk that fills up and an fsync that fails when a test wants it.
 *
 * A VFS in front of SQLite's default one. It passes every call to the real file, except that
 * writing and syncing ask base/fault.h first.
 */
#ifdef DRAGOMAN_FAULTS

#include <pthread.h>
#include <string.h>

#include "base/fault.h"
#include "store/sqlite.h"

struct file {
        sqlite3_file base;
        sqlite3_file *real; /* follows this struct in memory */
};

static sqlite3_file *real(sqlite3_file *f)
{
        return ((struct file *)f)->real;
}

static int on_close(sqlite3_file *f)
{
        return real(f)->pMethods->xClose(real(f));
}

static int on_read(sqlite3_file *f, void *out, int n, sqlite3_int64 at)
{
        return real(f)->pMethods->xRead(real(f), out, n, at);
}

static int on_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
        return fault_disk_full() ? SQLITE_FULL : real(f)->pMethods->xWrite(real(f), bytes, n, at);
}

static int on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
        return fault_disk_full() ? SQLITE_FULL : real(f)->pMethods->xTruncate(real(f), size);
}

static int on_sync(sqlite3_file *f, int flags)
{
        return fault_fsync_fails() ? SQLITE_IOERR_FSYNC : real(f)->pMethods->xSync(real(f), flags);
}

static int on_size(sqlite3_file *f, sqlite3_int64 *size)
{
        return real(f)->pMethods->xFileSize(real(f), size);
}

static int on_lock(sqlite3_file *f, int level)
{
        return real(f)->pMethods->xLock(real(f), level);
}

static int on_unlock(sqlite3_file *f, int level)
{
        return real(f)->pMethods->xUnlock(real(f), level);
}

static int on_check_lock(sqlite3_file *f, int *out)
{
        return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int on_control(sqlite3_file *f, int op, void *arg)
{
        return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int on_sector_size(sqlite3_file *f)
{
        return real(f)->pMethods->xSectorSize(real(f));
}

static int on_device(sqlite3_file *f)
{
        return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int on_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
        return real(f)->pMethods->xShmMap(real(f), region, size, extend, out);
}

static int on_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
        return real(f)->pMethods->xShmLock(real(f), at, n, flags);
}

static void on_shm_barrier(sqlite3_file *f)
{
        real(f)->pMethods->xShmBarrier(real(f));
}

static int on_shm_unmap(sqlite3_file *f, int forget)
{
        return real(f)->pMethods->xShmUnmap(real(f), forget);
}

/* Version 2: no xFetch, because the store does not map its files. */
static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = on_close,
        .xRead = on_read,
        .xWrite = on_write,
        .xTruncate = on_truncate,
        .xSync = on_sync,
        .xFileSize = on_size,
        .xLock = on_lock,
        .xUnlock = on_unlock,
        .xCheckReservedLock = on_check_lock,
        .xFileControl = on_control,
        .xSectorSize = on_sector_size,
        .xDeviceCharacteristics = on_device,
        .xShmMap = on_shm_map,
        .xShmLock = on_shm_lock,
        .xShmBarrier = on_shm_barrier,
        .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
        sqlite3_vfs *below = vfs->pAppData;
        struct file *file = (struct file *)f;
        int rc;

        file->real = (sqlite3_file *)(file + 1);
        rc = below->xOpen(below, name, file->real, flags, out_flags);
        file->base.pMethods = file->real->pMethods ? &methods : NULL;
        return rc;
}

static sqlite3_vfs vfs;

static void set_up(void)
{
        sqlite3_vfs *below = sqlite3_vfs_find(NULL);

        vfs = *below; /* names, randomness, sleep and time are those of the VFS below */
        vfs.pNext = NULL;
        vfs.zName = "dragoman-fault";
        vfs.szOsFile = (int)sizeof(struct file) + below->szOsFile;
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
