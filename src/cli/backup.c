#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/client.h"
#include "cli/print.h"

#define TICK_MS    500
#define COPY_PIECE ((size_t)1 << 20)

/* ---- the copy's place ---- */

/* Fails before the daemon copies the database. */
static int check_place(const char *to, struct error *err)
{
        char *copy = mem_strdup(to), *folder = dirname(copy);
        struct stat st;
        int rc = 0;

        if (lstat(to, &st) == 0)
                rc = error_set(err, ERR_CONFLICT, "cannot write backup '%s': %s", to,
                               strerror(EEXIST));
        else if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
                rc = error_set(err, ERR_INVALID,
                               "cannot write backup '%s': its folder does not exist", to);
        free(copy);
        return rc;
}

static int copy_bytes(int from, int to)
{
        ssize_t n;

        while ((n = copy_file_range(from, NULL, to, NULL, COPY_PIECE, 0)) > 0)
                continue;
        if (n == 0)
                return 0;
        /* not between these file systems */
        if (lseek(from, 0, SEEK_SET) < 0 || ftruncate(to, 0) < 0 || lseek(to, 0, SEEK_SET) < 0)
                return -1;
        do {
                n = sendfile(to, from, NULL, COPY_PIECE);
        } while (n > 0);
        return n < 0 ? -1 : 0;
}

/* To another file system. -1 with errno. */
static int copy_file(const char *from, const char *to)
{
        int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = -1, why;
        int out =
                in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (out >= 0)
                rc = copy_bytes(in, out) == 0 && fsync(out) == 0 ? 0 : -1;
        why = errno;
        if (out >= 0 && close(out) < 0 && rc == 0) {
                why = errno;
                rc = -1;
        }
        if (out >= 0 && rc < 0)
                unlink(to);
        if (in >= 0)
                close(in);
        errno = why;
        return rc;
}

/*
 * The daemon writes into its own directory alone, so the copy is moved from there; link, unlike
 * rename, replaces nothing.
 */
static int move_copy(const char *from, const char *to, struct error *err)
{
        int rc = link(from, to);

        if (rc < 0 && errno != EEXIST)
                rc = copy_file(from, to);
        if (rc < 0)
                return error_set(err, ERR_IO, "cannot write backup '%s': %s; the copy is in '%s'",
                                 to, strerror(errno), from);
        unlink(from);
        return 0;
}

/* ---- the command ---- */

static void on_tick(void *arg)
{
        (void)arg;
        fputc('.', stderr);
}

static int copy(struct args *a, struct client *c, struct error *err)
{
        struct client_request request = {
                .method = "POST", .path = "/api/v2/backup", .body = "{}", .total_ms = -1
        };
        const char *to = args_value(a, "to");
        bool show = isatty(STDERR_FILENO) && !a->json;
        json_t *json = NULL, *data;
        struct timer *tick;
        int rc;

        if (to && check_place(to, err) < 0)
                return -1;
        tick = timer_new(client_loop(c), on_tick, NULL);
        if (show) {
                fputs("copying the database ", stderr);
                timer_repeat(tick, TICK_MS);
        }
        rc = client_ask(c, &request, &json, err);
        timer_free(tick);
        data = json_object_get(json, "data");
        if (rc == 0 && to) {
                rc = move_copy(json_str(data, "path", "?"), to, err);
                json_object_set_new(data, "path", json_string(to));
        }
        if (show)
                fprintf(stderr, "%s\n", rc == 0 ? " done" : " failed");
        if (show && rc == 0)
                fprintf(stderr, "%lld bytes in %lld ms:\n", (long long)json_int(data, "bytes", 0),
                        (long long)json_int(data, "durationMs", 0));
        if (rc == 0 && a->json)
                print_json(data);
        else if (rc == 0)
                puts(json_str(data, "path", "?"));
        json_decref(json);
        return rc;
}

int backup_command(struct args *a)
{
        if (args_end(a) < 0)
                return CLI_USAGE;
        return client_command(a, copy);
}
