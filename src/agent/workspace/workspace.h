/*
 * workspace: the files that agents see, DIR/workspace.
 *
 *     MEMORY.md  skills/  events/
 *     channels/<adapter>/<channel>/{MEMORY.md, log.jsonl, context.jsonl, attachments/, skills/,
 *                                   scratch/}
 *
 * A view is what the tools of one turn may see: the channel's folder, writable, and what all
 * channels share, read-only. Other channels are not in it. Programs in the sandbox change these
 * folders at any time, so every access of ours goes through base/beneath.h.
 *
 * log.jsonl, context.jsonl and contexts/ are written from the store (log_file.h, context_file.h).
 * They lie in the channel's folder but are read-only for the agent.
 */
#ifndef AGENT_WORKSPACE_WORKSPACE_H
#define AGENT_WORKSPACE_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define WORKSPACE_INSIDE "/workspace" /* where a sandbox has it */

/* A file or folder of the view. */
struct workspace_mount {
        int fd;             /* O_PATH, close-on-exec */
        const char *inside; /* "/workspace/channels/tg/42" */
        bool writable, is_folder;
};

#define WORKSPACE_MOUNTS_MAX 16
struct workspace_view {
        char *adapter, *channel;
        char *folder; /* of the channel, inside: "/workspace/channels/tg/42" */
        struct workspace_mount mounts[WORKSPACE_MOUNTS_MAX]; /* outer ones first */
        size_t count;
        int root_fd, channel_fd; /* the root is for us: no sandbox gets it */
};

/* Makes the channel's folder if it is missing. dir: the data directory. */
int workspace_view_open(const char *dir, const char *adapter, const char *channel,
                        struct workspace_view **out, struct error *err);
/* To read memory and skills only: makes nothing, has no mounts; descriptors of what is missing are
 * -1. */
struct workspace_view *workspace_view_peek(const char *dir, const char *adapter,
                                           const char *channel);
void workspace_view_free(struct workspace_view *v);

/*
 * Opens (O_PATH) the folder of a channel as channel_folder() names it, making it if it is missing.
 */
int workspace_open_channel(int root, const char *folder, struct error *err);

/*
 * A path as the model writes it (absolute inside, or relative to the channel's folder) as a folder
 * and a path beneath it, for base/beneath.h. -1 with a text for the model: outside the view, or not
 * writable. The folder is borrowed from the view, *path is yours to free; "." is the folder itself.
 */
int workspace_resolve(const struct workspace_view *v, const char *name, bool writes, int *folder,
                      char **path, struct error *err);

/*
 * The path (absolute, or relative to `from`) without ".", ".." and "//", as text: where a link
 * leads is not looked at. Yours to free; "" is the root.
 */
char *workspace_normal_path(const char *from, const char *name);

/*
 * Daemons that run as root give the files of a channel to the user that sandboxes run as; else
 * these are our own ids. See road/channel_folder.h.
 */
uid_t workspace_uid(void);
gid_t workspace_gid(void);
/* Gives a file or folder we made to that user. */
int workspace_give(int fd, struct error *err);

#endif
