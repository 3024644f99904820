/*
 * no_reply: answers meaning "no reply".
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "road/turn/turn.h"

static const char *const always[] = { "[SILENT]", "no action needed" };

#define SPACE " \t\r\n"

/* Strips surrounding space and a final full stop. */
static struct slice trimmed(const char *text)
{
        struct slice s = slice_of(text ? text : "");

        while (s.n > 0 && strchr(SPACE, *s.p)) {
                s.p++;
                s.n--;
        }
        while (s.n > 0 && (strchr(SPACE, s.p[s.n - 1]) || s.p[s.n - 1] == '.'))
                s.n--;
        return s;
}

/* Is the text one of the phrases, or with `begins` a prefix of one? */
static bool matches(const struct reply_policy *policy, struct slice text, bool begins)
{
        for (size_t i = 0; i < COUNT(always) + policy->no_reply_count; i++) {
                struct slice phrase = trimmed(
                        i < COUNT(always) ? always[i] : policy->no_reply[i - COUNT(always)]);

                if ((begins ? phrase.n >= text.n : phrase.n == text.n) &&
                    strncasecmp(phrase.p, text.p, text.n) == 0)
                        return true;
        }
        return false;
}

bool no_reply_matches(const struct reply_policy *policy, const char *text)
{
        struct slice s = trimmed(text);

        return s.n == 0 || matches(policy, s, false);
}

bool no_reply_may_follow(const struct reply_policy *policy, const char *text)
{
        return matches(policy, trimmed(text), true);
}
