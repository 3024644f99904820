/*
 * dc_parse: JSON from Discord. What is large is parsed on a pool thread, so that nobody's heartbeat
 * waits for somebody's guild.
 */
#ifndef PLATFORM_DISCORD_DC_PARSE_H
#define PLATFORM_DISCORD_DC_PARSE_H

#include <jansson.h>
#include <stddef.h>

#include "net/loop.h"

#define DC_LARGE ((size_t)256 << 10) /* from here on it is not parsed on the loop */

/*
 * NULL: it is none. Any thread. Text with a NUL in it is read all the same: one strange message
 * must not end a session.
 */
json_t *dc_parse(const char *text, size_t n);

struct dc_parsing;
/* value NULL: it was no JSON; borrowed. */
typedef void dc_parsed_fn(void *arg, json_t *value);
/* Copies the text; `done` follows from the loop. */
struct dc_parsing *dc_parse_apart(struct loop *l, const char *text, size_t n, dc_parsed_fn *done,
                                  void *arg);
/* Nobody waits for it any more: `done` is not called. NULL is fine. */
void dc_parse_drop(struct dc_parsing *p);

#endif
