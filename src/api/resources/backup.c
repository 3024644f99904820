/* A consistent copy of the database while running. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/core/api_private.h"
#include "api/core/state_file.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct backup_ask {
        const char *path;
};

/* clang-format off */
const struct field backup_fields[] = {
        { "path", FIELD_STRING, .min = 1, .max = 1024, .at = offsetof(struct backup_ask, path),
          .help = "A new file. Relative: inside the data directory. Absent: a dated file in state/backups." },
        FIELD_END,
};
/* clang-format on */

struct backup {
        struct api_job job;
        char *path;
        int64_t began_ms;
};

static void backup_free(struct backup *b)
{
        free(b->path);
        free(b);
}

static void on_backed_up(void *arg, const struct error *err)
{
        struct backup *b = arg;
        struct http_exchange *x = api_job_end(&b->job);
        struct stat st;
        struct buf data;

        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "path", b->path);
                jsonw_int(&data, "bytes", stat(b->path, &st) == 0 ? (int64_t)st.st_size : 0);
                jsonw_int(&data, "durationMs", clock_mono_ms() - b->began_ms);
                jsonw_close(&data, '}');
                reply_data(x, 201, &data);
        }
        backup_free(b);
}

/* Two within a second are told apart by a number. */
static char *unused_path(const char *folder, const char *stamp)
{
        char *path = mem_printf("%s/main-%s.db", folder, stamp);

        for (int i = 2; access(path, F_OK) == 0; i++) {
                free(path);
                path = mem_printf("%s/main-%s-%d.db", folder, stamp, i);
        }
        return path;
}

static char *default_path(const char *dir, struct error *err)
{
        char *backups = mem_printf("%s/state/backups", dir), *path = NULL, stamp[32];
        time_t now = (time_t)(clock_wall_ms() / 1000);
        struct tm tm;

        gmtime_r(&now, &tm);
        strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
        if (state_dir_make(backups, err) == 0)
                path = unused_path(backups, stamp);
        free(backups);
        return path;
}

/*
 * The configuration is the operator's: a copy of the database in its place would end the next
 * start.
 */
static bool is_config(const char *path)
{
        const char *slash = strrchr(path, '/');

        return strcmp(slash ? slash + 1 : path, "config.json") == 0;
}

/* Where the copy goes; NULL with an error. */
static char *choose_path(const char *dir, const char *asked, struct error *err)
{
        if (!asked)
                return default_path(dir, err);
        if (is_config(asked)) {
                error_set(err, ERR_INVALID, "a backup cannot be called 'config.json'");
                return NULL;
        }
        if (asked[0] == '/')
                return mem_strdup(asked);
        if (!request_path_is_inside(asked)) {
                error_set(
                        err, ERR_INVALID,
                        "path '%.200s' leaves the data directory; give an absolute path if that is meant",
                        asked);
                return NULL;
        }
        return mem_printf("%s/%s", dir, asked);
}

void backup_make(struct http_exchange *x)
{
        struct backup_ask ask = { 0 };
        struct api *a = api_of(x);
        struct backup *b;
        struct body body;
        struct error err;
        char *path;

        if (request_body(x, &body, &ask) < 0)
                return;
        path = choose_path(a->env.dir, ask.path, &err);
        body_release(&body);
        if (!path) {
                reply_failed(x, &err);
                return;
        }
        b = mem_zalloc(sizeof(*b));
        b->path = path;
        b->began_ms = clock_mono_ms();
        api_job_begin(&b->job, x);
        store_backup(a->env.store, path, NULL, on_backed_up, b);
}
