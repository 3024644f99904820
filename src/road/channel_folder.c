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

#define NAME_LONGEST 100
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
