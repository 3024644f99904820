/*
 * file: uploads and downloads of the simulated Slack, beside what sl_world.h has.
 */
#ifndef SIM_SLACK_SL_FILE_H
#define SIM_SLACK_SL_FILE_H

#include "net/http_server.h"
#include "sim/slack/sl_world.h"

#define SL_FILE_MAX ((size_t)64 << 20)

/* Without bytes, not shared. */
struct slack_file *sl_file_new(struct slack_world *w, struct slack_user *u, const char *name);
void sl_file_store(struct slack_world *w, struct slack_file *f, const void *data, size_t n);
/* POST of the bytes to an upload_url; GET of url_private, which needs a token. */
void sl_file_upload(struct http_exchange *x);
void sl_file_download(struct http_exchange *x);

#endif
