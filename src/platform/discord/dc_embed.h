/*
 * dc_embed: a card as an embed.
 *
 * https://docs.discord.com/developers/resources/message#embed-object-embed-limits
 */
#ifndef PLATFORM_DISCORD_DC_EMBED_H
#define PLATFORM_DISCORD_DC_EMBED_H

#include <jansson.h>
#include <stdbool.h>

/* Characters, and of all texts together. */
#define DC_EMBED_TITLE       256
#define DC_EMBED_DESCRIPTION 4096
#define DC_EMBED_NAME        256
#define DC_EMBED_VALUE       1024
#define DC_EMBED_FOOTER      2048
#define DC_EMBED_TOTAL       6000

/* The embed of a payload's card; yours. NULL: it has none. */
json_t *dc_embed_make(const json_t *payload);
/* The card as text instead, below the payload's text; yours to free. */
char *dc_embed_text(const json_t *payload);
/* The same text, apart from white space at its ends, which Discord removes? */
bool dc_embed_same_text(const char *a, const char *b);
/* Does Discord's embed show the same as ours? NULL: there is none. */
bool dc_embed_same(const json_t *theirs, const json_t *ours);

#endif
