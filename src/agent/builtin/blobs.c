#include "agent/builtin/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tools/tool.h"
#include "base/beneath.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define NAME_SIZE (2 * SHA256_SIZE + 1)

static bool holds_bytes(const json_t *block)
{
        const char *type = json_str(block, "type", "");

        return strcmp(type, "image") == 0 || strcmp(type, "document") == 0;
}

/* ---- files ---- */

static char *blob_path(const char *dir, const char *name)
{
        return mem_printf("%s/state/blobs/%s", dir, name);
}

static int write_file(const char *path, const struct buf *bytes)
{
        char *part = mem_printf("%s.%d", path, (int)getpid());
        int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool ok = fd >= 0 && file_write(fd, bytes->data, bytes->len) == 0 && fsync(fd) == 0;

        if (fd >= 0)
                close(fd);
        ok = ok && rename(part, path) == 0;
        if (!ok)
                unlink(part);
        free(part);
        return ok ? 0 : -1;
}

/* A file that is there counts as used now. */
static int save_bytes(const char *dir, const struct buf *bytes, char name[NAME_SIZE],
                      struct error *err)
{
        unsigned char sum[SHA256_SIZE];
        char *folder = mem_printf("%s/state/blobs", dir), *path;
        int rc;

        crypto_sha256(bytes->data, bytes->len, sum);
        crypto_hex(sum, sizeof(sum), name);
        path = blob_path(dir, name);
        rc = utimensat(AT_FDCWD, path, NULL, 0);
        if (rc < 0)
                rc = file_make_dirs(folder, err) < 0 ? -1 : write_file(path, bytes);
        if (rc < 0)
                error_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        free(folder);
        free(path);
        return rc;
}

/* Reads an attachment of the workspace. */
static int read_attachment(const char *dir, const char *file, size_t max, struct buf *out,
                           struct error *err)
{
        int64_t size;
        int root = channel_folder_open_root(dir), fd, rc;

        if (root < 0)
                return error_set(err, ERR_IO, "cannot open the workspace: %s", strerror(errno));
        fd = beneath_open_file(root, "workspace", file, (int64_t)max, &size, err);
        close(root);
        if (fd < 0)
                return -1;
        rc = file_read_fd(fd, file, max, out, err);
        close(fd);
        return rc;
}

/* ---- blocks ---- */

static json_t *note(const json_t *block, const char *why)
{
        char *text = mem_printf("[%s%s%s is not shown: %s]", json_str(block, "type", "image"),
                                json_str(block, "name", NULL) ? " " : "",
                                json_str(block, "name", ""), why);
        json_t *result = json_pack("{s:s, s:s}", "type", "text", "text", text);

        free(text);
        return result;
}

/* 1: stored; 0: *why says what is wrong with it; -1. */
static int save_block(json_t *block, const char *dir, const char **why, struct error *err)
{
        const json_t *data = json_object_get(block, "data");
        const char *file = json_str(block, "file", NULL);
        char name[NAME_SIZE], *decoded;
        struct buf bytes;
        size_t n, max = strcmp(json_str(block, "type", ""), "image") == 0 ? TOOL_IMAGE_MAX
                                                                          : TOOL_DOCUMENT_MAX;
        int rc = 0;

        buf_init(&bytes, 0);
        *why = NULL;
        if (data) {
                decoded = crypto_unbase64(json_string_value(data), json_string_length(data), &n);
                if (!decoded || n == 0 || n > max)
                        *why = "it is too large or damaged";
                else
                        buf_add(&bytes, decoded, n);
                free(decoded);
        } else if (!file || read_attachment(dir, file, max, &bytes, NULL) < 0 || bytes.len == 0) {
                *why = "it cannot be read, or is too large";
        }
        if (!*why)
                rc = save_bytes(dir, &bytes, name, err) < 0 ? -1 : 1;
        if (rc == 1) {
                json_object_set_new(block, "blob", json_string(name));
                json_object_del(block, "file");
                if (!data) {
                        char *text = crypto_base64(bytes.data, bytes.len);

                        json_object_set_new(block, "data", json_string(text));
                        free(text);
                }
        }
        buf_release(&bytes);
        return rc;
}

int blobs_save(json_t *message, const char *dir, struct error *err)
{
        json_t *content = json_object_get(message, "content");
        json_t *block;
        const char *why;
        size_t i;

        json_array_foreach(content, i, block) {
                int rc;

                if (!holds_bytes(block) || json_object_get(block, "blob"))
                        continue;
                rc = save_block(block, dir, &why, err);
                if (rc < 0)
                        return -1;
                if (rc == 0)
                        json_array_set_new(content, i, note(block, why));
        }
        return 0;
}

char *blobs_row_text(const json_t *message)
{
        const json_t *content = json_object_get(message, "content");
        json_t *copy, *blocks;
        const json_t *block;
        bool found = false;
        char *text;
        size_t i;

        json_array_foreach(content, i, block)
                found = found || (json_object_get(block, "blob") && json_object_get(block, "data"));
        if (!found)
                return json_text(message);
        copy = json_copy((json_t *)message);
        blocks = json_array();
        json_array_foreach(content, i, block) {
                json_t *stored = json_copy((json_t *)block);

                if (json_object_get(stored, "blob"))
                        json_object_del(stored, "data");
                json_array_append_new(blocks, stored);
        }
        json_object_set_new(copy, "content", blocks);
        text = json_text(copy);
        json_decref(copy);
        return text;
}

void blobs_load(json_t *message, const char *dir, size_t *room)
{
        const json_t *content = json_object_get(message, "content");
        json_t *block;
        size_t i;

        json_array_foreach(content, i, block) {
                const char *name = json_str(block, "blob", NULL);
                unsigned char sum[SHA256_SIZE];
                struct buf bytes;
                char *path;

                if (!name || !crypto_unhex(name, sum, sizeof(sum)) || name[NAME_SIZE - 1])
                        continue;
                path = blob_path(dir, name);
                buf_init(&bytes, 0);
                if (file_read(path, TOOL_DOCUMENT_MAX, &bytes, NULL) == 0 && bytes.len > 0 &&
                    bytes.len <= *room) {
                        char *text = crypto_base64(bytes.data, bytes.len);

                        json_object_set_new(block, "data", json_string(text));
                        *room -= bytes.len;
                        free(text);
                }
                buf_release(&bytes);
                free(path);
        }
}

void blobs_sweep(const char *dir, int64_t before_ms)
{
        char *folder = mem_printf("%s/state/blobs", dir);
        DIR *d = opendir(folder);
        const struct dirent *e;
        struct stat st;

        while (d && (e = readdir(d))) {
                if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
                    S_ISREG(st.st_mode) && (int64_t)st.st_mtime * 1000 < before_ms)
                        unlinkat(dirfd(d), e->d_name, 0);
        }
        if (d)
                closedir(d);
        free(folder);
}
