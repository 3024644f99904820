#include "agent/policy/policy_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

#define GLOB_STEPS  100000 /* a hostile path must not take long */
#define COULD_STEPS 4000000

/* ---- globs ---- */

/* "*" is any run of bytes, the rest literal. */
static bool match_glob(const char *glob, const char *text)
{
        const char *star = NULL, *resume = NULL; /* the last star, and where its run may grow */

        while (*text) {
                if (*glob == '*') {
                        star = glob++;
                        resume = text;
                } else if (*glob == *text) {
                        glob++;
                        text++;
                } else if (star) {
                        glob = star + 1;
                        text = ++resume;
                } else {
                        return false;
                }
        }
        glob += strspn(glob, "*");
        return *glob == '\0';
}

/*
 * Could they match, if each SHELL_ANY of the text were the right one? fits[i] says whether the
 * first i bytes of the glob match the text so far.
 */
static bool could_match_glob(const char *glob, const char *text)
{
        size_t m = strlen(glob);
        bool *fits, last;

        if (m * strlen(text) > COULD_STEPS)
                return true;
        fits = mem_array(m + 1, sizeof(*fits));
        fits[0] = true;
        for (size_t i = 0; i < m && glob[i] == '*'; i++)
                fits[i + 1] = true;
        for (; *text; text++) {
                bool before = fits[0]; /* fits[i - 1] without this byte */

                fits[0] = fits[0] && *text == SHELL_ANY;
                for (size_t i = 1; i <= m; i++) {
                        bool now = fits[i];

                        if (*text == SHELL_ANY || glob[i - 1] == '*')
                                fits[i] = now || fits[i - 1];
                        else
                                fits[i] = before && glob[i - 1] == *text;
                        before = now;
                }
        }
        last = fits[m];
        free(fits);
        return last;
}

/* ---- paths ---- */

char *policy_path(const char *cwd, const char *path)
{
        char *whole = path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", cwd, path);
        char *rest = whole, *name;
        struct buf out;

        buf_init(&out, 0);
        while ((name = strsep(&rest, "/"))) {
                if (*name == '\0' || strcmp(name, ".") == 0)
                        continue;
                if (strcmp(name, "..") != 0) {
                        buf_addf(&out, "/%s", name);
                        continue;
                }
                while (out.len > 0 && out.data[out.len - 1] != '/')
                        buf_truncate(&out, out.len - 1);
                if (out.len > 0)
                        buf_truncate(&out, out.len - 1);
        }
        if (out.len == 0)
                buf_addch(&out, '/');
        free(whole);
        return buf_take(&out);
}

static bool match_path(const char *glob, const char *path, unsigned *steps)
{
        for (; *glob; glob++, path++) {
                bool deep = glob[0] == '*' && glob[1] == '*';

                if (--*steps == 0)
                        return false;
                if (*glob != '*') {
                        if (*glob != *path)
                                return false;
                        continue;
                }
                glob += deep ? 2 : 1;
                for (;; path++) {
                        if (match_path(glob, path, steps))
                                return true;
                        if (*path == '\0' || (*path == '/' && !deep) || *steps == 0)
                                return false;
                }
        }
        return *path == '\0';
}

bool policy_match_path(const char *glob, const char *path)
{
        unsigned steps = GLOB_STEPS;
        size_t n = strlen(glob);

        /* "/etc/" and what "/etc" and below is */
        if (n > 3 && strcmp(glob + n - 3, "/**") == 0 && strlen(path) == n - 3 &&
            strncmp(glob, path, n - 3) == 0)
                return true;
        return match_path(glob, path, &steps);
}

/* ---- things ---- */

static void add_text(char ***list, size_t *count, char *text)
{
        *list = mem_realloc(*list, (*count + 1) * sizeof(**list));
        (*list)[(*count)++] = text;
}

