/* A consistent copy of the database while running. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/core/request.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "store/store.h"

#define FOLDER "state/backups"

struct backup_ask {
        const char *path;
};

static const struct field backup_fields[] = {
        { "path", FIELD_STRING, .min = 1, .max = 1024, FIELD_AT(backup_ask, path),
          .help = "A new file. Of a key: beneath state/backups. Of the operator: relative to the "
                  "data directory, or absolute where `confinement.writable` permits. Absent: a "
                  "dated file in state/backups." },
        FIELD_END,
};

struct backup_job {
        struct api_job job;
        const struct api_env *env;
        char *path;
        int64_t began_ms;
};

/* ---- places that the confined daemon may write ---- */

static bool is_beneath(const char *folder, const char *place)
{
        char *real = realpath(place, NULL);
        size_t n = real ? strlen(real) : 0;
        bool beneath = n > 0 && strncmp(folder, real, n) == 0 &&
                       (folder[n] == '\0' || folder[n] == '/' || real[n - 1] == '/');

        free(real);
        return beneath;
}

/* Does its folder exist, but in none of these places? */
static bool is_outside(const struct api_env *env, const char *path)
{
        const char *slash = strrchr(path, '/');
        char *name = mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)),
             *folder = realpath(name, NULL);
        bool outside = folder && !is_beneath(folder, env->dir);

        for (size_t i = 0; outside && env->writable && env->writable[i]; i++)
                outside = !is_beneath(folder, env->writable[i]);
        free(folder);
        free(name);
        return outside;
}

/* Names the confinement as the cause: "Permission denied" alone does not. */
static void explain_place(const struct api_env *env, const char *path, struct error *err)
{
        struct buf places;

        buf_init(&places, 0);
        for (size_t i = 0; env->writable && env->writable[i]; i++)
                buf_addf(&places, "%s%s", i > 0 ? ", " : "", env->writable[i]);
        error_set(err, ERR_INVALID,
                  "cannot write backup '%.120s': the daemon may write only in its data directory, "
                  "such as " FOLDER ", and in the places of confinement.writable (%.150s); "
                  "'dragoman backup --to FILE' writes elsewhere",
                  path, places.len > 0 ? places.data : "there are none");
        buf_release(&places);
}

static void on_copied(void *arg, const struct error *err)
{
        struct backup_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct stat st;
        struct error why;
        struct buf data;

        if (x && err) {
                why = *err;
                if (err->kind == ERR_INVALID && j->env->confinement &&
                    j->env->confinement->writes && is_outside(j->env, j->path))
                        explain_place(j->env, j->path, &why);
                reply_failed(x, &why);
        } else if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "path", j->path);
                jsonw_int(&data, "bytes", stat(j->path, &st) == 0 ? (int64_t)st.st_size : 0);
                jsonw_int(&data, "durationMs", clock_mono_ms() - j->began_ms);
                jsonw_close(&data, '}');
                reply_data(x, 201, &data);
        }
        free(j->path);
        free(j);
}

/* state/backups/main-TIME.db, with a number if that exists. */
static char *default_path(const char *dir, struct error *err)
{
        char *folder = mem_printf("%s/" FOLDER, dir), *path = NULL, stamp[32];
        time_t now = (time_t)(clock_wall_ms() / 1000);
        struct tm tm;

        gmtime_r(&now, &tm);
        strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
        if (file_make_dirs(folder, err) == 0) {
                path = mem_printf("%s/main-%s.db", folder, stamp);
                for (int i = 2; access(path, F_OK) == 0; i++) {
                        free(path);
                        path = mem_printf("%s/main-%s-%d.db", folder, stamp, i);
                }
        }
        free(folder);
        return path;
}

/* A key writes into one folder: the right to make copies is not one to write any file. */
static char *beneath_folder(const char *dir, const char *asked, struct error *err)
{
        char *folder = mem_printf("%s/" FOLDER, dir), *path = NULL;
        size_t n = strlen(FOLDER);

        if (strncmp(asked, FOLDER "/", n + 1) == 0)
                asked += n + 1;
        if (asked[0] == '/' || !request_path_is_inside(asked))
                error_set(err, ERR_INVALID,
                          "path '%.200s' is not beneath " FOLDER ": only the operator may name "
                          "another place",
                          asked);
        else if (file_make_dirs(folder, err) == 0)
                path = mem_printf("%s/%s", folder, asked);
        free(folder);
        return path;
}

/* Path of the copy; NULL with an error. */
static char *choose_path(const char *dir, const char *asked, bool by_operator, struct error *err)
{
        const char *slash = asked ? strrchr(asked, '/') : NULL;

        if (!asked)
                return default_path(dir, err);
        if (!by_operator)
                return beneath_folder(dir, asked, err);
        /* a database in its place would break the next start */
        if (strcmp(slash ? slash + 1 : asked, "config.json") == 0) {
                error_set(err, ERR_INVALID, "a backup cannot be called 'config.json'");
                return NULL;
        }
        if (asked[0] == '/')
                return mem_strdup(asked);
        if (!request_path_is_inside(asked)) {
                error_set(err, ERR_INVALID,
                          "path '%.200s' leaves the data directory; give an absolute path if that "
                          "is meant",
                          asked);
                return NULL;
        }
        return mem_printf("%s/%s", dir, asked);
}

static void create(struct http_exchange *x)
{
        struct backup_ask ask = { 0 };
        struct api *a = api_of(x);
        struct backup_job *j;
        struct body body;
        struct error err;
        bool by_operator;
        char *path;

        if (request_body(x, &body, &ask) < 0)
                return;
        by_operator = caller_of(x) == a->auth.operator;
        path = choose_path(a->env.dir, ask.path, by_operator, &err);
        body_release(&body);
        if (!path) {
                reply_failed(x, &err);
                return;
        }
        j = mem_zalloc(sizeof(*j));
        j->env = &a->env;
        j->path = path;
        j->began_ms = clock_mono_ms();
        api_job_begin(&j->job, x);
        store_backup(a->env.store, path, NULL, on_copied, j);
}

const struct route backup_routes[] = {
        { "POST", "/api/v2/backup", SCOPE_ADMIN, create, REACH_ALL,
          .summary = "Copy the database while running, into a new file.", .body = backup_fields,
          .status = 201, .answer = "{\"data\": {\"path\", \"bytes\", \"durationMs\"}}",
          .example = ROUTE_JSON({ "path" : "state/backups/before-update.db" }) },
        ROUTE_END,
};
