#include "road/channel_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NAME_LONGEST CHANNEL_FOLDER_NAME_LONGEST
#define NAME_CUT     60 /* of a longer one, before its digest */

/* '~' separates a digest, '%' encodes; a leading dot would hide the folder, or be "..". */
static bool is_kept(const char *name, size_t i)
{
        unsigned char c = (unsigned char)name[i];

        return c >= ' ' && !strchr("/\\:*?\"<>|%~\x7f", c) && !(c == '.' && i == 0);
}

static void add_name(struct buf *out, const char *name)
{
        size_t start = out->len, n = strlen(name);
        bool is_text = utf8_valid(name, n);
        char digest[SHA256_HEX_SIZE];

        for (size_t i = 0; i < n; i++)
                if (is_kept(name, i) && (is_text || (unsigned char)name[i] < 0x80))
                        buf_addch(out, name[i]);
                else
                        buf_addf(out, "%%%02X", (unsigned char)name[i]);
        if (n == 0)
                buf_addch(out, '%');
        if (out->len - start <= NAME_LONGEST)
                return;
        crypto_sha256_hex(name, n, digest);
        n = utf8_prefix(out->data + start, out->len - start, UTF8_BYTES, NAME_CUT);
        buf_truncate(out, start + n);
        buf_addf(out, "~%.32s", digest);
}

char *channel_folder(const char *adapter, const char *channel)
{
        struct buf path;

        buf_init(&path, 0);
        buf_addstr(&path, "channels/");
        add_name(&path, adapter);
        buf_addch(&path, '/');
        add_name(&path, channel);
        return buf_take(&path);
}

char *channel_folder_safe_name(const char *name)
{
        char *safe = utf8_clean(name, utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_LONGEST));

        for (char *p = safe; *p; p++)
                if ((unsigned char)*p < ' ' || strchr("/\\:*?\"<>|\x7f", *p) ||
                    (*p == '.' && p == safe))
                        *p = '_';
        return safe;
}

/* A safe name that keeps its extension when it is cut. */
static char *short_name(const char *name)
{
        const char *dot = strrchr(name, '.');
        char *safe, *whole;
        size_t n;

        if (strlen(name) <= NAME_LONGEST || !dot || strlen(dot) > 12)
                return channel_folder_safe_name(name);
        n = utf8_prefix(name, (size_t)(dot - name), UTF8_BYTES, NAME_LONGEST - strlen(dot));
        whole = mem_printf("%.*s%s", (int)n, name, dot);
        safe = channel_folder_safe_name(whole);
        free(whole);
        return safe;
}

char *channel_folder_attachment(const struct incoming *in, size_t i)
{
        static const char prefix[] = ATTACHMENT_SAVED;
        const struct attachment *a = &in->attachments[i];
        const char *number = a->source && strncmp(a->source, prefix, strlen(prefix)) == 0
                                     ? a->source + strlen(prefix)
                                     : NULL;
        char *folder = channel_folder(in->adapter, in->channel),
             *id = channel_folder_safe_name(number   ? number
                                            : in->id ? in->id
                                                     : "0"),
             *name = short_name(a->name ? a->name : "file"), *path;

        if (i == 0)
                path = mem_printf("%s/attachments/%s-%s", folder, id, name);
        else
                path = mem_printf("%s/attachments/%s-%zu-%s", folder, id, i + 1, name);
        free(folder);
        free(id);
        free(name);
        return path;
}

/* The operator may have made the workspace itself a link; below it agents can write. */
int channel_folder_open_root(const char *dir)
{
        char *workspace = mem_printf("%s/workspace", dir);
        int fd = -1;

        if (mkdir(workspace, 0755) == 0 || errno == EEXIST)
                fd = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        free(workspace);
        return fd;
}

/* ---- whose they are ---- */

static uid_t user = CHANNEL_FOLDER_ID;
static gid_t group = CHANNEL_FOLDER_ID;

uid_t channel_folder_uid(void)
{
        return geteuid() == 0 ? user : geteuid();
}

gid_t channel_folder_gid(void)
{
        return geteuid() == 0 ? group : getegid();
}

void channel_folder_set_user(const char *name)
{
        const struct passwd *p = getpwnam(name);

        user = p && p->pw_uid != 0 ? p->pw_uid : CHANNEL_FOLDER_ID;
        group = p && p->pw_uid != 0 ? p->pw_gid : CHANNEL_FOLDER_ID;
}

int channel_folder_give(int fd)
{
        if (geteuid() != 0)
                return 0;
        return fchownat(fd, "", user, group, AT_EMPTY_PATH);
}
