/*
 * workspace_rig: a data directory with a workspace and the view of channel "42" of adapter "tg".
 */
#ifndef TESTS_WORKSPACE_RIG_H
#define TESTS_WORKSPACE_RIG_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "agent/workspace/workspace.h"
#include "base/file.h"
#include "base/mem.h"

#define CHANNEL "/workspace/channels/tg/42"

struct workspace_rig {
        char *dir;
        struct workspace_view *view;
};

static inline void rig_see(struct workspace_rig *r)
{
        struct error err;

        workspace_view_free(r->view);
        if (workspace_view_open(r->dir, "tg", "42", &r->view, &err) < 0)
                fail_msg("%s", err.text);
}

/* A file below the workspace, with its folders. */
static inline void rig_put(const struct workspace_rig *r, const char *name, const char *text)
{
        char *path = mem_printf("%s/workspace/%s", r->dir, name), *slash = strrchr(path, '/');
        size_t n = strlen(text);
        int fd;

        *slash = '\0';
        assert_int_equal(file_make_dirs(path, NULL), 0);
        *slash = '/';
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, n), n);
        close(fd);
        free(path);
}

static inline int rig_begin(void **state)
{
        struct workspace_rig *r = mem_zalloc(sizeof(*r));

        r->dir = scratch_new();
        rig_see(r);
        *state = r;
        return 0;
}

static inline int rig_end(void **state)
{
        struct workspace_rig *r = *state;

        workspace_view_free(r->view);
        scratch_free(r->dir);
        free(r);
        return 0;
}

#endif