/* The host of "scheme://user@host:port/path"; NULL: no URL. */
static char *url_host(const char *text)
{
        const char *start = strstr(text, "://"), *at;
        size_t n;
        char *host;

        if (!start)
                return NULL;
        start += 3;
        n = strcspn(start, "/?#");
        for (at = memchr(start, '@', n); at; at = memchr(start, '@', n)) {
                n -= (size_t)(at + 1 - start);
                start = at + 1;
        }
        if (start[0] == '[') { /* IPv6 */
                const char *end = memchr(start, ']', n);

                n = end ? (size_t)(end + 1 - start) : n;
        } else if (memchr(start, ':', n)) {
                n = (size_t)((const char *)memchr(start, ':', n) - start);
        }
        while (n > 0 && start[n - 1] == '.')
                n--;
        host = mem_strndup(start, n);
        for (char *p = host; *p; p++)
                *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        return host;
}

/* "a=b": the value may be a path or URL, too; so may what follows an option: "-o/etc/x". */
static void add_argument(struct policy_thing *out, const struct policy_question *q,
                         const char *word)
{
        const char *value = strchr(word, '=');
        char *host = url_host(word);

        if (host)
                add_text(&out->hosts, &out->host_count, host);
        if (word[0] != '-')
                add_text(&out->words, &out->word_count, policy_path(q->cwd, word));
        else if (strchr(word, '/'))
                add_text(&out->words, &out->word_count, policy_path("/", strchr(word, '/')));
        if (value)
                add_text(&out->words, &out->word_count, policy_path(q->cwd, value + 1));
}

static const char *const devices[] = { "/dev/null",  "/dev/stdout", "/dev/stderr",
                                       "/dev/stdin", "/dev/tty",    NULL };

static bool is_device(const char *path)
{
        for (size_t i = 0; devices[i]; i++) {
                if (strcmp(devices[i], path) == 0)
                        return true;
        }
        return false;
}

void policy_thing_of_part(struct policy_thing *out, const struct policy_question *q,
                          const struct shell_parts *parts, const struct shell_part *part)
{
        *out = (struct policy_thing){ 0 };
        if (part->text) {
                out->part = part;
                for (size_t i = 1; i < part->count; i++)
                        add_argument(out, q, part->words[i].text);
                return;
        }
        out->path_unknown = !part->literal || (parts->moves && part->path[0] != '/');
        out->harmless = part->literal && is_device(part->path);
        if (!out->path_unknown)
                out->path = policy_path(q->cwd, part->path);
}

/* Hosts in all texts of a value; words: each text may also be a path. */
static void add_value(struct policy_thing *out, const struct policy_question *q, json_t *value,
                      bool words)
{
        const char *key;
        json_t *member;
        size_t i;

        if (json_is_string(value)) {
                char *host = url_host(json_string_value(value));

                if (host)
                        add_text(&out->hosts, &out->host_count, host);
                if (words)
                        add_text(&out->words, &out->word_count,
                                 policy_path(q->cwd, json_string_value(value)));
        }
        json_object_foreach(value, key, member)
                add_value(out, q, member, words);
        json_array_foreach(value, i, member)
                add_value(out, q, member, words);
}

void policy_thing_of_call(struct policy_thing *out, const struct policy_question *q)
{
        static const char *const keys[] = { "path", "file", "file_path", NULL };
        bool custom = strcmp(q->tool, "invoke_tool") == 0;
        const json_t *arguments = custom ? json_object_get(q->arguments, "args") : q->arguments;
        const char *text;

        *out = (struct policy_thing){ 0 };
        for (size_t i = 0; keys[i] && !out->path; i++) {
                text = json_str(arguments, keys[i], NULL);
                if (text)
                        out->path = policy_path(q->cwd, text);
        }
        add_value(out, q, (json_t *)arguments, custom);
        text = json_str(arguments, "host", NULL);
        if (text)
                add_text(&out->hosts, &out->host_count, mem_strdup(text));
}

void policy_thing_of_file(struct policy_thing *out, const struct policy_question *q,
                          const char *path)
{
        policy_thing_of_call(out, q);
        free(out->path);
        out->path = policy_path(q->cwd, path);
}

