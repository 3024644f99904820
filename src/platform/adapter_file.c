#include "platform/adapter_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/state_file.h"

int adapter_file_lock(const struct adapter *a, const struct secret *token, struct error *err)
{
        char digest[SHA256_HEX_SIZE], *path;
        int fd;

        crypto_sha256_hex(secret_reveal(token), secret_length(token), digest);
        path = mem_printf("%s/state/%s-%.16s.lock", a->dir, a->ops->name, digest);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
                error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                error_set(err, ERR_BUSY,
                          "another adapter or process of this data directory already uses this "
                          "botToken; each bot may be connected once");
                close(fd);
                fd = -1;
        }
        free(path);
        return fd;
}

/* The file stays: otherwise two processes could lock two files of the same name. */
void adapter_file_unlock(int lock)
{
        if (lock >= 0)
                close(lock);
}

static char *state_path(const struct adapter *a)
{
        return mem_printf("%s/state/%s-%s.json", a->dir, a->ops->name, a->name);
}

json_t *adapter_file_read(const struct adapter *a)
{
        char *path = state_path(a);
        json_t *state = file_read_json(path, STATE_FILE_MAX);

        free(path);
        if (json_is_object(state))
                return state;
        json_decref(state);
        return json_object();
}

void adapter_file_write(const struct adapter *a, const json_t *state)
{
        char *path = state_path(a), *text = json_text(state);

        if (file_replace(path, text) < 0)
                log_warn("cannot write an adapter's state file", LOG_S("adapter", a->name),
                         LOG_S("file", path), LOG_S("why", strerror(errno)));
        free(path);
        free(text);
}

const char *adapter_file_get(const json_t *state, const char *table, const char *key)
{
        return json_str(json_object_get(state, table), key, NULL);
}

void adapter_file_set(const struct adapter *a, json_t *state, const char *table, const char *key,
                      const char *value)
{
        const char *known = adapter_file_get(state, table, key);

        if (known && strcmp(known, value) == 0)
                return;
        if (!json_is_object(json_object_get(state, table)))
                json_object_set_new(state, table, json_object());
        json_object_set_new(json_object_get(state, table), key, json_string(value));
        adapter_file_write(a, state);
}

int adapter_file_to_send(const struct adapter *a, const char *path, struct http_file *out,
                         struct error *err)
{
        char *root = mem_printf("%s/workspace", a->dir);
        /* the operator may have made the workspace itself a link */
        int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

        out->fd = -1;
        if (folder < 0 && (errno == ENOENT || errno == ENOTDIR)) {
                error_set(err, ERR_MISSING, "there is no file '%.100s' in the workspace", path);
        } else if (folder < 0) {
                error_set(err, ERR_IO, "cannot open the workspace: %s", strerror(errno));
        } else {
                out->fd = beneath_open_file(folder, "the workspace", path, a->ops->upload_max,
                                            &out->size, err);
                close(folder);
        }
        free(root);
        return out->fd < 0 ? -1 : 0;
}

void adapter_file_close(struct http_file *file)
{
        if (file->fd >= 0)
                close(file->fd);
        file->fd = -1;
}
