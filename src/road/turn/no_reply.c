#include "road/turn/no_reply.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#define BLANKS    " \t\r\n"
#define WORDS_MAX 40

enum verdict {
        ANSWER,  /* certainly not silence */
        PARTIAL, /* ends too early to say */
        SILENCE,
};

/* ---- characters ---- */

/* Spaces and punctuation beyond ASCII. */
static bool is_wide_mark(uint32_t cp)
{
        return cp == 0xa0 || cp == 0xa1 || cp == 0xab || cp == 0xbb || cp == 0xbf ||
               (cp >= 0x2000 && cp <= 0x206f) || (cp >= 0x3000 && cp <= 0x303f) ||
               (cp >= 0xff01 && cp <= 0xff0f) || cp == 0xfeff;
}

/* The length of the mark at p; 0: none. */
static size_t mark_length(const char *p, const char *ascii)
{
        uint32_t cp;
        size_t n;

        if ((unsigned char)*p < 0x80)
                return *p && strchr(ascii, *p) ? 1 : 0;
        n = utf8_decode(p, strnlen(p, 4), &cp);
        return is_wide_mark(cp) ? n : 0;
}

static const char *skip(const char *p, const char *ascii)
{
        size_t n;

        while ((n = mark_length(p, ascii)) > 0)
                p += n;
        return p;
}

/* ---- marker ---- */

/* Skips what may surround a marker, with the language of a code fence. */
static const char *skip_marks(const char *p)
{
        static const char marks[] = BLANKS "\"'>#-+|\\*_~";
        size_t ticks;

        for (p = skip(p, marks); (ticks = strspn(p, "`")) > 0; p = skip(p, marks)) {
                const char *end = p + ticks + strcspn(p + ticks, " \t\r\n[`");

                p += ticks;
                if (ticks >= 3 && (*end == '\0' || *end == '\r' || *end == '\n'))
                        p = end;
        }
        return p;
}

/* After "[SILENT]": does a link target or a reference follow? */
static bool is_link(const char *p)
{
        const char *end;

        if (*p == '[')
                return strchr(p, ']') && strncasecmp(p + 1, "silent", 6) != 0;
        end = *p == '(' ? p + 1 + strcspn(p + 1, BLANKS ")") : p;
        return *p == '(' && *end == ')' && strcspn(p, ":/#.") < (size_t)(end - p);
}

static enum verdict read_marker(const char *text)
{
        static const char openers[] = "[({<", closers[] = "])}>", word[] = "SILENT";
        const char *p = skip_marks(text), *opener;
        bool exact = true;

        if (*p == '(' && *skip_marks(p + 1) == '[')
                p = skip_marks(p + 1);
        opener = *p ? strchr(openers, *p) : NULL;
        if (!opener)
                return *p ? ANSWER : PARTIAL;
        p = skip(p + 1, " `*_\\\"'");
        for (size_t i = 0; i < strlen(word); i++, p++) {
                if (!*p)
                        return PARTIAL;
                if (toupper((unsigned char)*p) != word[i])
                        return ANSWER;
                exact = exact && *p == word[i];
        }
        p = skip(p, " `*_\\\"'/");
        if (*opener != '[') {
                if (!exact || (*p && *p != closers[opener - openers]))
                        return ANSWER;
                return *skip(p, BLANKS "])}>.,:;!`*_~\"'") ? ANSWER : SILENCE;
        }
        /* "[SILENT: nobody asked]" and an answer cut off within the marker */
        if (*p != ']')
                return !*p || (exact && strchr(":;,.!-", *p)) ? SILENCE : ANSWER;
        return is_link(p + 1) ? ANSWER : SILENCE;
}

bool no_reply_is_marked(const char *text)
{
        return text && read_marker(text) == SILENCE;
}

/* ---- phrases ---- */

/* They change nothing about a phrase: "no further action is needed from me at this time". */
static const char *const fillers[] = {
        "additional", "are",    "as",      "at",    "be",  "by",   "case", "currently", "end",
        "far",        "for",    "from",    "here",  "i",   "in",   "is",   "just",      "me",
        "my",         "moment", "further", "have",  "now", "of",   "ok",   "okay",      "on",
        "part",       "point",  "really",  "right", "s",   "side", "so",   "stage",     "the",
        "then",       "there",  "this",    "time",  "ve",  "well", "yet",
};

