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
        char *folder = scratch_path(r->dir, "workspace");

        scratch_put(folder, name, text);
        free(folder);
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