void policy_thing_release(struct policy_thing *t)
{
        for (size_t i = 0; i < t->host_count; i++)
                free(t->hosts[i]);
        for (size_t i = 0; i < t->word_count; i++)
                free(t->words[i]);
        free(t->hosts);
        free(t->words);
        free(t->path);
        *t = (struct policy_thing){ 0 };
}

/* ---- matching ---- */

bool policy_match_scope(const struct policy_rule *r, const struct policy_question *q,
                        enum policy_decision decide)
{
        const char *custom =
                strcmp(q->tool, "invoke_tool") == 0 ? json_str(q->arguments, "tool", NULL) : NULL;

        if (r->tool && !match_glob(r->tool, q->tool) && !(custom && match_glob(r->tool, custom)))
                return false;
        if ((r->adapter && !match_glob(r->adapter, q->adapter)) ||
            (r->channel && !match_glob(r->channel, q->channel)))
                return false;
        if (decide == POLICY_ALLOW)
                return r->untrusted || !q->untrusted || !q->risky;
        return !r->untrusted || q->untrusted;
}

/* "git push *" is also "git push". */
static bool match_text(const char *glob, const char *text)
{
        size_t n = strlen(glob);

        return match_glob(glob, text) || (n > 2 && strcmp(glob + n - 2, " *") == 0 &&
                                          strlen(text) == n - 2 && strncmp(glob, text, n - 2) == 0);
}

static bool match_command(const char *glob, const struct policy_thing *thing,
                          enum policy_decision decide)
{
        const struct shell_part *p = thing->part;

        if (!p || !p->text)
                return false;
        /* p->text begins with the variables that are set, which an allowed text must name */
        if (decide == POLICY_ALLOW)
                return match_text(glob, p->text) && (!p->open || glob[strlen(glob) - 1] == '*');
        return match_text(glob, p->plain) || match_text(glob, p->text);
}

/* With words that are only known when it runs. */
static bool could_match_command(const char *glob, const struct policy_thing *thing)
{
        const struct shell_part *p = thing->part;
        size_t n = strlen(glob);
        char *shorter;
        bool could;

        if (!p || !p->text || !p->pattern)
                return false;
        shorter = mem_strndup(glob, n > 2 && strcmp(glob + n - 2, " *") == 0 ? n - 2 : n);
        could = could_match_glob(glob, p->pattern) || could_match_glob(shorter, p->pattern);
        free(shorter);
        return could;
}

static bool match_file(const char *glob, const struct policy_question *q,
                       const struct policy_thing *thing, enum policy_decision decide)
{
        char *whole = policy_path(q->cwd, glob);
        bool matches = thing->path && policy_match_path(whole, thing->path);

        if (decide != POLICY_ALLOW) {
                matches = matches || thing->path_unknown;
                for (size_t i = 0; !matches && i < thing->word_count; i++)
                        matches = policy_match_path(whole, thing->words[i]);
        }
        free(whole);
        return matches;
}

static bool match_host(const char *glob, const struct policy_thing *thing,
                       enum policy_decision decide)
{
        size_t matching = 0;

        for (size_t i = 0; i < thing->host_count; i++)
                matching += match_glob(glob, thing->hosts[i]);
        return decide == POLICY_ALLOW ? matching > 0 && matching == thing->host_count
                                      : matching > 0;
}

bool policy_match(const struct policy_rule *r, const struct policy_question *q,
                  const struct policy_thing *thing, enum policy_decision decide)
{
        if (!policy_match_scope(r, q, decide))
                return false;
        return (!r->command || match_command(r->command, thing, decide) ||
                (decide != POLICY_ALLOW && could_match_command(r->command, thing))) &&
               (!r->path || match_file(r->path, q, thing, decide)) &&
               (!r->host || match_host(r->host, thing, decide));
}

bool policy_match_is_sure(const struct policy_rule *r, const struct policy_thing *thing)
{
        return (!r->command || match_command(r->command, thing, POLICY_DENY)) &&
               (!r->path || !thing->path_unknown);
}
