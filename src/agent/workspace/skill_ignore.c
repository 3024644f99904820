/*
 * Patterns of .gitignore. Agents can write such files, so matching takes time that grows with the
 * product of both lengths at most: fnmatch(3) can take exponential time.
 */
#include <stdbool.h>
#include <string.h>

#include "agent/workspace/skills.h"

/* "[a-z]" at p; *end is behind it. False: no match, or no end. */
static bool match_set(const char *p, const char *limit, char c, const char **end)
{
        bool negated = p + 1 < limit && (p[1] == '!' || p[1] == '^'), found = false;
        const char *q = p + 1 + negated;

        for (bool first = true; q < limit && (*q != ']' || first); first = false) {
                if (q + 2 < limit && q[1] == '-' && q[2] != ']') {
                        found = found || (q[0] <= c && c <= q[2]);
                        q += 3;
                } else {
                        found = found || *q == c;
                        q++;
                }
        }
        *end = q + 1;
        return q < limit && found != negated;
}

/* One component of a path; '*' goes back to its last place only. */
static bool match_part(const char *p, size_t p_n, const char *name, size_t name_n)
{
        const char *limit = p + p_n, *name_end = name + name_n, *star = NULL, *again = NULL;

        while (name < name_end) {
                const char *next;

                if (p < limit && *p == '*') {
                        star = ++p;
                        again = name;
                } else if (p < limit && *p == '[' && match_set(p, limit, *name, &next)) {
                        p = next;
                        name++;
                } else if (p + 1 < limit && *p == '\\' && p[1] == *name) {
                        p += 2;
                        name++;
                } else if (p < limit && *p != '[' && *p != '\\' && (*p == '?' || *p == *name)) {
                        p++;
                        name++;
                } else if (star) {
                        p = star;
                        name = ++again;
                } else {
                        return false;
                }
        }
        while (p < limit && *p == '*')
                p++;
        return p == limit;
}

static size_t part_n(struct slice s)
{
        const char *slash = memchr(s.p, '/', s.n);

        return slash ? (size_t)(slash - s.p) : s.n;
}

static struct slice behind(struct slice s, size_t n)
{
        n = n < s.n ? n + 1 : s.n; /* the slash too */
        return (struct slice){ s.p + n, s.n - n };
}

/* "**" goes back to its last place only, as '*' above. */
static bool match_path(struct slice pattern, struct slice path)
{
        struct slice star = { 0 }, again = { 0 };

        while (path.n > 0) {
                size_t n = part_n(pattern), name_n = part_n(path);

                if (pattern.n > 0 && n == 2 && memcmp(pattern.p, "**", 2) == 0) {
                        pattern = star = behind(pattern, n);
                        again = path;
                        if (pattern.n == 0)
                                return true;
                } else if (pattern.n > 0 && match_part(pattern.p, n, path.p, name_n)) {
                        pattern = behind(pattern, n);
                        path = behind(path, name_n);
                } else if (star.p) {
                        again = behind(again, part_n(again));
                        pattern = star;
                        path = again;
                } else {
                        return false;
                }
        }
        return pattern.n == 0;
}

int skill_ignore_match(struct slice pattern, const char *path, bool is_folder)
{
        bool negated = false;
        const char *name = strrchr(path, '/');

        while (pattern.n > 0 && strchr(" \t\r", pattern.p[pattern.n - 1]))
                pattern.n--;
        if (pattern.n == 0 || pattern.p[0] == '#')
                return -1;
        if (pattern.p[0] == '!') {
                negated = true;
                pattern.p++;
                pattern.n--;
        }
        if (pattern.n > 0 && pattern.p[pattern.n - 1] == '/') {
                if (!is_folder)
                        return -1;
                pattern.n--;
        }
        if (pattern.n == 0)
                return -1;
        /* without a slash it is for the name alone */
        if (!memchr(pattern.p, '/', pattern.n))
                path = name ? name + 1 : path;
        else if (pattern.p[0] == '/') {
                pattern.p++;
                pattern.n--;
        }
        if (!match_path(pattern, slice_of(path)))
                return -1;
        return negated ? 0 : 1;
}
