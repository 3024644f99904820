/*
 * skills: what people taught agents to do, as folders with a SKILL.md.
 *
 * /workspace/skills is for all channels, skills/ of a channel's folder for that channel; of two
 * with one name the channel's counts. A folder with a SKILL.md is a skill and is not searched
 * further; other folders are searched, and other Markdown files count only at the top. Left out are
 * names that begin with a dot, node_modules, what .gitignore, .ignore and .fdignore name, and
 * links: a link in a folder that agents can write may lead anywhere.
 *
 * Only name, description and path go into the prompt; the agent reads the file when it needs it.
 */
#ifndef AGENT_WORKSPACE_SKILLS_H
#define AGENT_WORKSPACE_SKILLS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/workspace/workspace.h"
#include "base/buf.h"

#define SKILL_NAME_MAX        64
#define SKILL_DESCRIPTION_MAX 1024
#define SKILLS_MAX            100  /* listed; further ones are in `problems` */
#define SKILLS_ENTRIES_MAX    2000 /* files and folders looked at in one root */
#define SKILLS_DEPTH_MAX      6
#define SKILLS_PATTERN_MAX    100   /* bytes; longer lines of ignore files do not count */
#define SKILLS_TESTS_MAX      20000 /* of names against such patterns, in one root */

struct skill {
        char *name, *description; /* valid UTF-8, cut to their limits */
        char *location;           /* "/workspace/skills/report/SKILL.md" */
        bool is_hidden;           /* disable-model-invocation: not in the prompt */
        bool is_of_channel;
};

/* By name. */
struct skills {
        struct skill *items;
        size_t count, cap;
        struct buf problems; /* a line each, for the operator */
};

/* Heads of files by inode and time of change, so that a file is read once. Limited. */
struct skill_cache;
struct skill_cache *skill_cache_new(void);
void skill_cache_free(struct skill_cache *c);

/* Searches the folders anew, so that changes count at once. cache may be NULL. */
void skills_read(struct skills *s, const struct workspace_view *v, struct skill_cache *cache);
void skills_release(struct skills *s);
/* Appends <available_skills>; nothing if there are none to show. */
void skills_list(const struct skills *s, struct buf *out);

/*
 * The head of a SKILL.md as a skill without location. default_name: its folder's. -1: it has no
 * description, or is malformed. Appends warnings, each a line that begins with `path`.
 */
int skill_parse(struct skill *out, const char *text, size_t n, const char *default_name,
                const char *path, struct buf *warnings, struct error *err);
void skill_release(struct skill *s);

/* ---- skill_ignore.c ---- */

/* One line of a .gitignore, for a path relative to its folder. 1: ignored; 0: not; -1: no match. */
int skill_ignore_match(struct slice pattern, const char *path, bool is_folder);

#endif
