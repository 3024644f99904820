#include "platform/markdown/md_dialect.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool starts_with(struct slice url, const char *prefix)
{
        size_t n = strlen(prefix);

        return url.n >= n && strncasecmp(url.p, prefix, n) == 0;
}

static bool is_web(struct slice url)
{
        return starts_with(url, "http://") || starts_with(url, "https://");
}

void md_dialect_add_url(struct buf *out, struct slice url)
{
        for (size_t i = 0; i < url.n; i++) {
                unsigned char c = (unsigned char)url.p[i];

                if (c <= ' ' || c == 0x7f || strchr("<>\"|`()*~\\@[]", c))
                        buf_addf(out, "%%%02X", c);
                else
                        buf_addch(out, (char)c);
        }
}

bool md_dialect_is_person(struct slice url)
{
        return starts_with(url, "tg:");
}

/* ---- plain: shown as written ---- */

static void plain_escape(struct buf *out, char c, char before, char after, bool code)
{
        (void)before;
        (void)after;
        (void)code;
        buf_addch(out, c);
}

static bool plain_link(struct buf *open, struct buf *close, struct slice url)
{
        (void)open;
        (void)close;
        (void)url;
        return false;
}

/* HTML and mrkdwn share three entities. */
static void add_entity(struct buf *out, char c)
{
        if (c == '&')
                buf_addstr(out, "&amp;");
        else if (c == '<')
                buf_addstr(out, "&lt;");
        else if (c == '>')
                buf_addstr(out, "&gt;");
        else
                buf_addch(out, c);
}

/* ---- Discord: a backslash escapes any punctuation, but not in code ---- */

static void discord_escape(struct buf *out, char c, char before, char after, bool code)
{
        /* a code block ends at any three backticks, inline code at as many as it began with */
        if (code && c == '`' && before == '`')
                buf_addstr(out, MD_ZERO_WIDTH);
        if (!code && (strchr("\\*_~`|<>#[]", c) ||
                      (c == '-' && (after == ' ' || after == '#' || after == '\n'))))
                buf_addch(out, '\\');
        buf_addch(out, c);
}

static bool discord_link(struct buf *open, struct buf *close, struct slice url)
{
        if (!is_web(url))
                return false;
        buf_addch(open, '[');
        buf_addstr(close, "](");
        md_dialect_add_url(close, url);
        buf_addch(close, ')');
        return true;
}

/* ---- Slack: marks have no escape; a zero-width space after one disables it ---- */

static void slack_escape(struct buf *out, char c, char before, char after, bool code)
{
        bool opens = strchr("*_~", c) && !isalnum((unsigned char)before) && !(before & 0x80) &&
                     after != ' ' && after != '\n';

        if (code ? c == '`' && before == '`' : c == '>' && before == '\n')
                buf_addstr(out, MD_ZERO_WIDTH);
        add_entity(out, c);
        if (!code && (c == '`' || opens))
                buf_addstr(out, MD_ZERO_WIDTH);
}

/* An address such as mailto:bob@here.com might ping, so it stays text. */
static bool names_a_room(struct slice url)
{
        for (size_t i = 0; i < url.n; i++) {
                struct slice rest = { url.p + i, url.n - i };

                if (starts_with(rest, "@here") || starts_with(rest, "@everyone") ||
                    starts_with(rest, "@channel"))
                        return true;
        }
        return false;
}

static bool slack_link(struct buf *open, struct buf *close, struct slice url)
{
        if ((!is_web(url) && !starts_with(url, "mailto:")) || names_a_room(url))
                return false;
        buf_addch(open, '<');
        for (size_t i = 0; i < url.n; i++) {
                unsigned char c = (unsigned char)url.p[i];

                if (c <= ' ' || c == 0x7f || strchr("<>|", c))
                        buf_addf(open, "%%%02X", c);
                else
                        add_entity(open, (char)c);
        }
        buf_addch(open, '|');
        buf_addch(close, '>');
        return true;
}

/* ---- Telegram: a few tags. https://core.telegram.org/bots/api#html-style ---- */

static void telegram_escape(struct buf *out, char c, char before, char after, bool code)
{
        (void)before;
        (void)after;
        (void)code;
        add_entity(out, c);
}

static bool telegram_link(struct buf *open, struct buf *close, struct slice url)
{
        if (!is_web(url) && !starts_with(url, "mailto:") && !starts_with(url, "tg://"))
                return false;
        buf_addstr(open, "<a href=\"");
        for (size_t i = 0; i < url.n; i++) {
                unsigned char c = (unsigned char)url.p[i];

                if (c <= ' ' || c == 0x7f)
                        buf_addf(open, "%%%02X", c);
                else if (c == '"')
                        buf_addstr(open, "&quot;");
                else
                        add_entity(open, (char)c);
        }
        buf_addstr(open, "\">");
        buf_addstr(close, "</a>");
        return true;
}

const struct md_dialect md_dialects[] = {
        [MARKDOWN_PLAIN] = {
                .quote_line = "> ",
                .quote_depth = 4,
                .quote_code = true,
                .bullet = "-",
                .todo = "- [ ]",
                .done = "- [x]",
                .rule = "----------",
                .escape = plain_escape,
                .link = plain_link,
        },
        [MARKDOWN_DISCORD] = {
                .bold = { "**", "**" },
                .italic = { "*", "*" },
                .strike = { "~~", "~~" },
                .mono = { "`", "`" },
                .mono_ticks = { "``" MD_ZERO_WIDTH, MD_ZERO_WIDTH "``" },
                .pre = { "```\n", "\n```" },
                .pre_lang = { "```%s\n", "\n```" },
                .quote_line = "> ",
                .quote_depth = 1,
                .quote_code = true,
                .headings = true,
                .line_marks = true,
                .broadcast = true,
                .joint = MD_JOINT_MARKS,
                .bullet = "-",
                .todo = "- ☐",
                .done = "- ☑",
                .rule = "──────────",
                .escape = discord_escape,
                .link = discord_link,
                .bare_links = true,
        },
        [MARKDOWN_SLACK] = {
                .bold = { "*", "*" },
                .italic = { "_", "_" },
                .strike = { "~", "~" },
                .mono = { "`", "`" },
                .pre = { "```\n", "\n```" },
                .quote_line = "> ",
                .quote_depth = 1,
                .line_marks = true,
                .broadcast = true,
                .joint = MD_JOINT_WORDS,
                .bullet = "•",
                .todo = "☐",
                .done = "☑",
                .rule = "──────────",
                .escape = slack_escape,
                .link = slack_link,
        },
        [MARKDOWN_TELEGRAM_HTML] = {
                .bold = { "<b>", "</b>" },
                .italic = { "<i>", "</i>" },
                .strike = { "<s>", "</s>" },
                .mono = { "<code>", "</code>" },
                .mono_ticks = { "<code>", "</code>" },
                .pre = { "<pre>", "</pre>" },
                .pre_lang = { "<pre><code class=\"language-%s\">", "</code></pre>" },
                .quote = { "<blockquote>", "</blockquote>" },
                .quote_depth = 1,
                .quote_code = true,
                .mono_alone = true,
                .names_ping = true,
                .bullet = "•",
                .todo = "☐",
                .done = "☑",
                .rule = "──────────",
                .escape = telegram_escape,
                .link = telegram_link,
        },
};
