/*
 * channel_folder: where the files of a channel are, below DIR/workspace, and whose they are.
 *
 * Platforms save attachments there, agents work there, so both ask here.
 */
#ifndef ROAD_CHANNEL_FOLDER_H
#define ROAD_CHANNEL_FOLDER_H

#include <sys/types.h>

#include "road/incoming.h"

/*
 * "channels/<adapter>/<channel>", relative to the workspace; yours to free. Two channels never have
 * the same folder: what cannot be in a name is percent-encoded, and a name that would be too long
 * ends with a digest of it.
 */
char *channel_folder(const char *adapter, const char *channel);

/*
 * The path of a message's attachment, relative to the workspace; yours to free. It begins with the
 * id of the message, or the number of a saved file. Files of one message may share a name, so all
 * but the first get a number.
 */
char *channel_folder_attachment(const struct incoming *in, size_t i);
#define CHANNEL_FOLDER_NAME_LONGEST 100
/* A name that is safe in any folder, cut to that many bytes; yours to free. */
char *channel_folder_safe_name(const char *name);

/* Opens DIR/workspace, making it if it is missing; -1 with errno. */
int channel_folder_open_root(const char *dir);

/*
 * Commands of agents run as this user if we are root, so the files of channels belong to it;
 * otherwise it is ourselves.
 */
#define CHANNEL_FOLDER_ID 60990 /* which neither Debian nor systemd gives to anybody */
uid_t channel_folder_uid(void);
gid_t channel_folder_gid(void);
/* Takes the ids of this user, if there is one. Call it before other threads exist. */
void channel_folder_set_user(const char *name);
/* Gives a file or folder that we made to that user; also O_PATH. -1 with errno. */
int channel_folder_give(int fd);

#endif
