/*
 * files: attachments, served as by Discord's content network.
 */
#ifndef SIM_DISCORD_DC_FILES_H
#define SIM_DISCORD_DC_FILES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http_server.h"
#include "sim/discord/dc_world.h"

#define FILES_MAX_SIZE ((size_t)10 << 20)

/* Copies the bytes. Returns the attachment object of messages; yours. */
json_t *dc_file_add(struct world *w, const struct channel *c, const char *name,
                    const char *content_type, const void *data, size_t n);
/* The route: /attachments/:channel/:id/:name. */
void dc_file_serve(struct http_exchange *x);
void dc_files_release(struct world *w);

#endif