static bool same_word(struct slice word, struct slice wanted, bool prefix)
{
        return (prefix ? word.n <= wanted.n : word.n == wanted.n) &&
               strncasecmp(word.p, wanted.p, word.n) == 0;
}

static bool is_filler(struct slice word, bool prefix)
{
        for (size_t i = 0; i < COUNT(fillers); i++) {
                if (same_word(word, slice_of(fillers[i]), prefix))
                        return true;
        }
        return false;
}

/* The length of the word character at p; 0: none. "_" counts within a word. */
static size_t letter_length(const char *p, bool inside)
{
        uint32_t cp;
        size_t n;

        if (*p == '_')
                return inside && isalnum((unsigned char)p[1]) ? 1 : 0;
        if ((unsigned char)*p < 0x80)
                return isalnum((unsigned char)*p) ? 1 : 0;
        n = utf8_decode(p, strnlen(p, 4), &cp);
        return is_wide_mark(cp) ? 0 : n;
}

/* The next word of *text, of length 0 at its end. */
static struct slice next_word(const char **text)
{
        const char *p = *text;
        struct slice word;
        size_t n;

        while (*p && letter_length(p, false) == 0)
                p += mark_length(p, "") ? mark_length(p, "") : 1;
        word.p = p;
        while ((n = letter_length(p, p > word.p)) > 0)
                p += n;
        word.n = (size_t)(p - word.p);
        *text = p;
        return word;
}

/* Without words, a phrase is compared as it is. */
static bool is_same_text(const char *text, const char *phrase)
{
        struct slice t = slice_of(text + strspn(text, BLANKS));

        while (t.n > 0 && strchr(BLANKS, t.p[t.n - 1]))
                t.n--;
        return t.n > 0 && t.n == strlen(phrase) && memcmp(t.p, phrase, t.n) == 0;
}

static enum verdict read_phrase(const char *text, const char *phrase)
{
        size_t n = strlen(phrase);
        bool open_ended = n > 1 && phrase[n - 1] == '*';
        const char *rest = phrase;
        struct slice wanted = next_word(&rest), word;

        if (wanted.n == 0)
                return is_same_text(text, phrase) ? SILENCE : ANSWER;
        for (size_t i = 0; i < WORDS_MAX; i++) {
                word = next_word(&text);
                if (word.n == 0)
                        return wanted.n == 0 ? SILENCE : PARTIAL;
                if (wanted.n > 0 && same_word(word, wanted, false))
                        wanted = next_word(&rest);
                else if (wanted.n == 0 && open_ended)
                        return SILENCE;
                else if (!is_filler(word, false))
                        return *text == '\0' && (is_filler(word, true) ||
                                                 (wanted.n > 0 && same_word(word, wanted, true)))
                                       ? PARTIAL
                                       : ANSWER;
        }
        return ANSWER;
}

/* The best of all phrases. */
static enum verdict read_phrases(const struct reply_policy *policy, const char *text)
{
        int64_t most = policy->no_reply_chars > 0 ? policy->no_reply_chars : NO_REPLY_CHARS;
        enum verdict best = ANSWER;

        if (strchr(text, '?') || strstr(text, "？") ||
            utf8_length(text, strlen(text), UTF8_CODE_POINTS) > (size_t)most)
                return ANSWER;
        if (policy->mode == MODE_AMBIENT)
                best = read_phrase(text, "no action needed");
        for (size_t i = 0; i < policy->no_reply_count; i++) {
                enum verdict v = read_phrase(text, policy->no_reply[i]);

                best = v > best ? v : best;
        }
        return best;
}

/* ---- both ---- */

bool no_reply_matches(const struct reply_policy *policy, const char *text)
{
        if (!text || text[strspn(text, BLANKS)] == '\0')
                return policy->mode == MODE_AMBIENT;
        return no_reply_is_marked(text) || read_phrases(policy, text) == SILENCE;
}

bool no_reply_may_follow(const struct reply_policy *policy, const char *text)
{
        return read_marker(text) != ANSWER || read_phrases(policy, text) != ANSWER;
}
